//! Contents embedded in a message, and references that replace them once they are stored elsewhere.
//!
//! A message of this dialect keeps its attachments as they came; the modelled ones are kept beside them. A message of
//! version 1 has only the modelled ones. Both can embed bytes: as embedded resources, as a `data:` URI, or as a text
//! for the model.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_core as core;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{
    MessageAttachment, MessageEmbeddedResourceAttachment, MessageResourceAttachment, ToolResultContent, decode, project,
};
use crate::value_reader::from_value;

/// The member of a message's extra that holds its attachments.
const ATTACHMENTS: &str = "attachments";
/// The member of a result's extra that holds its pieces.
const CONTENT: &str = "content";

/// Bytes embedded in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedContent {
    /// The client's name for them.
    pub label: String,
    pub content_type: Option<String>,
    pub bytes: Vec<u8>,
    place: AttachmentSlot,
}

struct EmbeddedBytes {
    content_type: Option<String>,
    bytes: Vec<u8>,
}

/// The position of an attachment in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttachmentSlot {
    Raw(usize),
    Modelled(usize),
}

/// A message's reference to a stored picture, which can be embedded again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageReference {
    /// The location, as the message has it.
    pub uri: String,
    raw: usize,
}

/// The embedded contents of a message with more than `above` bytes. The error says why one cannot be read.
pub fn embedded_content(message: &core::Message, above: usize) -> Result<Vec<EmbeddedContent>, String> {
    let mut found = Vec::new();
    let mut take = |place, label: String, data: Result<EmbeddedBytes, String>| {
        let EmbeddedBytes { content_type, bytes } = data?;
        if bytes.len() > above {
            found.push(EmbeddedContent { label, content_type, bytes, place });
        }
        Ok::<(), String>(())
    };
    match raw(message) {
        Some(raw) => {
            for (place, value) in raw.iter().enumerate().filter(|(_, value)| may_embed(value, above)) {
                if let Some((label, data)) = from_value(value).ok().and_then(in_attachment) {
                    take(AttachmentSlot::Raw(place), label, data)?;
                }
            }
        }
        None => {
            for (place, one) in message.attachments.iter().enumerate().filter(|(_, one)| one.path.len() > above) {
                let label = one.display_name.clone().unwrap_or_default();
                if let Some(data) = data_uri(&one.path, &label) {
                    take(AttachmentSlot::Modelled(place), label, data)?;
                }
            }
        }
    }
    Ok(found)
}

/// Replaces an embedded content by a reference to a stored file.
pub fn replace_with_reference(message: &mut core::Message, embedded_content: &EmbeddedContent, path: &str) {
    let label = Some(embedded_content.label.clone()).filter(|label| !label.is_empty());
    match embedded_content.place {
        AttachmentSlot::Modelled(place) => {
            if let Some(one) = message.attachments.get_mut(place) {
                *one =
                    core::Attachment { kind: core::AttachmentKind::File, path: path.to_owned(), display_name: label };
            }
        }
        AttachmentSlot::Raw(place) => {
            let picture = embedded_content.content_type.as_deref().is_some_and(is_image);
            let reference = MessageResourceAttachment {
                label: label.unwrap_or_else(|| path.to_owned()),
                range: None,
                display_kind: Some(if picture { "image" } else { "document" }.to_owned()),
                meta: None,
                uri: project::directory(path),
                size_hint: Some(embedded_content.bytes.len() as u64),
                content_type: embedded_content.content_type.clone(),
                nonce: None,
                selection: None,
            };
            let raw = raw_mut(message).and_then(|raw| raw.get_mut(place));
            if let (Some(value), Ok(reference)) = (raw, serde_json::to_value(MessageAttachment::Resource(reference))) {
                *value = reference;
            }
            model(message);
        }
    }
}

/// Adds a reference to a stored file.
pub fn attach(message: &mut core::Message, attachment: core::Attachment) {
    if let Some(raw) = raw_mut(message)
        && let Ok(value) = serde_json::to_value(project::attachment(&attachment))
    {
        raw.push(value);
    }
    message.attachments.push(attachment);
}

/// A message's references to stored pictures.
pub fn image_references(message: &core::Message) -> Vec<ImageReference> {
    let raw = raw(message).into_iter().flatten().enumerate();
    let image_references = raw.filter_map(|(raw, value)| {
        let picture = value.get("contentType").and_then(Value::as_str).is_some_and(is_image);
        let uri = value.get("uri").and_then(Value::as_str).filter(|_| picture)?;
        Some(ImageReference { uri: uri.to_owned(), raw })
    });
    image_references.collect()
}

