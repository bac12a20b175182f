//! A turn: a thread that runs its steps one after the other.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Map, Value, json};

use super::agent::{RunningSession, ScriptedAcpAgent};
use super::behavior::{AgentBehavior, PermissionOfferKind, PromptContentKind, RpcError};
use super::check;
use super::mcp;
use super::memory::{self, chunk};
use super::peer::{Cancelled, INTERNAL, INVALID_PARAMS, NO_METHOD, RpcResult, TurnWait, lock};
use super::script::{self, Ask, ChunkedText, Later, PREFIX, ScriptStep, Spawn, Stop, Stream, Terminal, Tool};

/// The time by which a cancelled permission may precede the cancellation.
const AHEAD: Duration = Duration::from_secs(1);

/// The content of a prompt.
pub(super) struct PromptText {
    /// All texts, one below the other.
    pub(super) text: String,
    /// The last text, which may be a script.
    last: String,
    /// The other contents.
    others: Vec<&'static str>,
}

impl PromptText {
    pub(super) fn of(blocks: &[acp::ContentBlock], behavior: &AgentBehavior) -> Result<Self, RpcError> {
        let mut prompt = Self { text: String::new(), last: String::new(), others: Vec::new() };
        for block in blocks {
            let (name, needs) = match block {
                acp::ContentBlock::Text(text) => {
                    if !prompt.text.is_empty() {
                        prompt.text.push('\n');
                    }
                    prompt.text.push_str(&text.text);
                    prompt.last.clone_from(&text.text);
                    continue;
                }
                acp::ContentBlock::ResourceLink(_) => ("resource_link", None),
                acp::ContentBlock::Image(_) => ("image", Some(PromptContentKind::Image)),
                acp::ContentBlock::Audio(_) => ("audio", Some(PromptContentKind::Audio)),
                acp::ContentBlock::Resource(_) => ("resource", Some(PromptContentKind::EmbeddedContext)),
                _ => return Err(RpcError::new(INVALID_PARAMS, "a content that this agent does not know")),
            };
            if needs.is_some_and(|needs| !behavior.takes.contains(&needs)) {
                return Err(RpcError::new(INVALID_PARAMS, format!("this agent takes no {name}")));
            }
            prompt.others.push(name);
        }
        if blocks.is_empty() {
            return Err(RpcError::new(INVALID_PARAMS, "an empty prompt"));
        }
        Ok(prompt)
    }

    pub(super) fn steps(&self) -> Result<Vec<ScriptStep>, RpcError> {
        if let Some(script) = self.last.strip_prefix(PREFIX) {
            return script::parse(script).map_err(|problem| RpcError::new(INVALID_PARAMS, problem));
        }
        let mut answer = format!("You said: {}", self.text);
        if !self.others.is_empty() {
            answer.push_str(&format!(" (with {})", self.others.join(", ")));
        }
        let chunks = self.text.split_whitespace().count().max(1);
        Ok(vec![ScriptStep::Say(ChunkedText { text: answer, chunks, delay_ms: 0, repeat: 1 })])
    }
}

/// A running turn.
pub(super) struct TurnRunner {
    agent: Arc<ScriptedAcpAgent>,
    session: Arc<RunningSession>,
    wait: Arc<TurnWait>,
    /// The conversation before the prompt.
    before: String,
    /// Tool calls that have not ended.
    open: BTreeSet<String>,
}

/// The reason why no further step runs.
enum ScriptEnd {
    Stop(Box<Stop>),
    Fail(RpcError),
    Cancelled,
}

impl From<Cancelled> for ScriptEnd {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A person's answer to a tool call.
enum ToolPermission {
    Allowed,
    Rejected,
}

impl TurnRunner {
    pub(super) fn new(
        agent: Arc<ScriptedAcpAgent>,
        session: Arc<RunningSession>,
        wait: Arc<TurnWait>,
        before: String,
    ) -> Self {
        Self { agent, session, wait, before, open: BTreeSet::new() }
    }

