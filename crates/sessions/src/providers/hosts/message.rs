//! Messages in the form of the protocol.

use std::io;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_wire::ahp::{
    AgentInfo, Message, MessageAttachment, MessageEmbeddedResourceAttachment, MessageResourceAttachment,
    ModelSelection, Object, TextPosition, TextRange, TextSelection,
};
use grove_wire::jsonrpc::MESSAGE_BYTES;

use crate::ids::Uri;
use crate::provider::{AttachedContext, AttachedContextKind, ProviderError, SendOptions};

/// The bytes reserved for the envelope of a message.
const ENVELOPE_BYTES: usize = 16 << 10;
/// The largest message in transit, in JSON and with images in base64: a host closes the connection on a larger one, and
/// everything that waits there is lost.
const MOST_BYTES: usize = MESSAGE_BYTES - ENVELOPE_BYTES;

/// The message, if a host accepts its size.
pub(super) fn message(options: SendOptions, model: Option<String>) -> Result<Message, ProviderError> {
    let attachments: Vec<_> = options.attached_context.into_iter().map(attachment).collect();
    let message = Message {
        text: options.query,
        attachments: Some(attachments).filter(|attachments| !attachments.is_empty()),
        model: model.map(|id| ModelSelection { id, config: None }),
        ..Message::default()
    };
    match encoded_bytes(&message) {
        Ok(bytes) if bytes <= MOST_BYTES => Ok(message),
        Ok(bytes) => Err(ProviderError::Refused(format!(
            "with what is attached the message has {bytes} bytes as it travels, and a host takes {MOST_BYTES}: attach less, \
             a smaller image, or the file itself"
        ))),
        Err(error) => Err(ProviderError::Failed { what: "writing the message", source: error.into() }),
    }
}

/// Refuses images that the agent ignores. The protocol says no more about an agent's abilities, and only explicit
/// statements count: for a model that is not listed, or not known yet while others accept images, the host decides.
pub(super) fn check_images(
    options: &SendOptions,
    agent: Option<&AgentInfo>,
    model: Option<&str>,
) -> Result<(), ProviderError> {
    let Some(agent) = agent else { return Ok(()) };
    if !options.attached_context.iter().any(|attached| attached.kind() == AttachedContextKind::Image) {
        return Ok(());
    }
    let mut models = agent.models.iter().filter(|known| model.is_none_or(|model| known.id == model)).peekable();
    if models.peek().is_none() || models.any(|known| known.supports_vision != Some(false)) {
        return Ok(());
    }
    let who = model.unwrap_or(&agent.display_name);
    Err(ProviderError::Refused(format!("{who} takes no images: leave them out, or choose a model that does")))
}

/// The length of a message in JSON, without building the text.
fn encoded_bytes(message: &Message) -> Result<usize, serde_json::Error> {
    struct Counted(usize);
    impl io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, message)?;
    Ok(counted.0)
}

fn attachment(attached: AttachedContext) -> MessageAttachment {
    match attached {
        AttachedContext::File { uri } => resource(&uri, "document", None, None),
        AttachedContext::Folder { uri } => resource(&uri, "directory", None, None),
        AttachedContext::Selection { uri, first_line, last_line, text } => {
            // The protocol counts lines from zero, and a line ends where the next one begins.
            let line = |line: u64| TextPosition { line, character: 0 };
            let first = u64::from(first_line.saturating_sub(1));
            let range = TextRange { start: line(first), end: line(u64::from(last_line).max(first + 1)) };
            // The selected text may differ from the host's file.
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
        let sent = message(SendOptions { query: "look".into(), attached_context }, Some("m".into())).unwrap();
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
        assert_eq!(message(SendOptions::new("hi"), None).unwrap().attachments, None);
    }

    #[test]
    fn images_are_refused_where_the_host_says_that_the_model_takes_none() {
        let model =
            |id: &str, vision: Option<bool>| json!({"id": id, "provider": "p", "name": id, "supportsVision": vision});
        let agent = |models: Vec<serde_json::Value>| -> AgentInfo {
            let agent = json!({"provider": "p", "displayName": "Agent", "description": "", "models": models});
            serde_json::from_value(agent).unwrap()
        };
        let both = agent(vec![model("sees", Some(true)), model("blind", Some(false)), model("silent", None)]);
        let blind = agent(vec![model("blind", Some(false)), model("dark", Some(false))]);
        let image = AttachedContext::Image { media_type: "image/png".into(), data: Arc::from([1_u8]) };
        let file = AttachedContext::File { uri: "file:///a".into() };
        let with = |attached: &AttachedContext| SendOptions {
            attached_context: vec![attached.clone()],
            ..SendOptions::new("")
        };
        let cases = [
            (Some(&both), Some("sees"), true),
            (Some(&both), Some("blind"), false),
            (Some(&both), Some("silent"), true),
            (Some(&both), Some("not listed"), true),
            (Some(&both), None, true),
            (Some(&blind), None, false),
            (Some(&agent(vec![])), None, true),
            (None, Some("blind"), true),
        ];
        for (agent, model, is_taken) in cases {
            assert_eq!(check_images(&with(&image), agent, model).is_ok(), is_taken, "{model:?}");
            assert!(check_images(&with(&file), agent, model).is_ok(), "{model:?}");
        }
        let refused = check_images(&with(&image), Some(&both), Some("blind")).unwrap_err().to_string();
        assert!(refused.starts_with("blind takes no images: "), "{refused}");
    }

    #[test]
    fn what_is_larger_than_a_host_takes_is_refused_as_it_would_travel() {
        let with = |attached| message(SendOptions { query: "look".into(), attached_context: vec![attached] }, None);
        let image =
            |bytes: usize| AttachedContext::Image { media_type: "image/png".into(), data: vec![0; bytes].into() };
        // Four letters carry three bytes.
        assert!(with(image(MOST_BYTES / 4 * 3 - 1024)).is_ok());
        let refused = with(image(MOST_BYTES / 4 * 3)).unwrap_err();
        assert!(refused.to_string().contains(&format!("a host takes {MOST_BYTES}")), "{refused}");
        let text = |text: String| AttachedContext::Selection {
            uri: "file:///p/a.rs".into(),
            first_line: 1,
            last_line: 2,
            text: text.into(),
        };
        assert!(with(text("x".repeat(MOST_BYTES - 1024))).is_ok());
        // Each of these takes two.
        assert!(with(text("\n".repeat(MOST_BYTES / 2))).is_err());
    }
}
