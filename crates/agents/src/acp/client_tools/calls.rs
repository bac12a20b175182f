//! The calls of clients' tools by one agent process.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use grove_core::{
    ClientTool, Decision, NewToolCall, PermissionKind, PermissionRequest, ToolCallId, ToolResult, Verdict,
};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::announced::tool_of;
use super::messages::{self, ToolRequest};
use super::record::ToolsRecord;
use crate::acp::session::process::{AgentProcess, TurnHandle};
use crate::agent::*;
use crate::setup::ToolFilter;

/// The calls of a turn that are remembered as announced. Further ones are shown as the agent's own as well.
pub const ANNOUNCED_CALLS: usize = 1_024;

/// The calls of clients' tools by one agent process.
#[derive(Debug)]
pub(crate) struct ToolCalls {
    pub(super) offered: ClientTools,
    filter: ToolFilter,
    folder: PathBuf,
    state: Mutex<CallsState>,
    /// The names of the tools that the agent listed last; `None` before it did.
    listed: watch::Sender<Option<BTreeSet<String>>>,
}

#[derive(Default)]
struct CallsState {
    record: ToolsRecord,
    process: Weak<AgentProcess>,
    /// Announced calls whose tool was called, or will be without our help.
    served: BTreeSet<String>,
    /// Calls of a tool that the agent has not announced yet.
    ahead: HashMap<String, usize>,
    /// Results of calls that the agent asked a person for, in the order of the requests, with their tools.
    asked: VecDeque<(String, oneshot::Receiver<ToolResult>)>,
    /// Calls of an earlier host.
    earlier: HashMap<ToolCallId, EarlierCall>,
    /// The answers of calls, for requests that are repeated.
    open: HashMap<ToolCallId, watch::Receiver<Option<Value>>>,
}

impl std::fmt::Debug for CallsState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallsState").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// A call of an earlier host that was not answered.
#[derive(Debug, Default)]
struct EarlierCall {
    permission: Option<oneshot::Receiver<Verdict>>,
    result: Option<oneshot::Receiver<ToolResult>>,
}

/// The visibility of an agent's update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Yes,
    /// It is about a call that is shown as a client's.
    No,
}

impl ToolCalls {
    /// The calls of a process that is about to start.
    pub(crate) fn start(folder: &Path, offered: ClientTools, filter: ToolFilter) -> std::io::Result<Self> {
        ToolsRecord::forget(folder);
        let record = ToolsRecord::new()?;
        record.write(folder)?;
        Ok(Self::new(folder, offered, filter, record))
    }

    /// The calls of a process that an earlier host started; `None` if it has no tools of clients.
    pub(crate) fn resume(
        folder: &Path,
        offered: ClientTools,
        filter: ToolFilter,
        waiting: Vec<PendingAnswer>,
    ) -> Option<Self> {
        let calls = Self::new(folder, offered, filter, ToolsRecord::read(folder)?);
        {
            let mut state = calls.state();
            state.served = state.record.announced.keys().cloned().collect();
            for answer in waiting {
                match answer {
                    PendingAnswer::Result(call, result) => match state.record.announced.get(call.as_str()).cloned() {
                        Some(tool) => state.asked.push_back((tool, result)),
                        None => state.earlier.entry(call).or_default().result = Some(result),
                    },
                    PendingAnswer::Permission(call, verdict) => {
                        state.earlier.entry(call).or_default().permission = Some(verdict);
                    }
                    PendingAnswer::Question(_) => {}
                }
            }
        }
        // The earlier process of the program listed tools that are offered still, or will hear that they have changed.
        calls.listed.send_replace(Some(calls.names()));
        Some(calls)
    }

    fn new(folder: &Path, offered: ClientTools, filter: ToolFilter, record: ToolsRecord) -> Self {
        let state = Mutex::new(CallsState { record, ..CallsState::default() });
        Self { offered, filter, folder: folder.to_owned(), state, listed: watch::Sender::new(None) }
    }

