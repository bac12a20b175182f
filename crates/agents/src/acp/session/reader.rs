//! The task that reads an agent's lines in order and handles each.
//!
//! Work that waits for something else (a person, a file, a command) runs in its own task. Reports are awaited here: an
//! agent runs no faster than the host can store its output.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_core::{RequestId, ToolCallId, Verdict};
use grove_shim::{AgentEnd, FromAgent, ShimError, ShimReader};
use grove_wire::jsonrpc::{self, ErrorObject, Frame, Id, RpcMessage};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::chat::AcpChat;
use super::exit_message::{describe_exit, with_stderr_tail};
use super::open::AUTH_REQUIRED;
use super::process::{AgentProcess, TurnHandle, TurnOrigin};
use super::worker::until;
use crate::acp::client_tools::Shown;
use crate::acp::connection::{CANCEL_REQUEST, CallPurpose, FrameTracker, error_text, turn_of};
use crate::acp::map::{self, ParsedUpdate, UpdateContent};
use crate::acp::pool::end_processes_in;
use crate::acp::program::AcpProgram;
use crate::agent::*;

/// The time that an agent's last frames wait to be stored before the shim may forget them.
const FAREWELL: Duration = Duration::from_secs(10);
/// The lines, and their bytes, that a shim may keep beyond what it has to. Each acknowledgement wakes the shim.
const UNACKNOWLEDGED: (u64, usize) = (64, 16 << 10);
/// The time for which a turn waits for updates behind its end: some agents send the last ones a moment later.
const LATE: Duration = Duration::from_millis(25);
/// The interval at which the output of a running terminal is shown.
const LIVE_EVERY: Duration = Duration::from_millis(250);

/// The frames that an earlier host has handled.
#[derive(Debug, Default)]
pub(super) struct HandledFrames {
    /// All frames up to this one,
    pub(super) upto: u64,
    /// except for these, which still need an answer: they are read again, and not reported again.
    pub(super) open: BTreeSet<u64>,
    /// The receivers of the answers.
    pub(super) waiting: HashMap<RequestId, PendingAnswer>,
}

/// The lines that were read and that the shim still keeps.
#[derive(Debug, Default)]
struct Unacknowledged {
    last: u64,
    acknowledged: u64,
    /// The bytes of at least these lines.
    bytes: usize,
}

impl Unacknowledged {
    fn add(&mut self, number: u64, bytes: usize) {
        self.last = number;
        self.bytes += bytes;
    }

    fn remove(&mut self, upto: u64) {
        self.acknowledged = upto;
        if upto >= self.last {
            self.bytes = 0;
        }
    }

    /// Returns whether the shim should be told which of them it may forget.
    fn is_large(&self) -> bool {
        let (lines, bytes) = UNACKNOWLEDGED;
        self.last.saturating_sub(self.acknowledged) >= lines || self.bytes >= bytes
    }
}

/// Reads from one process until its end.
#[derive(Debug)]
pub(super) struct ProcessReader {
    pub(super) chat: Arc<AcpChat>,
    pub(super) process: Arc<AgentProcess>,
    shim: ShimReader,
    unacknowledged: Unacknowledged,
    pub(super) past: HandledFrames,
    /// The tasks that wait for something else.
    pub(super) tasks: JoinSet<CallEffect>,
    /// The newest permission request of each call of the turn.
    pub(super) asking: HashMap<ToolCallId, watch::Receiver<PermissionState>>,
    /// The end of the turn, while its last updates may still come.
    ending: Option<EndingTurn>,
}

/// A turn that has ended, until that is reported.
#[derive(Debug)]
struct EndingTurn {
    result: Result<(), AgentError>,
    deadline: Instant,
}

/// The state of a permission request.
#[derive(Clone, Debug)]
pub(super) enum PermissionState {
    Open,
    /// It was answered; `None` if the turn was cancelled.
    Answered(Option<Verdict>),
}

/// The effect of an agent's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEffect {
    /// Repeating it does no harm.
    None,
    /// Another host must not repeat it.
    Once,
}

/// The content of a frame.
#[derive(Debug)]
pub(super) struct DecodedFrame {
    pub(super) frame: u64,
    /// An earlier host has reported it.
    pub(super) again: bool,
    pub(super) events: Vec<AgentEvent>,
    /// Becomes true if the agent cancels the request of this frame.
    pub(super) cancelled: Option<watch::Receiver<bool>>,
    /// The turn is over.
    ended: Option<Result<(), AgentError>>,
}

