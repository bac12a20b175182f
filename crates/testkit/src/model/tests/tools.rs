//! The agent's shell is found among its tools. The lists are those of real agents, without irrelevant members.

use serde_json::{Value, json};

use super::super::model_request::ModelRequest;
use super::super::shell;
use super::super::wire::ModelApi;
use super::super::{COMMAND, FakeModel, Script};
use super::{post, prompt};

/// The tool and the arguments for a request, if any tool is a shell.
fn chosen(model_request: &ModelRequest) -> Option<(&str, Value)> {
    shell::find(&model_request.tools).map(|tool| (tool.name.as_str(), shell::arguments(tool, COMMAND)))
}

fn schema(properties: Value, required: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn words() -> Value {
    json!(["bash", "-lc", COMMAND])
}

fn function(name: &str, schema: Value) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": schema}})
}

fn chat(tools: Value) -> ModelRequest {
    ModelApi::ChatCompletions.read("/v1/chat/completions", &json!({ "tools": tools }))
}

fn responses(tools: Value) -> ModelRequest {
    ModelApi::Responses.read("/v1/responses", &json!({ "tools": tools }))
}

#[test]
fn opencode() {
    let bash = schema(json!({"command": {"type": "string"}, "timeout": {"type": "number"}}), json!(["command"]));
    let model_request = chat(json!([function("edit", json!({})), function("bash", bash), function("task", json!({}))]));
    assert_eq!(chosen(&model_request), Some(("bash", json!({ "command": COMMAND }))));
}

#[test]
fn copilot() {
    let id = || schema(json!({"shellId": {"type": "string"}}), json!(["shellId"]));
    let properties = json!({"command": {"type": "string"}, "description": {"type": "string"},
        "mode": {"type": "string", "enum": ["sync", "async"]}, "initial_wait": {"type": "integer"}});
    let bash = schema(properties, json!(["command", "description", "mode"]));
    let model_request = chat(json!([function("read_bash", id()), function("stop_bash", id()), function("bash", bash)]));
    let arguments = json!({"command": COMMAND, "description": "Says that grove was here", "mode": "sync"});
    assert_eq!(chosen(&model_request), Some(("bash", arguments)));
}

#[test]
fn codex_with_exec_command() {
    let properties = json!({"cmd": {"type": "string"}, "workdir": {"type": "string"}, "tty": {"type": "boolean"}});
    let model_request = responses(json!([
        {"type": "function", "name": "write_stdin", "parameters": schema(json!({"chars": {"type": "string"}}), json!([]))},
        {"type": "function", "name": "exec_command", "parameters": schema(properties, json!(["cmd"]))},
        {"type": "namespace", "name": "multi_agent_v1", "tools": []},
        {"type": "web_search"}]));
    assert_eq!(chosen(&model_request), Some(("exec_command", json!({ "cmd": COMMAND }))));
}

#[test]
fn codex_with_a_list_of_words() {
    let properties = json!({"command": {"type": "array", "items": {"type": "string"}}, "workdir": {"type": "string"}});
    let shell =
        json!({"type": "function", "name": "shell", "parameters": schema(properties, json!(["command", "workdir"]))});
    let model_request = responses(json!([shell]));
    assert_eq!(chosen(&model_request), Some(("shell", json!({"command": words(), "workdir": "."}))));
}

#[tokio::test]
async fn codex_with_the_services_own_shell() {
    assert_eq!(
        chosen(&responses(json!([{"type": "local_shell"}]))),
        Some(("local_shell", json!({"command": words()})))
    );
    let model = FakeModel::start(Script::default()).await;
    let body = json!({"input": "go", "tools": [{"type": "local_shell"}]});
    let whole = post(&model, "/v1/responses", body).await.json();
    let call = &whole["output"][2];
    assert_eq!(call["type"], "local_shell_call");
    assert_eq!(call["action"]["command"], words());
}

