//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::{ReplyWriter, SseEvents};
use crate::model::model_request::{self, ConversationItem, ModelRequest, ModelTool, each, text};
use crate::model::reply::{Block, Call, ModelReply, ReplyEvent, TextKind, pieces, tokens};

pub(super) struct ChatCompletions {
    pub(super) wants_usage: bool,
}

pub(super) fn read(body: &Value) -> ModelRequest {
    let mut system = String::new();
    let mut items = Vec::new();
    for message in each(&body["messages"]) {
        match text(&message["role"]) {
            "system" | "developer" => system.push_str(&model_request::content(&message["content"])),
            "assistant" => items.push(ConversationItem::Model),
            "tool" => {
                items.push(ConversationItem::Result { call: message["tool_call_id"].as_str().map(str::to_owned) })
            }
            _ => items.extend(ConversationItem::user(&model_request::content(&message["content"]))),
        }
    }
    let tool = |tool: &Value| ModelTool::function(&tool["function"]["name"], &tool["function"]["parameters"]);
    ModelRequest {
        model: text(&body["model"]).to_owned(),
        stream: body["stream"] == true,
        wants_usage: body["stream_options"]["include_usage"] == true,
        system,
        items,
        tools: each(&body["tools"]).iter().filter_map(tool).collect(),
        output: body.pointer("/response_format/json_schema/schema").cloned(),
        input_tokens: tokens(body.to_string().len()),
    }
}

impl ReplyWriter for ChatCompletions {
    fn write(&mut self, piece: &ReplyEvent, reply: &ModelReply, to: &mut SseEvents) {
        match piece {
            ReplyEvent::Start => to.push(&chunk(reply, json!({"role": "assistant", "content": ""}), None)),
            ReplyEvent::Delta(more) => {
                let thought = matches!(reply.blocks.last(), Some(Block::Thought(_)));
                // Not in OpenAI's own documents, but the form of thoughts from models behind compatible servers.
                let field = if thought { "reasoning_content" } else { "content" };
                to.push(&chunk(reply, json!({ field: more }), None));
            }
            ReplyEvent::Call(call) => {
                let at = reply.calls().count() - 1;
                let head = json!({"index": at, "id": call.id, "type": "function",
                    "function": {"name": call.tool, "arguments": ""}});
                to.push(&chunk(reply, json!({"tool_calls": [head]}), None));
                for piece in pieces(&call.written(), 2) {
                    let more = json!({"index": at, "function": {"arguments": piece}});
                    to.push(&chunk(reply, json!({"tool_calls": [more]}), None));
                }
            }
            ReplyEvent::Error(body) => to.push(body),
            ReplyEvent::End => {
                to.push(&chunk(reply, json!({}), Some(finish(reply))));
                if self.wants_usage {
                    let mut last = chunk(reply, json!({}), None);
                    last["choices"] = json!([]);
                    last["usage"] = usage(reply);
                    to.push(&last);
                }
                to.push_raw("[DONE]");
            }
            ReplyEvent::Open(_) | ReplyEvent::Close => {}
        }
    }

    fn whole(&self, reply: &ModelReply) -> Value {
        let mut message = json!({"role": "assistant", "content": reply.texts(TextKind::Text)});
        let thoughts = reply.texts(TextKind::Thought);
        if !thoughts.is_empty() {
            message["reasoning_content"] = json!(thoughts);
        }
        if reply.has_calls() {
            message["tool_calls"] = reply.calls().map(whole_call).collect();
        }
        json!({"id": id(reply), "object": "chat.completion", "created": reply.created, "model": reply.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish(reply)}], "usage": usage(reply)})
    }
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

/// The list of models, which serves OpenAI's and Anthropic's clients: their fields do not clash.
pub(super) fn models(model: &str) -> Value {
    let one = json!({"id": model, "object": "model", "created": 0, "owned_by": "grove", "type": "model",
        "display_name": model, "created_at": "1970-01-01T00:00:00Z"});
    json!({"object": "list", "data": [one], "has_more": false, "first_id": model, "last_id": model})
}

fn id(reply: &ModelReply) -> String {
    format!("chatcmpl-{}", reply.id)
}

fn chunk(reply: &ModelReply, delta: Value, finish: Option<&str>) -> Value {
    json!({"id": id(reply), "object": "chat.completion.chunk", "created": reply.created, "model": reply.model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn whole_call(call: &Call) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.written()}})
}

fn finish(reply: &ModelReply) -> &'static str {
    if reply.has_calls() { "tool_calls" } else { "stop" }
}

fn usage(reply: &ModelReply) -> Value {
    let usage = reply.usage();
    json!({"prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output, "prompt_tokens_details": {"cached_tokens": 0}})
}
