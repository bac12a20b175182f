//! Planning the bytes of an answer and their times from its steps.

use std::time::Duration;

use serde_json::Value;

use super::model_request::{ModelRequest, ModelToolKind};
use super::reply::{Call, ModelReply, ReplyEvent, TextKind, pieces};
use super::script::ReplyStep;
use super::script_player::ScriptedReply;
use super::shell;
use super::wire::{ModelApi, ReplyWriter, SseEvents};

/// The form of an answer.
#[derive(Debug)]
pub(super) enum ReplyPlan {
    /// An error.
    Refuse { wait: Duration, status: u16, body: Value },
    /// Events.
    Stream(Vec<StreamAction>),
    /// One body; if cut, only half of it.
    Whole { wait: Duration, body: Value, is_cut: bool },
}

/// The next action in a stream.
#[derive(Debug)]
pub(super) enum StreamAction {
    Send(String),
    Wait(Duration),
    /// The connection breaks.
    Cut,
}

/// An answer in the making.
struct ReplyBuilder<'a> {
    wire: ModelApi,
    model_request: &'a ModelRequest,
    reply: ModelReply,
    writer: Box<dyn ReplyWriter>,
    actions: Vec<StreamAction>,
    /// The total delay so far.
    wait: Duration,
    is_started: bool,
    open: Option<TextKind>,
}

/// Plans an answer.
pub(super) fn plan(wire: ModelApi, model_request: &ModelRequest, part: &ScriptedReply, created: u64) -> ReplyPlan {
    let id = format!("{}n{}", part.id, part.first_call);
    let mut draft = ReplyBuilder {
        wire,
        model_request,
        reply: ModelReply::new(id, created, model_request, part.usage),
        writer: wire.writer(model_request),
        actions: Vec::new(),
        wait: Duration::ZERO,
        is_started: false,
        open: None,
    };
    let mut calls = part.first_call..;
    let mut call_id = || format!("call_{}n{}", part.id, calls.next().unwrap_or_default());
    for step in &part.steps {
        match step {
            ReplyStep::Say { text, chunks, delay } => draft.text(TextKind::Text, text, *chunks, *delay),
            ReplyStep::Think { text } => draft.text(TextKind::Thought, text, 1, Duration::ZERO),
            ReplyStep::Call { tool, arguments } => {
                let known = model_request.tools.iter().find(|known| known.name == *tool);
                let kind = known.map_or(ModelToolKind::Function, |known| known.kind);
                draft.call(Call { id: call_id(), tool: tool.clone(), kind, arguments: arguments.clone() });
            }
            ReplyStep::Shell { command } => draft.shell(call_id(), command),
            ReplyStep::Stall { time } => draft.pause(*time),
            ReplyStep::Fail { status, body } => {
                let body = match body {
                    Value::Null => wire.error(*status, "the script says so"),
                    body => body.clone(),
                };
                if !draft.is_started || !model_request.stream {
                    return ReplyPlan::Refuse { wait: draft.wait, status: *status, body };
                }
                draft.piece(ReplyEvent::Error(body));
                return ReplyPlan::Stream(draft.actions);
            }
            ReplyStep::Cut => {
                draft.start();
                draft.actions.push(StreamAction::Cut);
                return draft.into_plan(true);
            }
        }
    }
    draft.start();
    draft.close();
    draft.piece(ReplyEvent::End);
    draft.into_plan(false)
}

impl ReplyBuilder<'_> {
    fn into_plan(self, is_cut: bool) -> ReplyPlan {
        if self.model_request.stream {
            return ReplyPlan::Stream(self.actions);
        }
        ReplyPlan::Whole { wait: self.wait, body: self.writer.whole(&self.reply), is_cut }
    }

    fn piece(&mut self, piece: ReplyEvent) {
        self.reply.take(&piece);
        let mut events = SseEvents::default();
        self.writer.write(&piece, &self.reply, &mut events);
        self.actions.push(StreamAction::Send(events.into_text()));
    }

    /// Not before there is content: a stall that comes first leaves the agent with nothing but headers.
    fn start(&mut self) {
        if !self.is_started {
            self.is_started = true;
            self.piece(ReplyEvent::Start);
        }
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.piece(ReplyEvent::Close);
        }
    }

    fn pause(&mut self, time: Duration) {
        self.wait += time;
        self.actions.push(StreamAction::Wait(time));
    }

    /// Text that follows text of its kind goes into the same block.
    fn text(&mut self, kind: TextKind, text: &str, chunks: usize, delay: Duration) {
        self.start();
        if self.open != Some(kind) {
            self.close();
            self.open = Some(kind);
            self.piece(ReplyEvent::Open(kind));
        }
        for (at, piece) in pieces(text, chunks).into_iter().enumerate() {
            if at > 0 && !delay.is_zero() {
                self.pause(delay);
            }
            self.piece(ReplyEvent::Delta(piece));
        }
    }

    fn call(&mut self, call: Call) {
        self.start();
        self.close();
        self.piece(ReplyEvent::Call(call));
    }

    fn shell(&mut self, id: String, command: &str) {
        if let Some(tool) = shell::find(&self.model_request.tools) {
            let arguments = shell::arguments(tool, command);
            return self.call(Call { id, tool: tool.name.clone(), kind: tool.kind, arguments });
        }
        let names: Vec<&str> = self.model_request.tools.iter().map(|tool| tool.name.as_str()).collect();
        let message = format!("None of these tools of {:?} looks like a shell: {}.", self.wire, names.join(", "));
        self.text(TextKind::Text, &message, 1, Duration::ZERO);
    }
}
