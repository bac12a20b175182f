//! Sessions of other tools: their chats are read-only, and some were started by a tool call.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core as core;

use super::chat::{chat_without_turns, with_turns};
use super::session::{session, summary};
use crate::ahp::uri::{SessionUris, Spelling};
use crate::ahp::*;
use crate::x_grove::history::{HistoryMetadata, META};

/// The tool call that started a chat, and the chat of that call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawningCall {
    pub chat: core::ChatId,
    pub call: core::ToolCallId,
}

/// A session's chats that a tool call started.
pub type SpawningCalls = HashMap<core::ChatId, SpawningCall>;

/// A row of the list, marked as another tool's.
pub fn history_summary(
    session: &core::Session,
    about: &HistoryMetadata,
    names: &SessionUris,
    spelling: Spelling,
) -> SessionSummary {
    let row = summary(session, false, names, spelling);
    let read_only = |chat| SessionChatSummary { interactivity: Some(ChatInteractivity::ReadOnly), ..chat };
    SessionSummary {
        chats: row.chats.map(|chats| chats.into_iter().map(read_only).collect()),
        meta: serde_json::to_value(about).ok().map(|about| Object::from_iter([(META.to_owned(), about)])),
        ..row
    }
}

pub fn history_session(
    session: &core::Session,
    started: &SpawningCalls,
    names: &SessionUris,
    spelling: Spelling,
) -> SessionState {
    let state = self::session(session, names, spelling);
    let chats = session.catalogue.iter().zip(state.chats).map(|(row, summary)| ChatSummary {
        origin: started.get(&row.chat).map(|by| origin(by, names, spelling)),
        interactivity: Some(ChatInteractivity::ReadOnly),
        ..summary
    });
    SessionState { chats: chats.collect(), ..state }
}

/// A chat as JSON, like [`chat_json`](super::chat_json) for the host's own.
pub fn history_chat_json(
    (session, chat): (&core::SessionId, &core::Chat),
    started: &SpawningCalls,
    turns: &[Arc<str>],
    cursor: Option<String>,
    names: &SessionUris,
    spelling: Spelling,
) -> serde_json::Result<String> {
    let state = ChatState {
        turns_next_cursor: cursor,
        origin: started.get(&chat.id).map(|by| origin(by, names, spelling)),
        interactivity: Some(ChatInteractivity::ReadOnly),
        ..chat_without_turns(session, chat, names, spelling)
    };
    with_turns(&state, turns)
}

fn origin(by: &SpawningCall, names: &SessionUris, spelling: Spelling) -> ChatOrigin {
    ChatOrigin::Tool(ToolChatOrigin { chat: names.chat(&by.chat, spelling), tool_call_id: by.call.to_string() })
}
