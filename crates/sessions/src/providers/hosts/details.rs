//! Details from a session's own channels: the running tool, the last turn's end, changed files, model, mode, loading.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::Timestamp;
use grove_wire::ahp::{
    ChangesetState, ChangesetStatus, ChatState as HostChat, ChatSummary, FileEdit, ResponsePart, SessionChatSummary,
    SessionInputRequest, SessionLifecycle, SessionState as HostSession, ToolCallState, ToolResultContent, Turn, time,
};
use indexmap::IndexMap;

use crate::ids::{Markdown, Uri};
use crate::session::{ChatFileChange, FileOperation, Mode, StatusBits};

/// The most changed files of a chat. Further ones are left out.
pub const MAX_CHANGES: usize = 1_000;
/// The most pending requests of a session that are shown in the list. Further ones are shown in the session.
pub const MAX_WAITING: usize = 32;

/// The details from the channels of a session. They stay after the subscriptions end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SessionDetails {
    pub(super) loading: bool,
    pub(super) mode: Option<Mode>,
    /// The chosen model of the session.
    pub(super) model: Option<Arc<str>>,
    /// Set if the model is a setting of the session.
    pub(super) model_is_setting: bool,
    /// The main chat, by the session's own state.
    pub(super) main: Option<String>,
    /// Its chats, with the main one, by the session's own state. Their status is in `chats`.
    pub(super) summaries: Vec<SessionChatSummary>,
    /// The details of each chat, by the host's URI.
    pub(super) chats: HashMap<String, ChatDetails>,
    /// Its branch, if its host answers that question.
    pub(super) branch: Option<String>,
    /// The pending requests that a person can answer, by the session's own state.
    pub(super) waiting: Vec<SessionInputRequest>,
}

/// The details of a chat, the main one or another. Unknown facts are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChatDetails {
    /// Its status: by its own channel, else by the session's state. Absent without subscriptions.
    pub(super) status: Option<StatusBits>,
    /// The time of its last change, by the session's state.
    pub(super) updated_at: Option<Timestamp>,
    pub(super) description: Option<Markdown>,
    pub(super) last_turn_end: Option<Timestamp>,
    /// The files that it changed. An empty list means that there are none.
    pub(super) changes: Option<Arc<[ChatFileChange]>>,
    pub(super) model: Option<Arc<str>>,
}

impl SessionDetails {
    /// `chats` holds the states of the chat channels. `changeset` is the session's, if it has one: it knows more
    /// changes than the main chat's calls report.
    pub(super) fn of(
        session: &HostSession,
        mut chats: HashMap<String, ChatDetails>,
        changeset: Option<&ChangesetState>,
        branch: Option<String>,
    ) -> Self {
        let config = session.config.as_ref();
        let value = |key: &str| Some(config?.values.get(key)?.as_str()?.into());
        for chat in &session.chats {
            let details = chats.entry(chat.resource.clone()).or_default();
            details.updated_at = time::parse(&chat.modified_at).ok();
            details.status.get_or_insert_with(|| StatusBits::from_bits(chat.status));
        }
        if let (Some(_), Some(main)) = (self::changeset(session), &session.default_chat) {
            let main = chats.entry(main.clone()).or_default();
            match changeset {
                Some(changeset) => {
                    let edits = changeset.files.iter().map(|file| &file.edit);
                    // A changeset that is being computed is incomplete, too.
                    let is_whole = changeset.status == ChangesetStatus::Ready;
                    main.changes = Some(changes(edits)).filter(|changes| is_whole || !changes.is_empty());
                }
                // Then a chat's calls without changes prove little.
                None => main.changes = main.changes.take().filter(|changes| !changes.is_empty()),
            }
        }
        Self {
            loading: session.lifecycle == SessionLifecycle::Creating,
            mode: value("mode").map(|id| Mode { id, kind: "agent".into() }),
            model: value("model"),
            model_is_setting: config.is_some_and(|config| config.schema.properties.contains_key("model")),
            main: session.default_chat.clone(),
            summaries: session.chats.iter().map(listed).collect(),
            chats,
            branch,
            waiting: session.input_needed.iter().flatten().filter(is_for_person).take(MAX_WAITING).cloned().collect(),
        }
    }

