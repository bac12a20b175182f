//! Members of a session's state that are derived from its other members.
//!
//! The protocol has no action for two members of its states: the activity in the `status` of a session, which only
//! `inputNeeded` changes, and the schema of its settings. Both follow from the data of actions: the rows of the chats,
//! the open requests, and `_meta.settings`. A client that calls [`derive_session`] after each action has the same state
//! as a snapshot.

use super::{SessionConfigSchema, SessionInputRequest, SessionState, status};
use crate::value_reader::from_value;

/// Updates the activity of a session and the schema of its settings from the rest of its state.
pub fn derive_session(state: &mut SessionState) {
    // A host that sends no chats sets the activity itself.
    if !state.chats.is_empty() {
        state.status = status::with_activity(state.status, activity(state));
    }
    let settings = state.meta.as_ref().and_then(|meta| meta.get("settings")).filter(|settings| settings.is_object());
    if let (Some(settings), Some(config)) = (settings, &mut state.config) {
        let none = || SessionConfigSchema { kind: "object".to_owned(), ..SessionConfigSchema::default() };
        config.schema = from_value(settings).unwrap_or_else(|_| none());
    }
}

fn activity(state: &SessionState) -> u32 {
    let waits = |request: &SessionInputRequest| !matches!(request, SessionInputRequest::ToolClientExecution(_));
    let any = |wanted: u32| state.chats.iter().any(|chat| chat.status & status::ACTIVITY == wanted);
    if state.input_needed.iter().flatten().any(waits) {
        status::INPUT_NEEDED
    } else if any(status::IN_PROGRESS) || any(status::INPUT_NEEDED) {
        status::IN_PROGRESS
    } else if any(status::ERROR) {
        status::ERROR
    } else {
        status::IDLE
    }
}
