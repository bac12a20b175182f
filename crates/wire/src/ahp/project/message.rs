//! Messages of people and others.

use grove_core as core;
use grove_core::Extra;

use super::{directory, extra, from_extra};
use crate::ahp::*;

/// The member in which a message keeps the settings of its model.
const MODEL_CONFIG: &str = "modelConfig";

pub fn pending(pending: &core::PendingMessage) -> PendingMessage {
    PendingMessage { id: pending.id.to_string(), message: message(&pending.message) }
}

pub fn message(message: &core::Message) -> Message {
    let extra = message.extra.as_ref();
    let kind = match message.origin {
        core::MessageOrigin::User => MessageKind::User,
        core::MessageOrigin::Agent => MessageKind::Agent,
        core::MessageOrigin::Tool => MessageKind::Tool,
        core::MessageOrigin::Automation => MessageKind::Automation,
        core::MessageOrigin::SystemNotification => MessageKind::SystemNotification,
    };
    let own = message.attachments.iter().map(attachment).collect::<Vec<_>>();
    Message {
        text: message.text.clone(),
        origin: MessageOrigin { kind },
        attachments: from_extra(extra, "attachments").or_else(|| Some(own).filter(|own| !own.is_empty())),
        model: message
            .model
            .as_ref()
            .map(|model| ModelSelection { id: model.to_string(), config: from_extra(extra, MODEL_CONFIG) }),
        agent: from_extra(extra, "agent"),
        meta: from_extra(extra, "_meta"),
    }
}

/// The parts of a message that core does not model.
pub(in crate::ahp) fn message_extra(message: &Message) -> Option<Extra> {
    let model_config = message.model.as_ref().and_then(|model| model.config.as_ref());
    extra([
        ("attachments", message.attachments.as_ref().map(serde_json::to_value)),
        (MODEL_CONFIG, model_config.map(serde_json::to_value)),
        ("agent", message.agent.as_ref().map(serde_json::to_value)),
        ("_meta", message.meta.as_ref().map(serde_json::to_value)),
    ])
}

pub(crate) fn attachment(attachment: &core::Attachment) -> MessageAttachment {
    let kind = match attachment.kind {
        core::AttachmentKind::File => "document",
        core::AttachmentKind::Directory => "directory",
        core::AttachmentKind::Selection => "selection",
    };
    MessageAttachment::Resource(MessageResourceAttachment {
        label: attachment.display_name.clone().unwrap_or_else(|| attachment.path.clone()),
        range: None,
        display_kind: Some(kind.to_owned()),
        meta: None,
        uri: directory(&attachment.path),
        size_hint: None,
        content_type: None,
        nonce: None,
        selection: None,
    })
}