    /// Runs the steps, and returns the answer to the prompt.
    pub(super) fn run(mut self, steps: Vec<ScriptStep>) -> RpcResult {
        let ended = self.begin().and_then(|()| {
            steps.into_iter().try_for_each(|step| {
                self.wait.go_on()?;
                self.step(step)
            })
        });
        match ended {
            Ok(()) => Ok(json!({"stopReason": "end_turn"})),
            Err(ScriptEnd::Stop(stop)) => {
                let mut response = json!({"stopReason": stop.reason});
                for (name, value) in [("usage", stop.usage), ("_meta", stop.meta)] {
                    if let Some(value) = value {
                        response[name] = value;
                    }
                }
                Ok(response)
            }
            Err(ScriptEnd::Fail(fault)) => Err(fault),
            Err(ScriptEnd::Cancelled) => {
                self.let_go();
                Ok(json!({"stopReason": "cancelled"}))
            }
        }
    }

    fn begin(&mut self) -> Result<(), ScriptEnd> {
        if !self.agent.behavior.unknown_request {
            return Ok(());
        }
        self.agent.peer.notify("craft/suggestion", &json!({"sessionId": self.session.id, "suggestion": "go on"}));
        match self.request("craft/drainMidTurnQueue", json!({})) {
            Err(fault) if fault.code == NO_METHOD => Ok(()),
            other => {
                let problem = format!("craft/drainMidTurnQueue was answered with {other:?}");
                self.agent.peer.complain(problem.clone());
                Err(ScriptEnd::Fail(RpcError::new(INTERNAL, problem)))
            }
        }
    }

