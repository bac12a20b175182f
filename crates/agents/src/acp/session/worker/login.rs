//! Opening a conversation with an agent that may require a login.

use std::sync::Arc;

use grove_core::{InputResponse, RequestId, TurnId};
use tokio::time::timeout;

use super::super::open::{AgentConversation, ConversationError, InitializedAgent, initialize_agent};
use super::super::process::AgentProcess;
use super::SessionWorker;
use crate::acp::login::{self, LOGIN_CHOICE_TIME, LOGIN_TIME, LoginChoice, LoginMethod};
use crate::agent::*;
use crate::sink::TurnSink;

/// The number of methods that a person may try in one turn.
const TRIES: u32 = 8;

/// The reason why no conversation was opened.
pub(super) enum OpenFailure {
    Conversation(ConversationError),
    /// A person has logged in elsewhere: another process may know it.
    LoggedInElsewhere,
}

impl From<ConversationError> for OpenFailure {
    fn from(error: ConversationError) -> Self {
        OpenFailure::Conversation(error)
    }
}

/// The id of a question how to log in. A host that comes back gives it the same id.
pub(super) fn login_question_id(turn: &TurnId, number: u32) -> RequestId {
    match number {
        0 => format!("{turn}/login").into(),
        number => format!("{turn}/login-{number}").into(),
    }
}

impl SessionWorker {
    /// Opens our conversation. During a turn, a person is asked how to log in if the agent requires that.
    pub(super) async fn open_conversation(
        &mut self,
        turn: Option<&TurnSink>,
        process: &Arc<AgentProcess>,
        attempt: u32,
    ) -> Result<AgentConversation, OpenFailure> {
        let chat = Arc::clone(&self.chat);
        let (name, options) = (&chat.program.display_name, chat.pool.options());
        let starting = format!("{name} has not answered `initialize` yet. It has {} s.", options.start.as_secs_f32());
        let opening = format!("{name} has not opened its session yet. It has {} s.", options.patience.as_secs_f32());
        let agent = self.announce_wait(turn, starting, initialize_agent(&chat, process)).await?;
        let mut tries = 0;
        loop {
            let agent_session_id = self.agent_session_id.as_deref();
            let opened = self.announce_wait(turn, opening.clone(), agent.open(agent_session_id)).await;
            let error = match opened {
                Ok(opened) => return Ok(opened),
                Err(error) => error,
            };
            let (Some(turn), ConversationError::LoginRequired { problem, methods, .. }) = (turn, &error) else {
                return Err(error.into());
            };
            if methods.is_empty() || tries == TRIES {
                return Err(error.into());
            }
            let number = attempt * TRIES + tries;
            match self.ask_how_to_log_in(turn, number, problem, methods).await {
                Some(LoginChoice::Method(method)) => self.log_in(turn, &agent, &method).await,
                Some(LoginChoice::Retry) => return Err(OpenFailure::LoggedInElsewhere),
                // Nobody answered, or a person declined: the turn fails with the agent's words.
                Some(LoginChoice::Decline) | None => return Err(error.into()),
            }
            tries += 1;
        }
    }

    /// The choice of a person; `None` if nobody chose in time.
    async fn ask_how_to_log_in(
        &mut self,
        turn: &TurnSink,
        number: u32,
        problem: &str,
        methods: &[LoginMethod],
    ) -> Option<LoginChoice> {
        // A question of an earlier host is open, and is not asked again.
        let answered: Option<InputResponse> = match self.login_question.take() {
            Some(PendingRequest { answer_from: PendingAnswer::Question(answer), .. }) => {
                timeout(LOGIN_CHOICE_TIME, answer).await.ok()?.ok()
            }
            Some(_) | None => {
                let program = &self.chat.program;
                let id = login_question_id(turn.turn(), number);
                let asked = login::question(id, program.id.as_str(), &program.display_name, problem, methods);
                timeout(LOGIN_CHOICE_TIME, turn.ask(asked)).await.ok()?.ok()
            }
        };
        Some(login::choice(&answered?))
    }

    /// Has the agent log in. After a failure the person is asked again.
    async fn log_in(&self, turn: &TurnSink, agent: &InitializedAgent<'_>, method: &str) {
        let name = &self.chat.program.display_name;
        let words =
            format!("{name} logs in. It may need you in a browser, and has {} minutes.", LOGIN_TIME.as_secs() / 60);
        if let Err(error) = self.announce_wait(Some(turn), words, agent.log_in(method)).await {
            let notice = format!("The login with {method} failed: {error}");
            self.report(Some(turn), vec![AgentEvent::Notice(notice)]).await;
        }
    }
}