/// Embeds a picture in place of a message's reference to it.
pub fn embed(message: &mut core::Message, picture: &ImageReference, bytes: &[u8]) {
    let Some(value) = raw_mut(message).and_then(|raw| raw.get_mut(picture.raw)) else { return };
    let Ok(MessageAttachment::Resource(reference)) = from_value(value) else { return };
    let embedded = MessageEmbeddedResourceAttachment {
        label: reference.label,
        range: reference.range,
        display_kind: reference.display_kind,
        meta: reference.meta,
        data: STANDARD.encode(bytes),
        content_type: reference.content_type.unwrap_or_default(),
        selection: reference.selection,
    };
    if let Ok(embedded) = serde_json::to_value(MessageAttachment::EmbeddedResource(embedded)) {
        *value = embedded;
    }
    model(message);
}

/// Removes the texts from the pieces of a result: they are stored elsewhere.
pub fn without_texts(result: &mut core::ToolResult) {
    let pieces = result.extra.as_mut().and_then(|extra| extra.get_mut(CONTENT)).and_then(Value::as_array_mut);
    if let Some(pieces) = pieces {
        pieces.retain(|piece| !matches!(from_value(piece), Ok(ToolResultContent::Text(_))));
    }
}

fn raw(message: &core::Message) -> Option<&Vec<Value>> {
    message.extra.as_ref()?.get(ATTACHMENTS)?.as_array()
}

fn raw_mut(message: &mut core::Message) -> Option<&mut Vec<Value>> {
    message.extra.as_mut()?.get_mut(ATTACHMENTS)?.as_array_mut()
}

/// Updates the modelled attachments from the raw ones.
fn model(message: &mut core::Message) {
    let read = |value: &Value| from_value(value).ok().as_ref().and_then(decode::attachment);
    if let Some(modelled) = raw(message).map(|raw| raw.iter().filter_map(read).collect()) {
        message.attachments = modelled;
    }
}

/// True if an attachment has a large enough text: a quick check before it is parsed.
fn may_embed(value: &Value, above: usize) -> bool {
    ["data", "uri", "modelRepresentation"].iter().any(|name| {
        let text = value.get(name).and_then(Value::as_str);
        text.is_some_and(|text| text.len() > above)
    })
}

/// The label of an attachment and its embedded bytes.
fn in_attachment(attachment: MessageAttachment) -> Option<(String, Result<EmbeddedBytes, String>)> {
    match attachment {
        MessageAttachment::EmbeddedResource(embedded) => {
            let bytes = STANDARD.decode(&embedded.data).map_err(|error| unreadable(&embedded.label, &error));
            let data = bytes.map(|bytes| EmbeddedBytes { content_type: Some(embedded.content_type), bytes });
            Some((embedded.label, data))
        }
        MessageAttachment::Resource(resource) => {
            let data = data_uri(&resource.uri, &resource.label)?;
            let data =
                data.map(|data| EmbeddedBytes { content_type: resource.content_type.or(data.content_type), ..data });
            Some((resource.label, data))
        }
        MessageAttachment::Simple(simple) => {
            let bytes = simple.model_representation?.into_bytes();
            Some((simple.label, Ok(EmbeddedBytes { content_type: Some("text/plain".to_owned()), bytes })))
        }
        MessageAttachment::Annotations(_) | MessageAttachment::Chat(_) | MessageAttachment::Unknown(_) => None,
    }
}

/// The contents of a `data:` URI; `None` for another URI.
fn data_uri(uri: &str, label: &str) -> Option<Result<EmbeddedBytes, String>> {
    let rest = uri.strip_prefix("data:")?;
    let Some((head, data)) = rest.split_once(',') else { return Some(Err(unreadable(label, &"it has no comma"))) };
    let (kind, is_base64) = match head.strip_suffix(";base64") {
        Some(kind) => (kind, true),
        None => (head, false),
    };
    let decoded: Vec<u8> = percent_decode_str(data).collect();
    let bytes = match is_base64 {
        true => STANDARD.decode(decoded).map_err(|error| unreadable(label, &error)),
        false => Ok(decoded),
    };
    let content_type = Some(kind.to_owned()).filter(|kind| !kind.is_empty());
    Some(bytes.map(|bytes| EmbeddedBytes { content_type, bytes }))
}

fn unreadable(label: &str, error: &dyn std::fmt::Display) -> String {
    let label: String = label.chars().take(80).collect();
    format!("the attachment {label:?} has data that cannot be read ({error}): attach it as base64")
}

fn is_image(content_type: &str) -> bool {
    content_type.starts_with("image/")
}

#[cfg(test)]
mod tests {
    use grove_core::{Attachment, AttachmentKind, Message};
    use serde_json::json;

    use super::*;

    fn raw(attachments: Value) -> Message {
        let message = json!({ "text": "look", "origin": { "kind": "user" }, "attachments": attachments });
        decode::message(serde_json::from_value(message).unwrap()).unwrap()
    }

    fn embedded(label: &str, content_type: &str, bytes: &[u8]) -> Value {
        json!({ "type": "embeddedResource", "label": label, "contentType": content_type, "data": STANDARD.encode(bytes) })
    }