    fn step(&mut self, step: ScriptStep) -> Result<(), ScriptEnd> {
        match step {
            ScriptStep::Say(words) => self.words("agent_message_chunk", &words)?,
            ScriptStep::Think(words) => self.words("agent_thought_chunk", &words)?,
            ScriptStep::Stream(stream) => self.stream(&stream)?,
            ScriptStep::Tool(tool) => self.tool(tool)?,
            ScriptStep::ToolCall(update) => self.update(named("tool_call", update)),
            ScriptStep::ToolUpdate(update) => self.update(named("tool_call_update", update)),
            ScriptStep::Ask(ask) => self.asks(vec![ask])?,
            ScriptStep::Asks(asks) => self.asks(asks)?,
            ScriptStep::Plan(plan) => self.update(listed("plan", "entries", plan)),
            ScriptStep::Commands(commands) => {
                self.update(listed("available_commands_update", "availableCommands", commands));
            }
            ScriptStep::Mode(mode) => {
                lock(&self.session.memory).mode = Some(mode.clone());
                self.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
            }
            ScriptStep::Config(config) => self.config(config),
            ScriptStep::Usage(usage) => self.update(named("usage_update", usage)),
            ScriptStep::Info(info) => {
                if let Some(title) = info["title"].as_str() {
                    lock(&self.session.memory).title = Some(title.to_owned());
                }
                self.update(named("session_info_update", info));
            }
            ScriptStep::Notice(notice) => self.update(named("notice", notice)),
            ScriptStep::Update(update) => self.update(update),
            ScriptStep::Later(later) => self.later(later),
            // A string is a line that need not be JSON.
            ScriptStep::Raw(Value::String(line)) => self.agent.peer.line(line),
            ScriptStep::Raw(line) => self.agent.peer.line(line.to_string()),
            ScriptStep::Request(request) => {
                let request_id = self.agent.peer.ask(&request.method, &request.params, &self.wait);
                if request.cancel {
                    let id: Value = serde_json::from_str(&request_id).unwrap_or_default();
                    self.agent.peer.notify("$/cancel_request", &json!({"requestId": id}));
                }
                let answer = self.wait.answer(&request_id);
                self.report(&request.method, answer);
            }
            ScriptStep::Read(params) => {
                let answer = self.request("fs/read_text_file", params);
                self.report("read", answer.map(|result| result["content"].clone()));
            }
            ScriptStep::Write(params) => {
                let answer = self.request("fs/write_text_file", params);
                self.report("write", answer.map(|_| json!("done")));
            }
            ScriptStep::Terminal(terminal) => self.terminal(terminal)?,
            ScriptStep::Elicit(params) => self.elicit(params),
            ScriptStep::Sleep(milliseconds) => self.wait.sleep(Duration::from_millis(milliseconds))?,
            ScriptStep::AwaitFile(path) => {
                while !path.exists() {
                    self.wait.sleep(Duration::from_millis(5))?;
                }
            }
            ScriptStep::Hang => return Err(self.wait.forever().into()),
            ScriptStep::Crash(how) => self.agent.crash(how),
            ScriptStep::Stderr(text) => {
                use std::io::Write;
                writeln!(std::io::stderr(), "{text}").ok();
            }
            ScriptStep::CloseStdout => self.agent.peer.close(),
            ScriptStep::Fail(fault) => {
                self.wait.sleep(Duration::from_millis(self.agent.behavior.retries_for))?;
                return Err(ScriptEnd::Fail(fault));
            }
            ScriptStep::Stop(stop) => return Err(ScriptEnd::Stop(Box::new(stop))),
            ScriptStep::Spawn(spawn) => self.spawn(&spawn)?,
            ScriptStep::EchoHistory => self.say(&format!("history:\n{}\n", self.before)),
            ScriptStep::Cwd => {
                let session = lock(&self.session.memory).cwd.display().to_string();
                let process = std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default();
                self.say(&format!("cwd: {session}\nprocess: {process}\n"));
            }
            ScriptStep::Env(name) => {
                let value =
                    std::env::var(&name).map_or_else(|_| "is not set".to_owned(), |value| format!("is {value}"));
                self.say(&format!("env: {name} {value}\n"));
            }
            ScriptStep::Client => self.say(&format!("client: {}\n", self.agent.client())),
            ScriptStep::Settings => {
                let settings = {
                    let memory = lock(&self.session.memory);
                    json!({"mode": memory.mode, "model": memory.model, "options": memory.chosen})
                };
                self.say(&format!("settings: {settings}\n"));
            }
            ScriptStep::Mcp(call) => {
                let params = json!({"name": call.tool, "arguments": call.arguments});
                let answer = self.session.servers.ask(&call.server, "tools/call", &params, || self.wait.go_on())?;
                self.say(&format!("mcp: {}\n", mcp::result_text(&answer)));
            }
            ScriptStep::McpTools(server) => {
                let names = self.session.servers.listed(&server, || self.wait.go_on())?;
                self.say(&format!("tools: {}\n", names.join(", ")));
            }
            ScriptStep::Complaints => {
                let complaints = self.agent.peer.complaints();
                let complaints = if complaints.is_empty() { "none".to_owned() } else { complaints.join("; ") };
                self.say(&format!("complaints: {complaints}\n"));
            }
        }
        Ok(())
    }

    fn words(&mut self, kind: &str, words: &ChunkedText) -> Result<(), ScriptEnd> {
        for (n, piece) in words.pieces().iter().enumerate() {
            if n > 0 {
                self.wait.sleep(Duration::from_millis(words.delay_ms))?;
            }
            self.update(chunk(kind, piece));
        }
        if self.agent.behavior.empty_chunks {
            self.update(chunk(kind, ""));
        }
        Ok(())
    }

    fn stream(&mut self, stream: &Stream) -> Result<(), ScriptEnd> {
        let began = Instant::now();
        for number in 1..=stream.count {
            self.wait.until(began + Duration::from_secs_f64((number - 1) as f64 / stream.per_second))?;
            self.say(&format!("{number}:{};", memory::now().as_micros()));
        }
        Ok(())
    }

