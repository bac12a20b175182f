//! The tools of clients, MCP servers and system messages reach an ACP agent.

use super::*;
use crate::ahp_support::active_client;

/// Offers tools of a client.
async fn offer(client: &mut Client, tools: &[&str]) {
    let id = client.client_id.clone();
    accepted(client, SESSION, json!({"type": "session/activeClientSet", "activeClient": active_client(&id, tools)}))
        .await;
}

/// The call of a tool that the agent makes.
fn add() -> Value {
    json!({"mcp": {"server": "grove", "tool": "add", "arguments": {"a": 1, "b": 2}}})
}

/// The id and the input of the call that waits for its client.
async fn running(client: &mut Client, chat: &str) -> Value {
    let call = client.call_that(chat, |call| matches!(call, ToolCallState::Running(_))).await;
    serde_json::to_value(call).unwrap()
}

async fn complete(client: &mut Client, chat: &str, turn: &str, call: &Value, text: &str) {
    let result = json!({"success": true, "pastTenseMessage": "Added", "content": [{"type": "text", "text": text}]});
    let action =
        json!({"type": "chat/toolCallComplete", "turnId": turn, "toolCallId": call["toolCallId"], "result": result});
    accepted(client, chat, action).await;
}

#[tokio::test]
async fn an_agent_calls_the_tool_of_a_client_which_is_shown_once() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    // The agent is there already: it starts again with the tools.
    offer(&mut client, &["add"]).await;
    let announces =
        json!({"tool_call": {"toolCallId": "c1", "title": "grove_add", "kind": "other", "status": "pending"}});
    let ends = json!({"tool_update": {"toolCallId": "c1", "status": "completed"}});
    start(&mut client, &chat, "t", &json!([announces, add(), ends, {"mcp_tools": "grove"}])).await;
    let call = running(&mut client, &chat).await;
    assert_eq!(
        (&call["toolName"], &call["contributor"]["clientId"]),
        (&json!("add"), &json!(client.client_id)),
        "{call}"
    );
    let input: Value = serde_json::from_str(call["toolInput"].as_str().unwrap()).unwrap();
    assert_eq!(input, json!({"a": 1, "b": 2}));
    complete(&mut client, &chat, "t", &call, "3").await;
    let turn = client.turn_end(&chat, "t").await;
    assert_eq!(markdown(&turn.response_parts), "mcp: 3\ntools: add\n");
    assert_eq!(calls(&turn).len(), 1, "{:#?}", calls(&turn));

    // A tool that comes later is listed without a restart, one that is gone is not called.
    offer(&mut client, &["add", "get"]).await;
    assert_eq!(said(&mut client, &chat, "u", json!([{"mcp_tools": "grove"}])).await, "tools: add, get\n");
    offer(&mut client, &[]).await;
    let gone = said(&mut client, &chat, "v", json!([add()])).await;
    assert!(gone.starts_with("mcp: failed: no client offers the tool add"), "{gone}");
}

#[tokio::test]
async fn an_open_call_of_a_clients_tool_survives_the_host() {
    let mut stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    offer(&mut client, &["add"]).await;
    start(&mut client, &chat, "t", &json!([add(), {"say": "done"}])).await;
    let call = running(&mut client, &chat).await;
    stage.kill_and_restart();
    let mut client = stage.host().ahp_connect(&client.client_id.clone()).await;
    client.initialize(&[SESSION, &chat]).await;
    let again = running(&mut client, &chat).await;
    assert_eq!(again["toolCallId"], call["toolCallId"]);
    complete(&mut client, &chat, "t", &again, "3").await;
    let turn = client.turn_end(&chat, "t").await;
    assert_eq!(markdown(&turn.response_parts), "mcp: 3\ndone");
    assert_eq!(calls(&turn).len(), 1, "{:#?}", calls(&turn));
}

#[tokio::test]
async fn a_permission_request_of_the_agent_for_a_clients_tool_is_asked_once() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    offer(&mut client, &["add"]).await;
    let call = json!({"toolCallId": "c1", "title": "grove_add", "kind": "other", "rawInput": {"a": 1, "b": 2}});
    let steps =
        json!([{"ask": {"tool_call": call}}, add(), {"tool_update": {"toolCallId": "c1", "status": "completed"}}]);
    start(&mut client, &chat, "t", &steps).await;
    let asks = asked(&mut client, &chat).await;
    assert_eq!(asks["toolName"], "add", "{asks}");
    answer(&mut client, &chat, "t", &asks, "allow_once").await;
    let runs = running(&mut client, &chat).await;
    assert_eq!(runs["toolCallId"], "c1");
    complete(&mut client, &chat, "t", &runs, "3").await;
    let turn = client.turn_end(&chat, "t").await;
    assert_eq!(markdown(&turn.response_parts), "permission: allow_once\nmcp: 3\n");
    assert_eq!(calls(&turn).len(), 1, "{:#?}", calls(&turn));
    assert!(matches!(turn.state, TurnState::Complete));
}

