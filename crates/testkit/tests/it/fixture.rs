//! A client of the agent over plain JSON.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use grove_testkit::acp::{AgentBehavior, BEHAVIOR_VARIABLE, prompt};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);

/// The answer to a request of the agent: a result, or an error's code.
pub(crate) type AnswerFn = Box<dyn Fn(&Value) -> Result<Value, i64>>;

/// A running agent. It ends when this is dropped.
pub(crate) struct AgentFixture {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
    /// The agent's requests, oldest first.
    pub(crate) asked: Vec<Value>,
    /// The updates, without the session that they belong to.
    pub(crate) updates: Vec<Value>,
    pub(crate) answers: AnswerFn,
}

impl AgentFixture {
    pub(crate) fn start(behavior: &AgentBehavior) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-agent"));
        command.env(BEHAVIOR_VARIABLE, behavior.to_json());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the agent runs");
        let stdout = BufReader::new(child.stdout.take().expect("it has a stdout"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let answers = Box::new(|_: &Value| Err(-32601));
        Self { child, stdin, lines, last_id: 0, asked: Vec::new(), updates: Vec::new(), answers }
    }

    /// An agent with a session; returns its id.
    pub(crate) fn with_session(behavior: &AgentBehavior) -> (Self, String) {
        let mut fixture = Self::start(behavior);
        fixture.initialize();
        let session = fixture.new_session();
        (fixture, session)
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let able = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
        self.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": able})).unwrap()
    }

    pub(crate) fn new_session(&mut self) -> String {
        let new = self.call("session/new", json!({"cwd": "/", "mcpServers": []})).unwrap();
        new["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{line}").expect("the agent reads");
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request, and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.line(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).to_string());
        self.last_id
    }

    /// Calls, answers the agent's requests meanwhile, and returns the result or the error.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.answer(id)
    }

    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let message = self.next();
            if message.get("method").is_none() && message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
            self.take(message);
        }
    }

    /// Handles messages until the condition holds.
    pub(crate) fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let message = self.next();
            self.take(message);
        }
    }

    /// The next message of the agent.
    pub(crate) fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the agent says something");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// The next line of the agent, whatever it is.
    pub(crate) fn next_line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the agent says something")
    }

    fn take(&mut self, message: Value) {
        if message["method"] == "session/update" {
            self.updates.push(message["params"]["update"].clone());
        } else if message.get("method").is_some() && message.get("id").is_some() {
            let answer = match (self.answers)(&message) {
                Ok(result) => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
                Err(code) => json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "no"}}),
            };
            self.line(&answer.to_string());
            self.asked.push(message);
        }
    }

    /// Starts a turn with a script, and returns the prompt's id.
    pub(crate) fn begin(&mut self, session: &str, steps: &Value) -> u64 {
        let prompt = json!([{"type": "text", "text": prompt(steps)}]);
        self.send("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Runs a script to its end, and returns the answer to the prompt. Earlier text is dropped.
    pub(crate) fn script(&mut self, session: &str, steps: Value) -> Result<Value, Value> {
        self.updates.clear();
        self.asked.clear();
        let id = self.begin(session, &steps);
        self.answer(id)
    }

    /// Runs a script, and returns its text.
    pub(crate) fn said(&mut self, session: &str, steps: Value) -> String {
        self.script(session, steps).unwrap();
        self.text()
    }

    /// All text of the answer so far.
    pub(crate) fn text(&self) -> String {
        let chunks = self.updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    /// The kinds of the updates and, for those of tool calls, their statuses.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let kind = |update: &Value| {
            let kind = update["sessionUpdate"].as_str().unwrap_or_default();
            match update["status"].as_str() {
                Some(status) => format!("{kind} {status}"),
                None => kind.to_owned(),
            }
        };
        self.updates.iter().map(kind).collect()
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the agent's end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the agent does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns whether the agent sends nothing for so long.
    pub(crate) fn is_silent(&mut self, time: Duration) -> bool {
        matches!(self.lines.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }
}

impl Drop for AgentFixture {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Answers every permission request with this option.
pub(crate) fn choosing(option: &'static str) -> AnswerFn {
    Box::new(move |asked| match asked["method"].as_str() {
        Some("session/request_permission") => Ok(json!({"outcome": {"outcome": "selected", "optionId": option}})),
        _ => Err(-32601),
    })
}
