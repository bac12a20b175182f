//! Calls of hooks, with their time limits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use grove_agents::setup::HookMode;
use grove_core::{Answerer, SessionId};

use super::answer::PartyAnswer;
use super::{
    ClientHookEvent, ClientHookRegistry, ClientHooks, HookAnswer, HookFailure, HookMoment, HookedCall, HookedResult,
    PromptOutcome, ToolOutcome,
};
use crate::env::Clock;

/// The time for which a hook may work. Then it has failed.
pub const HOOK_TIME: Duration = Duration::from_secs(60);
/// The time for which a call waits for a client with hooks to connect. Then the hooks have failed.
pub const CLIENT_WAIT: Duration = Duration::from_secs(20);

/// Calls the hooks of a session's clients.
#[derive(Clone)]
pub(crate) struct HookCaller {
    pub(crate) registry: Arc<ClientHookRegistry>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) session: SessionId,
    pub(crate) folder: String,
}

impl HookCaller {
    /// Asks all hooks whether a tool call may run.
    pub(crate) async fn before_tool(&self, call: HookedCall, mode: HookMode) -> ToolOutcome {
        let event = ClientHookEvent::BeforeTool(call);
        let hook = event.name();
        let answers = self.call_all(event, mode).await;
        ToolOutcome::of(answers, mode, hook)
    }

    /// Tells all hooks of a result. The last changed result counts.
    pub(crate) async fn after_tool(&self, call: HookedCall, result: HookedResult) -> Option<HookedResult> {
        let answers = self.call_connected(ClientHookEvent::AfterTool { call, result }).await;
        answers.into_iter().filter_map(|(_, answer)| answer.ok()?.result).next_back()
    }

    /// Asks all hooks about a prompt. Hooks that fail change nothing.
    pub(crate) async fn prompt_submitted(&self, prompt: &str) -> PromptOutcome {
        let mut outcome = PromptOutcome::default();
        let starting = self.registry.take_starting(&self.session);
        let starts = starting.into_iter().map(|(hooks, source)| {
            let event = ClientHookEvent::SessionStart { source, initial_prompt: prompt.to_owned() };
            async move { self.call(hooks.as_ref(), event).await }
        });
        join_all(starts).await.into_iter().flatten().for_each(|answer| {
            outcome.add(HookAnswer { prompt: None, ..answer });
        });
        let answers = self.call_connected(ClientHookEvent::PromptSubmitted { prompt: prompt.to_owned() }).await;
        answers.into_iter().filter_map(|(_, answer)| answer.ok()).for_each(|answer| outcome.add(answer));
        outcome
    }

    /// Notifies all hooks. Returns the message with which the agent goes on, if one of them does not let it stop.
    pub(crate) async fn notify(&self, event: ClientHookEvent) -> Option<String> {
        let answers = self.call_connected(event).await;
        answers.into_iter().find_map(|(_, answer)| answer.ok().filter(|answer| answer.blocks_stop)?.reason)
    }

    /// Calls all hooks, and waits for a client if none is connected: those of the session are expected.
    async fn call_all(&self, event: ClientHookEvent, mode: HookMode) -> Vec<PartyAnswer> {
        let is_expected = mode == HookMode::Strict;
        if is_expected {
            self.client_arrival().await;
        }
        let mut answers = self.call_connected(event.clone()).await;
        let is_lost = answers.iter().any(|(_, answer)| matches!(answer, Err(HookFailure::Disconnected)));
        if is_expected && is_lost {
            // Its client may come back, and is asked again with all others.
            self.client_arrival().await;
            let again = self.call_connected(event).await;
            answers = if again.is_empty() { answers } else { again };
        }
        match answers.is_empty() {
            true => vec![(Answerer::client("the session's client", None), Err(HookFailure::NoClient))],
            false => answers,
        }
    }

    /// Waits for a client with hooks, if none is connected.
    async fn client_arrival(&self) {
        let arrival = Box::pin(self.registry.arrival(&self.session));
        select(arrival, self.clock.sleep(CLIENT_WAIT)).await;
    }

    async fn call_connected(&self, event: ClientHookEvent) -> Vec<PartyAnswer> {
        let calls = self.registry.of(&self.session).into_iter().map(|client| {
            let event = event.clone();
            async move { (client.hooks.party(), self.call(client.hooks.as_ref(), event).await) }
        });
        join_all(calls).await
    }

    async fn call(&self, hooks: &dyn ClientHooks, event: ClientHookEvent) -> Result<HookAnswer, HookFailure> {
        let hook = event.name();
        let moment =
            HookMoment { session: self.session.clone(), at: self.clock.now(), folder: self.folder.clone(), event };
        let answer = match select(hooks.call(moment), self.clock.sleep(HOOK_TIME)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), _)) => Err(HookFailure::TimedOut(HOOK_TIME.as_secs())),
        };
        if let Err(failure) = &answer {
            tracing::warn!(session = %self.session, hook, %failure, "a hook of a client has no answer");
        }
        answer
    }
}