    /// The details of a chat.
    pub(super) fn chat(&self, resource: &str) -> Option<&ChatDetails> {
        self.chats.get(resource)
    }

    /// The summary of a chat in the session's state.
    pub(super) fn summary(&self, resource: &str) -> Option<&SessionChatSummary> {
        self.summaries.iter().find(|chat| chat.resource == resource)
    }

    /// Returns whether some of it holds only during a subscription.
    pub(super) fn is_live(&self) -> bool {
        self.loading
            || !self.waiting.is_empty()
            || self.chats.values().any(|chat| chat.status.is_some() || chat.description.is_some())
    }

    /// Drops the facts that hold only during a subscription.
    pub(super) fn settle(&mut self) {
        self.loading = false;
        self.waiting.clear();
        self.chats.values_mut().for_each(|chat| (chat.status, chat.description) = (None, None));
    }
}

/// Returns whether a person can answer a request in a list: other kinds need the session itself, or a client's tool.
fn is_for_person(request: &&SessionInputRequest) -> bool {
    matches!(request, SessionInputRequest::ChatInput(_) | SessionInputRequest::ToolConfirmation(_))
}

/// A chat of a session's state as a list shows it.
fn listed(chat: &ChatSummary) -> SessionChatSummary {
    SessionChatSummary {
        resource: chat.resource.clone(),
        title: chat.title.clone(),
        origin: chat.origin.clone(),
        interactivity: chat.interactivity,
        status: None,
        changes: chat.changes.clone(),
    }
}

impl ChatDetails {
    /// The details from a chat's own channel.
    pub(super) fn of(chat: &HostChat) -> Self {
        let messages = chat.active_turn.iter().map(|turn| &turn.message);
        let messages = messages.chain(chat.turns.iter().rev().map(|turn| &turn.message));
        let model = messages.filter_map(|message| message.model.as_ref()).next();
        let running = chat.active_turn.as_ref().map(|turn| turn.response_parts.as_slice()).unwrap_or_default();
        let parts = chat.turns.iter().flat_map(|turn| &turn.response_parts).chain(running);
        // Older turns may have changed files, too.
        let is_whole = chat.turns_next_cursor.is_none();
        Self {
            status: Some(StatusBits::from_bits(chat.status)),
            description: running.iter().rev().find_map(description),
            last_turn_end: chat.turns.last().and_then(end),
            changes: Some(changes(parts.flat_map(edits))).filter(|changes| is_whole || !changes.is_empty()),
            model: model.map(|model| model.id.as_str().into()),
            updated_at: None,
        }
    }
}

fn end(turn: &Turn) -> Option<Timestamp> {
    let start = time::parse(turn.started_at.as_deref()?).ok()?;
    let took = u64::try_from(turn.duration.unwrap_or_default()).unwrap_or_default();
    Some(Timestamp(start.0.saturating_add(took)))
}

/// The description of a call that is not over.
fn description(part: &ResponsePart) -> Option<Markdown> {
    let ResponsePart::ToolCall(part) = part else { return None };
    let message = match &part.tool_call {
        ToolCallState::Streaming(call) => call.invocation_message.as_ref().map(|message| message.text()),
        ToolCallState::PendingConfirmation(call) => Some(call.parameters.invocation_message.text()),
        ToolCallState::Running(call) => Some(call.parameters.invocation_message.text()),
        ToolCallState::AuthRequired(call) => Some(call.parameters.invocation_message.text()),
        ToolCallState::PendingResultConfirmation(call) => Some(call.parameters.invocation_message.text()),
        ToolCallState::Completed(_) | ToolCallState::Cancelled(_) | ToolCallState::Unknown(_) => return None,
    };
    let name = || part.tool_call.base().map(|base| base.display_name.as_str());
    message.filter(|message| !message.is_empty()).or_else(name).map(Markdown::from)
}