    fn tool(&mut self, tool: Tool) -> Result<(), ScriptEnd> {
        let behavior = self.agent.behavior.clone();
        let call = tool.id.unwrap_or_else(|| {
            let mut memory = lock(&self.session.memory);
            memory.calls += 1;
            format!("call-{}", memory.calls)
        });
        let input = if tool.input.is_null() { json!({"command": tool.title}) } else { tool.input };
        let whole = json!({
            "toolCallId": call, "title": tool.title, "kind": tool.kind, "status": "pending", "rawInput": input,
        });
        let asks = !behavior.asks_nothing && (tool.ask || behavior.asks_always);
        let mut leave = ToolPermission::Allowed;
        if asks && (behavior.asks_first || behavior.never_tool_call) {
            leave = self.may_run(&whole)?;
        }
        if !behavior.never_tool_call {
            let mut first = whole.clone();
            if behavior.bare_first_call {
                first["title"] = json!("Terminal");
                first["rawInput"] = json!({});
                first["content"] = json!([]);
            }
            self.update(named("tool_call", first));
        }
        if behavior.bare_first_call {
            self.tool_update(json!({"toolCallId": call, "title": tool.title, "rawInput": input}));
        }
        if asks && !behavior.asks_first && !behavior.never_tool_call {
            leave = self.may_run(&whole)?;
        }
        if matches!(leave, ToolPermission::Rejected) {
            let content = text_content("The person said no.");
            self.tool_update(json!({"toolCallId": call, "status": "failed", "content": content}));
            return Ok(());
        }
        let mut running = json!({"toolCallId": call, "title": tool.title});
        if !behavior.no_status {
            running["status"] = json!("in_progress");
        }
        self.tool_update(running);
        self.wait.sleep(Duration::from_millis(tool.takes_ms))?;
        let status = if tool.fails { "failed" } else { "completed" };
        let output = json!({"toolCallId": call, "content": text_content(&tool.output), "rawOutput": tool.output});
        if behavior.no_status {
            self.tool_update(output);
            self.tool_update(json!({"toolCallId": call, "status": status}));
        } else {
            let mut output = output;
            output["status"] = json!(status);
            self.tool_update(output);
        }
        Ok(())
    }

    /// Asks for permission, unless it was given or denied permanently.
    fn may_run(&mut self, call: &Value) -> Result<ToolPermission, ScriptEnd> {
        let kind = call["kind"].as_str().unwrap_or_default().to_owned();
        if let Some(allowed) = lock(&self.session.memory).allowed.get(&kind) {
            return Ok(if allowed == &json!(true) { ToolPermission::Allowed } else { ToolPermission::Rejected });
        }
        let offered = self.agent.behavior.offered();
        let options: Vec<Value> = offered.iter().copied().map(option).collect();
        let chosen = match self.permission(call.clone(), &options)? {
            Ok(chosen) => chosen,
            Err(fault) => return Err(ScriptEnd::Fail(fault)),
        };
        let Some(chosen) = PermissionOfferKind::ALL.into_iter().find(|offer| offer.word() == chosen) else {
            return Ok(ToolPermission::Rejected);
        };
        let remember = |allowed: bool| drop(lock(&self.session.memory).allowed.insert(kind.clone(), json!(allowed)));
        Ok(match chosen {
            PermissionOfferKind::AllowOnce => ToolPermission::Allowed,
            PermissionOfferKind::RejectOnce => ToolPermission::Rejected,
            PermissionOfferKind::AllowAlways => {
                remember(true);
                ToolPermission::Allowed
            }
            PermissionOfferKind::RejectAlways => {
                remember(false);
                ToolPermission::Rejected
            }
        })
    }

