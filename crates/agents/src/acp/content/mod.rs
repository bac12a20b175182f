//! A person's message in the protocol's words, and a conversation retold.

mod attachment;
mod recap;
#[cfg(test)]
mod tests;

use agent_client_protocol_schema::v1 as acp;
use grove_core::*;
use serde_json::Value;

pub(crate) use recap::{recap, room};

/// A message as a prompt, as far as the agent takes it: what it does not take is told in words.
pub(crate) fn blocks(message: &Message, able: &acp::PromptCapabilities) -> Vec<acp::ContentBlock> {
    let mut blocks = Vec::new();
    if !message.text.is_empty() {
        blocks.push(message.text.as_str().into());
    }
    // What a dialect said of the attachments is more than what core models of them, and has those as well.
    match message.extra.as_ref().and_then(|extra| extra.get("attachments")).and_then(Value::as_array) {
        Some(attachments) => blocks.extend(attachments.iter().map(|said| attachment::said(said, able))),
        None => blocks.extend(message.attachments.iter().map(attachment::plain)),
    }
    if blocks.is_empty() {
        // A prompt has something in it, even where the message has not.
        blocks.push("".into());
    }
    blocks
}
