//! `grove acp`: an editor that speaks the Agent Client Protocol, in front of the real host.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::*;

/// An editor with the program `grove acp` as its agent.
pub(crate) struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
    cwd: String,
    /// Every message of the program, in order.
    pub(crate) received: Vec<Value>,
}

impl Editor {
    /// Starts the program, and sends nothing.
    pub(crate) fn spawn(place: &TestHome, args: &[&str]) -> Self {
        let mut command = place.grove(&[&["acp"], args].concat());
        command.arg("--data-dir").arg(place.data()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let cwd = place.home().to_str().unwrap().to_owned();
        Self { child, stdin, stdout, last_id: 0, cwd, received: Vec::new() }
    }

    /// Starts the program, and sends `initialize`.
    pub(crate) fn start(place: &TestHome, args: &[&str]) -> Self {
        let mut editor = Self::spawn(place, args);
        let answer = editor.initialize(json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true}));
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        editor
    }

    pub(crate) fn initialize(&mut self, capabilities: Value) -> Value {
        let info = json!({"name": "test-editor", "version": "1"});
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info});
        self.call("initialize", params)
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?} is no message"));
        self.received.push(message.clone());
        message
    }

    /// Receives until a condition holds.
    pub(crate) fn until(&mut self, done: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive();
            if done(&message) {
                return message;
            }
        }
    }

    /// The first message that fits, of those received so far or later.
    pub(crate) fn first(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let found = self.received.iter().find(|message| fits(message)).cloned();
        found.unwrap_or_else(|| self.until(fits))
    }

    /// Sends a request, and returns its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(&request(json!(self.last_id), method, params));
        self.last_id
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// A new session, and its id.
    pub(crate) fn new_session(&mut self) -> String {
        let answer = self.call("session/new", json!({"cwd": self.cwd, "mcpServers": []}));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Sends a prompt, and returns the id of its request.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.begin("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    /// Sends a script of the scripted agent.
    fn script(&mut self, session: &str, steps: &Value) -> u64 {
        self.prompt(session, &format!("script:{steps}"))
    }

    /// The permission request that comes next.
    pub(crate) fn permission(&mut self) -> Value {
        self.until(|message| message["method"] == "session/request_permission")
    }

    /// Answers a permission request with the first option of a kind.
    pub(crate) fn choose(&mut self, asked: &Value, kind: &str) {
        let options = asked["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind).unwrap_or_else(|| panic!("{asked}"));
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
        self.reply(asked, &outcome);
    }

    /// Answers a request of the program.
    pub(crate) fn reply(&mut self, asked: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    }

    /// Refuses a request of the program.
    pub(crate) fn refuse(&mut self, asked: &Value) {
        let error = json!({"code": -32603, "message": "no"});
        self.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    }

    /// The text of the updates of a kind, so far.
    pub(crate) fn text(&self, kind: &str) -> String {
        let updates = self.received.iter().map(|message| &message["params"]["update"]);
        let chunks = updates.filter(|update| update["sessionUpdate"] == kind);
        chunks.map(|update| update["content"]["text"].as_str().unwrap_or_default()).collect()
    }

    /// Closes stdin, and returns the exit code and stderr.
    fn end(mut self) -> (Option<i32>, String) {
        self.stdin = None;
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), errors)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn is_update(message: &Value, kind: &str) -> bool {
    message["params"]["update"]["sessionUpdate"] == kind
}

#[test]
fn an_editor_starts_a_host_and_gets_a_streamed_answer() {
    let background = Background(TestHome::new());
    let mut editor = Editor::spawn(&background.0, &[]);
    let early = editor.call("session/new", json!({"cwd": "/", "mcpServers": []}));
    assert_eq!(early["error"]["code"], -32600, "{early}");
    let answer = editor.initialize(json!({}));
    let capabilities = &answer["result"]["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true, "{answer}");
    assert_eq!(capabilities["promptCapabilities"]["image"], true);
    assert!(capabilities["sessionCapabilities"]["list"].is_object());
    let session = editor.new_session();
    let steps = json!([{"reason": "hm"}, {"say": "hello there", "chunks": 3}, {"usage": {"inputTokens": 3, "outputTokens": 4}}, {"title": "Greeting"}]);
    let prompt = editor.script(&session, &steps);
    let ended = editor.answer(prompt);
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    assert_eq!(ended["result"]["usage"]["outputTokens"], 4);
    assert_eq!(editor.text("agent_message_chunk"), "hello there");
    assert_eq!(editor.text("agent_thought_chunk"), "hm");
    assert_eq!(editor.text("user_message_chunk"), "", "the editor shows its own prompt itself");
    if !editor.received.iter().any(|message| is_update(message, "session_info_update")) {
        editor.until(|message| is_update(message, "session_info_update"));
    }
    let listed = background.0.run(&["ls", "--json"]).stdout;
    assert!(listed.contains(&session), "{listed}");
    assert_eq!(editor.end(), (Some(0), String::new()));
}

#[test]
fn a_permission_request_is_asked_in_the_editor_and_its_answer_decides() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    for (kind, status) in [("allow_once", "completed"), ("reject_once", "failed")] {
        let steps = json!([{"tool": {"name": "shell", "input": "ls", "output": "a.txt", "permission": "shell"}}, {"say": "done"}]);
        let prompt = editor.script(&session, &steps);
        let asked = editor.permission();
        assert_eq!(asked["params"]["sessionId"], session.as_str());
        let call = asked["params"]["toolCall"]["toolCallId"].clone();
        let before = editor.received.iter().find(|message| is_update(message, "tool_call"));
        assert!(before.is_some(), "the call is told before it is asked about");
        editor.choose(&asked, kind);
        let ended = editor.answer(prompt);
        assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
        let mut updates = editor.received.iter().map(|message| &message["params"]["update"]);
        let last = updates.rfind(|update| update["toolCallId"] == call && update["status"].is_string());
        assert_eq!(last.unwrap()["status"], status);
    }
}

#[tokio::test]
async fn a_permission_answered_by_another_client_withdraws_the_question_of_the_editor() {
    let host = Host::start();
    let mut other = host.client("other").await;
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let uri = format!("scripted:/{session}");
    other.subscribe(&uri).await.unwrap();
    let tool = json!({"tool": {"name": "shell", "input": "ls", "output": "a.txt", "permission": "shell"}});
    let prompt = editor.script(&session, &json!([tool, tool, tool, {"say": "done"}]));

    // A client of version 1 answers.
    let first = editor.permission();
    let is_asked = |turn: &grove_wire::v1::ActiveTurn| !turn.pending_permissions.is_empty();
    other.until(|other| other.session(&uri).active_turn.as_ref().is_some_and(is_asked)).await;
    let active = other.active(&uri).clone();
    let request = active.pending_permissions.keys().next().unwrap().clone();
    other.approve(&uri, &active.id, &request).await;
    let cancelled = editor.until(|message| message["method"] == "$/cancel_request");
    assert_eq!(cancelled["params"]["requestId"], first["id"]);
    // A late answer changes nothing.
    editor.choose(&first, "reject_once");

    // The command line answers.
    let second = editor.permission();
    let approved = host.place.run(&["approve", &session]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let cancelled = editor.until(|message| message["method"] == "$/cancel_request");
    assert_eq!(cancelled["params"]["requestId"], second["id"]);

    let third = editor.permission();
    editor.choose(&third, "allow_once");
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "done");
    let updates = editor.received.iter().map(|message| &message["params"]["update"]["status"]);
    assert_eq!(updates.filter(|status| **status == "completed").count(), 3);
}

#[test]
fn a_cancelled_prompt_ends_as_cancelled() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let hang = json!([{"say": "begun"}, {"hang": true}]);
    for is_by_request in [false, true] {
        let prompt = editor.script(&session, &hang);
        editor.until(|message| is_update(message, "agent_message_chunk"));
        match is_by_request {
            false => editor.notify("session/cancel", json!({"sessionId": session})),
            true => editor.notify("$/cancel_request", json!({"requestId": prompt})),
        }
        assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
    }
    let prompt = editor.script(&session, &hang);
    editor.until(|message| is_update(message, "agent_message_chunk"));
    let close = editor.begin("session/close", json!({"sessionId": session}));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
    if !editor.received.iter().any(|message| message["id"] == close && message.get("result").is_some()) {
        editor.answer(close);
    }
    let waited = host.place.run(&["wait", &session, "--timeout", "20"]);
    assert_eq!(waited.code, Some(7), "the turn is cancelled in the host: {waited:?}");
}

#[tokio::test]
async fn the_editor_follows_what_other_clients_do_in_its_session() {
    let host = Host::start();
    let mut other = host.client("other").await;
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let uri = format!("scripted:/{session}");
    other.subscribe(&uri).await.unwrap();
    other.start_turn(&uri, "t1", r#"script:[{"say": "from elsewhere"}]"#).await;
    editor.until(|message| is_update(message, "agent_message_chunk"));
    assert!(editor.text("user_message_chunk").starts_with("script:"), "the prompt of another client is shown");
    assert_eq!(editor.text("agent_message_chunk"), "from elsewhere");
    other.turn_end(&uri, "t1").await;

    // A prompt in a busy session waits for its turn, and gets its own end.
    other.start_turn(&uri, "t2", r#"script:[{"tool": {"name": "shell", "input": "ls", "permission": "shell"}}]"#).await;
    let asked = editor.permission();
    let prompt = editor.script(&session, &json!([{"say": " mine"}]));
    editor.choose(&asked, "allow_once");
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "from elsewhere mine");
    other.until(|other| other.session(&uri).turns.len() == 3).await;
}

#[test]
fn sessions_are_listed_loaded_with_everything_said_resumed_closed_and_deleted() {
    let host = Host::start();
    let mut first = Editor::start(&host.place, &[]);
    let session = first.new_session();
    let steps = json!([{"say": "one"}, {"tool": {"name": "shell", "input": "ls", "output": "a.txt"}}, {"say": "two"}]);
    let prompt = first.script(&session, &steps);
    first.answer(prompt);
    assert_eq!(first.end().0, Some(0));

    let mut editor = Editor::start(&host.place, &[]);
    let cwd = editor.cwd.clone();
    let listed = editor.call("session/list", json!({"cwd": cwd}));
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], session.as_str(), "{listed}");
    let elsewhere = editor.call("session/list", json!({"cwd": "/nowhere"}));
    assert_eq!(elsewhere["result"]["sessions"], json!([]));
    editor.received.clear();
    let loaded = editor.call("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    assert!(loaded["result"]["configOptions"].is_array(), "{loaded}");
    let kinds: Vec<String> = editor
        .received
        .iter()
        .filter_map(|message| Some(message["params"]["update"]["sessionUpdate"].as_str()?.to_owned()))
        .collect();
    assert_eq!(
        kinds,
        ["user_message_chunk", "agent_message_chunk", "tool_call", "agent_message_chunk"],
        "before the answer"
    );
    let call = editor.received.iter().find(|message| is_update(message, "tool_call")).unwrap();
    assert_eq!(call["params"]["update"]["status"], "completed", "{call}");
    assert_eq!(call["params"]["update"]["content"][0]["content"]["text"], "a.txt", "{call}");

    assert_eq!(editor.call("session/close", json!({"sessionId": session}))["result"], json!({}));
    let closed = editor.prompt(&session, "hi");
    assert_eq!(editor.answer(closed)["error"]["code"], -32002);
    editor.received.clear();
    let resumed = editor.call("session/resume", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    assert!(resumed["result"].is_object(), "{resumed}");
    let prompt = editor.script(&session, &json!([{"say": "three"}]));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "three", "nothing is told again");

    let forked = editor.call("session/fork", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    let copy = forked["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{forked}")).to_owned();
    let prompt = editor.script(&copy, &json!([{"say": " four"}]));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "three four");
    assert_eq!(editor.call("session/delete", json!({"sessionId": copy}))["result"], json!({}));

    assert_eq!(editor.call("session/delete", json!({"sessionId": session}))["result"], json!({}));
    assert_eq!(editor.call("session/list", json!({}))["result"]["sessions"], json!([]));
    let gone = editor.call("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    assert_eq!(gone["error"]["code"], -32002, "{gone}");
}

#[test]
fn a_title_of_the_editor_names_the_session_everywhere_and_stays() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    assert!(editor.received[0]["result"]["agentCapabilities"]["sessionCapabilities"]["title"].is_object());
    let session = editor.new_session();
    let set = |editor: &mut Editor, title: &str| {
        editor.call("session/set_title", json!({"sessionId": session, "title": title}))
    };
    let stored = set(&mut editor, "  A name\n of mine ");
    assert_eq!(stored["result"]["title"], "A name of mine", "{stored}");
    let prompt = editor.script(&session, &json!([{"title": "The agent's"}, {"say": "x"}]));
    editor.answer(prompt);
    let listed = editor.call("session/list", json!({}));
    assert_eq!(listed["result"]["sessions"][0]["title"], "A name of mine", "a person's title stays");
    assert_eq!(set(&mut editor, " \n")["error"]["code"], -32602);
    let unknown = editor.call("session/set_title", json!({"sessionId": "none", "title": "x"}));
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
    // A session that the editor does not have open is renamed as well.
    let mut other = Editor::start(&host.place, &[]);
    assert_eq!(set(&mut other, "Second")["result"]["title"], "Second");
    editor.until(|message| message["params"]["update"]["title"] == "Second");
}