    /// Sends all requests, and then waits for the answers, one after the other.
    fn asks(&mut self, asks: Vec<Ask>) -> Result<(), ScriptEnd> {
        let mut requests = Vec::new();
        for ask in asks {
            let own = || self.agent.behavior.offered().iter().copied().map(option).collect();
            let options: Vec<Value> = if ask.options.is_empty() { own() } else { ask.options };
            requests.push((self.send_permission(ask.tool_call, &options), options));
        }
        for (request_id, options) in requests {
            let answer = self.permitted(&request_id, &options)?;
            self.report("permission", answer.map(Value::from));
        }
        Ok(())
    }

    /// The chosen option.
    fn permission(&mut self, call: Value, options: &[Value]) -> Result<Result<String, RpcError>, ScriptEnd> {
        let request_id = self.send_permission(call, options);
        self.permitted(&request_id, options)
    }

    fn send_permission(&mut self, call: Value, options: &[Value]) -> String {
        self.open.extend(call["toolCallId"].as_str().map(ToOwned::to_owned));
        self.send("session/request_permission", json!({"toolCall": call, "options": options}))
    }

    fn permitted(&mut self, request_id: &str, options: &[Value]) -> Result<Result<String, RpcError>, ScriptEnd> {
        let answer = self.wait.answer(request_id);
        let read = answer.and_then(|answer| check::read::<acp::RequestPermissionResponse>(&answer));
        let chosen = match read.map(|answer| answer.outcome) {
            Ok(acp::RequestPermissionOutcome::Selected(selected)) => selected.option_id.0.to_string(),
            Ok(_) => {
                // The cancellation itself may be on its way.
                self.wait.sleep(AHEAD)?;
                self.agent.peer.complain("a permission was cancelled, and its turn was not");
                return Ok(Err(RpcError::new(INVALID_PARAMS, "cancelled")));
            }
            Err(fault) => return Ok(Err(fault)),
        };
        if !options.iter().any(|option| option["optionId"] == *chosen) {
            self.agent.peer.complain(format!("{chosen} was chosen, and not offered"));
            return Ok(Err(RpcError::new(INVALID_PARAMS, format!("{chosen} was not offered"))));
        }
        Ok(Ok(chosen))
    }

    fn config(&mut self, config: Value) {
        let options = match config {
            // Values of some options, or all options as they are from now on.
            Value::Object(values) => {
                let mut memory = lock(&self.session.memory);
                memory.chosen.extend(values);
                memory.options(&self.agent.behavior)
            }
            options => options,
        };
        self.update(json!({"sessionUpdate": "config_option_update", "configOptions": options}));
    }

    fn elicit(&mut self, params: Value) {
        let answer = self.request("elicitation/create", params);
        let checked = answer.and_then(|answer| check::read::<acp::CreateElicitationResponse>(&answer).map(|_| answer));
        self.report("elicitation", checked);
    }

    /// Starts a program that outlives the step.
    fn spawn(&mut self, spawn: &Spawn) -> Result<(), ScriptEnd> {
        let stdout = if spawn.holds_stdout { Stdio::inherit() } else { Stdio::null() };
        let mut command = Command::new("sleep");
        command.arg(spawn.seconds.to_string()).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::null());
        let mut child = command
            .spawn()
            .map_err(|error| ScriptEnd::Fail(RpcError::new(INTERNAL, format!("nothing is spawned: {error}"))))?;
        self.say(&format!("spawned: {}\n", child.id()));
        // A thread waits for it, in case it ends first.
        std::thread::spawn(move || child.wait().ok());
        Ok(())
    }

