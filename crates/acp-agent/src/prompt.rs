//! A prompt's content blocks as a message.

use agent_client_protocol_schema::v1 as acp;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_wire::ahp::{Message, MessageAttachment, MessageEmbeddedResourceAttachment, MessageResourceAttachment};
use grove_wire::jsonrpc::ErrorObject;

/// The type of a text whose type is not named.
const PLAIN_TEXT: &str = "text/plain";

/// The message of a prompt. Files stay in the text by name, where the user mentioned them.
pub(crate) fn message(blocks: Vec<acp::ContentBlock>) -> Result<Message, ErrorObject> {
    let (mut text, mut attachments) = (String::new(), Vec::new());
    let mut is_after_text = false;
    for block in blocks {
        let is_text = matches!(block, acp::ContentBlock::Text(_));
        match block {
            acp::ContentBlock::Text(block) => {
                if is_after_text {
                    text.push('\n');
                }
                text.push_str(&block.text);
            }
            acp::ContentBlock::Image(image) => {
                let label = image.uri.as_deref().map_or("image", name).to_owned();
                attachments.push(embedded(label, image.data, image.mime_type));
            }
            acp::ContentBlock::ResourceLink(link) => {
                text.push_str(&format!("@{}", link.name));
                attachments.push(resource(link));
            }
            acp::ContentBlock::Resource(block) => {
                let (uri, data, content_type) = match block.resource {
                    acp::EmbeddedResourceResource::TextResourceContents(contents) => {
                        let content_type = contents.mime_type.unwrap_or_else(|| PLAIN_TEXT.to_owned());
                        (contents.uri, BASE64_STANDARD.encode(contents.text), content_type)
                    }
                    acp::EmbeddedResourceResource::BlobResourceContents(contents) => {
                        let content_type = contents.mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                        (contents.uri, contents.blob, content_type)
                    }
                    _ => return Err(unsupported()),
                };
                let label = name(&uri).to_owned();
                text.push_str(&format!("@{label}"));
                attachments.push(embedded(label, data, content_type));
            }
            _ => return Err(unsupported()),
        }
        is_after_text = is_text;
    }
    let attachments = Some(attachments).filter(|attachments| !attachments.is_empty());
    Ok(Message { text, attachments, ..Message::default() })
}

fn unsupported() -> ErrorObject {
    ErrorObject::invalid_params("this kind of content is not supported: send texts, images, files and links")
}

/// The last name of a URI or path.
fn name(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(uri)
}

fn embedded(label: String, data: String, content_type: String) -> MessageAttachment {
    MessageAttachment::EmbeddedResource(MessageEmbeddedResourceAttachment {
        label,
        range: None,
        display_kind: None,
        meta: None,
        data,
        content_type,
        selection: None,
    })
}

fn resource(link: acp::ResourceLink) -> MessageAttachment {
    MessageAttachment::Resource(MessageResourceAttachment {
        label: link.name,
        range: None,
        display_kind: None,
        meta: None,
        uri: link.uri,
        size_hint: link.size.and_then(|size| u64::try_from(size).ok()),
        content_type: link.mime_type,
        nonce: None,
        selection: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mentioned_file_stays_at_its_place_in_the_text() {
        let link = acp::ResourceLink::new("main.rs", "file:///p/main.rs");
        let blocks = vec![
            acp::ContentBlock::from("look at "),
            acp::ContentBlock::ResourceLink(link),
            acp::ContentBlock::from(", please"),
            acp::ContentBlock::from("thanks"),
        ];
        let message = message(blocks).unwrap();
        assert_eq!(message.text, "look at @main.rs, please\nthanks");
        let attachments = message.attachments.unwrap();
        assert!(matches!(&attachments[..], [MessageAttachment::Resource(file)] if file.uri == "file:///p/main.rs"));
    }

    #[test]
    fn a_picture_and_an_embedded_file_are_attached_with_their_bytes() {
        let text = acp::TextResourceContents::new("let a = 1;", "file:///p/a.rs");
        let text = acp::EmbeddedResource::new(acp::EmbeddedResourceResource::TextResourceContents(text));
        let image = acp::ImageContent::new("aGk=", "image/png");
        let blocks = vec![acp::ContentBlock::Image(image), acp::ContentBlock::Resource(text)];
        let attachments = message(blocks).unwrap().attachments.unwrap();
        let [MessageAttachment::EmbeddedResource(image), MessageAttachment::EmbeddedResource(text)] = &attachments[..]
        else {
            panic!("{attachments:?}")
        };
        assert_eq!((image.data.as_str(), image.content_type.as_str()), ("aGk=", "image/png"));
        assert_eq!((text.label.as_str(), text.content_type.as_str()), ("a.rs", PLAIN_TEXT));
        assert_eq!(BASE64_STANDARD.decode(&text.data).unwrap(), b"let a = 1;");
    }

    #[test]
    fn a_sound_is_refused_since_it_is_not_announced() {
        let sound = acp::ContentBlock::Audio(acp::AudioContent::new("aGk=", "audio/wav"));
        assert_eq!(message(vec![sound]).unwrap_err().code, -32602);
    }
}
