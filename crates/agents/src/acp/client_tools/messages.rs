//! The messages of MCP that the server of clients' tools answers.

use grove_core::ToolResult;
use grove_wire::jsonrpc::{ErrorObject, code};
use serde_json::{Value, json};

use crate::agent::OfferedTool;

/// The protocol versions that the server speaks, the newest first. They are the same for tools.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The notification that the list of tools has changed.
pub(super) const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// A request for a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolRequest {
    pub(super) name: String,
    pub(super) arguments: Option<Value>,
}

/// The answer to `initialize`.
pub(super) fn initialized(params: Option<&Value>) -> Value {
    let wanted = params.and_then(|params| params.get("protocolVersion")?.as_str());
    let version = wanted.filter(|wanted| VERSIONS.contains(wanted)).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "grove", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// The answer to `tools/list`.
pub(super) fn tool_list<'a>(offered: impl Iterator<Item = &'a OfferedTool>) -> Value {
    let tools = offered.map(|OfferedTool { tool, .. }| {
        let schema = tool.input_schema.clone().filter(Value::is_object);
        let mut listed = json!({"name": tool.name, "inputSchema": schema.unwrap_or_else(|| json!({"type": "object"}))});
        if listed["inputSchema"].get("type").is_none() {
            listed["inputSchema"]["type"] = "object".into();
        }
        if let Some(description) = &tool.description {
            listed["description"] = description.as_str().into();
        }
        listed
    });
    json!({"tools": tools.collect::<Vec<_>>()})
}

/// Reads the params of `tools/call`.
pub(super) fn tool_request(params: Option<&Value>) -> Result<ToolRequest, ErrorObject> {
    let params = params.ok_or_else(|| ErrorObject::invalid_params("tools/call needs params"))?;
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| ErrorObject::invalid_params("tools/call needs the name of a tool"))?;
    Ok(ToolRequest {
        name: name.to_owned(),
        arguments: params.get("arguments").filter(|given| !given.is_null()).cloned(),
    })
}

/// The answer to `tools/call`.
pub(super) fn tool_result(result: ToolResult) -> Value {
    let ToolResult { success, past_tense_message, output, extra, .. } = result;
    let text = output.unwrap_or_else(|| if success { String::new() } else { past_tense_message });
    let mut answer = json!({"content": [{"type": "text", "text": text}], "isError": !success});
    if let Some(structured) = extra.and_then(|mut extra| extra.remove("structuredContent")).filter(Value::is_object) {
        answer["structuredContent"] = structured;
    }
    answer
}

/// A failure that the model sees, as MCP wants it for tools.
pub(super) fn failure(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}], "isError": true})
}

/// The line of an answer.
pub(super) fn answer(id: &Value, outcome: Result<Value, ErrorObject>) -> String {
    let message = match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    };
    message.to_string()
}

/// The refusal of an unknown method.
pub(super) fn unknown(method: &str) -> ErrorObject {
    ErrorObject::unknown_method(method)
}

/// The refusal of one request too many.
pub(super) fn too_many(most: usize) -> ErrorObject {
    ErrorObject::new(code::INTERNAL, format!("{most} calls wait for an answer: wait for one"))
}