/// The params of `$/cancel_request`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelledRequest<'a> {
    #[serde(borrow)]
    request_id: &'a RawValue,
}

/// The reason why reading ends.
#[derive(Debug)]
enum ReaderExit {
    Agent(u64, AgentEnd),
    Shim(ShimError),
    /// The host no longer receives reports.
    Host,
}

impl ProcessReader {
    pub(super) fn new(chat: Arc<AcpChat>, process: Arc<AgentProcess>, shim: ShimReader, past: HandledFrames) -> Self {
        let unacknowledged = Unacknowledged::default();
        Self { chat, process, shim, unacknowledged, past, tasks: JoinSet::new(), asking: HashMap::new(), ending: None }
    }

    pub(super) async fn run(mut self) {
        let mut settled = self.process.settled();
        let over = self.listen(&mut settled).await;
        self.finish_turn();
        match over {
            ReaderExit::Agent(number, end) => self.agent_ended(number, &end, settled).await,
            ReaderExit::Shim(error) => self.shim_failed(error).await,
            // Frames that are not stored are not acknowledged: the next host reads them.
            ReaderExit::Host => self.process.end("the host is gone".to_owned(), Err(AgentError::TurnOver)),
        }
    }

    async fn listen(&mut self, settled: &mut watch::Receiver<u64>) -> ReaderExit {
        loop {
            let acknowledges = self.unacknowledged.is_large();
            let deadline = self.ending.as_ref().map(|ending| ending.deadline);
            tokio::select! {
                read = self.shim.read() => match read {
                    Ok(FromAgent::Line { number, line }) => {
                        self.unacknowledged.add(number, line.len());
                        if self.frame(number, &line).await.is_err() {
                            return ReaderExit::Host;
                        }
                    }
                    Ok(FromAgent::Ended { number, end }) => return ReaderExit::Agent(number, end),
                    Err(error) => return ReaderExit::Shim(error),
                },
                Some(done) = self.tasks.join_next() => {
                    if matches!(done, Ok(CallEffect::Once)) && self.report(Vec::new()).await.is_err() {
                        return ReaderExit::Host;
                    }
                }
                Ok(()) = settled.changed(), if acknowledges => {
                    let upto = (*settled.borrow_and_update()).min(self.process.with_frames(|frames| frames.handled()));
                    self.unacknowledged.remove(upto);
                    // If it fails, so does the next read.
                    self.process.agent_connection.shim().acknowledge(upto).await.ok();
                }
                () = until(deadline) => self.finish_turn(),
            }
        }
    }

    /// Ends the turn if its end has come.
    fn finish_turn(&mut self) {
        let Some(EndingTurn { result, .. }) = self.ending.take() else { return };
        self.asking.clear();
        if let Some(tools) = &self.process.tools {
            tools.end_turn();
        }
        let services = Arc::clone(&self.process.services);
        self.tasks.spawn(async move {
            services.release_terminals().await;
            CallEffect::None
        });
        self.process.finish(result);
    }

    async fn frame(&mut self, number: u64, line: &[u8]) -> Result<(), AgentError> {
        let again = number <= self.past.upto;
        if again && !self.past.open.remove(&number) {
            return Ok(());
        }
        let mut decoded = DecodedFrame { frame: number, again, events: Vec::new(), cancelled: None, ended: None };
        self.decode(line, &mut decoded).await;
        self.process.with_frames(|frames| {
            frames.mark_handled(number);
            if decoded.ended.is_some() {
                frames.turn_ended(number);
            }
        });
        if !again && !decoded.events.is_empty() {
            self.report(decoded.events).await?;
        }
        if let Some(result) = decoded.ended {
            self.ending = Some(EndingTurn { result, deadline: Instant::now() + LATE });
        }
        Ok(())
    }

