//! An agent's process: the state that its reader, its worker and the session share.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_core::{FrameCursor, ToolCallId, TurnId};
use grove_wire::jsonrpc::Id;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use super::choices::Choices;
use super::contents::CallContents;
use super::session_record::TurnOutcome;
use crate::acp::client_tools::ToolCalls;
use crate::acp::connection::{AgentConnection, FrameTracker, settled};
use crate::acp::serve::AgentServices;
use crate::agent::*;
use crate::sink::TurnSink;

/// The number of an agent's calls that may wait for our answers at a time. One more is refused.
pub const ASKED: usize = 256;
/// The number of command lists that are kept until our conversation is known.
const COMMANDS: usize = 8;

/// An agent's process, from its start to its end.
#[derive(Debug)]
pub(crate) struct AgentProcess {
    pub(super) agent_connection: AgentConnection,
    pub(super) services: Arc<AgentServices>,
    pub(super) folder: PathBuf,
    /// The calls of clients' tools; `None` if it has none.
    pub(super) tools: Option<Arc<ToolCalls>>,
    state: Mutex<ProcessState>,
    /// The content of its turn's calls. Never locked together with the state.
    contents: Mutex<CallContents>,
    /// Counts changes of its turn or of itself.
    changes: watch::Sender<u64>,
    /// The last frame that no host will read again.
    settled: watch::Sender<u64>,
}

#[derive(Debug)]
struct ProcessState {
    frames: FrameTracker,
    conversation: ConversationState,
    capabilities: acp::AgentCapabilities,
    choices: Choices,
    turn: Option<RunningTurn>,
    /// The outcome of the last turn.
    last: Option<(TurnId, TurnOutcome)>,
    /// The last turn was cancelled before it ended.
    last_was_cancelled: bool,
    /// A person denied a request of the newest turn.
    was_denied: bool,
    /// The last turn failed because the agent requires a login.
    last_needs_login: bool,
    /// The last frame that no host will read again once all reports are stored.
    reported: u64,
    ended: Option<String>,
    /// The ids of the agent's requests that are not answered yet. [`ASKED`] bounds them.
    open_requests: HashMap<String, watch::Sender<bool>>,
}

/// Our conversation.
#[derive(Debug)]
enum ConversationState {
    /// There is none yet. Commands may come before the answer that names our conversation.
    Opening(Vec<(acp::SessionId, Vec<AgentEvent>)>),
    Open(acp::SessionId),
}

/// A running turn.
#[derive(Debug)]
pub(super) struct RunningTurn {
    sink: TurnSink,
    /// The time since which it is cancelled. Dropped when the turn is over.
    cancelled: watch::Sender<Option<Instant>>,
    reply: oneshot::Sender<Result<(), AgentError>>,
    origin: TurnOrigin,
}

/// The host that began a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnOrigin {
    /// This host's.
    Own,
    /// An earlier host's, and whether the agent was still there when this host came.
    Earlier { agent_runs: bool },
}

/// The parts of a turn that reporting needs.
#[derive(Clone, Debug)]
pub(crate) struct TurnHandle {
    pub(crate) sink: TurnSink,
    cancelled: watch::Receiver<Option<Instant>>,
}

/// The initial state of a process.
#[derive(Debug)]
pub(super) struct ProcessStart {
    pub(super) frames: FrameTracker,
    pub(super) session: Option<acp::SessionId>,
    pub(super) capabilities: acp::AgentCapabilities,
    pub(super) choices: Choices,
    pub(super) turn: Option<RunningTurn>,
    pub(super) tools: Option<Arc<ToolCalls>>,
}

impl ProcessStart {
    /// The state of a process that was just started.
    pub(super) fn fresh(frames: FrameTracker, tools: Option<Arc<ToolCalls>>) -> Self {
        let (capabilities, choices) = (acp::AgentCapabilities::default(), Choices::default());
        Self { frames, session: None, capabilities, choices, turn: None, tools }
    }
}

