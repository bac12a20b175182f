//! Starting an agent's process, and opening its conversation.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::super::Reply;
use super::super::choices::Choices;
use super::super::last_words::with_last_words;
use super::super::open::{OpenError, Recollection, greet};
use super::super::process::Process;
use super::super::start::launch;
use super::{CLOSING, Worker};
use crate::acp::connection::CallError;
use crate::acp::fleet::Place;
use crate::agent::*;

impl Worker {
    /// Starts the agent before its first turn, so that a session that cannot work is known to be one from its creation on.
    /// Where every place is taken by a turn, the agent starts with its first turn.
    pub(super) async fn start_now(&mut self, within: Duration, mut reply: Reply) {
        let mut closing = self.closing.clone();
        let started = {
            let deadline = Instant::now() + within;
            let given_up = async {
                tokio::select! {
                    () = reply.closed() => {}
                    _ = closing.wait_for(|closing| *closing) => {}
                }
            };
            tokio::select! {
                biased;
                () = given_up => None,
                started = self.start_by(deadline) => Some(started),
            }
        };
        match started {
            Some(Ok(Started::Yes)) => {
                reply.send(Ok(())).ok();
            }
            Some(Ok(Started::Late)) => {
                let how = format!("it was not ready within {} s", within.as_secs_f32());
                let how = with_last_words(how, self.chat.folder()).await;
                self.drop_unopened().await;
                reply.send(Err(AgentError::Start(how))).ok();
            }
            Some(Err(error)) => {
                self.drop_unopened().await;
                reply.send(Err(error)).ok();
            }
            // Nobody wants the chat any more, or the host ends.
            None => {
                self.drop_unopened().await;
                super::super::remove(self.chat.folder()).await;
            }
        }
    }

    async fn start_by(&mut self, deadline: Instant) -> Result<Started, AgentError> {
        let Ok(place) = timeout_at(deadline, self.chat.fleet.places().take_from_idle()).await else {
            return Ok(Started::Yes);
        };
        let Some(place) = place else { return Ok(Started::Yes) };
        match timeout_at(deadline, self.start(None, place)).await {
            Ok(started) => started?,
            Err(_) => return Ok(Started::Late),
        }
        let wishes = self.chosen_wishes();
        // An agent that is slow to take its settings is there all the same, and is told again with its first turn.
        timeout_at(deadline, self.apply(wishes, None)).await.ok();
        Ok(Started::Yes)
    }

    pub(super) async fn start(&mut self, turn: Option<&TurnSink>, place: Place) -> Result<(), AgentError> {
        let alive = launch(&self.chat, place).await?;
        let process = Arc::clone(&alive.process);
        self.shared.set_process(Some(Arc::clone(&process)));
        self.alive = Some(alive);
        self.refused.clear();
        let opened = async { greet(&self.chat, &process).await?.open(self.known_as.as_deref()).await };
        let opened = match opened.await {
            Ok(opened) => opened,
            Err(error) => return Err(AgentError::Start(self.why(&process, error).await)),
        };
        // Whoever prompts it next may be somebody else: a start that is given up behind this leaves it running.
        self.recollection = opened.recollection;
        let mut events = Vec::new();
        let session = opened.session.0.to_string();
        let before = self.known_as.replace(session.clone());
        if before.as_ref() != Some(&session) {
            events.push(AgentEvent::KnownAs(session));
        }
        process.with_choices(|choices| {
            *choices = Choices::of(opened.result);
            self.chat.learned.models(choices.settings());
            if opened.recollection == Recollection::Empty {
                self.chat.learned.defaults(choices.settings());
            }
            events.extend(choices.settings().event());
        });
        self.lost_conversation = before.is_some() && opened.recollection == Recollection::Empty;
        self.report(turn, events).await;
        Ok(())
    }

    pub(super) async fn place(&self, turn: Option<&TurnSink>) -> Place {
        let places = self.chat.fleet.places();
        if let Some(place) = places.try_take() {
            return place;
        }
        if let Some(turn) = turn {
            let most = self.chat.fleet.options().processes;
            let waits = format!("{most} agents are running, as many as may: this turn begins when one of them stops.");
            self.report(Some(turn), vec![AgentEvent::Notice(waits)]).await;
        }
        places.take().await
    }

    /// Why an agent did not start, as well as it can be known.
    async fn why(&self, process: &Process, error: OpenError) -> String {
        if let OpenError::Call(CallError::Ended | CallError::Shim(_)) = error {
            // Whoever hears it is about to know more.
            let mut changes = process.changes();
            let known = async { while process.ended().is_none() && changes.changed().await.is_ok() {} };
            timeout(CLOSING, known).await.ok();
            if let Some(how) = process.ended() {
                return how;
            }
        }
        with_last_words(error.to_string(), self.chat.folder()).await
    }
}

/// Whether an agent is initialised.
enum Started {
    Yes,
    /// It took too long.
    Late,
}
