//! Anthropic's messages.

use serde_json::{Value, json};

use super::{ReplyWriter, SseEvents};
use crate::model::model_request::{self, ConversationItem, ModelRequest, ModelTool, each, text};
use crate::model::reply::{Block, ModelReply, ReplyEvent, TextKind, pieces, tokens};

/// The signature of a thought. Agents send it back; nobody checks it here.
const SIGNATURE: &str = "Z3JvdmU=";

pub(super) struct Messages;

pub(super) fn read(body: &Value) -> ModelRequest {
    let mut system = model_request::content(&body["system"]);
    let mut items = Vec::new();
    for message in each(&body["messages"]) {
        match text(&message["role"]) {
            "assistant" => {
                items.push(ConversationItem::Model);
                continue;
            }
            // Claude Code sends these in the middle of the conversation, and at its end.
            "system" => {
                system.push_str(&model_request::content(&message["content"]));
                continue;
            }
            _ => {}
        }
        if let Some(content) = message["content"].as_str() {
            items.extend(ConversationItem::user(content));
        }
        // Results, the person's text and the agent's additions share a message.
        let mut texts = Vec::new();
        for part in each(&message["content"]) {
            if part["type"] == "tool_result" {
                items.push(ConversationItem::Result { call: part["tool_use_id"].as_str().map(str::to_owned) });
            } else if let Some(ConversationItem::User(text)) = ConversationItem::user(text(&part["text"])) {
                texts.push(text);
            }
        }
        items.extend(ConversationItem::user(&texts.join("\n")));
    }
    let output = body.pointer("/output_config/format/schema").or_else(|| body.pointer("/output_format/schema"));
    ModelRequest {
        model: text(&body["model"]).to_owned(),
        stream: body["stream"] == true,
        wants_usage: true,
        system,
        items,
        tools: each(&body["tools"]).iter().filter_map(tool).collect(),
        output: output.cloned(),
        input_tokens: tokens(body.to_string().len()),
    }
}

/// A tool. Those that Anthropic defines have no schema; its shell takes a `command`, as our arguments have it then.
fn tool(tool: &Value) -> Option<ModelTool> {
    ModelTool::function(&tool["name"], &tool["input_schema"])
}

impl ReplyWriter for Messages {
    fn write(&mut self, piece: &ReplyEvent, reply: &ModelReply, to: &mut SseEvents) {
        let at = reply.at();
        let mut push = |name: &str, mut data: Value| {
            data["type"] = json!(name);
            to.push_named(name, &data);
        };
        let delta = |delta: Value| json!({"index": at, "delta": delta});
        match piece {
            ReplyEvent::Start => {
                push("message_start", json!({ "message": message(reply) }));
                push("ping", json!({}));
            }
            ReplyEvent::Open(kind) => {
                let block = match kind {
                    TextKind::Text => json!({"type": "text", "text": ""}),
                    TextKind::Thought => json!({"type": "thinking", "thinking": "", "signature": ""}),
                };
                push("content_block_start", json!({"index": at, "content_block": block}));
            }
            ReplyEvent::Delta(more) => match reply.blocks.last() {
                Some(Block::Thought(_)) => {
                    push("content_block_delta", delta(json!({"type": "thinking_delta", "thinking": more})));
                }
                _ => push("content_block_delta", delta(json!({"type": "text_delta", "text": more}))),
            },
            ReplyEvent::Close => {
                if let Some(Block::Thought(_)) = reply.blocks.last() {
                    push("content_block_delta", delta(json!({"type": "signature_delta", "signature": SIGNATURE})));
                }
                push("content_block_stop", json!({ "index": at }));
            }
            ReplyEvent::Call(call) => {
                let block = json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": {}});
                push("content_block_start", json!({"index": at, "content_block": block}));
                for piece in pieces(&call.written(), 2) {
                    push("content_block_delta", delta(json!({"type": "input_json_delta", "partial_json": piece})));
                }
                push("content_block_stop", json!({ "index": at }));
            }
            ReplyEvent::Error(body) => {
                let error = body.get("error").unwrap_or(body);
                push("error", json!({ "error": error }));
            }
            ReplyEvent::End => {
                let delta = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
                let usage = json!({"output_tokens": reply.usage().output});
                push("message_delta", json!({"delta": delta, "usage": usage}));
                push("message_stop", json!({}));
            }
        }
    }

    fn whole(&self, reply: &ModelReply) -> Value {
        let block = |block: &Block| match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Thought(text) => json!({"type": "thinking", "thinking": text, "signature": SIGNATURE}),
            Block::Call(call) => {
                json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments})
            }
        };
        let mut message = message(reply);
        message["content"] = reply.blocks.iter().map(block).collect();
        message["stop_reason"] = json!(stop_reason(reply));
        message["usage"]["output_tokens"] = json!(reply.usage().output);
        message
    }
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// An empty message.
fn message(reply: &ModelReply) -> Value {
    json!({"id": format!("msg_{}", reply.id), "type": "message", "role": "assistant", "model": reply.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": reply.usage().input, "output_tokens": 1, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0}})
}

fn stop_reason(reply: &ModelReply) -> &'static str {
    if reply.has_calls() { "tool_use" } else { "end_turn" }
}
