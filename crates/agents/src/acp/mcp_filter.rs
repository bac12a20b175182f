//! The messages between an agent and an MCP server of which the agent gets some tools alone.
//!
//! The program `grove mcp-filter` starts the server in its folder, and passes the lines through these functions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client_tools::RelayProgram;
use crate::setup::{McpRestriction, McpServer, McpTransport};

/// JSON-RPC's code for params that are not valid: MCP uses it for unknown tools.
const INVALID_PARAMS: i64 = -32602;

/// The server as an agent starts it: through the program that restricts it, if it is restricted.
pub(crate) fn restricted(server: McpServer, program: &RelayProgram) -> McpServer {
    let McpServer { name, transport, restriction } = server;
    let McpRestriction { folder, tools } = &restriction;
    let transport = match transport {
        McpTransport::Stdio { command, args, env } if !restriction.is_none() => {
            let mut through = program.filter_args.clone();
            through.extend(folder.iter().map(|folder| format!("--folder={folder}")));
            if let Some(tools) = tools {
                through.push("--restrict".to_owned());
                through.extend(tools.iter().map(|tool| format!("--tool={tool}")));
            }
            through.extend(["--".to_owned(), command]);
            through.extend(args);
            McpTransport::Stdio { command: program.program.display().to_string(), args: through, env }
        }
        other => other,
    };
    McpServer::new(name, transport)
}

/// The fate of a line from the agent.
#[derive(Debug, PartialEq, Eq)]
pub enum AgentLine {
    /// The server gets it as it is.
    Pass,
    /// The agent gets this answer, and the server nothing.
    Answer(String),
}

/// Decides about a line from the agent: a call of another tool does not reach the server.
pub fn from_agent(line: &str, tools: &BTreeSet<String>) -> AgentLine {
    let Ok(message) = serde_json::from_str::<Value>(line) else { return AgentLine::Pass };
    if let Value::Array(batch) = &message {
        // A batch with a forbidden call is refused as a whole: its other answers would be missing.
        let answers: Vec<Value> = batch.iter().filter_map(|message| refusal(message, tools)).collect();
        return if answers.is_empty() { AgentLine::Pass } else { AgentLine::Answer(Value::Array(answers).to_string()) };
    }
    refusal(&message, tools).map_or(AgentLine::Pass, |answer| AgentLine::Answer(answer.to_string()))
}

fn refusal(message: &Value, tools: &BTreeSet<String>) -> Option<Value> {
    if message.get("method")? != "tools/call" {
        return None;
    }
    let name = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
    if tools.contains(name) {
        return None;
    }
    let error = json!({"code": INVALID_PARAMS, "message": format!("Unknown tool: {name}")});
    Some(json!({"jsonrpc": "2.0", "id": message.get("id"), "error": error}))
}

/// A line from the server as the agent gets it: lists of tools have the allowed ones alone.
pub fn from_server(line: String, tools: &BTreeSet<String>) -> String {
    // Most lines list no tools, and are not parsed.
    if !line.contains("\"tools\"") {
        return line;
    }
    let Ok(mut message) = serde_json::from_str::<Value>(&line) else { return line };
    match &mut message {
        Value::Array(batch) => batch.iter_mut().for_each(|message| keep_allowed(message, tools)),
        message => keep_allowed(message, tools),
    }
    message.to_string()
}

fn keep_allowed(message: &mut Value, tools: &BTreeSet<String>) {
    if let Some(Value::Array(listed)) = message.pointer_mut("/result/tools") {
        let is_allowed =
            |tool: &Value| tool.get("name").and_then(Value::as_str).is_some_and(|name| tools.contains(name));
        listed.retain(is_allowed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> BTreeSet<String> {
        BTreeSet::from(["look".to_owned()])
    }

    #[test]
    fn a_list_of_tools_has_the_allowed_ones_alone() {
        let line = json!({"id": 1, "result": {"tools": [{"name": "look"}, {"name": "hide"}], "nextCursor": "n"}});
        let kept: Value = serde_json::from_str(&from_server(line.to_string(), &tools())).unwrap();
        assert_eq!(kept, json!({"id": 1, "result": {"tools": [{"name": "look"}], "nextCursor": "n"}}));
        for other in [r#"{"id":2,"result":{"text":"the \"tools\" of"}}"#, "no JSON", r#"{"method":"tools"}"#] {
            assert_eq!(from_server(other.to_owned(), &tools()), other);
        }
    }

    #[test]
    fn a_call_of_another_tool_does_not_reach_the_server() {
        let call = |name: &str| json!({"id": 7, "method": "tools/call", "params": {"name": name}}).to_string();
        assert_eq!(from_agent(&call("look"), &tools()), AgentLine::Pass);
        let AgentLine::Answer(answer) = from_agent(&call("hide"), &tools()) else { panic!("it was passed on") };
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["message"]), (&json!(7), &json!("Unknown tool: hide")));
        assert_eq!(from_agent(r#"{"id":1,"method":"tools/list"}"#, &tools()), AgentLine::Pass);
        let batch = format!("[{},{}]", call("look"), call("hide"));
        assert!(matches!(from_agent(&batch, &tools()), AgentLine::Answer(_)));
    }

    #[test]
    fn a_restricted_server_is_started_by_the_program_between() {
        let transport = McpTransport::Stdio {
            command: "node".to_owned(),
            args: vec!["server.js".to_owned()],
            env: [("KEY".to_owned(), "v".to_owned())].into(),
        };
        let program =
            RelayProgram { program: "/bin/grove".into(), args: Vec::new(), filter_args: vec!["mcp-filter".to_owned()] };
        let plain = McpServer::new("s", transport);
        assert_eq!(restricted(plain.clone(), &program), plain);
        let restriction = McpRestriction { folder: Some("/w".to_owned()), tools: Some(tools()) };
        let McpTransport::Stdio { command, args, env } =
            restricted(McpServer { restriction, ..plain }, &program).transport
        else {
            panic!("another transport")
        };
        assert_eq!(command, "/bin/grove");
        assert_eq!(args, ["mcp-filter", "--folder=/w", "--restrict", "--tool=look", "--", "node", "server.js"]);
        assert_eq!(env["KEY"], "v");
    }
}
