//! `grove wait`

use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{Failure, command_runtime, exit, print_line};
use crate::chat_client::any::AnyChatClient;
use crate::chat_client::{ChatClient, ChatView, TurnResult};
use crate::cli::{Common, WaitArgs};
use crate::connect::{HostConnector, id_of};
use crate::follow::{OutputFormat, TICK, closed};
use crate::show::screen::ChatScreen;
use crate::show::style::sanitize;

/// The state that ends the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitResult {
    /// The session has no turns.
    Idle,
    Complete,
    Failed,
    Cancelled,
    /// A permission request or a question waits for an answer.
    Waiting,
    TimedOut,
}

impl WaitResult {
    const fn word(self) -> &'static str {
        match self {
            WaitResult::Idle => "idle",
            WaitResult::Complete => "complete",
            WaitResult::Failed => "failed",
            WaitResult::Cancelled => "cancelled",
            WaitResult::Waiting => "waiting",
            WaitResult::TimedOut => "timedOut",
        }
    }

    const fn exit_code(self) -> Option<u8> {
        match self {
            WaitResult::Idle | WaitResult::Complete => None,
            WaitResult::Failed => Some(exit::TURN_FAILED),
            WaitResult::Cancelled => Some(exit::TURN_CANCELLED),
            WaitResult::Waiting => Some(exit::WAITING),
            WaitResult::TimedOut => Some(exit::TIMED_OUT),
        }
    }
}

pub(crate) fn run(common: &Common, args: &WaitArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let join = AnyChatClient::join(
            &connector,
            args.connect.protocol,
            &args.session.reference,
            args.chat.name.as_deref(),
            OutputFormat::Shown,
        );
        let (mut chat_client, _) = join.await?;
        let timeout = async {
            match args.timeout {
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                None => std::future::pending().await,
            }
        };
        let mut interrupts = signal(SignalKind::interrupt())?;
        let state = tokio::select! {
            state = settled(&mut chat_client) => state?,
            () = timeout => WaitResult::TimedOut,
            _ = interrupts.recv() => return Err(Failure::Exit(exit::LEFT)),
        };
        if args.json {
            print_line(json!({"session": chat_client.uri(), "state": state.word()}))?;
        } else {
            describe(state, &chat_client)?;
        }
        state.exit_code().map_or(Ok(()), |code| Err(Failure::Exit(code)))
    })
}

/// Waits until the session is done, or needs a person.
async fn settled(chat_client: &mut AnyChatClient) -> Result<WaitResult, Failure> {
    let mut screen = ChatScreen::new();
    let mut ticks = tokio::time::interval(TICK);
    loop {
        if chat_client.is_gone() {
            return Err(Failure::NotFound(format!("the session {} was removed", id_of(chat_client.uri()))));
        }
        if !chat_client.waiting().is_empty() {
            return Ok(WaitResult::Waiting);
        }
        if let Some(state) = chat_client.read_view(ended) {
            return Ok(state);
        }
        tokio::select! {
            changed = chat_client.changed() => changed.map_err(|why| closed(why, chat_client.uri()))?,
            _ = ticks.tick() => screen.spin("waiting for the turn to end")?,
        }
    }
}

fn ended(view: &ChatView<'_>) -> Option<WaitResult> {
    if view.active.is_some() || !view.queued.is_empty() {
        return None;
    }
    Some(match view.turns.last().and_then(|turn| turn.end) {
        None => WaitResult::Idle,
        Some(TurnResult::Complete) => WaitResult::Complete,
        Some(TurnResult::Failed(_)) => WaitResult::Failed,
        Some(TurnResult::Cancelled) => WaitResult::Cancelled,
    })
}

fn describe(state: WaitResult, chat_client: &AnyChatClient) -> Result<(), Failure> {
    let id = id_of(chat_client.uri());
    match state {
        WaitResult::Idle => print_line(format!("{id} has no turns: `grove send {id} PROMPT` starts one"))?,
        WaitResult::Complete => print_line(format!("the turn in {id} is complete"))?,
        WaitResult::Cancelled => print_line(format!("the turn in {id} was cancelled"))?,
        WaitResult::Failed => {
            let why = chat_client.read_view(|view| match view.turns.last().and_then(|turn| turn.end) {
                Some(TurnResult::Failed(why)) => sanitize(why),
                _ => String::new(),
            });
            print_line(format!("the turn in {id} failed: {why}"))?;
        }
        WaitResult::Waiting => {
            for waiting in chat_client.waiting() {
                print_line(format!("{id} waits for an answer: {}", sanitize(&waiting.summary())))?;
            }
        }
        WaitResult::TimedOut => print_line(format!("{id} is still working"))?,
    }
    Ok(())
}
