//! Google's Gemini.

use serde_json::{Value, json};

use super::{Events, Writer};
use crate::model::ask::{self, Ask, Item, Tool, each, text};
use crate::model::reply::{Block, Piece, Reply, tokens};

pub(super) struct Gemini;

pub(super) fn read(path: &str, body: &Value) -> Ask {
    let mut items = Vec::new();
    for content in each(&body["contents"]) {
        if content["role"] == "model" {
            items.push(Item::Model);
            continue;
        }
        let mut said = Vec::new();
        for part in each(&content["parts"]) {
            if let Some(result) = part.get("functionResponse") {
                items.push(Item::Result { call: result["id"].as_str().map(str::to_owned) });
            } else if let Some(Item::User(text)) = Item::user(text(&part["text"])) {
                said.push(text);
            }
        }
        items.extend(Item::user(&said.join("\n")));
    }
    // The model and whether to stream are in the path: `/v1beta/models/MODEL:streamGenerateContent`.
    let (model, method) = path.rsplit('/').next().and_then(|last| last.split_once(':')).unwrap_or_default();
    let settings = &body["generationConfig"];
    let output = settings.get("responseJsonSchema").or_else(|| settings.get("responseSchema"));
    let tools = each(&body["tools"]).iter().flat_map(|tools| each(&tools["functionDeclarations"]));
    Ask {
        model: model.to_owned(),
        stream: method == "streamGenerateContent",
        wants_usage: true,
        system: ask::content(&body["systemInstruction"]["parts"]),
        items,
        tools: tools.filter_map(tool).collect(),
        output: output.cloned(),
        input_tokens: tokens(body.to_string().len()),
    }
}

fn tool(tool: &Value) -> Option<Tool> {
    let schema = tool.get("parametersJsonSchema").unwrap_or(&tool["parameters"]);
    Tool::function(&tool["name"], schema)
}

impl Writer for Gemini {
    fn write(&mut self, piece: &Piece, reply: &Reply, to: &mut Events) {
        match piece {
            Piece::Delta(more) => {
                let block = match reply.blocks.last() {
                    Some(Block::Thought(_)) => Block::Thought(more.clone()),
                    _ => Block::Text(more.clone()),
                };
                to.push(&response(reply, json!([part(&block)]), None));
            }
            Piece::Call(call) => to.push(&response(reply, json!([part(&Block::Call(call.clone()))]), None)),
            Piece::Error(body) => to.push(body),
            Piece::End => to.push(&response(reply, json!([{"text": ""}]), Some("STOP"))),
            Piece::Start | Piece::Open(_) | Piece::Close => {}
        }
    }

    fn whole(&self, reply: &Reply) -> Value {
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

fn response(reply: &Reply, parts: Value, finish: Option<&str>) -> Value {
    let usage = reply.usage();
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({"candidates": [candidate], "modelVersion": reply.model, "responseId": reply.id,
        "usageMetadata": {"promptTokenCount": usage.input, "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output}})
}