/// The channel of all changes of a session, if it has one.
pub(super) fn changeset(session: &HostSession) -> Option<String> {
    let all = session.changesets.iter().flatten();
    let whole = all.filter(|changeset| !changeset.uri_template.contains('{'));
    whole.filter(|changeset| changeset.change_kind == "session").map(|changeset| changeset.uri_template.clone()).next()
}

/// The edits that calls report.
fn edits(part: &ResponsePart) -> impl Iterator<Item = &FileEdit> {
    let call = match part {
        ResponsePart::ToolCall(part) => match &part.tool_call {
            ToolCallState::Completed(call) => Some(call),
            _ => None,
        },
        _ => None,
    };
    call.into_iter().flat_map(|call| call.result.content.iter().flatten()).filter_map(|content| match content {
        ToolResultContent::FileEdit(edit) => Some(edit),
        _ => None,
    })
}

/// The changed files, each once.
fn changes<'a>(edits: impl Iterator<Item = &'a FileEdit>) -> Arc<[ChatFileChange]> {
    let mut all: IndexMap<String, ChatFileChange> = IndexMap::new();
    edits.for_each(|edit| take_edit(&mut all, edit));
    all.into_values().collect()
}

fn take_edit(all: &mut IndexMap<String, ChatFileChange>, edit: &FileEdit) {
    let before = edit.before.as_ref();
    let (uri, operation) = match (before, &edit.after) {
        (None, None) => return,
        (None, Some(after)) => (&after.uri, FileOperation::Created),
        (Some(_), Some(after)) => (&after.uri, FileOperation::Modified),
        (Some(before), None) => (&before.uri, FileOperation::Deleted),
    };
    let count = |of: fn(&grove_wire::ahp::FileEditDiffStats) -> Option<u64>| edit.diff.as_ref().and_then(of);
    let (insertions, deletions) = (count(|diff| diff.added), count(|diff| diff.removed));
    // A file that was moved has another URI now.
    let known = before.and_then(|before| all.shift_remove(&before.uri)).or_else(|| all.shift_remove(uri));
    let was_new = known.as_ref().is_some_and(|known| known.operation == FileOperation::Created);
    if was_new && operation == FileOperation::Deleted {
        return;
    }
    if all.len() >= MAX_CHANGES {
        return;
    }
    let original = known.as_ref().map_or_else(
        || before.map(|before| Uri::from(before.content.uri.as_str())),
        |known| known.original_uri.clone(),
    );
    let (had_insertions, had_deletions) = known.map_or((0, 0), |known| (known.insertions, known.deletions));
    let change = ChatFileChange {
        uri: Uri::from(uri.as_str()),
        original_uri: original.filter(|original| !original.as_str().is_empty()),
        operation: if was_new { FileOperation::Created } else { operation },
        insertions: had_insertions.saturating_add(insertions.unwrap_or_default()),
        deletions: had_deletions.saturating_add(deletions.unwrap_or_default()),
    };
    all.insert(uri.clone(), change);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn chat(value: Value) -> HostChat {
        let mut whole = json!({"resource": "ahp-chat:/1", "title": "", "status": 1, "modifiedAt": "", "turns": []});
        whole.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn edit(before: Option<&str>, after: Option<&str>, added: u64) -> Value {
        let side = |uri: &str| json!({"uri": uri, "content": {"uri": format!("old:{uri}")}});
        let mut edit = json!({"type": "fileEdit", "diff": {"added": added, "removed": 1}});
        for (key, uri) in [("before", before), ("after", after)] {
            if let Some(uri) = uri {
                edit[key] = side(uri);
            }
        }
        edit
    }

    fn call(status: &str, message: &str, content: Value) -> Value {
        json!({"kind": "toolCall", "toolCall": {"status": status, "toolCallId": "c", "toolName": "t", "displayName": "Tool",
            "invocationMessage": message, "confirmed": "not-needed", "success": true, "pastTenseMessage": "",
            "content": content}})
    }

    #[test]
    fn the_running_tool_is_the_description() {
        let turn = |parts: Value| {
            json!({"activeTurn": {"id": "t", "startedAt": "2026-01-01T00:00:00.000Z",
                "message": {"text": "", "origin": {"kind": "user"}, "model": {"id": "m1"}}, "responseParts": parts}})
        };
        let details = ChatDetails::of(&chat(turn(json!([
            call("running", "Building", json!([])),
            call("completed", "Read a file", json!([])),
            {"kind": "markdown", "id": "p", "content": "x"},
        ]))));
        assert_eq!(details.description, Some("Building".into()));
        assert_eq!(details.model.as_deref(), Some("m1"));
        let unnamed = ChatDetails::of(&chat(turn(json!([call("running", "", json!([]))]))));
        assert_eq!(unnamed.description, Some("Tool".into()));
        let done = ChatDetails::of(&chat(turn(json!([call("completed", "Read a file", json!([]))]))));
        assert_eq!(done.description, None);
    }

    #[test]
    fn a_turn_ends_when_it_began_and_what_it_took() {
        let turn = json!({"id": "t", "startedAt": "1970-01-01T00:00:01.000Z", "duration": 500, "state": "complete",
            "message": {"text": "", "origin": {"kind": "user"}}, "responseParts": []});
        let details = ChatDetails::of(&chat(json!({"turns": [turn]})));
        assert_eq!(details.last_turn_end, Some(Timestamp(1_500)));
    }

    #[test]
    fn each_changed_file_is_told_once() {
        let edits = json!([
            edit(None, Some("f:///new"), 3),
            edit(Some("f:///new"), Some("f:///new"), 2),
            edit(Some("f:///old"), Some("f:///moved"), 1),
            edit(Some("f:///gone"), None, 0),
            edit(None, Some("f:///short"), 1),
            edit(Some("f:///short"), None, 0),
        ]);
        let turn = json!({"id": "t", "state": "complete", "message": {"text": "", "origin": {"kind": "user"}},
            "responseParts": [call("completed", "", edits)]});
        let details = ChatDetails::of(&chat(json!({"turns": [turn]})));
        let changes = details.changes.unwrap();
        let files: Vec<_> = changes.iter().map(|it| (it.uri.as_str(), it.operation, it.insertions)).collect();
        let expected = [
            ("f:///new", FileOperation::Created, 5),
            ("f:///moved", FileOperation::Modified, 1),
            ("f:///gone", FileOperation::Deleted, 0),
        ];
        assert_eq!(files, expected);
        assert_eq!(changes[0].original_uri, None);
        assert_eq!(changes[1].original_uri, Some("old:f:///old".into()));
    }

    #[test]
    fn settings_tell_mode_and_model_and_lifecycle_tells_loading() {
        let session = json!({"provider": "p", "title": "", "status": 1, "lifecycle": "creating", "activeClients": [],
            "chats": [{"resource": "c", "title": "", "status": 1, "modifiedAt": "1970-01-01T00:00:00.007Z"}],
            "config": {"schema": {"type": "object", "properties": {"model": {"type": "string", "title": "M"}}},
                "values": {"mode": "plan", "model": "m2"}}});
        let details = SessionDetails::of(&serde_json::from_value(session).unwrap(), HashMap::new(), None, None);
        assert!(details.loading && details.model_is_setting);
        assert_eq!(details.mode.as_ref().map(|mode| &*mode.id), Some("plan"));
        let updated_at = details.chat("c").and_then(|chat| chat.updated_at);
        assert_eq!((details.model.as_deref(), updated_at), (Some("m2"), Some(Timestamp(7))));
    }
}
