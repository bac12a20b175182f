//! Google's Gemini.

use serde_json::{Value, json};

use super::{ReplyWriter, SseEvents};
use crate::model::model_request::{self, ConversationItem, ModelRequest, ModelTool, each, text};
use crate::model::reply::{Block, ModelReply, ReplyEvent, tokens};

pub(super) struct Gemini;

pub(super) fn read(path: &str, body: &Value) -> ModelRequest {
    let mut items = Vec::new();
    for content in each(&body["contents"]) {
        if content["role"] == "model" {
            items.push(ConversationItem::Model);
            continue;
        }
        let mut texts = Vec::new();
        for part in each(&content["parts"]) {
            if let Some(result) = part.get("functionResponse") {
                items.push(ConversationItem::Result { call: result["id"].as_str().map(str::to_owned) });
            } else if let Some(ConversationItem::User(text)) = ConversationItem::user(text(&part["text"])) {
                texts.push(text);
            }
        }
        items.extend(ConversationItem::user(&texts.join("\n")));
    }
    // The path holds the model and the streaming mode: `/v1beta/models/MODEL:streamGenerateContent`.
    let (model, method) = path.rsplit('/').next().and_then(|last| last.split_once(':')).unwrap_or_default();
    let settings = &body["generationConfig"];
    let output = settings.get("responseJsonSchema").or_else(|| settings.get("responseSchema"));
    let tools = each(&body["tools"]).iter().flat_map(|tools| each(&tools["functionDeclarations"]));
    ModelRequest {
        model: model.to_owned(),
        stream: method == "streamGenerateContent",
        wants_usage: true,
        system: model_request::content(&body["systemInstruction"]["parts"]),
        items,
        tools: tools.filter_map(tool).collect(),
        output: output.cloned(),
        input_tokens: tokens(body.to_string().len()),
    }
}

fn tool(tool: &Value) -> Option<ModelTool> {
    let schema = tool.get("parametersJsonSchema").unwrap_or(&tool["parameters"]);
    ModelTool::function(&tool["name"], schema)
}

impl ReplyWriter for Gemini {
    fn write(&mut self, piece: &ReplyEvent, reply: &ModelReply, to: &mut SseEvents) {
        match piece {
            ReplyEvent::Delta(more) => {
                let block = match reply.blocks.last() {
                    Some(Block::Thought(_)) => Block::Thought(more.clone()),
                    _ => Block::Text(more.clone()),
                };
                to.push(&response(reply, json!([part(&block)]), None));
            }
            ReplyEvent::Call(call) => to.push(&response(reply, json!([part(&Block::Call(call.clone()))]), None)),
            ReplyEvent::Error(body) => to.push(body),
            ReplyEvent::End => to.push(&response(reply, json!([{"text": ""}]), Some("STOP"))),
            ReplyEvent::Start | ReplyEvent::Open(_) | ReplyEvent::Close => {}
        }
    }

    fn whole(&self, reply: &ModelReply) -> Value {
        response(reply, reply.blocks.iter().map(part).collect(), Some("STOP"))
    }
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    json!({"error": {"code": status, "message": message, "status": kind}})
}

pub(super) fn models(model: &str) -> Value {
    let one = json!({"name": format!("models/{model}"), "displayName": model, "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536, "supportedGenerationMethods": ["generateContent", "countTokens"]});
    json!({ "models": [one] })
}

fn part(block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({ "text": text }),
        Block::Thought(text) => json!({"text": text, "thought": true}),
        Block::Call(call) => json!({"functionCall": {"id": call.id, "name": call.tool, "args": call.arguments}}),
    }
}

fn response(reply: &ModelReply, parts: Value, finish: Option<&str>) -> Value {
    let usage = reply.usage();
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({"candidates": [candidate], "modelVersion": reply.model, "responseId": reply.id,
        "usageMetadata": {"promptTokenCount": usage.input, "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output}})
}