#[test]
fn an_archived_session_ends_its_turn_and_leaves_the_list_until_it_comes_back() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let prompt = editor.script(&session, &json!([{"say": "begun"}, {"hang": true}]));
    editor.until(|message| is_update(message, "agent_message_chunk"));
    let archive = editor.begin("session/archive", json!({"sessionId": session}));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
    if !editor.received.iter().any(|message| message["id"] == archive && message.get("result").is_some()) {
        assert_eq!(editor.answer(archive)["result"], json!({}));
    }
    let mut rows = |filter: Value| {
        let listed = editor.call("session/list", json!({"archived": filter}));
        listed["result"]["sessions"].as_array().map(|rows| rows.len()).ok_or(listed["error"]["code"].clone())
    };
    assert_eq!(rows(Value::Null), Ok(0));
    assert_eq!((rows(json!("only")), rows(json!("include"))), (Ok(1), Ok(1)));
    assert_eq!(rows(json!("sometimes")), Err(json!(-32602)));
    let waited = host.place.run(&["wait", &session, "--timeout", "20"]);
    assert_eq!(waited.code, Some(7), "the turn is cancelled in the host: {waited:?}");
    let back = editor.call("session/unarchive", json!({"sessionId": session}));
    assert_eq!(back["result"], json!({}), "{back}");
    let listed = editor.call("session/list", json!({}));
    assert_eq!(listed["result"]["sessions"][0]["archived"], false, "{listed}");
}