impl RunningTurn {
    pub(super) fn new(sink: TurnSink, reply: oneshot::Sender<Result<(), AgentError>>, origin: TurnOrigin) -> Self {
        Self { sink, cancelled: watch::Sender::new(None), reply, origin }
    }
}

impl TurnHandle {
    /// Waits until the turn is cancelled or over.
    pub(crate) async fn cancelled(mut self) {
        self.cancelled.wait_for(Option::is_some).await.map(drop).ok();
    }
}

impl AgentProcess {
    pub(super) fn new(
        agent_connection: AgentConnection,
        services: AgentServices,
        folder: PathBuf,
        beginning: ProcessStart,
    ) -> Self {
        let ProcessStart { frames, session, capabilities, choices, turn, tools } = beginning;
        let conversation = session.map_or(ConversationState::Opening(Vec::new()), ConversationState::Open);
        let state = ProcessState {
            frames,
            conversation,
            capabilities,
            choices,
            turn,
            last: None,
            last_was_cancelled: false,
            was_denied: false,
            last_needs_login: false,
            reported: 0,
            ended: None,
            open_requests: HashMap::new(),
        };
        Self {
            agent_connection,
            services: Arc::new(services),
            folder,
            tools,
            state: Mutex::new(state),
            contents: Mutex::default(),
            changes: watch::Sender::new(0),
            settled: watch::Sender::new(0),
        }
    }

    // Every change of the state is complete before anything can panic, so a poisoned one is still sound.
    fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn settled(&self) -> watch::Receiver<u64> {
        self.settled.subscribe()
    }

    // Its frames.

    pub(super) fn with_frames<T>(&self, change: impl FnOnce(&mut FrameTracker) -> T) -> T {
        change(&mut self.state().frames)
    }

    /// The mark of a report that is about to be made.
    pub(super) fn mark(&self) -> FrameCursor {
        self.state().frames.mark()
    }

    /// Notes that a report with this mark reached the host. A dropped report never does: nothing of it will be stored.
    pub(super) fn reported(&self, mark: &FrameCursor) {
        let mut state = self.state();
        state.reported = settled(mark).max(state.reported);
    }

    /// Returns whether a report may not be stored yet.
    pub(super) fn has_unstored(&self) -> bool {
        *self.settled.borrow() < self.state().reported
    }

    /// Waits until every report is stored, for at most this time.
    pub(super) async fn wait_until_stored(&self, most: Duration) {
        let reported = self.state().reported;
        let mut settled = self.settled();
        timeout(most, settled.wait_for(|settled| *settled >= reported)).await.map(drop).ok();
    }

    /// Notes that a mark is stored: the shim may forget the frames before it.
    pub(crate) fn stored(&self, mark: &FrameCursor) {
        // The mark of an earlier process does not apply.
        if mark.process != self.with_frames(|frames| frames.process()) {
            return;
        }
        let upto = settled(mark);
        self.settled.send_if_modified(|settled| {
            let grows = upto > *settled;
            *settled = upto.max(*settled);
            grows
        });
    }

    // Its requests.

    /// Notes a request of the agent, unless one with the same id is not answered yet. The receiver learns if the agent
    /// cancels it.
    pub(super) fn open_request(&self, id: &Id) -> Option<watch::Receiver<bool>> {
        match self.state().open_requests.entry(id.as_json().to_owned()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(entry) => Some(entry.insert(watch::Sender::new(false)).subscribe()),
        }
    }

    /// Notes that the agent does not wait for the answer to a request any more. The id is JSON.
    pub(super) fn cancel_request(&self, id: &str) {
        if let Some(cancelled) = self.state().open_requests.get(id) {
            cancelled.send_replace(true);
        }
    }

    pub(super) fn close_request(&self, id: &Id) {
        self.state().open_requests.remove(id.as_json());
    }

    // Its conversation.

