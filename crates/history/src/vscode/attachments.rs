//! The attachments of a request: `variableData.variables`.

use grove_transcript::uri::location_from;
use grove_transcript::{TranscriptAttachment, TranscriptAttachmentKind};
use serde_json::Value;

use crate::json::{JsonMembers, message_of};

pub(crate) fn attachment_of(value: Value) -> TranscriptAttachment {
    let mut members = match JsonMembers::of(value) {
        Ok(members) => members,
        Err(other) => {
            let raw = [("value".to_owned(), other)].into_iter().collect();
            return TranscriptAttachment { raw, ..TranscriptAttachment::default() };
        }
    };
    let foreign_kind = members.string("kind");
    let content = members.any("value");
    let mut place = content.as_ref().filter(|value| value.is_object()).and_then(location_from);
    let mut text = content.as_ref().and_then(message_of).or_else(|| members.string("content"));
    if place.is_none() {
        // A path without a scheme may be text as well: only an explicit file URI is taken for a file.
        let is_uri = text.as_ref().is_some_and(|text| text.starts_with("file:") || text.starts_with("vscode-"));
        place =
            if is_uri { content.as_ref().and_then(location_from) } else { members.peek("uri").and_then(location_from) };
    }
    if place.is_some() {
        text = text.filter(|text| place.as_ref().is_some_and(|place| place.uri != *text));
    }
    let is_folder = members.flag("isDirectory").unwrap_or(false);
    let is_file = members.flag("isFile").unwrap_or(false);
    let kind = match foreign_kind.as_deref() {
        Some(kind) => kind_of(kind, place.as_ref().is_some_and(|place| place.range.is_some())),
        // Older sessions have flags instead of a kind.
        None if is_folder => TranscriptAttachmentKind::Folder,
        None if place.as_ref().is_some_and(|place| place.range.is_some()) => TranscriptAttachmentKind::Selection,
        None if is_file || place.is_some() => TranscriptAttachmentKind::File,
        None => TranscriptAttachmentKind::Other,
    };
    let understood = place.is_some() || text.is_some();
    let mut attachment = TranscriptAttachment {
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

fn kind_of(kind: &str, has_range: bool) -> TranscriptAttachmentKind {
    match kind {
        "file" | "implicit" if has_range => TranscriptAttachmentKind::Selection,
        "file" | "implicit" => TranscriptAttachmentKind::File,
        "directory" | "workspace" => TranscriptAttachmentKind::Folder,
        "symbol" => TranscriptAttachmentKind::Symbol,
        "string" | "paste" | "generic" | "agentFeedback" => TranscriptAttachmentKind::Text,
        "image" => TranscriptAttachmentKind::Image,
        "promptFile" | "promptText" => TranscriptAttachmentKind::Prompt,
        "tool" | "toolset" => TranscriptAttachmentKind::Tool,
        "command" => TranscriptAttachmentKind::Command,
        "notebookOutput" | "terminalCommand" | "debugVariable" | "debugEvents" | "element" | "browserView" => {
            TranscriptAttachmentKind::Output
        }
        "diagnostic" => TranscriptAttachmentKind::Diagnostic,
        "scmHistoryItem" | "scmHistoryItemChange" | "scmHistoryItemChangeRange" => TranscriptAttachmentKind::Change,
        "sessionReference" => TranscriptAttachmentKind::Session,
        _ => TranscriptAttachmentKind::Other,
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
            ("generic", TranscriptAttachmentKind::Text),
            ("directory", TranscriptAttachmentKind::Folder),
            ("file", TranscriptAttachmentKind::File),
            ("tool", TranscriptAttachmentKind::Tool),
            ("toolset", TranscriptAttachmentKind::Tool),
            ("implicit", TranscriptAttachmentKind::File),
            ("string", TranscriptAttachmentKind::Text),
            ("workspace", TranscriptAttachmentKind::Folder),
            ("paste", TranscriptAttachmentKind::Text),
            ("symbol", TranscriptAttachmentKind::Symbol),
            ("command", TranscriptAttachmentKind::Command),
            ("image", TranscriptAttachmentKind::Image),
            ("notebookOutput", TranscriptAttachmentKind::Output),
            ("diagnostic", TranscriptAttachmentKind::Diagnostic),
            ("element", TranscriptAttachmentKind::Output),
            ("promptFile", TranscriptAttachmentKind::Prompt),
            ("promptText", TranscriptAttachmentKind::Prompt),
            ("scmHistoryItem", TranscriptAttachmentKind::Change),
            ("scmHistoryItemChange", TranscriptAttachmentKind::Change),
            ("scmHistoryItemChangeRange", TranscriptAttachmentKind::Change),
            ("terminalCommand", TranscriptAttachmentKind::Output),
            ("debugVariable", TranscriptAttachmentKind::Output),
            ("agentFeedback", TranscriptAttachmentKind::Text),
            ("debugEvents", TranscriptAttachmentKind::Output),
            ("sessionReference", TranscriptAttachmentKind::Session),
            ("browserView", TranscriptAttachmentKind::Output),
            ("somethingNew", TranscriptAttachmentKind::Other),
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
        assert_eq!(
            kind(json!({"value": file, "isFile": false, "isDirectory": true})),
            TranscriptAttachmentKind::Folder
        );
        assert_eq!(kind(json!({"value": file, "isFile": true})), TranscriptAttachmentKind::File);
        assert_eq!(kind(json!({"value": selected, "isFile": true})), TranscriptAttachmentKind::Selection);
        assert_eq!(kind(json!({"value": {"odd": 1}})), TranscriptAttachmentKind::Other);
        assert_eq!(attachment_of(json!({"value": {"odd": 1}})).raw.get("value"), Some(&json!({"odd": 1})));
    }

    #[test]
    fn words_that_were_sent_along_are_text() {
        let pasted = attachment_of(json!({"kind": "paste", "name": "p", "code": "x", "value": "let x;"}));
        assert_eq!((pasted.text.as_deref(), pasted.place), (Some("let x;"), None));
    }
}
