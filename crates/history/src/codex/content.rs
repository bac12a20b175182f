//! The content of messages, and of tool results.

use grove_transcript::{
    CallState, FileLocation, ToolOutput, TranscriptAttachment, TranscriptAttachmentKind, TranscriptToolCall,
};
use serde_json::Value;

use crate::json::text_of;

/// The text of a message's content.
pub(super) fn content_text(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n\n")
        }
        Value::Null => String::new(),
        other => text_of(other),
    }
}

/// The images of a message's content.
pub(super) fn images(content: &Value) -> Vec<TranscriptAttachment> {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let urls = parts.iter().filter_map(|part| part.get("image_url").and_then(Value::as_str));
    urls.map(image_of).collect()
}

/// An image, by its path or its address. Inline data are not kept.
pub(super) fn image_of(place: &str) -> TranscriptAttachment {
    let place = Some(place).filter(|place| !place.starts_with("data:"));
    TranscriptAttachment {
        kind: TranscriptAttachmentKind::Image,
        foreign_kind: "image".to_owned(),
        name: "image".to_owned(),
        place: place.map(FileLocation::local),
        ..TranscriptAttachment::default()
    }
}

/// Reads a call's result. Older versions write an object as text, and a command's exit code in the text.
pub(super) fn ended(call: &mut TranscriptToolCall, output: Option<Value>) {
    let Some(output) = output else { return };
    let parsed = match &output {
        Value::String(text) if text.starts_with('{') => serde_json::from_str(text).ok(),
        Value::String(_) => None,
        other => Some(other.clone()),
    };
    let text = match &parsed {
        Some(Value::Object(members)) => {
            if members.get("success").and_then(Value::as_bool) == Some(false) {
                call.state = CallState::Failed;
            }
            call.exit_code =
                members.get("metadata").and_then(|metadata| metadata.get("exit_code")?.as_i64()).or(call.exit_code);
            let words = ["output", "content"].iter().find_map(|key| members.get(*key));
            words.map_or_else(|| text_of(&output), content_text)
        }
        Some(parts @ Value::Array(_)) => content_text(parts),
        _ => text_of(&output),
    };
    if call.exit_code.is_none() {
        let head = text.lines().take(6);
        let codes = head.filter_map(|line| {
            ["Exit code: ", "Process exited with code "].iter().find_map(|words| line.strip_prefix(words))
        });
        call.exit_code = codes.filter_map(|code| code.trim().parse().ok()).next();
    }
    let raw = (!matches!(&output, Value::String(raw_text) if *raw_text == text)).then_some(output);
    call.output = Some(ToolOutput { text, raw });
}