    // Every change of it is complete before anything can panic, so a poisoned one is still sound.
    fn state(&self) -> MutexGuard<'_, CallsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn serve(&self, process: &Arc<AgentProcess>) {
        self.state().process = Arc::downgrade(process);
    }

    pub(crate) fn secret(&self) -> String {
        self.state().record.secret.clone()
    }

    pub(super) fn knows(&self, secret: &str) -> bool {
        self.state().record.knows(secret)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    // The list of tools.

    /// The tools that the agent may call.
    pub(super) fn tools(&self) -> Vec<OfferedTool> {
        self.offered.allowed(&self.filter)
    }

    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.tools().into_iter().map(|offered| offered.tool.name).collect()
    }

    /// The list for the agent, which knows it from now on.
    pub(super) fn list(&self) -> Value {
        let tools = self.tools();
        self.listed.send_replace(Some(tools.iter().map(|offered| offered.tool.name.clone()).collect()));
        messages::tool_list(tools.iter())
    }

    /// Waits until the agent has listed every tool that is offered.
    pub(crate) async fn wait_until_listed(&self) {
        let mut listed = self.listed.subscribe();
        // An agent that has listed nothing yet will do so.
        let knows_all =
            |listed: &Option<BTreeSet<String>>| listed.as_ref().is_none_or(|listed| self.names().is_subset(listed));
        listed.wait_for(knows_all).await.map(drop).ok();
    }

    // The agent's own reports of its calls.

    /// Notes an update of the agent's own, and says whether it is shown.
    pub(crate) fn note(&self, update: &ToolUpdate) -> Shown {
        let mut state = self.state();
        let id = update.call.as_str();
        let ends = matches!(update.stage, Some(ToolStage::Completed | ToolStage::Failed));
        if let Some(tool) = state.record.announced.get(id).cloned() {
            if ends && !state.served.contains(id) {
                // It ended without a call: nobody else would show that.
                tracing::debug!(call = id, tool, "an agent announced a call of a client's tool, and did not make it");
                state.record.announced.remove(id);
                return Shown::Yes;
            }
            return Shown::No;
        }
        let Some(tool) = self.tool_of(update) else { return Shown::Yes };
        if ends || state.record.announced.len() >= ANNOUNCED_CALLS {
            return Shown::Yes;
        }
        let is_served = match state.ahead.get_mut(&tool) {
            Some(ahead) if *ahead > 0 => {
                *ahead -= 1;
                true
            }
            Some(_) | None => false,
        };
        self.announce(&mut state, id, tool, is_served);
        Shown::No
    }

    /// Makes a permission request of the agent for a client's tool a request for the client's call: once it is approved,
    /// the client runs it, and the agent's call gets the result.
    pub(crate) fn ask(&self, update: &mut ToolUpdate) {
        let mut state = self.state();
        let id = update.call.as_str().to_owned();
        let announced = state.record.announced.get(&id).cloned();
        let tool = match (announced, self.tool_of(update)) {
            (Some(tool), _) => tool,
            (None, Some(tool)) => tool,
            (None, None) => return,
        };
        if update.kind.is_some() || state.served.contains(&id) {
            return;
        }
        let Some(offered) = self.tools().into_iter().find(|offered| offered.tool.name == tool) else { return };
        let (sender, result) = oneshot::channel();
        update.client = Some(offered.client);
        update.result = Some(sender);
        update.name = Some(tool.clone());
        update.input = update.input.take().map(|input| arguments_of(&input));
        state.asked.push_back((tool.clone(), result));
        self.announce(&mut state, &id, tool, true);
    }

    /// Forgets the announced calls: their turn is over.
    pub(crate) fn end_turn(&self) {
        let mut state = self.state();
        state.asked.clear();
        state.ahead.clear();
        state.served.clear();
        state.open.clear();
        state.earlier.clear();
        if !std::mem::take(&mut state.record.announced).is_empty() {
            self.write(&state.record);
        }
    }

    fn announce(&self, state: &mut CallsState, id: &str, tool: String, is_served: bool) {
        if is_served {
            state.served.insert(id.to_owned());
        }
        if state.record.announced.insert(id.to_owned(), tool).is_none() {
            self.write(&state.record);
        }
    }

    fn write(&self, record: &ToolsRecord) {
        if let Err(error) = record.write(&self.folder) {
            // A host that comes back would show such a call twice.
            tracing::warn!(folder = %self.folder.display(), %error, "cannot note the calls of clients' tools");
        }
    }

    fn tool_of(&self, update: &ToolUpdate) -> Option<String> {
        let tools = self.tools();
        tool_of(update, tools.iter().map(|offered| offered.tool.name.as_str())).map(str::to_owned)
    }

    // Calls.

    /// Calls a tool. A request that is repeated, by its id, gets the answer of the first one.
    pub(super) async fn call(self: Arc<Self>, id: ToolCallId, request: ToolRequest) -> Value {
        let answer = {
            let mut state = self.state();
            match state.open.get(&id) {
                Some(open) => open.clone(),
                None => {
                    let (sender, answer) = watch::channel(None);
                    state.open.insert(id.clone(), answer.clone());
                    let calls = Arc::clone(&self);
                    tokio::spawn(async move {
                        let answer = calls.run(id, request).await;
                        sender.send_replace(Some(answer));
                    });
                    answer
                }
            }
        };
        let mut answer = answer;
        let answered = answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
        answered.unwrap_or_else(|| messages::failure("the call was lost: try again"))
    }

    async fn run(&self, id: ToolCallId, request: ToolRequest) -> Value {
        let process = self.state().process.upgrade();
        let Some(turn) = process.and_then(|process| process.turn()) else {
            return messages::failure("no turn of the session runs: tools of clients are called in turns");
        };
        let result = tokio::select! {
            result = self.result(id, request, &turn) => result,
            () = turn.clone().cancelled() => None,
        };
        result.unwrap_or_else(|| messages::failure("the turn is over"))
    }

    async fn result(&self, id: ToolCallId, request: ToolRequest, turn: &TurnHandle) -> Option<Value> {
        let earlier = self.state().earlier.remove(&id);
        if let Some(EarlierCall { permission, result }) = earlier {
            if let Some(permission) = permission {
                let verdict = permission.await.ok()?;
                if verdict.decision == Decision::Denied {
                    return Some(denied(&verdict));
                }
            }
            return Some(messages::tool_result(result?.await.ok()?));
        }
        let asked = {
            let mut state = self.state();
            let at = state.asked.iter().position(|(tool, _)| *tool == request.name);
            at.and_then(|at| state.asked.remove(at))
        };
        if let Some((_, result)) = asked {
            return Some(messages::tool_result(result.await.ok()?));
        }
        self.new_call(id, request, turn).await
    }

    async fn new_call(&self, id: ToolCallId, request: ToolRequest, turn: &TurnHandle) -> Option<Value> {
        let offered = self.tools().into_iter().find(|offered| offered.tool.name == request.name);
        let Some(OfferedTool { client, tool }) = offered else {
            return Some(messages::failure(&format!("no client offers the tool {}: it has left", request.name)));
        };
        self.match_announced(&request.name);
        let call = NewToolCall {
            id: id.clone(),
            name: tool.name.clone(),
            display_name: tool.name.clone(),
            kind: None,
            language: None,
            client: Some(client),
            extra: None,
        };
        let (permission, verdict) = if tool.asks_first() {
            let (answer, verdict) = oneshot::channel();
            (Some(PermissionPrompt::new(permission_request(&id, &tool), answer)), Some(verdict))
        } else {
            (None, None)
        };
        let (sender, result) = oneshot::channel();
        let ready = AgentEvent::ToolReady {
            call: id,
            invocation_message: format!("Running {}", tool.name),
            input: request.arguments.map(|arguments| arguments.to_string()),
            permission,
            result: Some(sender),
        };
        turn.sink.report(vec![AgentEvent::ToolStarted(call), ready], None).await.ok()?;
        if let Some(verdict) = verdict {
            let verdict = verdict.await.ok()?;
            if verdict.decision == Decision::Denied {
                return Some(denied(&verdict));
            }
        }
        Some(messages::tool_result(result.await.ok()?))
    }

    /// Notes that the oldest announced call of a tool is made, or that it will be announced later.
    pub(super) fn match_announced(&self, tool: &str) {
        let mut state = self.state();
        let waiting = |(id, of): (&String, &String)| (of == tool && !state.served.contains(id)).then(|| id.clone());
        match state.record.announced.iter().find_map(waiting) {
            Some(id) => drop(state.served.insert(id)),
            None => *state.ahead.entry(tool.to_owned()).or_default() += 1,
        }
    }
}

fn permission_request(call: &ToolCallId, tool: &ClientTool) -> PermissionRequest {
    PermissionRequest {
        id: format!("{call}-permission").into(),
        kind: PermissionKind::Mcp,
        path: None,
        full_command_text: None,
        intention: tool.description.clone(),
        title: Some(format!("Use {}", tool.name)),
        options: Vec::new(),
        edits: Vec::new(),
        editable: false,
    }
}

/// The arguments in an agent's input, which may name the server and the tool beside them.
fn arguments_of(input: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(input).ok();
    let inner = parsed.as_ref().filter(|input| input.get("server").is_some() && input.get("tool").is_some());
    match inner {
        Some(input) => input.get("arguments").map_or_else(|| "{}".to_owned(), ToString::to_string),
        None => input.to_owned(),
    }
}

/// The answer to a call that a person, a rule or a hook denied.
fn denied(verdict: &Verdict) -> Value {
    match crate::acp::map::denial_reason(verdict) {
        Some(reason) => messages::failure(&format!("the call was denied: {reason}")),
        None => messages::failure("the call was denied"),
    }
}
