//! The agent: handling each request.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::behavior::{AgentBehavior, CrashPoint, PromptContentKind, RpcError};
use super::check;
use super::mcp::McpServers;
use super::memory::{SessionMemory, SessionStore};
use super::peer::{
    INTERNAL, INVALID_PARAMS, INVALID_REQUEST, IncomingMessage, NEEDS_AUTH, NO_METHOD, NOT_FOUND, RpcPeer, RpcResult,
    TurnWait, lock,
};
use super::script::Crash;
use super::turn::{self, TurnRunner};

/// The time that an agent that ignores the end of its stdin lives on, so that none outlives a test run.
pub const ALONE: Duration = Duration::from_secs(600);

/// An agent.
pub(super) struct ScriptedAcpAgent {
    pub(super) behavior: AgentBehavior,
    pub(super) peer: RpcPeer,
    store: SessionStore,
    state: Mutex<AgentState>,
}

#[derive(Default)]
struct AgentState {
    /// The client's `initialize` params, once they came.
    client: Option<Value>,
    authenticated: bool,
    /// The requests that wait to be cancelled, by their ids.
    waiting: HashMap<String, String>,
    sessions: HashMap<String, Arc<RunningSession>>,
    prompts: usize,
}

/// An open session.
pub(super) struct RunningSession {
    pub(super) id: String,
    pub(super) memory: Mutex<SessionMemory>,
    pub(super) servers: McpServers,
    turn: Mutex<Option<Arc<TurnWait>>>,
}

/// `session/set_model`, which the protocol's types no longer have.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetModel {
    session_id: String,
    model_id: String,
}

/// Speaks the protocol on stdin and stdout until stdin ends.
pub fn run(behavior: AgentBehavior) -> ExitCode {
    serve(behavior, &mut std::io::stdin().lock(), Box::new(std::io::stdout()))
}

fn serve(behavior: AgentBehavior, lines: &mut dyn BufRead, out: Box<dyn Write + Send>) -> ExitCode {
    std::thread::sleep(Duration::from_millis(behavior.slow_start));
    let agent = Arc::new(ScriptedAcpAgent {
        peer: RpcPeer::new(out, &behavior),
        store: SessionStore(behavior.store.clone()),
        state: Mutex::default(),
        behavior,
    });
    if agent.behavior.opens_stored {
        agent.store.all().into_iter().for_each(|memory| drop(agent.open(memory, &[])));
    }
    loop {
        match agent.peer.hear(lines) {
            IncomingMessage::Request { id, method, params } => agent.request(&id, &method, &params),
            IncomingMessage::Notification { method, params } => agent.notified(&method, &params),
            IncomingMessage::Nothing => {}
            IncomingMessage::End => break,
        }
    }
    if agent.behavior.ignores_stdin_close {
        std::thread::sleep(ALONE);
    }
    agent.save_all();
    ExitCode::SUCCESS
}

impl ScriptedAcpAgent {
    fn request(self: &Arc<Self>, id: &Value, method: &str, params: &Value) {
        let crash = match method {
            "initialize" => Some(CrashPoint::Initialize),
            "session/new" => Some(CrashPoint::New),
            "session/load" => Some(CrashPoint::Load),
            "session/resume" => Some(CrashPoint::Resume),
            "session/set_mode" => Some(CrashPoint::SetMode),
            "session/prompt" => {
                let mut state = lock(&self.state);
                state.prompts += 1;
                Some(CrashPoint::Prompt(state.prompts))
            }
            _ => None,
        };
        let hangs = match method {
            "initialize" => self.behavior.hangs_initialize,
            "session/close" => self.behavior.hangs_close,
            _ => false,
        };
        if hangs {
            return;
        }
        if self.behavior.answers_if_cancelled.iter().any(|waiting| waiting == method) {
            lock(&self.state).waiting.insert(id.to_string(), method.to_owned());
            return;
        }
        if crash.is_some_and(|crash| self.behavior.crash_on.contains(&crash)) {
            self.crash(Crash::Code(1));
        }
        let refused = self.behavior.refuses.get(method).cloned().map_or(Ok(()), Err);
        let answer = refused.and_then(|()| self.in_order(method)).and_then(|()| match method {
            "session/prompt" => self.prompt(id, params).map(|()| None),
            _ => self.answer(method, params).map(Some),
        });
        match answer {
            Ok(None) => {}
            Ok(Some(result)) => self.peer.respond(id, &Ok(result)),
            Err(fault) => {
                self.peer.complain(format!("{method}: {}", fault.message));
                self.peer.respond(id, &Err(fault));
            }
        }
    }