    async fn decode(&mut self, line: &[u8], decoded: &mut DecodedFrame) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Ok(text) = str::from_utf8(line) else {
            tracing::debug!(frame = decoded.frame, bytes = line.len(), "skipped a line of an agent: invalid UTF-8");
            return;
        };
        self.process.agent_connection.record_received(text);
        match jsonrpc::parse(text) {
            Ok(Frame::Single(Ok(message))) => self.message(message, decoded).await,
            Ok(Frame::Batch(messages)) => {
                for message in messages.into_iter().flatten() {
                    self.message(message, decoded).await;
                }
            }
            // Some agents log to their stdout.
            Ok(Frame::Single(Err(jsonrpc::InvalidMessage { error, .. }))) | Err(error) => {
                tracing::debug!(frame = decoded.frame, %error, line = %beginning(text), "skipped a line of an agent");
            }
        }
    }

    async fn message(&mut self, message: RpcMessage<'_>, decoded: &mut DecodedFrame) {
        match message {
            RpcMessage::Request(request) => self.request(request, decoded).await,
            RpcMessage::Notification { .. } if decoded.again => {}
            RpcMessage::Notification { method, params } if method == CANCEL_REQUEST => {
                let cancelled = params.and_then(|params| serde_json::from_str::<CancelledRequest>(params.get()).ok());
                if let Some(cancelled) = cancelled {
                    self.process.cancel_request(cancelled.request_id.get());
                }
            }
            RpcMessage::Notification { method, params } => {
                if method == acp::CLIENT_METHOD_NAMES.session_update {
                    self.update(params, decoded);
                } else {
                    tracing::trace!(%method, "skipped a notification of an agent");
                }
            }
            RpcMessage::Response { id, outcome } => self.response(&id, outcome, decoded),
        }
    }

    fn update(&mut self, params: Option<&RawValue>, decoded: &mut DecodedFrame) {
        let params = serde_json::from_str(params.map_or("null", RawValue::get)).unwrap_or_default();
        let ParsedUpdate { session, content } = match map::update(params) {
            Ok(update) => update,
            Err(error) => {
                tracing::debug!(frame = decoded.frame, %error, "skipped an update of an agent");
                return;
            }
        };
        let ours = self.process.session();
        if ours.as_ref().is_some_and(|ours| *ours != session) {
            tracing::trace!(%session, "skipped an update of another session");
            return;
        }
        if ours.is_none() {
            // The host knows the earlier conversation, and the answer that opened it contains the settings. Commands
            // are news.
            if let UpdateContent::Events(events) = content
                && events.iter().all(|event| matches!(event, AgentEvent::Commands(_)))
            {
                self.process.keep_commands(session, events);
            }
            return;
        }
        match content {
            UpdateContent::Events(mut events) => {
                events.retain(|event| self.is_shown(event));
                for event in &mut events {
                    if let AgentEvent::Tool(update) = event {
                        self.complete(update);
                    }
                }
                decoded.events.extend(events);
            }
            UpdateContent::Mode(mode) => {
                self.chosen(decoded, self.process.with_choices(|choices| choices.take_mode(mode)))
            }
            UpdateContent::Options(options) => {
                self.chosen(decoded, self.process.with_choices(|choices| choices.take_options(options)));
            }
        }
    }

    /// Returns whether an event is shown: a call of a client's tool is shown as the client's call alone.
    fn is_shown(&self, event: &AgentEvent) -> bool {
        match (&self.process.tools, event) {
            (Some(tools), AgentEvent::Tool(update)) => tools.note(update) == Shown::Yes,
            _ => true,
        }
    }

    /// Completes an update of a tool call, and begins to watch a terminal that the call shows.
    pub(super) fn complete(&mut self, update: &mut ToolUpdate) {
        if !self.process.complete(update) {
            return;
        }
        let Some(turn) = self.process.turn() else { return };
        let (process, call) = (Arc::clone(&self.process), update.call.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = watch_terminals(&process, &turn, &call) => {}
                () = turn.clone().cancelled() => {}
            }
            process.unwatched(&call);
            CallEffect::None
        });
    }

    fn chosen(&self, decoded: &mut DecodedFrame, differs: bool) {
        if differs {
            self.process.with_choices(|choices| {
                self.chat.profile.models(choices.settings());
                decoded.events.extend(choices.settings().event());
            });
        }
    }

    fn response(&self, id: &Id, outcome: Result<&RawValue, ErrorObject>, decoded: &mut DecodedFrame) {
        let Some(id) = id.text() else { return };
        if let Some(turn) = turn_of(&id) {
            if self.process.runs(turn) {
                let (events, result) = answered(outcome, &self.chat.program, self.process.was_denied());
                decoded.events.extend(events);
                decoded.ended = Some(result);
            }
            return;
        }
        // A host that came back gets answers to calls of the previous one.
        let Some(call) = self.process.agent_connection.take(&id) else { return };
        if let (CallPurpose::Opens(session), Ok(result)) = (&call.purpose, &outcome)
            && let Some(session) = session.clone().or_else(|| session_in(result))
        {
            decoded.events.extend(self.process.opened(session));
        }
        call.answer(outcome);
    }

    /// Reports events with the mark of the handled frames. Events of a turn that is over are left out.
    async fn report(&self, mut events: Vec<AgentEvent>) -> Result<(), AgentError> {
        let mark = self.process.mark();
        match self.process.turn() {
            Some(turn) => {
                let cancelled = turn.clone().cancelled();
                tokio::select! {
                    reported = turn.sink.report(events, Some(mark.clone())) => reported?,
                    () = cancelled => return Ok(()),
                }
            }
            None => {
                events.retain(AgentEvent::is_of_session);
                if events.is_empty() {
                    return Ok(());
                }
                self.chat.reports.report(events, Some(mark.clone())).await?;
            }
        }
        self.process.reported(&mark);
        Ok(())
    }

    async fn agent_ended(mut self, number: u64, end: &AgentEnd, mut settled: watch::Receiver<u64>) {
        let how = with_stderr_tail(describe_exit(end), &self.process.folder).await;
        let cut_off = self.process.turn().is_some();
        if cut_off {
            // The agent's output has to be stored before the shim forgets it. The end itself has to be read again by a
            // host that comes back before the turn's end is stored.
            self.process.with_frames(FrameTracker::nobody_waits);
            self.report(Vec::new()).await.ok();
        }
        let failed = match self.process.origin() {
            Some(TurnOrigin::Earlier { agent_runs: false }) => AgentError::Interrupted(how.clone()),
            Some(TurnOrigin::Own | TurnOrigin::Earlier { agent_runs: true }) | None => AgentError::Died(how.clone()),
        };
        self.process.end(how, Err(failed));
        self.tasks.abort_all();
        self.process.services.release_terminals().await;
        if cut_off {
            let handled = self.process.with_frames(|frames| frames.handled());
            timeout(FAREWELL, settled.wait_for(|settled| *settled >= handled)).await.map(drop).ok();
        }
        self.process.agent_connection.shim().acknowledge(number).await.ok();
    }

    async fn shim_failed(mut self, error: ShimError) {
        let how = with_stderr_tail(error.to_string(), &self.process.folder).await;
        // The agent may still run, and nobody would ever read from it. Once its end is known, the next one may be
        // started in the same folder, and would be ended in its place.
        if !matches!(error, ShimError::TakenOver) {
            let grace = self.chat.pool.options().shim_limits.grace;
            if let Err(error) = end_processes_in(&self.process.folder, grace).await {
                tracing::warn!(%error, "cannot end an agent whose connection is lost");
            }
        }
        self.process.end(how.clone(), Err(AgentError::Died(how)));
        self.tasks.abort_all();
        self.process.services.release_terminals().await;
    }
}

