//! OpenAI's responses.

use serde_json::{Value, json};

use super::{ReplyWriter, SseEvents};
use crate::model::model_request::{self, ConversationItem, ModelRequest, ModelTool, ModelToolKind, each, text};
use crate::model::reply::{Block, Call, ModelReply, ReplyEvent, pieces, tokens};

/// Every event has a number, and every item an index.
#[derive(Default)]
pub(super) struct Responses {
    sent: u64,
}

pub(super) fn read(body: &Value) -> ModelRequest {
    let mut system = text(&body["instructions"]).to_owned();
    let mut items = Vec::new();
    if let Some(input) = body["input"].as_str() {
        items.extend(ConversationItem::user(input));
    }
    for item in each(&body["input"]) {
        match (text(&item["type"]), text(&item["role"])) {
            (kind, _) if kind.ends_with("_call_output") => {
                let call = item["call_id"].as_str().or_else(|| item["id"].as_str());
                items.push(ConversationItem::Result { call: call.map(str::to_owned) });
            }
            (_, "user") => items.extend(ConversationItem::user(&model_request::content(&item["content"]))),
            (_, "system" | "developer") => system.push_str(&model_request::content(&item["content"])),
            _ => items.push(ConversationItem::Model),
        }
    }
    ModelRequest {
        model: text(&body["model"]).to_owned(),
        stream: body["stream"] == true,
        wants_usage: true,
        system,
        items,
        tools: each(&body["tools"]).iter().filter_map(tool).collect(),
        output: body.pointer("/text/format/schema").cloned(),
        input_tokens: tokens(body.to_string().len()),
    }
}

fn tool(tool: &Value) -> Option<ModelTool> {
    let kind = match text(&tool["type"]) {
        "function" => ModelToolKind::Function,
        "custom" => ModelToolKind::Custom,
        "local_shell" => {
            return Some(ModelTool {
                name: "local_shell".to_owned(),
                kind: ModelToolKind::LocalShell,
                schema: Value::Null,
            });
        }
        // Tools that the service itself would run, like its web search.
        _ => return None,
    };
    Some(ModelTool { kind, ..ModelTool::function(&tool["name"], &tool["parameters"])? })
}

impl ReplyWriter for Responses {
    fn write(&mut self, piece: &ReplyEvent, reply: &ModelReply, to: &mut SseEvents) {
        match piece {
            ReplyEvent::Start => {
                let response = response(reply, "in_progress");
                self.push(to, "response.created", json!({ "response": response }));
                self.push(to, "response.in_progress", json!({ "response": response }));
            }
            ReplyEvent::Call(call) => self.call(reply, call, to),
            ReplyEvent::Error(body) => {
                let mut failed = response(reply, "failed");
                let error = body.get("error").unwrap_or(body);
                let message = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
                failed["error"] = json!({"code": "server_error", "message": message});
                self.push(to, "response.failed", json!({ "response": failed }));
            }
            ReplyEvent::End => {
                let response = self.whole(reply);
                self.push(to, "response.completed", json!({ "response": response }));
            }
            ReplyEvent::Open(_) | ReplyEvent::Delta(_) | ReplyEvent::Close => match reply.blocks.last() {
                Some(Block::Text(text)) => self.text(reply, text, piece, to),
                Some(Block::Thought(text)) => self.thought(reply, text, piece, to),
                _ => {}
            },
        }
    }

    fn whole(&self, reply: &ModelReply) -> Value {
        let mut response = response(reply, "completed");
        let usage = reply.usage();
        response["output"] = reply.blocks.iter().enumerate().map(|(at, block)| item(reply, at, block)).collect();
        response["usage"] = json!({"input_tokens": usage.input, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input + usage.output});
        response
    }
}