    /// A stored login may be deleted while the agent runs.
    fn is_logged_in(&self, authenticated: bool) -> bool {
        self.behavior.credentials.as_ref().map_or(authenticated, |credentials| credentials.exists())
    }

    /// Checks that such a request is allowed now.
    fn in_order(&self, method: &str) -> Result<(), RpcError> {
        let state = lock(&self.state);
        match (method, &state.client) {
            ("initialize", None) => Ok(()),
            ("initialize", Some(_)) => Err(RpcError::new(INVALID_REQUEST, "initialize was called before")),
            (_, None) => Err(RpcError::new(INVALID_REQUEST, "call initialize first")),
            (_, Some(_))
                if !method.starts_with("session/")
                    || !self.behavior.needs_auth
                    || self.is_logged_in(state.authenticated) =>
            {
                Ok(())
            }
            (_, Some(_)) => Err(RpcError::new(NEEDS_AUTH, "Authentication required")),
        }
    }

    fn answer(&self, method: &str, params: &Value) -> RpcResult {
        let can = self.behavior.can;
        match method {
            "initialize" => self.initialize(params),
            "authenticate" => self.authenticate(params),
            "session/new" => {
                let request: acp::NewSessionRequest = check::read(params)?;
                self.check_folders(&request.cwd, &request.additional_directories)?;
                Ok(self.open(SessionMemory::new(&request.cwd, &self.behavior), &request.mcp_servers))
            }
            "session/load" if can.load => {
                let request: acp::LoadSessionRequest = check::read(params)?;
                self.check_folders(&request.cwd, &request.additional_directories)?;
                self.reopen(&request.session_id.0, &request.cwd, &request.mcp_servers, HistoryReplay::Yes)
            }
            "session/resume" if can.resume => {
                let request: acp::ResumeSessionRequest = check::read(params)?;
                self.check_folders(&request.cwd, &request.additional_directories)?;
                self.reopen(&request.session_id.0, &request.cwd, &request.mcp_servers, HistoryReplay::No)
            }
            "session/fork" if can.fork => {
                let request: acp::ForkSessionRequest = check::read(params)?;
                self.check_folders(&request.cwd, &request.additional_directories)?;
                let forked = self.remembered(&request.session_id.0)?.fork(&request.cwd);
                Ok(self.open(forked, &request.mcp_servers))
            }
            "session/list" if can.list => self.list(params),
            "session/close" if can.close => {
                let request: acp::CloseSessionRequest = check::read(params)?;
                self.close(&request.session_id.0)?;
                Ok(json!({}))
            }
            "session/delete" if can.delete => {
                let request: acp::DeleteSessionRequest = check::read(params)?;
                // A session that is not open is deleted as well, and deleting a missing one succeeds.
                self.close(&request.session_id.0).ok();
                self.store.delete(&request.session_id.0);
                Ok(json!({}))
            }
            "session/set_title" if can.title => {
                let request: acp::SetSessionTitleRequest = check::read(params)?;
                let session = self.session(&request.session_id.0)?;
                let mut memory = lock(&session.memory);
                memory.title = Some(request.title);
                self.save(&memory);
                Ok(json!({}))
            }
            "session/set_mode" => {
                let request: acp::SetSessionModeRequest = check::read(params)?;
                let mode = request.mode_id.0.to_string();
                self.choose(&request.session_id.0, &self.behavior.modes, &mode, |memory| &mut memory.mode)
            }
            "session/set_model" => {
                let request: SetModel = check::read(params)?;
                self.choose(&request.session_id, &self.behavior.models, &request.model_id, |memory| &mut memory.model)
            }
            "session/set_config_option" => self.set_option(params),
            _ => Err(RpcError::new(NO_METHOD, format!("Method not found: {method}"))),
        }
    }