    pub(super) fn session(&self) -> Option<acp::SessionId> {
        match &self.state().conversation {
            ConversationState::Open(session) => Some(session.clone()),
            ConversationState::Opening(_) => None,
        }
    }

    /// Returns whether a call is about our conversation. While ours is not open yet, any call counts.
    pub(super) fn concerns(&self, session: &acp::SessionId) -> bool {
        self.session().is_none_or(|ours| ours == *session)
    }

    /// Notes that the conversation is open, and returns the commands that were reported for it before.
    pub(super) fn opened(&self, session: acp::SessionId) -> Vec<AgentEvent> {
        let conversation = &mut self.state().conversation;
        let before = std::mem::replace(conversation, ConversationState::Open(session.clone()));
        match before {
            ConversationState::Opening(commands) => {
                commands.into_iter().filter(|(whose, _)| *whose == session).flat_map(|(_, events)| events).collect()
            }
            ConversationState::Open(_) => Vec::new(),
        }
    }

    /// Keeps the commands of a conversation that may turn out to be ours.
    pub(super) fn keep_commands(&self, session: acp::SessionId, events: Vec<AgentEvent>) {
        if let ConversationState::Opening(commands) = &mut self.state().conversation {
            // The last ones hold.
            commands.retain(|(whose, _)| *whose != session);
            if commands.len() < COMMANDS {
                commands.push((session, events));
            }
        }
    }

    pub(super) fn capabilities(&self) -> acp::AgentCapabilities {
        self.state().capabilities.clone()
    }

    pub(super) fn set_capabilities(&self, capabilities: acp::AgentCapabilities) {
        self.state().capabilities = capabilities;
    }

    pub(super) fn with_choices<T>(&self, change: impl FnOnce(&mut Choices) -> T) -> T {
        change(&mut self.state().choices)
    }

    // The content of its calls.

    /// Completes an update with the call's earlier content. `true`: the call shows a terminal that is not watched yet.
    pub(super) fn complete(&self, update: &mut ToolUpdate) -> bool {
        self.contents().complete(update, &|id| self.services.shown(id))
    }

    /// The present content of a running call, and whether that is the last of it; `None` if the call is over.
    pub(super) fn live(&self, call: &ToolCallId) -> Option<(AccumulatedOutput, bool)> {
        self.contents().live(call, &|id| self.services.shown(id))
    }

    pub(super) fn unwatched(&self, call: &ToolCallId) {
        self.contents().unwatched(call);
    }

    // Every change of it is complete before anything can panic, so a poisoned one is still sound.
    fn contents(&self) -> MutexGuard<'_, CallContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Its turn.

    /// Begins a turn, and returns the last frame that belongs to the time before it. If the agent has already ended,
    /// the turn ends as well: no reader is left that could report it later.
    pub(super) fn begin(&self, turn: RunningTurn) -> Option<u64> {
        let mut state = self.state();
        if let Some(how) = state.ended.clone() {
            drop(state);
            turn.reply.send(Err(AgentError::Died(how))).ok();
            return None;
        }
        state.frames.turn_began();
        state.turn = Some(turn);
        state.was_denied = false;
        let handled = state.frames.handled();
        drop(state);
        self.contents().clear();
        self.changed();
        Some(handled)
    }

    /// Notes that a person denied a request of the turn.
    pub(super) fn note_denial(&self) {
        self.state().was_denied = true;
    }

    /// Returns whether a person denied a request of the newest turn.
    pub(super) fn was_denied(&self) -> bool {
        self.state().was_denied
    }

    /// The turn that reports belong to.
    pub(crate) fn turn(&self) -> Option<TurnHandle> {
        let state = self.state();
        let running = state.turn.as_ref().filter(|turn| turn.cancelled.borrow().is_none())?;
        Some(TurnHandle { sink: running.sink.clone(), cancelled: running.cancelled.subscribe() })
    }

