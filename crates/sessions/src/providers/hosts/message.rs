//! What is sent, in the words of the protocol.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_wire::ahp::{
    Message, MessageAttachment, MessageEmbeddedResourceAttachment, MessageResourceAttachment, ModelSelection, Object,
    TextPosition, TextRange, TextSelection,
};

use crate::ids::Uri;
use crate::provider::{AttachedContext, SendOptions};

pub(super) fn message(options: SendOptions, model: Option<String>) -> Message {
    let attachments: Vec<_> = options.attached_context.into_iter().map(attachment).collect();
    Message {
        text: options.query,
        attachments: Some(attachments).filter(|attachments| !attachments.is_empty()),
        model: model.map(|id| ModelSelection { id, config: None }),
        ..Message::default()
    }
}

fn attachment(attached: AttachedContext) -> MessageAttachment {
    match attached {
        AttachedContext::File { uri } => resource(&uri, "document", None, None),
        AttachedContext::Folder { uri } => resource(&uri, "directory", None, None),
        AttachedContext::Selection { uri, first_line, last_line, text } => {
            // Lines count from zero there, and a line ends where the next one begins.
            let line = |line: u64| TextPosition { line, character: 0 };
            let first = u64::from(first_line.saturating_sub(1));
            let range = TextRange { start: line(first), end: line(u64::from(last_line).max(first + 1)) };
            // What stood there may not be what the host's file has.
            let meta = Object::from_iter([("text".to_owned(), text.as_ref().into())]);
            resource(&uri, "selection", Some(TextSelection { range }), Some(meta))
        }
        AttachedContext::Image { media_type, data } => {
            MessageAttachment::EmbeddedResource(MessageEmbeddedResourceAttachment {
                label: "image".to_owned(),
                range: None,
                display_kind: Some("image".to_owned()),
                meta: None,
                data: BASE64_STANDARD.encode(data),
                content_type: media_type.to_string(),
                selection: None,
            })
        }
    }
}

fn resource(uri: &Uri, kind: &str, selection: Option<TextSelection>, meta: Option<Object>) -> MessageAttachment {
    let label = uri.basename();
    MessageAttachment::Resource(MessageResourceAttachment {
        label: if label.is_empty() { uri.to_string() } else { label },
        range: None,
        display_kind: Some(kind.to_owned()),
        meta,
        uri: uri.to_string(),
        size_hint: None,
        content_type: None,
        nonce: None,
        selection,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn every_kind_of_attachment_has_its_words() {
        let attached_context = vec![
            AttachedContext::File { uri: "file:///p/a%20b.rs".into() },
            AttachedContext::Folder { uri: "file:///p/src/".into() },
            AttachedContext::Selection { uri: "file:///p/a.rs".into(), first_line: 3, last_line: 4, text: "x".into() },
            AttachedContext::Image { media_type: "image/png".into(), data: Arc::from([1_u8, 2]) },
        ];
        let sent = message(SendOptions { query: "look".into(), attached_context }, Some("m".into()));
        let sent = serde_json::to_value(sent).unwrap();
        let range = json!({"start": {"line": 2, "character": 0}, "end": {"line": 4, "character": 0}});
        assert_eq!(
            sent["attachments"],
            json!([
                {"type": "resource", "label": "a b.rs", "displayKind": "document", "uri": "file:///p/a%20b.rs"},
                {"type": "resource", "label": "src", "displayKind": "directory", "uri": "file:///p/src/"},
                {"type": "resource", "label": "a.rs", "displayKind": "selection", "_meta": {"text": "x"},
                    "uri": "file:///p/a.rs", "selection": {"range": range}},
                {"type": "embeddedResource", "label": "image", "displayKind": "image", "data": "AQI=",
                    "contentType": "image/png"},
            ])
        );
        assert_eq!((&sent["text"], &sent["model"]), (&json!("look"), &json!({"id": "m"})));
        assert_eq!(message(SendOptions::new("hi"), None).attachments, None);
    }
}