    fn initialize(&self, params: &Value) -> RpcResult {
        let _: acp::InitializeRequest = check::read(params)?;
        lock(&self.state).client = Some(params.clone());
        let behavior = &self.behavior;
        let can = behavior.can;
        let abilities = [
            ("list", can.list),
            ("resume", can.resume),
            ("close", can.close),
            ("delete", can.delete),
            ("fork", can.fork),
            ("additionalDirectories", can.additional_directories),
            ("title", can.title),
        ];
        let abilities: Map<String, Value> =
            abilities.iter().filter(|(_, can)| *can).map(|(name, _)| ((*name).to_owned(), json!({}))).collect();
        let takes = |what| behavior.takes.contains(&what);
        let methods = behavior.auth_methods.iter().map(|id| json!({"id": id, "name": id}));
        let is_terminal = behavior.terminal_login && params["clientCapabilities"]["auth"]["terminal"] == true;
        let terminal = json!({"type": "terminal", "id": "terminal", "name": "Terminal", "args": ["--login"]});
        let methods = methods.chain(is_terminal.then_some(terminal));
        Ok(json!({
            "protocolVersion": 1,
            "agentInfo": {"name": "acp-agent", "title": "Scripted ACP agent", "version": env!("CARGO_PKG_VERSION")},
            "agentCapabilities": {
                "loadSession": can.load,
                "promptCapabilities": {
                    "image": takes(PromptContentKind::Image),
                    "audio": takes(PromptContentKind::Audio),
                    "embeddedContext": takes(PromptContentKind::EmbeddedContext),
                },
                "sessionCapabilities": abilities,
            },
            "authMethods": methods.collect::<Vec<_>>(),
        }))
    }

    fn authenticate(&self, params: &Value) -> RpcResult {
        let request: acp::AuthenticateRequest = check::read(params)?;
        if !self.behavior.auth_methods.iter().any(|id| *id == *request.method_id.0) {
            return Err(RpcError::new(
                INVALID_PARAMS,
                format!("there is no way {} to authenticate", request.method_id.0),
            ));
        }
        if let Some(credentials) = &self.behavior.credentials {
            std::fs::write(credentials, "logged in").map_err(|error| RpcError::new(INTERNAL, error.to_string()))?;
        }
        lock(&self.state).authenticated = true;
        Ok(json!({}))
    }

    fn check_folders(&self, cwd: &Path, more: &[std::path::PathBuf]) -> Result<(), RpcError> {
        if !more.is_empty() && !self.behavior.can.additional_directories {
            return Err(RpcError::new(INVALID_PARAMS, "this agent works in one folder"));
        }
        match std::iter::once(cwd).chain(more.iter().map(|path| path.as_path())).find(|path| !path.is_absolute()) {
            None => Ok(()),
            Some(path) => Err(RpcError::new(INVALID_PARAMS, format!("{} is not absolute", path.display()))),
        }
    }

    /// Opens a session that is new here.
    fn open(&self, memory: SessionMemory, servers: &[acp::McpServer]) -> Value {
        let mut result = memory.settings(&self.behavior);
        result.insert("sessionId".to_owned(), json!(memory.id));
        self.save(&memory);
        let servers = McpServers::start(servers);
        let session =
            RunningSession { id: memory.id.clone(), memory: Mutex::new(memory), servers, turn: Mutex::default() };
        lock(&self.state).sessions.insert(session.id.clone(), Arc::new(session));
        result.into()
    }