#[test]
fn a_failed_turn_is_an_error_with_the_words_of_the_agent() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let prompt = editor.script(&session, &json!([{"fail": "the model is on fire"}]));
    let ended = editor.answer(prompt);
    assert!(ended["error"]["message"].as_str().unwrap().contains("the model is on fire"), "{ended}");
    let next = editor.script(&session, &json!([{"say": "again"}]));
    assert_eq!(editor.answer(next)["result"]["stopReason"], "end_turn");
}

#[test]
fn a_message_that_cannot_be_read_changes_nothing() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("{\"jsonrpc\":\"2.0\"}", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]", -32600),
    ] {
        editor.send_line(line);
        assert_eq!(editor.receive()["error"]["code"], code, "{line}");
    }
    for (method, params, code) in [
        ("session/prompt", json!({"sessionId": session}), -32602),
        ("session/prompt", json!({"sessionId": "nobody", "prompt": []}), -32002),
        ("session/new", json!({"cwd": "relative", "mcpServers": []}), -32602),
        ("session/load", json!({"sessionId": "../x", "cwd": "/", "mcpServers": []}), -32002),
        ("session/set_mode", json!({"sessionId": session, "modeId": "fly"}), -32602),
        ("session/set_config_option", json!({"sessionId": session, "configId": "x", "value": "y"}), -32602),
        ("authenticate", json!({"methodId": "x"}), -32602),
        ("session/fly", json!({}), -32601),
    ] {
        let answer = editor.call(method, params.clone());
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
    let prompt = editor.script(&session, &json!([{"say": "still here"}]));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
}