    fn later(&self, later: Later) {
        let (agent, session) = (self.agent.clone(), self.session.id.clone());
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(later.delay_ms));
            agent.update(&session, &later.update);
        });
    }

    fn terminal(&mut self, terminal: Terminal) -> Result<(), ScriptEnd> {
        let created = match self.request("terminal/create", terminal.create) {
            Ok(created) => created["terminalId"].clone(),
            Err(fault) => {
                self.report("terminal", Err(fault));
                return Ok(());
            }
        };
        let named = json!({"terminalId": created});
        if let Some(call) = &terminal.call {
            let content = json!([{"type": "terminal", "terminalId": created}]);
            self.tool_update(json!({"toolCallId": call, "status": "in_progress", "content": content}));
        }
        let deadline = terminal.kill_after_ms.map(|time| Instant::now() + Duration::from_millis(time));
        let request_id = self.send("terminal/wait_for_exit", named.clone());
        let exit = match self.wait.answer_by(&request_id, deadline) {
            Some(exit) => exit,
            None => {
                self.request("terminal/kill", named.clone()).ok();
                self.wait.answer(&request_id)
            }
        };
        let output = self.request("terminal/output", named.clone());
        if !terminal.leave {
            self.request("terminal/release", named).ok();
        }
        self.wait.go_on()?;
        if let Some(call) = terminal.call {
            self.tool_update(json!({"toolCallId": call, "status": "completed"}));
        }
        let outcome = exit.and_then(|exit| {
            let how = match (&exit["exitCode"], &exit["signal"]) {
                (_, Value::String(signal)) => format!("signal {signal}"),
                (code, _) => format!("exit {code}"),
            };
            Ok(json!(format!("{how}: {}", output?["output"].as_str().unwrap_or_default())))
        });
        self.report("terminal", outcome);
        Ok(())
    }

    /// Sends the last updates of the calls of a cancelled turn.
    fn let_go(&mut self) {
        let behavior = &self.agent.behavior;
        if behavior.no_last_update_on_cancel {
            return;
        }
        let status = if behavior.cancelled_is_completed { "completed" } else { "failed" };
        for call in std::mem::take(&mut self.open) {
            self.tool_update(json!({"toolCallId": call, "status": status}));
        }
    }

    /// Prints a result, on its own line.
    fn report(&mut self, what: &str, answer: RpcResult) {
        let answer = match answer {
            Ok(Value::String(text)) => text,
            Ok(value) => value.to_string(),
            Err(fault) => format!("error {} {}", fault.code, fault.message),
        };
        self.say(&format!("{what}: {answer}\n"));
    }

    fn say(&mut self, text: &str) {
        self.update(chunk("agent_message_chunk", text));
    }

    fn tool_update(&mut self, update: Value) {
        self.update(named("tool_call_update", update));
    }

    fn update(&mut self, update: Value) {
        if let ("tool_call" | "tool_call_update", Some(call)) =
            (update["sessionUpdate"].as_str().unwrap_or_default(), update["toolCallId"].as_str())
        {
            match update["status"].as_str() {
                Some("completed" | "failed") => drop(self.open.remove(call)),
                _ => drop(self.open.insert(call.to_owned())),
            }
        }
        lock(&self.session.memory).record_update(&update);
        self.agent.update(&self.session.id, &update);
    }

    /// Sends the client a request about this session, and waits for the answer.
    fn request(&self, method: &str, params: Value) -> RpcResult {
        let request_id = self.send(method, params);
        self.wait.answer(&request_id)
    }

    fn send(&self, method: &str, params: Value) -> String {
        let mut params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        params.entry("sessionId").or_insert_with(|| json!(self.session.id));
        self.agent.peer.ask(method, &params.into(), &self.wait)
    }
}

/// An update of a kind, with any other members.
fn named(kind: &str, update: Value) -> Value {
    let mut whole = json!({"sessionUpdate": kind});
    if let (Value::Object(whole), Value::Object(update)) = (&mut whole, update) {
        whole.extend(update);
    }
    whole
}

/// An update with a list under a name; an object is used as it is.
fn listed(kind: &str, name: &str, list: Value) -> Value {
    if list.is_object() { named(kind, list) } else { json!({"sessionUpdate": kind, name: list}) }
}

fn option(offer: PermissionOfferKind) -> Value {
    json!({"optionId": offer.word(), "kind": offer.word(), "name": offer.word().replace('_', " ")})
}

fn text_content(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}
