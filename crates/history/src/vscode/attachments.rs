//! What was sent along with a request: `variableData.variables`.

use serde_json::Value;

use super::uri::place_of;
use crate::json::{Members, message_of};
use crate::normal::{AttachmentKind, ForeignAttachment};

pub(crate) fn attachment_of(value: Value) -> ForeignAttachment {
    let mut members = match Members::of(value) {
        Ok(members) => members,
        Err(other) => {
            let raw = [("value".to_owned(), other)].into_iter().collect();
            return ForeignAttachment { raw, ..ForeignAttachment::default() };
        }
    };
    let foreign_kind = members.string("kind");
    let content = members.any("value");
    let mut place = content.as_ref().filter(|value| value.is_object()).and_then(place_of);
    let mut text = content.as_ref().and_then(message_of).or_else(|| members.string("content"));
    if place.is_none() {
        // A path without a scheme is words as well: only what says that it is a file is taken for one.
        let is_uri = text.as_ref().is_some_and(|text| text.starts_with("file:") || text.starts_with("vscode-"));
        place = if is_uri { content.as_ref().and_then(place_of) } else { members.peek("uri").and_then(place_of) };
    }
    if place.is_some() {
        text = text.filter(|text| place.as_ref().is_some_and(|place| place.uri != *text));
    }
    let is_folder = members.flag("isDirectory").unwrap_or(false);
    let is_file = members.flag("isFile").unwrap_or(false);
    let kind = match foreign_kind.as_deref() {
        Some(kind) => kind_of(kind, place.as_ref().is_some_and(|place| place.range.is_some())),
        // Older sessions have flags in place of a kind.
        None if is_folder => AttachmentKind::Folder,
        None if place.as_ref().is_some_and(|place| place.range.is_some()) => AttachmentKind::Selection,
        None if is_file || place.is_some() => AttachmentKind::File,
        None => AttachmentKind::Other,
    };
    let understood = place.is_some() || text.is_some();
    let mut attachment = ForeignAttachment {
        kind,
        foreign_kind: foreign_kind.unwrap_or_default(),
        name: members.string("name").or_else(|| members.string("fullName")).unwrap_or_default(),
        place,
        text,
        raw: members.rest(),
    };
    if let Some(content) = content.filter(|_| !understood) {
        attachment.raw.insert("value".to_owned(), content);
    }
    attachment
}

fn kind_of(kind: &str, has_range: bool) -> AttachmentKind {
    match kind {
        "file" | "implicit" if has_range => AttachmentKind::Selection,
        "file" | "implicit" => AttachmentKind::File,
        "directory" | "workspace" => AttachmentKind::Folder,
        "symbol" => AttachmentKind::Symbol,
        "string" | "paste" | "generic" | "agentFeedback" => AttachmentKind::Text,
        "image" => AttachmentKind::Image,
        "promptFile" | "promptText" => AttachmentKind::Prompt,
        "tool" | "toolset" => AttachmentKind::Tool,
        "command" => AttachmentKind::Command,
        "notebookOutput" | "terminalCommand" | "debugVariable" | "debugEvents" | "element" | "browserView" => {
            AttachmentKind::Output
        }
        "diagnostic" => AttachmentKind::Diagnostic,
        "scmHistoryItem" | "scmHistoryItemChange" | "scmHistoryItemChangeRange" => AttachmentKind::Change,
        "sessionReference" => AttachmentKind::Session,
        _ => AttachmentKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_attachment_is_read() {
        let file = json!({"$mid": 1, "scheme": "file", "path": "/a/b.rs"});
        for (kind, expected) in [
            ("generic", AttachmentKind::Text),
            ("directory", AttachmentKind::Folder),
            ("file", AttachmentKind::File),
            ("tool", AttachmentKind::Tool),
            ("toolset", AttachmentKind::Tool),
            ("implicit", AttachmentKind::File),
            ("string", AttachmentKind::Text),
            ("workspace", AttachmentKind::Folder),
            ("paste", AttachmentKind::Text),
            ("symbol", AttachmentKind::Symbol),
            ("command", AttachmentKind::Command),
            ("image", AttachmentKind::Image),
            ("notebookOutput", AttachmentKind::Output),
            ("diagnostic", AttachmentKind::Diagnostic),
            ("element", AttachmentKind::Output),
            ("promptFile", AttachmentKind::Prompt),
            ("promptText", AttachmentKind::Prompt),
            ("scmHistoryItem", AttachmentKind::Change),
            ("scmHistoryItemChange", AttachmentKind::Change),
            ("scmHistoryItemChangeRange", AttachmentKind::Change),
            ("terminalCommand", AttachmentKind::Output),
            ("debugVariable", AttachmentKind::Output),
            ("agentFeedback", AttachmentKind::Text),
            ("debugEvents", AttachmentKind::Output),
            ("sessionReference", AttachmentKind::Session),
            ("browserView", AttachmentKind::Output),
            ("somethingNew", AttachmentKind::Other),
        ] {
            let read = attachment_of(json!({"kind": kind, "id": "x", "name": "n", "value": file, "own": 1}));
            assert_eq!((read.kind, read.foreign_kind.as_str(), read.name.as_str()), (expected, kind, "n"), "{kind}");
            assert_eq!(read.place.unwrap().path.as_deref(), Some("/a/b.rs"), "{kind}");
            assert_eq!(read.raw.get("own"), Some(&json!(1)), "{kind}");
        }
    }

    #[test]
    fn attachments_of_older_sessions_have_flags_in_place_of_a_kind() {
        let file = json!({"$mid": 1, "scheme": "file", "path": "/a"});
        let selected = json!({"uri": file, "range": {"startLineNumber": 1}});
        let kind = |value: Value| attachment_of(value).kind;
        assert_eq!(kind(json!({"value": file, "isFile": false, "isDirectory": true})), AttachmentKind::Folder);
        assert_eq!(kind(json!({"value": file, "isFile": true})), AttachmentKind::File);
        assert_eq!(kind(json!({"value": selected, "isFile": true})), AttachmentKind::Selection);
        assert_eq!(kind(json!({"value": {"odd": 1}})), AttachmentKind::Other);
        assert_eq!(attachment_of(json!({"value": {"odd": 1}})).raw.get("value"), Some(&json!({"odd": 1})));
    }

    #[test]
    fn words_that_were_sent_along_are_text() {
        let pasted = attachment_of(json!({"kind": "paste", "name": "p", "code": "x", "value": "let x;"}));
        assert_eq!((pasted.text.as_deref(), pasted.place), (Some("let x;"), None));
    }
}
