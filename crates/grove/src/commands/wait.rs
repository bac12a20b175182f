//! `grove wait`

use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{Failure, errand, exit, say};
use crate::cli::{Common, WaitArgs};
use crate::connect::{Reach, id_of};
use crate::follow::{Output, TICK, closed};
use crate::show::screen::Screen;
use crate::show::style::harmless;
use crate::talk::any::AnyTalk;
use crate::talk::{End, Talk, View};

/// The state that ends the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was ever asked.
    Idle,
    Complete,
    Failed,
    Cancelled,
    /// A permission request or a question waits for an answer.
    Waiting,
    TimedOut,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Complete => "complete",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Waiting => "waiting",
            State::TimedOut => "timedOut",
        }
    }

    const fn exit_code(self) -> Option<u8> {
        match self {
            State::Idle | State::Complete => None,
            State::Failed => Some(exit::TURN_FAILED),
            State::Cancelled => Some(exit::TURN_CANCELLED),
            State::Waiting => Some(exit::WAITING),
            State::TimedOut => Some(exit::TIMED_OUT),
        }
    }
}

pub(crate) fn run(common: &Common, args: &WaitArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let join = AnyTalk::join(&reach, args.connect.protocol, &args.session, args.chat.as_deref(), Output::Shown);
        let (mut talk, _) = join.await?;
        let timeout = async {
            match args.timeout {
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                None => std::future::pending().await,
            }
        };
        let mut interrupts = signal(SignalKind::interrupt())?;
        let state = tokio::select! {
            state = settled(&mut talk) => state?,
            () = timeout => State::TimedOut,
            _ = interrupts.recv() => return Err(Failure::Said(exit::LEFT)),
        };
        if args.json {
            say(json!({"session": talk.uri(), "state": state.word()}))?;
        } else {
            describe(state, &talk)?;
        }
        state.exit_code().map_or(Ok(()), |code| Err(Failure::Said(code)))
    })
}

/// Waits until the session has nothing left to do, or needs a person.
async fn settled(talk: &mut AnyTalk) -> Result<State, Failure> {
    let mut screen = Screen::new();
    let mut ticks = tokio::time::interval(TICK);
    loop {
        if talk.is_gone() {
            return Err(Failure::NotFound(format!("the session {} is not there any more", id_of(talk.uri()))));
        }
        if !talk.waiting().is_empty() {
            return Ok(State::Waiting);
        }
        if let Some(state) = talk.look(ended) {
            return Ok(state);
        }
        tokio::select! {
            changed = talk.changed() => changed.map_err(|why| closed(why, talk.uri()))?,
            _ = ticks.tick() => screen.spin("waiting for the turn to end")?,
        }
    }
}

fn ended(view: &View<'_>) -> Option<State> {
    if view.active.is_some() || !view.queued.is_empty() {
        return None;
    }
    Some(match view.turns.last().and_then(|turn| turn.end) {
        None => State::Idle,
        Some(End::Complete) => State::Complete,
        Some(End::Failed(_)) => State::Failed,
        Some(End::Cancelled) => State::Cancelled,
    })
}

fn describe(state: State, talk: &AnyTalk) -> Result<(), Failure> {
    let id = id_of(talk.uri());
    match state {
        State::Idle => say(format!("{id} has no turns: `grove send {id} PROMPT` starts one"))?,
        State::Complete => say(format!("the turn in {id} is complete"))?,
        State::Cancelled => say(format!("the turn in {id} was cancelled"))?,
        State::Failed => {
            let why = talk.look(|view| match view.turns.last().and_then(|turn| turn.end) {
                Some(End::Failed(why)) => harmless(why),
                _ => String::new(),
            });
            say(format!("the turn in {id} failed: {why}"))?;
        }
        State::Waiting => {
            for waiting in talk.waiting() {
                say(format!("{id} waits for an answer: {}", harmless(&waiting.summary())))?;
            }
        }
        State::TimedOut => say(format!("{id} is still at work"))?,
    }
    Ok(())
}
