//! Checking a client's messages against the protocol. The protocol's types skip unknown members; a test wants an error.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::behavior::RpcError;
use super::peer::INVALID_PARAMS;

/// Parses a client's message as its type; the error names the member that does not belong there.
pub(super) fn read<T: DeserializeOwned + Serialize>(given: &Value) -> Result<T, RpcError> {
    let wrong = |what: String| RpcError::new(INVALID_PARAMS, what);
    let read: T = serde_json::from_value(given.clone()).map_err(|error| wrong(error.to_string()))?;
    let understood = serde_json::to_value(&read).map_err(|error| wrong(error.to_string()))?;
    match lost(given, &understood) {
        None => Ok(read),
        Some(path) => Err(wrong(format!("{path} is not in the protocol"))),
    }
}

/// The first member that was given and not understood.
fn lost(given: &Value, understood: &Value) -> Option<String> {
    match (given, understood) {
        (Value::Object(given), Value::Object(understood)) => given
            .iter()
            // Empty members may be left out, and `_meta` may hold anything.
            .filter(|(name, value)| *name != "_meta" && !is_empty(value))
            .find_map(|(name, value)| match understood.get(name) {
                None => Some(format!(".{name}")),
                Some(there) => lost(value, there).map(|path| format!(".{name}{path}")),
            }),
        (Value::Array(given), Value::Array(understood)) if given.len() == understood.len() => {
            let pairs = given.iter().zip(understood).enumerate();
            pairs.into_iter().find_map(|(n, (one, other))| lost(one, other).map(|path| format!("[{n}]{path}")))
        }
        (given, understood) => (given != understood).then(String::new),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1 as acp;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_types_would_pass_over_is_named() {
        let wrong = json!({"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFiles": true}, "terminal": 1}});
        let fault = read::<acp::InitializeRequest>(&wrong).unwrap_err();
        assert!(fault.message.starts_with(".clientCapabilities."), "{}", fault.message);
        assert_eq!(fault.code, INVALID_PARAMS);
    }

    #[test]
    fn what_the_protocol_has_is_read() {
        let prompt = json!({"sessionId": "s", "_meta": {"any": 1}, "prompt": [
            {"type": "text", "text": "t"},
            {"type": "resource_link", "uri": "file:///x", "name": "x", "size": null},
        ]});
        read::<acp::PromptRequest>(&prompt).unwrap();
        let new = json!({"cwd": "/w", "mcpServers": [], "additionalDirectories": []});
        read::<acp::NewSessionRequest>(&new).unwrap();
        let able = json!({"protocolVersion": 1, "clientInfo": {"name": "n", "version": "1"}, "clientCapabilities": {
            "fs": {"readTextFile": true, "writeTextFile": false}, "terminal": true, "elicitation": {"form": {}},
        }});
        read::<acp::InitializeRequest>(&able).unwrap();
    }
}
