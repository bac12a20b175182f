//! A user's message as protocol content, and the recap of a conversation.

mod attachment;
mod recap;
#[cfg(test)]
mod tests;

use agent_client_protocol_schema::v1 as acp;
use grove_core::*;
use serde_json::Value;

pub(crate) use recap::{recap, room};

/// A message as a prompt. Content that the agent does not accept is described in words.
pub(crate) fn blocks(message: &Message, able: &acp::PromptCapabilities) -> Vec<acp::ContentBlock> {
    let mut blocks = Vec::new();
    if !message.text.is_empty() {
        blocks.push(message.text.as_str().into());
    }
    // A dialect's attachments hold more than core models of them, and include those as well.
    match message.extra.as_ref().and_then(|extra| extra.get("attachments")).and_then(Value::as_array) {
        Some(attachments) => blocks.extend(attachments.iter().map(|value| attachment::block(value, able))),
        None => blocks.extend(message.attachments.iter().map(attachment::plain)),
    }
    if blocks.is_empty() {
        // A prompt is never empty, even if the message is.
        blocks.push("".into());
    }
    blocks
}