    fn reopen(&self, id: &str, cwd: &Path, servers: &[acp::McpServer], replay: HistoryReplay) -> RpcResult {
        if let Ok(open) = self.session(id) {
            if self.behavior.already_loaded_error {
                return Err(RpcError::new(INVALID_PARAMS, format!("Session {id} is already loaded")));
            }
            if lock(&open.turn).is_some() {
                return Err(RpcError::new(INVALID_REQUEST, "a turn of this session is running"));
            }
        }
        let mut memory = self.remembered(id)?;
        cwd.clone_into(&mut memory.cwd);
        let updates = match replay {
            HistoryReplay::Yes => memory.replay(self.behavior.load_differs),
            HistoryReplay::No => Vec::new(),
        };
        let mut result = self.open(memory, servers);
        if let Value::Object(result) = &mut result {
            result.remove("sessionId");
        }
        for update in &updates {
            self.update(id, update);
        }
        Ok(result)
    }

    fn list(&self, params: &Value) -> RpcResult {
        // Missing params count as empty ones.
        let params = if params.is_null() { &json!({}) } else { params };
        let request: acp::ListSessionsRequest = check::read(params)?;
        self.save_all();
        let mut all = self.store.all();
        if self.store.0.is_none() {
            all = lock(&self.state).sessions.values().map(|session| lock(&session.memory).clone()).collect();
        }
        let here = all.iter().filter(|memory| request.cwd.as_ref().is_none_or(|cwd| *cwd == memory.cwd));
        let infos = here.map(|memory| json!({"sessionId": memory.id, "cwd": memory.cwd, "title": memory.title}));
        Ok(json!({"sessions": infos.collect::<Vec<_>>()}))
    }

    fn close(&self, id: &str) -> Result<(), RpcError> {
        let session = self.session(id)?;
        lock(&self.state).sessions.remove(id);
        self.save(&lock(&session.memory));
        if let Some(turn) = &*lock(&session.turn) {
            turn.cancel();
        }
        Ok(())
    }

    fn choose(
        &self,
        session: &str,
        from: &[String],
        chosen: &str,
        place: impl Fn(&mut SessionMemory) -> &mut Option<String>,
    ) -> RpcResult {
        let session = self.session(session)?;
        if !from.iter().any(|id| id == chosen) {
            return Err(RpcError::new(INVALID_PARAMS, format!("there is no {chosen} to choose")));
        }
        let mut memory = lock(&session.memory);
        *place(&mut memory) = Some(chosen.to_owned());
        self.save(&memory);
        Ok(json!({}))
    }

    fn set_option(&self, params: &Value) -> RpcResult {
        let request: acp::SetSessionConfigOptionRequest = check::read(params)?;
        let session = self.session(&request.session_id.0)?;
        let id = request.config_id.0.to_string();
        let option = self.behavior.options.iter().find(|option| option["id"] == *id);
        let option = option.ok_or_else(|| RpcError::new(INVALID_PARAMS, format!("there is no option {id}")))?;
        let value = params["value"].clone();
        if !takes_value(option, &value) {
            return Err(RpcError::new(INVALID_PARAMS, format!("{value} is no value of {id}")));
        }
        let mut memory = lock(&session.memory);
        if option["category"] == "mode" && memory.mode.is_some() {
            memory.mode = value.as_str().map(ToOwned::to_owned);
        }
        memory.chosen.insert(id, value);
        self.save(&memory);
        Ok(json!({"configOptions": memory.options(&self.behavior)}))
    }

    fn prompt(self: &Arc<Self>, id: &Value, params: &Value) -> Result<(), RpcError> {
        let request: acp::PromptRequest = check::read(params)?;
        let session = self.session(&request.session_id.0)?;
        let prompt = turn::PromptText::of(&request.prompt, &self.behavior)?;
        let steps = prompt.steps()?;
        let wait = Arc::new(TurnWait::default());
        {
            let mut running = lock(&session.turn);
            if running.is_some() {
                return Err(RpcError::new(INVALID_REQUEST, "a turn of this session is running"));
            }
            *running = Some(wait.clone());
        }
        let before = lock(&session.memory).transcript();
        {
            let mut memory = lock(&session.memory);
            memory.record_prompt(&prompt.text);
            self.save(&memory);
        }
        let (agent, id) = (self.clone(), id.clone());
        let turn = TurnRunner::new(self.clone(), session.clone(), wait, before);
        std::thread::spawn(move || {
            let answer = turn.run(steps);
            agent.save(&lock(&session.memory));
            // The next prompt may come as soon as this one is answered.
            *lock(&session.turn) = None;
            agent.peer.respond(&id, &answer);
            if let Some(usage) = &agent.behavior.late_usage {
                let mut update = usage.clone();
                update["sessionUpdate"] = json!("usage_update");
                let session = lock(&session.memory).id.clone();
                agent.update(&session, &update);
            }
        });
        Ok(())
    }

