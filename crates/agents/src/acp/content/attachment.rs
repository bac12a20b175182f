//! The attachments of a message: links and embedded content.

use agent_client_protocol_schema::v1 as acp;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_core::Attachment;
use grove_wire::ahp::{MessageAttachment, MessageEmbeddedResourceAttachment, MessageResourceAttachment};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// An attachment as core models it.
pub(super) fn plain(attachment: &Attachment) -> acp::ContentBlock {
    let uri = file_uri(&attachment.path);
    let name = attachment.display_name.as_deref().filter(|name| !name.is_empty());
    let last = || attachment.path.trim_end_matches('/').rsplit('/').next().filter(|last| !last.is_empty());
    let name = name.or_else(last).unwrap_or(&attachment.path);
    acp::ContentBlock::ResourceLink(acp::ResourceLink::new(name, uri))
}

/// An attachment as a client sent it.
pub(super) fn block(attachment: &Value, able: &acp::PromptCapabilities) -> acp::ContentBlock {
    match serde_json::from_value::<MessageAttachment>(attachment.clone()) {
        Ok(MessageAttachment::Resource(resource)) => link(resource),
        Ok(MessageAttachment::EmbeddedResource(embedded)) => carried(&embedded, able),
        Ok(MessageAttachment::Simple(simple)) => match simple.model_representation {
            Some(words) => words.into(),
            None => words(&simple.label, None),
        },
        Ok(MessageAttachment::Annotations(annotations)) => words(&annotations.label, Some(&annotations.resource)),
        Ok(MessageAttachment::Chat(chat)) => words(&chat.label, Some(&chat.resource)),
        Ok(MessageAttachment::Unknown(_)) | Err(_) => {
            let text = |name: &str| attachment.get(name).and_then(Value::as_str);
            words(text("label").unwrap_or("an attachment of an unknown kind"), text("uri").or(text("resource")))
        }
    }
}

fn words(label: &str, place: Option<&str>) -> acp::ContentBlock {
    match place {
        Some(place) => format!("(Attached: {label}, {place})").into(),
        None => format!("(Attached: {label})").into(),
    }
}

fn link(resource: MessageResourceAttachment) -> acp::ContentBlock {
    let link = acp::ResourceLink::new(resource.label, file_uri(&resource.uri))
        .mime_type(resource.content_type)
        .size(resource.size_hint.and_then(|size| i64::try_from(size).ok()));
    let selected = resource.selection.map(|selection| {
        let line = |line: u64| line.saturating_add(1);
        format!("Selected: lines {} to {}", line(selection.range.start.line), line(selection.range.end.line))
    });
    acp::ContentBlock::ResourceLink(link.description(selected))
}

/// Bytes that came with the message, in the best form that the agent accepts.
fn carried(embedded: &MessageEmbeddedResourceAttachment, able: &acp::PromptCapabilities) -> acp::ContentBlock {
    let MessageEmbeddedResourceAttachment { label, data, content_type, .. } = embedded;
    if able.image && content_type.starts_with("image/") {
        return acp::ContentBlock::Image(acp::ImageContent::new(data, content_type));
    }
    if able.audio && content_type.starts_with("audio/") {
        return acp::ContentBlock::Audio(acp::AudioContent::new(data, content_type));
    }
    let text = STANDARD.decode(data).ok().filter(|_| is_text(content_type));
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    // The content has no location, but the protocol requires one.
    let uri = format!("attachment:{}", utf8_percent_encode(label, NON_ALPHANUMERIC));
    match text {
        Some(text) if able.embedded_context => {
            let text = acp::TextResourceContents::new(text, uri).mime_type(content_type.clone());
            embed(acp::EmbeddedResourceResource::TextResourceContents(text))
        }
        Some(text) => format!("Attached: {label} ({content_type})\n\n{text}").into(),
        None if able.embedded_context => {
            let blob = acp::BlobResourceContents::new(data, uri).mime_type(content_type.clone());
            embed(acp::EmbeddedResourceResource::BlobResourceContents(blob))
        }
        None => format!("(Attached: {label}, {content_type}, which you cannot see: this agent takes no such content.)")
            .into(),
    }
}

fn embed(resource: acp::EmbeddedResourceResource) -> acp::ContentBlock {
    acp::ContentBlock::Resource(acp::EmbeddedResource::new(resource))
}

fn is_text(content_type: &str) -> bool {
    const OTHERS: [&str; 6] = ["json", "xml", "yaml", "toml", "javascript", "x-sh"];
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    let sub = kind.strip_prefix("application/");
    kind.starts_with("text/")
        || sub.is_some_and(|sub| OTHERS.contains(&sub) || sub.ends_with("+json") || sub.ends_with("+xml"))
}

/// An attachment's location as a URI: clients give a path or a URI. Anything else stays as it is.
fn file_uri(place: &str) -> String {
    match grove_work::local_path(place) {
        Ok(path) => grove_work::file_uri(&path),
        Err(_) => place.to_owned(),
    }
}
