//! Starting an agent, and attaching to one that an earlier host has started.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grove_core::FrameCursor;
use grove_shim::{ShimError, ShimOptions, ShimStream};
use grove_work::{ProcFolder, ProcessTable, Program};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::chat::AcpChat;
use super::choices::Choices;
use super::hooks::HookServer;
use super::process::{AgentProcess, ProcessStart, RunningTurn, TurnOrigin};
use super::reader::{HandledFrames, ProcessReader};
use super::session_record::SessionRecord;
use crate::acp::client_tools::{ToolCalls, ToolServer, is_call};
use crate::acp::connection::{AgentConnection, FrameTracker};
use crate::acp::hooks;
use crate::acp::pool::{ProcessSlot, end_processes_in};
use crate::acp::random;
use crate::acp::serve::AgentServices;
use crate::agent::*;

/// The time that the reader may take beside the agent's grace period.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The number of tries to start in a folder whose shim has not quite ended.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A running agent process and its reader.
#[derive(Debug)]
pub(super) struct LiveProcess {
    pub(super) process: Arc<AgentProcess>,
    pub(super) slot: ProcessSlot,
    reader: JoinHandle<()>,
    grace: Duration,
    /// Answers the agent's own hooks.
    _hooks: Option<HookServer>,
    /// Serves the tools of clients while it runs.
    _tools: Option<ToolServer>,
}

/// The state of an earlier host's turn.
#[derive(Debug)]
pub(super) enum AttachOutcome {
    /// It is still running.
    RunningTurn(Box<OngoingTurn>),
    /// The agent never received it, so it can be sent.
    NeverSent,
}

/// An agent that works on a turn of an earlier host.
#[derive(Debug)]
pub(super) struct OngoingTurn {
    stream: ShimStream,
    session_record: SessionRecord,
    past: HandledFrames,
    /// Calls of clients' tools that were open.
    calls: Vec<PendingAnswer>,
}

/// Starts the agent's program. Nothing is sent to it yet.
pub(super) async fn launch(chat: &Arc<AcpChat>, slot: ProcessSlot) -> Result<LiveProcess, AgentError> {
    let command = chat.program.find()?;
    chat.ensure_folders()?;
    SessionRecord::forget(chat.folder());
    let tools = tools_of(chat)?;
    let mut args = chat.program.args.clone();
    let prepared = chat.setup_arguments(tools.as_deref());
    args.extend(prepared.map_err(|error| AgentError::Start(format!("its MCP servers cannot be passed on: {error}")))?);
    let mut agent = Program { command, args, env: chat.program.env.clone(), cwd: chat.cwd() };
    let pool = chat.pool.options();
    hooks::prepare(chat.hook_support(), chat.hooks, &pool.shim.program, chat.folder(), &mut agent)?;
    let options = ShimOptions { folder: chat.folder.clone(), agent, limits: pool.shim_limits };
    let mut tries = 0;
    let stream = loop {
        match ShimStream::start(&pool.shim, &options).await {
            Ok(stream) => break stream,
            Err(ShimError::InUse { .. }) if tries < TRIES => {
                // A shim of an earlier host, or one that is about to end.
                end_processes_in(chat.folder(), pool.shim_limits.grace).await.ok();
                tokio::time::sleep(PAUSE).await;
                tries += 1;
            }
            Err(error) => return Err(AgentError::Start(error.to_string())),
        }
    };
    let process = u64::from(random::number().max(1));
    let beginning = ProcessStart::fresh(FrameTracker::new(process, 0), tools);
    Ok(LiveProcess::new(chat, stream, slot, beginning, HandledFrames::default()))
}

/// The calls of clients' tools, if there are any that the agent may call.
fn tools_of(chat: &AcpChat) -> Result<Option<Arc<ToolCalls>>, AgentError> {
    let filter = &chat.setup.tool_filter;
    if chat.client_tools.allowed(filter).is_empty() {
        return Ok(None);
    }
    let start = || ToolCalls::start(chat.folder(), chat.client_tools.clone(), filter.clone());
    let tools = chat.make_folder().and_then(|()| start());
    let failed = |error| AgentError::Start(format!("the tools of clients cannot be offered to it: {error}"));
    Ok(Some(Arc::new(tools.map_err(failed)?)))
}

/// Returns whether a request is about the result of a client's call, or permission for a call over MCP.
fn is_of_client(waiting: &PendingRequest) -> bool {
    match &waiting.answer_from {
        PendingAnswer::Result(..) => true,
        PendingAnswer::Permission(call, _) => is_call(call),
        PendingAnswer::Question(_) => false,
    }
}

