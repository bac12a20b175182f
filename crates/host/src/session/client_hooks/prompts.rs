//! Prompts that wait for the hooks of clients.

use grove_core::*;
use tokio::sync::oneshot;

use super::{HeldPrompt, HookMessage, MAX_STOP_BLOCKS};
use crate::sequencer::HostStopped;
use crate::session::{ActionRefusal, ClientRequest, CommandError, DispatchOutcome, SessionTask, ToSession};

/// The prompts of a session that may wait for hooks. Further ones are refused.
pub const MAX_HELD_PROMPTS: usize = 64;

impl SessionTask {
    /// Holds a prompt until the hooks have seen it. Returns any other message, and a prompt of a session without hooks.
    pub(in crate::session) async fn hold_prompt(
        &mut self,
        mut message: ToSession,
    ) -> Result<Option<ToSession>, HostStopped> {
        let Some(prompt) = prompt_of(&mut message).map(|prompt| prompt.text.clone()) else { return Ok(Some(message)) };
        let caller = self.connected_hooks();
        if caller.is_none() && self.hook_waits.prompts.is_empty() {
            return Ok(Some(message));
        }
        self.hook_waits.stop_blocks = 0;
        if self.hook_waits.prompts.len() >= MAX_HELD_PROMPTS {
            self.refuse_prompt(message).await?;
            return Ok(None);
        }
        let ticket = self.hook_waits.next_ticket();
        let inbox = self.inbox_sender.clone();
        self.hook_waits.prompts.push_back(HeldPrompt { ticket, message, outcome: None });
        self.session_context.env.spawn.spawn(Box::pin(async move {
            let outcome = match caller {
                Some(caller) => caller.prompt_submitted(&prompt).await,
                None => crate::client_hooks::PromptOutcome::default(),
            };
            if let Some(inbox) = inbox.upgrade() {
                // A session that is gone needs no prompt.
                inbox.send(ToSession::Hooks(HookMessage::Prompt { ticket, outcome })).await.ok();
            }
        }));
        Ok(None)
    }

    /// The next prompt whose hooks have answered, with their changes. Prompts keep their order.
    pub(in crate::session) fn next_hooked_prompt(&mut self) -> Option<ToSession> {
        self.hook_waits.prompts.front()?.outcome.as_ref()?;
        let HeldPrompt { mut message, outcome, .. } = self.hook_waits.prompts.pop_front()?;
        if let (Some(prompt), Some(outcome)) = (prompt_of(&mut message), outcome) {
            prompt.text = outcome.apply(std::mem::take(&mut prompt.text));
        }
        Some(message)
    }

    async fn refuse_prompt(&mut self, message: ToSession) -> Result<(), HostStopped> {
        let error = CommandError::TooManyPrompts(MAX_HELD_PROMPTS);
        match message {
            ToSession::Do(_, done) => {
                // The caller may have stopped waiting.
                done.send(Err(error)).ok();
            }
            ToSession::ClientAction(action) => {
                action.record.finish(crate::audit::AuditOutcome::Refused, Some(&error.to_string()));
                let refused = DispatchOutcome::Refused(ActionRefusal::Command(error));
                let reply = crate::sequencer::ToSequencer::SendDirect((action.answer)(refused));
                self.session_context.sequencer.tell(reply).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The prompt with which the agent goes on because a hook does not let it stop.
    pub(super) fn continue_prompt(&mut self, text: String) -> Option<ToSession> {
        if self.hook_waits.stop_blocks >= MAX_STOP_BLOCKS {
            tracing::warn!(session = %self.tip.id, "hooks had the agent go on {MAX_STOP_BLOCKS} times: it stops now");
            return None;
        }
        self.hook_waits.stop_blocks += 1;
        let chat = ChatId::from(Session::MAIN_CHAT);
        let state = self.tip.chat(&chat)?;
        let host = self.session_context.host.upgrade().map(crate::host::Host)?;
        let id = host.new_id().ok()?;
        let message = Message::user(text);
        let command = match state.active.is_none() && state.queued.is_empty() {
            true => ClientCommand::StartTurn { chat, turn: id.as_str().into(), message, started_at: None },
            false => ClientCommand::Enqueue { chat, message: PendingMessage { id: id.as_str().into(), message } },
        };
        let (done, _) = oneshot::channel();
        Some(ToSession::Do(HostCommand::AsClient(command), done))
    }
}

/// The message of a prompt; `None` if something else is sent.
fn prompt_of(message: &mut ToSession) -> Option<&mut Message> {
    let command = match message {
        ToSession::Do(HostCommand::AsClient(command), _) => command,
        ToSession::ClientAction(action) => match &mut action.client_request {
            Ok(ClientRequest::Command(command)) => command.as_mut(),
            Ok(ClientRequest::Truncate { .. }) | Err(_) => return None,
        },
        _ => return None,
    };
    match command {
        ClientCommand::StartTurn { message, .. } => Some(message),
        ClientCommand::Enqueue { message, .. } | ClientCommand::SetSteering { message, .. } => {
            Some(&mut message.message)
        }
        _ => None,
    }
}
