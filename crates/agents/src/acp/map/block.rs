//! Content blocks: text, pictures, resources.

use agent_client_protocol_schema::v1 as acp;
use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::agent::*;

/// The content type if none is given.
const BYTES: &str = "application/octet-stream";
const TEXT: &str = "text/plain";

/// Agents differ in padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The events of a block of an answer or of the thinking before it; `say` makes an event of its text.
pub(super) fn events(block: acp::ContentBlock, say: impl Fn(String) -> AgentEvent) -> Vec<AgentEvent> {
    let event = match block {
        acp::ContentBlock::Text(text) if text.text.is_empty() => return Vec::new(),
        acp::ContentBlock::Text(text) => say(text.text),
        acp::ContentBlock::Image(image) => bytes(&image.data, Some(image.mime_type)),
        acp::ContentBlock::Audio(audio) => bytes(&audio.data, Some(audio.mime_type)),
        acp::ContentBlock::ResourceLink(link) => say(markdown_link(&link)),
        acp::ContentBlock::Resource(embedded) => match embedded.resource {
            acp::EmbeddedResourceResource::TextResourceContents(resource) => AgentEvent::PartContent {
                mime_type: mime_type(resource.mime_type, TEXT),
                body: PartContent::Text(resource.text),
            },
            acp::EmbeddedResourceResource::BlobResourceContents(resource) => bytes(&resource.blob, resource.mime_type),
            _ => AgentEvent::Notice("The agent sent a resource of an unknown kind.".to_owned()),
        },
        _ => AgentEvent::Notice("The agent sent content of an unknown kind.".to_owned()),
    };
    vec![event]
}

/// The text of some blocks, if they have any.
pub(super) fn words<'a>(blocks: impl Iterator<Item = &'a acp::ContentBlock>) -> Option<String> {
    let texts: Vec<&str> = blocks
        .filter_map(|block| match block {
            acp::ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    Some(texts.join("\n")).filter(|words| !words.is_empty())
}

/// Decodes base64, on one line or wrapped.
pub(super) fn decoded(data: &str) -> Option<Vec<u8>> {
    if data.contains(|c: char| c.is_ascii_whitespace()) {
        let data: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        return BASE64.decode(data).ok();
    }
    BASE64.decode(data).ok()
}

fn bytes(data: &str, declared_type: Option<String>) -> AgentEvent {
    let mime_type = mime_type(declared_type, BYTES);
    match decoded(data) {
        Some(bytes) => AgentEvent::PartContent { mime_type, body: PartContent::Bytes(bytes) },
        None => AgentEvent::Notice(format!("The agent sent content ({mime_type}) that cannot be decoded.")),
    }
}

fn mime_type(declared_type: Option<String>, otherwise: &str) -> String {
    declared_type.filter(|declared_type| !declared_type.is_empty()).unwrap_or_else(|| otherwise.to_owned())
}

fn markdown_link(link: &acp::ResourceLink) -> String {
    /// Characters that would end the address of a link.
    const ENDS: &AsciiSet = &CONTROLS.add(b' ').add(b'(').add(b')').add(b'<').add(b'>').add(b'\\');
    let label = link.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&link.name);
    let mut text = String::with_capacity(label.len() + link.uri.len() + 4);
    text.push('[');
    for c in label.chars() {
        match c {
            '[' | ']' | '\\' => text.extend(['\\', c]),
            '\n' | '\r' => text.push(' '),
            c => text.push(c),
        }
    }
    text.push_str("](");
    text.extend(utf8_percent_encode(&link.uri, ENDS));
    text.push(')');
    text
}