/// An MCP server of the test's own, which says one of its variables.
fn server(stage_folder: &std::path::Path) -> PathBuf {
    let path = stage_folder.join("server.py");
    let program = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "tell", "inputSchema": {"type": "object"}}]}
    elif message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "key " + os.environ.get("KEY", "none")}]}
    else:
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "0"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;
    std::fs::write(&path, program).unwrap();
    path
}

#[tokio::test]
async fn mcp_servers_and_a_system_message_reach_the_agent_and_stay_secret() {
    let stage = Stage::new(AgentBehavior::default());
    let program = server(&stage.place.path("work"));
    let (mut client, chat) = stage.begin().await;
    let servers = json!([{
        "name": "mine", "type": "stdio", "command": "/usr/bin/env", "args": ["python3", program],
        "env": {"KEY": "hunter2-and-more"},
    }]);
    let message = json!({"mode": "append", "content": "Answer in one word."});
    let setup = json!({"channel": SESSION, "mcpServers": servers, "systemMessage": message});
    client.ask("x-grove/setup", setup).await.unwrap();
    let tells = json!([{"mcp": {"server": "mine", "tool": "tell"}}]);
    let turn = run(&mut client, &chat, "t", tells.clone()).await;
    let shown = serde_json::to_string(&turn).unwrap();
    assert!(shown.contains("Answer in one word."), "{shown}");
    // Python may be missing on a machine.
    let text = markdown(&turn.response_parts);
    assert!(text == "mcp: key hunter2-and-more\n" || text.contains("the server has ended"), "{text}");
    client.start_turn(&chat, "u", "hello").await;
    let second = client.turn_end(&chat, "u").await;
    assert_eq!(markdown(&second.response_parts), "You said: hello", "the agent has heard it");

    // A changed message reaches an agent that has heard the old one, with the conversation.
    let changed = json!({"mode": "append", "content": "Answer in two words."});
    client.ask("x-grove/setup", json!({"channel": SESSION, "systemMessage": changed})).await.unwrap();
    client.start_turn(&chat, "v", "again").await;
    let third = markdown(&client.turn_end(&chat, "v").await.response_parts);
    assert!(third.contains("Answer in two words.") && third.contains("hello"), "{third}");

    let replaces = json!({"channel": SESSION, "systemMessage": {"mode": "replace", "content": "x"}});
    let refused = client.ask("x-grove/setup", replaces).await.unwrap_err();
    assert!(refused.code == -32602 && refused.message.contains("append to it instead"), "{refused:?}");
    let far = json!([{"name": "far", "type": "http", "url": "https://example.org"}]);
    let refused = client.ask("x-grove/setup", json!({"channel": SESSION, "mcpServers": far})).await.unwrap_err();
    assert!(refused.message.contains("MCP server far"), "{refused:?}");
}

#[tokio::test]
async fn the_mcp_servers_of_grove_toml_reach_every_agent() {
    let place = tempfile::tempdir().unwrap();
    let program = server(place.path());
    let tables = format!(
        "[mcp.tables]\ncommand = [\"/usr/bin/env\", \"python3\", {program:?}]\nenv = {{ KEY = \"from-the-file\" }}\n\
         [mcp.others]\ncommand = [\"/bin/false\"]\nagents = [\"claude\"]\n"
    );
    let stage = Stage::with_table(AgentBehavior::default(), &[], &tables, &[]);
    let (mut client, chat) = stage.begin().await;
    let text = said(&mut client, &chat, "t", json!([{"mcp": {"server": "tables", "tool": "tell"}}])).await;
    assert!(text == "mcp: key from-the-file\n" || text.contains("the server has ended"), "{text}");
    let other = said(&mut client, &chat, "u", json!([{"mcp": {"server": "others", "tool": "tell"}}])).await;
    assert_eq!(other, "mcp: error: there is no such server\n");
}
