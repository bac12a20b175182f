//! An agent's process: what everybody who has to do with it knows of it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_core::{ToolCallId, TurnId};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use super::choices::Choices;
use super::contents::CallContents;
use super::session_record::TurnOutcome;
use crate::acp::connection::{AgentConnection, FrameTracker, settled};
use crate::acp::serve::AgentServices;
use crate::agent::*;

/// How many of an agent's calls may wait for our answers at a time. One more is refused.
pub(super) const ASKED: usize = 256;
/// How many lists of commands are kept until it is known which conversation is ours.
const COMMANDS: usize = 8;

/// An agent's process, from its start to its end.
#[derive(Debug)]
pub(crate) struct AgentProcess {
    pub(super) agent_connection: AgentConnection,
    pub(super) services: Arc<AgentServices>,
    pub(super) folder: PathBuf,
    state: Mutex<ProcessState>,
    /// What the calls of its turn have shown. It is never held together with the state.
    contents: Mutex<CallContents>,
    /// Counts what happened to its turn or to itself.
    changes: watch::Sender<u64>,
    /// Up to where nobody will ask again.
    settled: watch::Sender<u64>,
}

#[derive(Debug)]
struct ProcessState {
    frames: FrameTracker,
    conversation: ConversationState,
    capabilities: acp::AgentCapabilities,
    choices: Choices,
    turn: Option<RunningTurn>,
    /// How the last turn ended.
    last: Option<(TurnId, TurnOutcome)>,
    /// The last turn was cancelled before it ended.
    last_was_cancelled: bool,
    /// Up to where nobody will ask again, when all that was reported is stored.
    reported: u64,
    ended: Option<String>,
}

/// The conversation that is ours.
#[derive(Debug)]
enum ConversationState {
    /// There is none yet. Commands may be told before the answer that says which is ours.
    Opening(Vec<(acp::SessionId, Vec<AgentEvent>)>),
    Open(acp::SessionId),
}

/// A turn at work.
#[derive(Debug)]
pub(super) struct RunningTurn {
    sink: TurnSink,
    /// Since when it is cancelled. Dropped, the turn is over.
    cancelled: watch::Sender<Option<Instant>>,
    reply: oneshot::Sender<Result<(), AgentError>>,
    origin: TurnOrigin,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnOrigin {
    /// This host's.
    Own,
    /// An earlier host's, and whether the agent was still there when this host came.
    Earlier { agent_runs: bool },
}

/// What of a turn is needed to report for it.
#[derive(Clone, Debug)]
pub(super) struct TurnHandle {
    pub(super) sink: TurnSink,
    cancelled: watch::Receiver<Option<Instant>>,
}

/// What a process knows at its start.
#[derive(Debug)]
pub(super) struct ProcessStart {
    pub(super) frames: FrameTracker,
    pub(super) session: Option<acp::SessionId>,
    pub(super) capabilities: acp::AgentCapabilities,
    pub(super) choices: Choices,
    pub(super) turn: Option<RunningTurn>,
}

impl ProcessStart {
    /// Of a process that was just started.
    pub(super) fn fresh(frames: FrameTracker) -> Self {
        let (capabilities, choices) = (acp::AgentCapabilities::default(), Choices::default());
        Self { frames, session: None, capabilities, choices, turn: None }
    }
}

impl RunningTurn {
    pub(super) fn new(sink: TurnSink, reply: oneshot::Sender<Result<(), AgentError>>, origin: TurnOrigin) -> Self {
        Self { sink, cancelled: watch::Sender::new(None), reply, origin }
    }
}

impl TurnHandle {
    /// Waits until the turn is cancelled or over.
    pub(super) async fn cancelled(mut self) {
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
        let ProcessStart { frames, session, capabilities, choices, turn } = beginning;
        let conversation = session.map_or(ConversationState::Opening(Vec::new()), ConversationState::Open);
        let state = ProcessState {
            frames,
            conversation,
            capabilities,
            choices,
            turn,
            last: None,
            last_was_cancelled: false,
            reported: 0,
            ended: None,
        };
        Self {
            agent_connection,
            services: Arc::new(services),
            folder,
            state: Mutex::new(state),
            contents: Mutex::default(),
            changes: watch::Sender::new(0),
            settled: watch::Sender::new(0),
        }
    }

    // Every change of the state is whole before anything can panic, so a poisoned one is still sound.
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

    /// A report with this mark was handed to the host. A report that was given up never is: nothing of it will be stored.
    pub(super) fn reported(&self, mark: &FrameCursor) {
        let mut state = self.state();
        state.reported = settled(mark).max(state.reported);
    }

    /// Whether something was reported that may not be stored.
    pub(super) fn has_unstored(&self) -> bool {
        *self.settled.borrow() < self.state().reported
    }