#[tokio::test]
async fn a_custom_tool_gets_plain_text() {
    let model = FakeModel::start(Script::default()).await;
    let body = json!({"input": "go", "stream": true, "tools": [{"type": "custom", "name": "shell"}]});
    let got = post(&model, "/v1/responses", body).await;
    assert!(got.names().contains(&"response.custom_tool_call_input.delta".to_owned()));
    let last = got.events().pop().unwrap().data;
    assert_eq!(last["response"]["output"][2]["input"], COMMAND);
}

#[test]
fn claude() {
    let properties = json!({"command": {"type": "string"}, "description": {"type": "string"},
        "run_in_background": {"type": "boolean"}});
    let model_request = ModelApi::Messages.read(
        "/v1/messages",
        &json!({"tools": [
        {"name": "BashOutput", "input_schema": schema(json!({"bash_id": {"type": "string"}}), json!(["bash_id"]))},
        {"name": "KillShell", "input_schema": schema(json!({"shell_id": {"type": "string"}}), json!(["shell_id"]))},
        {"name": "Bash", "input_schema": schema(properties, json!(["command"]))}]}),
    );
    assert_eq!(chosen(&model_request), Some(("Bash", json!({ "command": COMMAND }))));
}

#[test]
fn anthropics_own_shell_has_no_schema() {
    let model_request =
        ModelApi::Messages.read("/v1/messages", &json!({"tools": [{"type": "bash_20250124", "name": "bash"}]}));
    assert_eq!(chosen(&model_request), Some(("bash", json!({ "command": COMMAND }))));
}

#[test]
fn gemini() {
    let parameters = json!({"type": "OBJECT", "properties": {"command": {"type": "STRING"},
        "is_background": {"type": "BOOLEAN"}}, "required": ["command", "is_background"]});
    let model_request = ModelApi::Gemini.read(
        "/v1beta/models/m:generateContent",
        &json!({"tools": [{"functionDeclarations": [
        {"name": "read_background_output"}, {"name": "run_shell_command", "parameters": parameters}]}]}),
    );
    let arguments = json!({"command": COMMAND, "is_background": false});
    assert_eq!(chosen(&model_request), Some(("run_shell_command", arguments)));
}

#[test]
fn goose() {
    let properties = json!({"command": {"type": "string"}});
    let model_request = chat(json!([function("developer__shell", schema(properties, json!(["command"])))]));
    assert_eq!(chosen(&model_request), Some(("developer__shell", json!({ "command": COMMAND }))));
}

#[test]
fn a_shell_of_another_name_is_known_by_its_command() {
    let takes = |name: &str| schema(json!({ name: {"type": "string"} }), json!([name]));
    let model_request =
        chat(json!([function("list_terminals", takes("id")), function("terminal_runner", takes("commandLine"))]));
    assert_eq!(chosen(&model_request), Some(("terminal_runner", json!({ "commandLine": COMMAND }))));
}

#[test]
fn required_arguments_fit_what_the_schema_refers_to() {
    let properties = json!({"command": {"type": "string"}, "limits": {"$ref": "#/$defs/limits"},
        "note": {"anyOf": [{"type": "null"}, {"type": "string"}]}, "kind": {"const": "run"}});
    let mut shell = schema(properties, json!(["command", "limits", "note", "kind"]));
    shell["$defs"] = json!({"limits": {"type": "object", "required": ["again"],
        "properties": {"again": {"type": ["null", "integer"], "default": 7}}}});
    let model_request = chat(json!([function("bash", shell)]));
    let (_, arguments) = chosen(&model_request).unwrap();
    assert_eq!(arguments["limits"], json!({"again": 7}));
    assert_eq!(arguments["note"], "Says that grove was here");
    assert_eq!(arguments["kind"], "run");
}

#[tokio::test]
async fn an_agent_without_a_shell_is_told_so() {
    let model = FakeModel::start(Script::default()).await;
    let mut body = prompt("go");
    body["tools"] = json!([function("read", json!({})), function("write", json!({}))]);
    let text = post(&model, "/v1/chat/completions", body).await.text;
    assert!(text.contains("looks like a shell: read, write."), "{text}");
}