    /// Returns whether this turn is running, cancelled or not.
    pub(super) fn runs(&self, turn: &str) -> bool {
        self.state().turn.as_ref().is_some_and(|running| running.sink.turn().as_str() == turn)
    }

    pub(super) fn has_turn(&self) -> bool {
        self.state().turn.is_some()
    }

    /// The time since which a turn is cancelled that has not ended yet.
    pub(super) fn cancelled_at(&self) -> Option<Instant> {
        self.state().turn.as_ref().and_then(|turn| *turn.cancelled.borrow())
    }

    pub(super) fn origin(&self) -> Option<TurnOrigin> {
        self.state().turn.as_ref().map(|turn| turn.origin)
    }

    /// Ends the turn, and notifies its waiter.
    pub(super) fn finish(&self, result: Result<(), AgentError>) {
        let mut state = self.state();
        let Some(turn) = state.turn.take() else { return };
        let ended = result.as_ref().map_or_else(|error| TurnOutcome::Failed(error.to_string()), |()| TurnOutcome::Well);
        state.last = Some((turn.sink.turn().clone(), ended));
        state.last_was_cancelled = turn.cancelled.borrow().is_some();
        state.last_needs_login = matches!(result, Err(AgentError::LoginRequired { .. }));
        drop(state);
        // If nobody waits any more, it was cancelled.
        turn.reply.send(result).ok();
        self.changed();
    }

    /// The outcome of the last turn.
    pub(super) fn last(&self) -> Option<(TurnId, TurnOutcome)> {
        self.state().last.clone()
    }

    /// Returns whether the newest turn was cancelled, over or not.
    pub(super) fn was_cancelled(&self) -> bool {
        let state = self.state();
        state.turn.as_ref().map_or(state.last_was_cancelled, |turn| turn.cancelled.borrow().is_some())
    }

    /// Returns whether the last turn failed because the agent requires a login.
    pub(super) fn needs_login(&self) -> bool {
        self.state().last_needs_login
    }

    /// Marks a turn as cancelled, and notifies the agent. Repeated notifications do no harm.
    pub(super) async fn cancel(&self, turn: &TurnId, patience: Duration) {
        let session = {
            let state = self.state();
            let Some(running) = state.turn.as_ref().filter(|running| running.sink.turn() == turn) else { return };
            running.cancelled.send_if_modified(|since| {
                let first = since.is_none();
                since.get_or_insert_with(Instant::now);
                first
            });
            match &state.conversation {
                ConversationState::Open(session) => session.clone(),
                ConversationState::Opening(_) => return,
            }
        };
        self.changed();
        let method = acp::AGENT_METHOD_NAMES.session_cancel;
        let cancels = acp::CancelNotification::new(session);
        if !matches!(timeout(patience, self.agent_connection.notify(method, &cancels)).await, Ok(Ok(()))) {
            tracing::debug!("cannot tell an agent that its turn is cancelled");
        }
    }

    // Its end.

    /// The reason of its end, once it has ended.
    pub(super) fn ended(&self) -> Option<String> {
        self.state().ended.clone()
    }

    /// The reason of its end, which its reader is about to know: it waits for that at most so long.
    pub(super) async fn wait_for_end(&self, most: Duration) -> Option<String> {
        let mut changes = self.changes();
        let known = async { while self.ended().is_none() && changes.changed().await.is_ok() {} };
        timeout(most, known).await.ok();
        self.ended()
    }

    /// Gives up its turn and its unstored reports: the turn counts as cancelled, and every frame as settled.
    pub(super) fn let_go(&self) {
        if let Some(turn) = &self.state().turn {
            turn.cancelled.send_modify(|since| {
                since.get_or_insert_with(Instant::now);
            });
        }
        self.settled.send_replace(u64::MAX);
    }

    /// Notes that it has ended: nothing more comes from it.
    pub(super) fn end(&self, how: String, result: Result<(), AgentError>) {
        self.state().ended = Some(how);
        self.agent_connection.close();
        self.finish(result);
        self.changed();
    }
}
