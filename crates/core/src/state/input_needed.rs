//! The requests of a session's chats that wait for a person or a client.

use serde::{Deserialize, Serialize};

use crate::ids::*;
use crate::input::InputRequest;
use crate::turn::ToolCall;

/// A request that waits for a person or a client, with its chat. Chat and request together identify it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputNeeded {
    pub request: RequestId,
    pub chat: ChatId,
    pub turn: TurnId,
    pub about: InputSubject,
}

impl InputNeeded {
    /// True if this is `request` of `chat`.
    pub fn is(&self, chat: &ChatId, request: &RequestId) -> bool {
        self.chat == *chat && self.request == *request
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum InputSubject {
    /// A call that waits for permission to run, or for its result to be released.
    ToolConfirmation(Box<ToolCall>),
    Question(Box<InputRequest>),
    /// A call that its client has to run. Nobody is asked.
    ClientExecution(Box<ToolCall>),
}
