//! Editors on a WebSocket of the host, without a program of their own.

use grove_testkit::Client;
use serde_json::{Value, json};

use crate::support::*;

/// An editor on a WebSocket.
pub(crate) struct SocketEditor {
    socket: Client,
    last_id: u64,
    pub(crate) received: Vec<Value>,
}

impl SocketEditor {
    /// Connects to the host's address for editors, with this query.
    pub(crate) async fn connect(host: &Host, token: &str, query: &str) -> Self {
        let url = format!("ws://{}/acp", host.address);
        let stream = tokio::net::TcpStream::connect(&host.address).await.unwrap();
        let socket = Client::over(Box::new(stream), &format!("{url}?tkn={token}{query}"), "editor").await;
        let mut editor = Self { socket, last_id: 0, received: Vec::new() };
        let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "session": {"notices": {}}});
        let answer = editor.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
        assert_eq!(answer["result"]["agentInfo"]["name"], "grove", "{answer}");
        editor
    }

    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(&request(json!(self.last_id), method, params)).await;
        self.last_id
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.socket.send(message.to_string()).await;
    }

    pub(crate) async fn until(&mut self, done: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.socket.frame().await.unwrap_or_else(|| panic!("{:?}", self.socket.ended()));
            let message: Value = serde_json::from_str(&frame).unwrap();
            self.received.push(message.clone());
            if done(&message) {
                return message;
            }
        }
    }

    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none()).await
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.begin("session/prompt", json!({"sessionId": session, "prompt": prompt})).await
    }

    pub(crate) async fn new_session(&mut self) -> String {
        let answer = self.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Answers a permission request with the first option of a kind.
    async fn choose(&mut self, asked: &Value, kind: &str) {
        let options = asked["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind).unwrap_or_else(|| panic!("{asked}"));
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
        self.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome})).await;
    }
}

fn is_asked(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

fn with_permission() -> String {
    let tool = json!({"tool": {"name": "shell", "input": "ls", "output": "a.txt", "permission": "shell"}});
    format!("script:{}", json!([tool, {"say": "done"}]))
}

#[tokio::test]
async fn an_editor_on_a_websocket_has_sessions_permissions_and_its_turns_outlive_it() {
    let host = Host::start();
    let mut editor = SocketEditor::connect(&host, &host.token, "").await;
    let session = editor.new_session().await;
    let prompt = editor.prompt(&session, &with_permission()).await;
    let asked = editor.until(is_asked).await;
    editor.choose(&asked, "allow_once").await;
    assert_eq!(editor.answer(prompt).await["result"]["stopReason"], "end_turn");

    // The editor vanishes while the agent asks. Another one finds the question.
    editor.prompt(&session, &with_permission()).await;
    editor.until(is_asked).await;
    drop(editor);
    let mut next = SocketEditor::connect(&host, &host.token, "&agent=scripted").await;
    let loaded = next.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).await;
    assert!(loaded["result"].is_object(), "{loaded}");
    let asked = next.until(is_asked).await;
    next.choose(&asked, "allow_once").await;
    next.until(|message| message["params"]["update"]["content"]["text"] == "done").await;
    let waited = host.place.run(&["wait", &session, "--timeout", "20"]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
}

#[tokio::test]
async fn an_editor_with_a_token_that_may_not_approve_is_told_so_and_the_question_stays() {
    let host = Host::start();
    let added = host.place.run(&["token", "add", "typist", "--can", "read,prompt,folders", "--json"]);
    let token: Value = serde_json::from_str(&added.stdout).unwrap_or_else(|_| panic!("{added:?}"));
    let mut editor = SocketEditor::connect(&host, token["token"].as_str().unwrap(), "").await;
    let session = editor.new_session().await;
    let prompt = editor.prompt(&session, &with_permission()).await;
    let asked = editor.until(is_asked).await;
    editor.choose(&asked, "allow_once").await;
    let told = editor.until(|message| message["params"]["update"]["sessionUpdate"] == "notice").await;
    assert!(told["params"]["update"].to_string().contains("needs the scope `approve`"), "{told}");
    let approved = host.place.run(&["approve", &session]);
    assert_eq!(approved.code, Some(0), "it still waited: {approved:?}");
    assert_eq!(editor.answer(prompt).await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_message_that_is_no_request_is_refused_and_the_socket_stays() {
    let host = Host::start();
    let mut editor = SocketEditor::connect(&host, &host.token, "").await;
    for (text, code) in [("{", -32700), ("[]", -32600), ("{\"jsonrpc\":\"2.0\"}", -32600), ("7", -32600)] {
        editor.socket.send(text.to_owned()).await;
        let refused = editor.until(|message| message.get("error").is_some()).await;
        assert_eq!(refused["error"]["code"], code, "{text}: {refused}");
    }
    editor.new_session().await;
}