    #[test]
    fn what_is_larger_than_the_limit_is_found_wherever_it_is_carried() {
        let message = raw(json!([
            embedded("small", "image/png", b"1234"),
            embedded("large", "image/png", b"12345"),
            { "type": "resource", "label": "uri", "uri": "data:text/plain;base64,MTIzNDU2" },
            { "type": "resource", "label": "plain", "uri": "data:,1%32345678" },
            { "type": "resource", "label": "file", "uri": "file:///a/long/way/off" },
            { "type": "simple", "label": "words", "modelRepresentation": "1234567" },
        ]));
        let found = embedded_content(&message, 4).unwrap();
        let contents: Vec<_> = found
            .iter()
            .map(|one| (one.label.as_str(), one.content_type.as_deref(), std::str::from_utf8(&one.bytes).unwrap()))
            .collect();
        assert_eq!(
            contents,
            [
                ("large", Some("image/png"), "12345"),
                ("uri", Some("text/plain"), "123456"),
                ("plain", None, "12345678"),
                ("words", Some("text/plain"), "1234567"),
            ]
        );
    }

    #[test]
    fn a_reference_takes_the_place_of_what_was_carried_and_the_rest_stays() {
        let mut message = raw(json!([embedded("one", "text/plain", b"1"), embedded("two", "image/png", b"12345")]));
        let found = embedded_content(&message, 4).unwrap();
        replace_with_reference(&mut message, &found[0], "/files/paste 1.png");
        let shown = project::message(&message).attachments.unwrap();
        assert_eq!(serde_json::to_value(&shown[0]).unwrap(), embedded("one", "text/plain", b"1"));
        let second = serde_json::to_value(&shown[1]).unwrap();
        assert_eq!(
            second,
            json!({
                "type": "resource", "label": "two", "displayKind": "image", "uri": "file:///files/paste%201.png",
                "sizeHint": 5, "contentType": "image/png",
            })
        );
        assert_eq!(message.attachments.len(), 1);
        // The picture can be embedded again, byte for byte.
        let picture = &image_references(&message)[0];
        assert_eq!(picture.uri, "file:///files/paste%201.png");
        embed(&mut message, picture, b"12345");
        assert_eq!(embedded_content(&message, 4).unwrap()[0].bytes, b"12345");
        assert!(message.attachments.is_empty());
    }

    #[test]
    fn a_file_is_attached_to_a_message_of_either_dialect() {
        let file = Attachment { kind: AttachmentKind::File, path: "/p.txt".into(), display_name: Some("p.txt".into()) };
        let mut ahp = raw(json!([embedded("one", "text/plain", b"1")]));
        attach(&mut ahp, file.clone());
        assert_eq!(project::message(&ahp).attachments.unwrap().len(), 2);
        assert_eq!(ahp.attachments, vec![file.clone()]);
        let mut v1 = Message::user("look");
        attach(&mut v1, file.clone());
        assert_eq!((v1.attachments, v1.extra), (vec![file], None));
    }

    #[test]
    fn version_1_can_carry_a_data_uri() {
        let path = "data:text/plain,123456".to_owned();
        let attachment = Attachment { kind: AttachmentKind::Selection, path, display_name: None };
        let mut message = Message { attachments: vec![attachment], ..Message::user("look") };
        let found = embedded_content(&message, 5).unwrap();
        assert_eq!(found[0].bytes, b"123456");
        replace_with_reference(&mut message, &found[0], "/p.txt");
        assert_eq!(message.attachments[0].path, "/p.txt");
        assert_eq!(message.attachments[0].kind, AttachmentKind::File);
    }

    #[test]
    fn data_that_cannot_be_read_is_refused_with_its_name() {
        let broken = json!([{ "type": "embeddedResource", "label": "odd", "contentType": "a/b", "data": "!!!!!!!!" }]);
        let error = embedded_content(&raw(broken), 4).unwrap_err();
        assert!(error.contains("\"odd\"") && error.contains("base64"), "{error}");
        assert!(
            embedded_content(&raw(json!([{ "type": "resource", "label": "x", "uri": "data:nothing" }])), 4).is_err()
        );
    }

    #[test]
    fn texts_of_a_result_go_and_the_rest_of_it_stays() {
        let content = json!([
            { "type": "text", "text": "long" },
            { "type": "embeddedResource", "data": "", "contentType": "image/png" },
        ]);
        let extra = json!({ "content": content, "structuredContent": { "a": 1 } });
        let mut result = core::ToolResult {
            success: true,
            past_tense_message: String::new(),
            output: None,
            attached: Vec::new(),
            extra: extra.as_object().cloned(),
        };
        without_texts(&mut result);
        let left = serde_json::to_value(result.extra).unwrap();
        assert_eq!(left["content"], json!([content[1]]));
        assert_eq!(left["structuredContent"], json!({ "a": 1 }));
    }
}