/// Attaches to the agent that works on a turn of an earlier host.
pub(super) async fn attach(
    chat: &AcpChat,
    session_record: SessionRecord,
    from: Resumption,
) -> Result<AttachOutcome, ShimError> {
    let began = session_record.turn.frame;
    // A mark of another process, or of an earlier turn, says nothing of this one.
    let is_of_turn =
        |mark: &FrameCursor| mark.is_plausible() && mark.process == session_record.process && mark.frame >= began;
    let mark = from.mark.filter(is_of_turn);
    let mark = mark.unwrap_or(FrameCursor { process: session_record.process, frame: began, open: Vec::new() });
    let open: BTreeSet<u64> = mark.open.into_iter().filter(|frame| *frame > began).collect();
    let first = open.first().copied().unwrap_or(mark.frame.saturating_add(1));
    let stream = match ShimStream::attach(chat.folder(), first).await {
        // Acknowledged frames are stored.
        Err(ShimError::Forgotten { oldest, .. }) => ShimStream::attach(chat.folder(), oldest).await?,
        other => other?,
    };
    if stream.taken() < session_record.turn.line {
        stream.end(chat.pool.options().shim_limits.grace).await.ok();
        return Ok(AttachOutcome::NeverSent);
    }
    let (calls, waiting): (Vec<_>, Vec<_>) = from.waiting.into_iter().partition(is_of_client);
    let calls = calls.into_iter().map(|waiting| waiting.answer_from).collect();
    let waiting = waiting.into_iter().map(|waiting| (waiting.request, waiting.answer_from)).collect();
    let past = HandledFrames { upto: mark.frame, open, waiting };
    Ok(AttachOutcome::RunningTurn(Box::new(OngoingTurn { stream, session_record, past, calls })))
}

impl OngoingTurn {
    pub(super) fn origin(&self) -> TurnOrigin {
        TurnOrigin::Earlier { agent_runs: self.stream.agent().is_some_and(is_there) }
    }

    /// Continues the turn.
    pub(super) fn on(self, chat: &Arc<AcpChat>, turn: RunningTurn) -> LiveProcess {
        let Self { stream, session_record, past, calls } = self;
        let (offered, filter) = (chat.client_tools.clone(), chat.setup.tool_filter.clone());
        let tools = ToolCalls::resume(chat.folder(), offered, filter, calls).map(Arc::new);
        let beginning = ProcessStart {
            frames: FrameTracker::new(session_record.process, past.upto),
            session: Some(session_record.session),
            capabilities: session_record.capabilities,
            choices: Choices::again(session_record.said),
            turn: Some(turn),
            tools,
        };
        LiveProcess::new(chat, stream, chat.pool.slots().take_anyway(), beginning, past)
    }
}

/// Returns whether a process runs. Its number may be reused by now, which only costs the right reason of an end.
fn is_there(id: u32) -> bool {
    // A shim reaps an agent when nothing of its process group is left, so one that has ended may still have its number.
    if ProcFolder.stat(id).is_some_and(|stat| stat.has_ended) {
        return false;
    }
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id).is_ok())
}

impl LiveProcess {
    fn new(
        chat: &Arc<AcpChat>,
        stream: ShimStream,
        slot: ProcessSlot,
        beginning: ProcessStart,
        past: HandledFrames,
    ) -> Self {
        chat.pool.note_shim(&stream, &chat.session);
        let (taken, (reader, writer)) = (stream.taken(), stream.split());
        let tag = random::tag();
        let services = AgentServices::new(chat.service_scope(), tag.clone());
        let tools = beginning.tools.clone();
        let secret = tools.as_ref().map(|tools| tools.secret());
        let tap = chat.pool.tap(&chat.program.id, &chat.session, chat.secrets().chain(&secret));
        let agent_connection = AgentConnection::new(writer, taken, tag, tap);
        let process = Arc::new(AgentProcess::new(agent_connection, services, chat.folder.clone(), beginning));
        let serve = |tools: Arc<ToolCalls>| {
            tools.serve(&process);
            let failed = |error: &std::io::Error| tracing::warn!(%error, "the tools of clients cannot be served");
            ToolServer::start(tools).inspect_err(failed).ok()
        };
        let tools = tools.and_then(serve);
        let reader = ProcessReader::new(Arc::clone(chat), Arc::clone(&process), reader, past);
        let reader = tokio::spawn(reader.run());
        let _hooks = HookServer::start(chat, &process);
        Self { process, slot, reader, grace: chat.pool.options().shim_limits.grace, _hooks, _tools: tools }
    }

    /// Ends the agent with all that it started.
    pub(super) async fn end(self) {
        let grace = self.grace;
        self.end_within(grace).await;
    }

    /// The same with another grace period, if that is shorter.
    pub(super) async fn end_within(self, grace: Duration) {
        let Self { process, slot, mut reader, grace: longest, _hooks, _tools } = self;
        let grace = grace.min(longest);
        // Reports that are not stored yet are not waited for.
        process.let_go();
        let ended = async {
            process.agent_connection.shim().end(grace).await.ok();
            (&mut reader).await.ok();
        };
        let longest = grace.saturating_mul(2).saturating_add(LAST_WORDS);
        if timeout(longest, ended).await.is_err() {
            // The shim was told, and ends it without us.
            reader.abort();
        }
        drop(slot);
    }

    /// Leaves the agent to the next host.
    pub(super) fn detach(self) {
        self.reader.abort();
    }
}

impl SessionRecord {
    /// Removes the record of an earlier process, which does not apply to the next.
    fn forget(folder: &Path) {
        std::fs::remove_file(Self::path(folder)).ok();
    }
}