#[test]
fn the_model_is_an_option_of_the_session() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let cwd = editor.cwd.clone();
    let answer = editor.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let model = |answer: &Value| {
        let options = answer["result"]["configOptions"].as_array().unwrap().clone();
        options.into_iter().find(|option| option["category"] == "model").unwrap()["currentValue"].clone()
    };
    assert_eq!(model(&answer), "scripted");
    let set = json!({"sessionId": session, "configId": "model", "value": "scripted/slow-start"});
    assert_eq!(model(&editor.call("session/set_config_option", set)), "scripted/slow-start");
    let prompt = editor.script(&session, &json!([{"say": "x"}]));
    editor.answer(prompt);
    let shown = host.place.run(&["show", &session, "--json"]).stdout;
    assert!(shown.contains("scripted/slow-start"), "{shown}");
}

#[test]
fn a_question_is_a_form_where_the_editor_has_forms_and_words_where_not() {
    let host = Host::start();
    for forms in [true, false] {
        let mut editor = Editor::spawn(&host.place, &[]);
        editor.initialize(if forms { json!({"elicitation": {"form": {}}}) } else { json!({}) });
        let session = editor.new_session();
        let prompt = editor.script(&session, &json!([{"ask": "Which color?"}, {"say": "thanks"}]));
        if forms {
            let asked = editor.until(|message| message["method"] == "elicitation/create");
            let properties = asked["params"]["requestedSchema"]["properties"].as_object().unwrap();
            let name = properties.keys().next().unwrap();
            let result = json!({"action": "accept", "content": {name: "green"}});
            editor.reply(&asked, &result);
        } else {
            editor.until(|message| is_update(message, "agent_message_chunk"));
            assert!(editor.text("agent_message_chunk").contains("grove answer"));
            let answered = host.place.run(&["answer", &session, "green"]);
            assert_eq!(answered.code, Some(0), "{answered:?}");
        }
        assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    }
}

#[test]
fn an_image_of_a_prompt_is_stored_with_it() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let blocks = json!([
        {"type": "text", "text": r#"script:[{"say": "seen"}]"#},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    ]);
    let prompt = editor.begin("session/prompt", json!({"sessionId": session, "prompt": blocks}));
    let ended = editor.answer(prompt);
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");

    let mut later = Editor::start(&host.place, &[]);
    later.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []}));
    let updates = later.received.iter().map(|message| &message["params"]["update"]);
    let said: Vec<&Value> = updates.filter(|update| update["sessionUpdate"] == "user_message_chunk").collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[1]["content"], json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}));
}