/// Reports the output of a running call's terminals, until the commands have ended or the call is over.
async fn watch_terminals(process: &AgentProcess, turn: &TurnHandle, call: &ToolCallId) {
    let mut last = AccumulatedOutput::default();
    loop {
        tokio::time::sleep(LIVE_EVERY).await;
        let Some((gave, is_last)) = process.live(call) else { return };
        if gave != last {
            let update = ToolUpdate { output: Some(gave.clone()), ..ToolUpdate::of(call.clone()) };
            if turn.sink.report(vec![AgentEvent::Tool(Box::new(update))], None).await.is_err() {
                return;
            }
            last = gave;
        }
        if is_last {
            return;
        }
    }
}

/// The end of a turn, by the answer to its prompt.
fn answered(
    outcome: Result<&RawValue, ErrorObject>,
    program: &AcpProgram,
    was_denied: bool,
) -> (Vec<AgentEvent>, Result<(), AgentError>) {
    let failed = |why: String| (Vec::new(), Err(AgentError::TurnFailed(why)));
    match outcome {
        Ok(result) => match serde_json::from_str::<acp::PromptResponse>(result.get()) {
            Ok(response) => map::turn_end(&response, was_denied),
            Err(error) => failed(format!("the agent's answer to the prompt is invalid: {error}")),
        },
        Err(error) if error.code == AUTH_REQUIRED => {
            let AcpProgram { id, display_name, .. } = program;
            let words = format!(
                "{display_name} requires you to log in ({}): run `grove agents login {id}`, then try again",
                error_text(&error)
            );
            (Vec::new(), Err(AgentError::LoginRequired { words, has_methods: false }))
        }
        Err(error) => failed(format!("the agent says: {}", error_text(&error))),
    }
}

/// The conversation that an answer names.
fn session_in(result: &RawValue) -> Option<acp::SessionId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct OpenedSessionResult {
        session_id: acp::SessionId,
    }
    serde_json::from_str::<OpenedSessionResult>(result.get()).ok().map(|opened| opened.session_id)
}

/// The beginning of a line, for a log.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
}