impl Responses {
    fn push(&mut self, to: &mut SseEvents, name: &str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.sent);
        self.sent += 1;
        to.push_named(name, &data);
    }

    fn text(&mut self, reply: &ModelReply, text: &str, piece: &ReplyEvent, to: &mut SseEvents) {
        let at = reply.at();
        let place = |mut data: Value| {
            data["item_id"] = json!(item_id(reply, at, "msg"));
            data["output_index"] = json!(at);
            data["content_index"] = json!(0);
            data
        };
        match piece {
            ReplyEvent::Open(_) => {
                let mut item = item(reply, at, &Block::Text(String::new()));
                item["status"] = json!("in_progress");
                item["content"] = json!([]);
                self.push(to, "response.output_item.added", json!({"output_index": at, "item": item}));
                self.push(to, "response.content_part.added", place(json!({"part": part("")})));
            }
            ReplyEvent::Delta(more) => self.push(to, "response.output_text.delta", place(json!({"delta": more}))),
            _ => {
                self.push(to, "response.output_text.done", place(json!({"text": text})));
                self.push(to, "response.content_part.done", place(json!({"part": part(text)})));
                self.done(reply, to);
            }
        }
    }

    fn thought(&mut self, reply: &ModelReply, text: &str, piece: &ReplyEvent, to: &mut SseEvents) {
        let at = reply.at();
        let place = |mut data: Value| {
            data["item_id"] = json!(item_id(reply, at, "rs"));
            data["output_index"] = json!(at);
            data["summary_index"] = json!(0);
            data
        };
        let part = |text: &str| json!({"part": {"type": "summary_text", "text": text}});
        match piece {
            ReplyEvent::Open(_) => {
                let item = json!({"id": item_id(reply, at, "rs"), "type": "reasoning", "summary": []});
                self.push(to, "response.output_item.added", json!({"output_index": at, "item": item}));
                self.push(to, "response.reasoning_summary_part.added", place(part("")));
            }
            ReplyEvent::Delta(more) => {
                self.push(to, "response.reasoning_summary_text.delta", place(json!({"delta": more})))
            }
            _ => {
                self.push(to, "response.reasoning_summary_text.done", place(json!({"text": text})));
                self.push(to, "response.reasoning_summary_part.done", place(part(text)));
                self.done(reply, to);
            }
        }
    }

    fn call(&mut self, reply: &ModelReply, call: &Call, to: &mut SseEvents) {
        let at = reply.at();
        let whole = item(reply, at, &Block::Call(call.clone()));
        let mut item = whole.clone();
        item["status"] = json!("in_progress");
        let (event, field) = match call.kind {
            ModelToolKind::Function => ("response.function_call_arguments", "arguments"),
            ModelToolKind::Custom => ("response.custom_tool_call_input", "input"),
            ModelToolKind::LocalShell => {
                self.push(to, "response.output_item.added", json!({"output_index": at, "item": item}));
                self.done(reply, to);
                return;
            }
        };
        item[field] = json!("");
        self.push(to, "response.output_item.added", json!({"output_index": at, "item": item}));
        for piece in pieces(&call.written(), 2) {
            let delta = json!({"item_id": whole["id"], "output_index": at, "delta": piece});
            self.push(to, &format!("{event}.delta"), delta);
        }
        let done = json!({"item_id": whole["id"], "output_index": at, field: call.written()});
        self.push(to, &format!("{event}.done"), done);
        self.done(reply, to);
    }

    /// Completes the newest item.
    fn done(&mut self, reply: &ModelReply, to: &mut SseEvents) {
        let at = reply.at();
        let item = item(reply, at, &reply.blocks[at]);
        self.push(to, "response.output_item.done", json!({"output_index": at, "item": item}));
    }
}

fn response(reply: &ModelReply, status: &str) -> Value {
    json!({"id": format!("resp_{}", reply.id), "object": "response", "created_at": reply.created, "status": status,
        "model": reply.model, "output": [], "error": null, "incomplete_details": null, "usage": null,
        "parallel_tool_calls": true, "tools": [], "metadata": {}})
}

/// A complete item.
fn item(reply: &ModelReply, at: usize, block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({"id": item_id(reply, at, "msg"), "type": "message", "status": "completed",
            "role": "assistant", "content": [part(text)]}),
        Block::Thought(text) => json!({"id": item_id(reply, at, "rs"), "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}]}),
        Block::Call(call) => {
            let mut item = match call.kind {
                ModelToolKind::Function => {
                    json!({"type": "function_call", "name": call.tool, "arguments": call.written()})
                }
                ModelToolKind::Custom => {
                    json!({"type": "custom_tool_call", "name": call.tool, "input": call.written()})
                }
                ModelToolKind::LocalShell => json!({"type": "local_shell_call",
                    "action": {"type": "exec", "command": call.arguments["command"], "env": {}}}),
            };
            item["id"] = json!(item_id(reply, at, "fc"));
            item["call_id"] = json!(call.id);
            item["status"] = json!("completed");
            item
        }
    }
}

fn item_id(reply: &ModelReply, at: usize, prefix: &str) -> String {
    format!("{prefix}_{}_{at}", reply.id)
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}