    /// A mark is stored: the shim may forget what lies before it.
    pub(crate) fn stored(&self, mark: &FrameCursor) {
        // One of an earlier process says nothing of this one.
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

    // Its conversation.

    pub(super) fn session(&self) -> Option<acp::SessionId> {
        match &self.state().conversation {
            ConversationState::Open(session) => Some(session.clone()),
            ConversationState::Opening(_) => None,
        }
    }

    /// Whether a call is about our conversation. One that is not open yet is not told from others.
    pub(super) fn concerns(&self, session: &acp::SessionId) -> bool {
        self.session().is_none_or(|ours| ours == *session)
    }

    /// The conversation is open: what was told of its commands before.
    pub(super) fn opened(&self, session: acp::SessionId) -> Vec<AgentEvent> {
        let conversation = &mut self.state().conversation;
        let before = std::mem::replace(conversation, ConversationState::Open(session.clone()));
        match before {
            ConversationState::Opening(told) => {
                told.into_iter().filter(|(whose, _)| *whose == session).flat_map(|(_, events)| events).collect()
            }
            ConversationState::Open(_) => Vec::new(),
        }
    }

    /// Keeps the commands of a conversation that may turn out to be ours.
    pub(super) fn keep_commands(&self, session: acp::SessionId, events: Vec<AgentEvent>) {
        if let ConversationState::Opening(told) = &mut self.state().conversation {
            // The last ones are what holds.
            told.retain(|(whose, _)| *whose != session);
            if told.len() < COMMANDS {
                told.push((session, events));
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

    // What its calls have shown.

    /// Completes what is new of a tool call by what the call has shown before. `true`: the call shows a terminal that is
    /// not watched yet.
    pub(super) fn complete(&self, update: &mut ToolUpdate) -> bool {
        self.contents().complete(update, &|id| self.services.shown(id))
    }

    /// What a running call shows now, and whether that is the last of it; `None` where the call is over.
    pub(super) fn live(&self, call: &ToolCallId) -> Option<(AccumulatedOutput, bool)> {
        self.contents().live(call, &|id| self.services.shown(id))
    }

    pub(super) fn unwatched(&self, call: &ToolCallId) {
        self.contents().unwatched(call);
    }

    // Every change of it is whole before anything can panic, so a poisoned one is still sound.
    fn contents(&self) -> MutexGuard<'_, CallContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Its turn.

    /// Begins a turn, and says up to where the agent's words belong to what was before. With an agent that has ended
    /// meanwhile the turn has as well: nobody hears it who could say so later.
    pub(super) fn begin(&self, turn: RunningTurn) -> Option<u64> {
        let mut state = self.state();
        if let Some(how) = state.ended.clone() {
            drop(state);
            turn.reply.send(Err(AgentError::Died(how))).ok();
            return None;
        }
        state.frames.turn_began();
        state.turn = Some(turn);
        let handled = state.frames.handled();
        drop(state);
        self.contents().clear();
        self.changed();
        Some(handled)
    }

    /// The turn for which things are reported.
    pub(super) fn turn(&self) -> Option<TurnHandle> {
        let state = self.state();
        let running = state.turn.as_ref().filter(|turn| turn.cancelled.borrow().is_none())?;
        Some(TurnHandle { sink: running.sink.clone(), cancelled: running.cancelled.subscribe() })
    }

    /// Whether this turn is at work, cancelled or not.
    pub(super) fn runs(&self, turn: &str) -> bool {
        self.state().turn.as_ref().is_some_and(|running| running.sink.turn().as_str() == turn)
    }

    pub(super) fn has_turn(&self) -> bool {
        self.state().turn.is_some()
    }

    /// Since when a turn is cancelled that has not ended yet.
    pub(super) fn cancelled_at(&self) -> Option<Instant> {
        self.state().turn.as_ref().and_then(|turn| *turn.cancelled.borrow())
    }

    pub(super) fn origin(&self) -> Option<TurnOrigin> {
        self.state().turn.as_ref().map(|turn| turn.origin)
    }

    /// The turn is over, and whoever waits for it learns how.
    pub(super) fn finish(&self, result: Result<(), AgentError>) {
        let mut state = self.state();
        let Some(turn) = state.turn.take() else { return };
        let ended = result.as_ref().map_or_else(|error| TurnOutcome::Failed(error.to_string()), |()| TurnOutcome::Well);
        state.last = Some((turn.sink.turn().clone(), ended));
        state.last_was_cancelled = turn.cancelled.borrow().is_some();
        drop(state);
        // Where nobody waits any more, it was cancelled.
        turn.reply.send(result).ok();
        self.changed();
    }

    /// How the last turn ended.
    pub(super) fn last(&self) -> Option<(TurnId, TurnOutcome)> {
        self.state().last.clone()
    }

    /// Whether the newest turn was cancelled, be it over or not.
    pub(super) fn was_cancelled(&self) -> bool {
        let state = self.state();
        state.turn.as_ref().map_or(state.last_was_cancelled, |turn| turn.cancelled.borrow().is_some())
    }

    /// Marks a turn as cancelled, and tells the agent. It may say so again: agents do not mind.
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
            tracing::debug!("an agent cannot be told that its turn is cancelled");
        }
    }

    // Its end.

    /// How it ended, once it has.
    pub(super) fn ended(&self) -> Option<String> {
        self.state().ended.clone()
    }

    /// Nobody needs what it says any more: its turn is cancelled, and nothing of it is stored.
    pub(super) fn let_go(&self) {
        if let Some(turn) = &self.state().turn {
            turn.cancelled.send_modify(|since| {
                since.get_or_insert_with(Instant::now);
            });
        }
        self.settled.send_replace(u64::MAX);
    }

    /// It has ended: nothing more comes of it.
    pub(super) fn end(&self, how: String, result: Result<(), AgentError>) {
        self.state().ended = Some(how);
        self.agent_connection.close();
        self.finish(result);
        self.changed();
    }
}