    fn cancelled(&self, id: &Value) {
        let Some(method) = lock(&self.state).waiting.remove(&id.to_string()) else { return };
        if let Some(store) = &self.behavior.store {
            // A test looks for the file.
            std::fs::write(store.join("cancelled"), method).ok();
        }
        self.peer.respond(id, &Err(RpcError::new(-32800, "Request cancelled")));
    }

    fn notified(&self, method: &str, params: &Value) {
        if method == "$/cancel_request" {
            return self.cancelled(&params["requestId"]);
        }
        if method != "session/cancel" {
            return;
        }
        let session = check::read::<acp::CancelNotification>(params)
            .and_then(|notification| self.session(&notification.session_id.0));
        match session {
            Err(fault) => self.peer.complain(format!("session/cancel: {}", fault.message)),
            Ok(_) if self.behavior.ignores_cancel => {}
            // A turn that has ended meanwhile is nobody's mistake.
            Ok(session) => {
                if let Some(turn) = &*lock(&session.turn) {
                    turn.cancel();
                }
            }
        }
    }

    /// Sends an update of a session.
    pub(super) fn update(&self, session: &str, update: &Value) {
        self.peer.notify("session/update", &json!({"sessionId": session, "update": update}));
    }

    pub(super) fn client(&self) -> Value {
        lock(&self.state).client.clone().unwrap_or_default()
    }

    /// Ends at once, like after a failure.
    pub(super) fn crash(&self, how: Crash) -> ! {
        self.save_all();
        match how {
            Crash::Code(code) => std::process::exit(code),
            Crash::Signal(number) => {
                if let Some(signal) = rustix::process::Signal::from_named_raw(number) {
                    rustix::process::kill_process(rustix::process::getpid(), signal).ok();
                }
                // Some signals do not end a process at once, and some not at all.
                std::thread::sleep(Duration::from_secs(1));
                std::process::exit(1)
            }
        }
    }

    fn session(&self, id: &str) -> Result<Arc<RunningSession>, RpcError> {
        let open = lock(&self.state).sessions.get(id).cloned();
        open.ok_or_else(|| RpcError::new(NOT_FOUND, format!("Session {id} not found")))
    }

    /// The stored state of a session, open or not.
    fn remembered(&self, id: &str) -> Result<SessionMemory, RpcError> {
        match self.session(id) {
            Ok(session) => Ok(lock(&session.memory).clone()),
            Err(fault) => self.store.load(id).ok_or(fault),
        }
    }

    fn save_all(&self) {
        let open: Vec<_> = lock(&self.state).sessions.values().cloned().collect();
        open.iter().for_each(|session| self.save(&lock(&session.memory)));
    }

    fn save(&self, memory: &SessionMemory) {
        if let Err(error) = self.store.save(memory) {
            self.peer.complain(format!("{INTERNAL}: the session cannot be stored: {error}"));
        }
    }
}

/// The treatment of a reopened session's history.
#[derive(Clone, Copy)]
enum HistoryReplay {
    Yes,
    No,
}

/// Returns whether an option can have a value.
fn takes_value(option: &Value, value: &Value) -> bool {
    if option["type"] == "boolean" {
        return value.is_boolean();
    }
    let choices = option["options"].as_array().into_iter().flatten();
    // A group has its choices one level below.
    let mut choices = choices.flat_map(|choice| match choice["options"].as_array() {
        Some(group) => group.iter().collect::<Vec<_>>(),
        None => vec![choice],
    });
    choices.any(|choice| choice["value"] == *value)
}
