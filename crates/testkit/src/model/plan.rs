//! From an answer's steps to what goes over the connection, and when.

use std::time::Duration;

use serde_json::Value;

use super::ask::{Ask, ToolKind};
use super::play::Part;
use super::reply::{Call, Kind, Piece, Reply, pieces};
use super::script::Step;
use super::shell;
use super::wire::{Events, Wire, Writer};

/// How an answer is given.
#[derive(Debug)]
pub(super) enum Plan {
    /// By an error.
    Refuse { wait: Duration, status: u16, body: Value },
    /// By events.
    Stream(Vec<Beat>),
    /// At once; if cut, only half of it.
    Whole { wait: Duration, body: Value, is_cut: bool },
}

/// What happens next in a stream.
#[derive(Debug)]
pub(super) enum Beat {
    Send(String),
    Wait(Duration),
    /// The connection breaks.
    Cut,
}

/// An answer in the making.
struct Draft<'a> {
    wire: Wire,
    ask: &'a Ask,
    reply: Reply,
    writer: Box<dyn Writer>,
    beats: Vec<Beat>,
    /// All waiting so far.
    wait: Duration,
    is_started: bool,
    open: Option<Kind>,
}

/// Plans an answer.
pub(super) fn plan(wire: Wire, ask: &Ask, part: &Part, created: u64) -> Plan {
    let id = format!("{}n{}", part.id, part.first_call);
    let mut draft = Draft {
        wire,
        ask,
        reply: Reply::new(id, created, ask, part.usage),
        writer: wire.writer(ask),
        beats: Vec::new(),
        wait: Duration::ZERO,
        is_started: false,
        open: None,
    };
    let mut calls = part.first_call..;
    let mut call_id = || format!("call_{}n{}", part.id, calls.next().unwrap_or_default());
    for step in &part.steps {
        match step {
            Step::Say { text, chunks, delay } => draft.text(Kind::Text, text, *chunks, *delay),
            Step::Think { text } => draft.text(Kind::Thought, text, 1, Duration::ZERO),
            Step::Call { tool, arguments } => {
                let known = ask.tools.iter().find(|known| known.name == *tool);
                let kind = known.map_or(ToolKind::Function, |known| known.kind);
                draft.call(Call { id: call_id(), tool: tool.clone(), kind, arguments: arguments.clone() });
            }
            Step::Shell { command } => draft.shell(call_id(), command),
            Step::Stall { time } => draft.pause(*time),
            Step::Fail { status, body } => {
                let body = match body {
                    Value::Null => wire.error(*status, "the script says so"),
                    body => body.clone(),
                };
                if !draft.is_started || !ask.stream {
                    return Plan::Refuse { wait: draft.wait, status: *status, body };
                }
                draft.piece(Piece::Error(body));
                return Plan::Stream(draft.beats);
            }
            Step::Cut => {
                draft.start();
                draft.beats.push(Beat::Cut);
                return draft.into_plan(true);
            }
        }
    }
    draft.start();
    draft.close();
    draft.piece(Piece::End);
    draft.into_plan(false)
}

impl Draft<'_> {
    fn into_plan(self, is_cut: bool) -> Plan {
        if self.ask.stream {
            return Plan::Stream(self.beats);
        }
        Plan::Whole { wait: self.wait, body: self.writer.whole(&self.reply), is_cut }
    }

    fn piece(&mut self, piece: Piece) {
        self.reply.take(&piece);
        let mut events = Events::default();
        self.writer.write(&piece, &self.reply, &mut events);
        self.beats.push(Beat::Send(events.into_text()));
    }

    /// Not before there is something to say: a stall that comes first leaves the agent with nothing but headers.
    fn start(&mut self) {
        if !self.is_started {
            self.is_started = true;
            self.piece(Piece::Start);
        }
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.piece(Piece::Close);
        }
    }

    fn pause(&mut self, time: Duration) {
        self.wait += time;
        self.beats.push(Beat::Wait(time));
    }

    /// Text that follows text of its kind goes into the same block.
    fn text(&mut self, kind: Kind, text: &str, chunks: usize, delay: Duration) {
        self.start();
        if self.open != Some(kind) {
            self.close();
            self.open = Some(kind);
            self.piece(Piece::Open(kind));
        }
        for (at, piece) in pieces(text, chunks).into_iter().enumerate() {
            if at > 0 && !delay.is_zero() {
                self.pause(delay);
            }
            self.piece(Piece::Delta(piece));
        }
    }

    fn call(&mut self, call: Call) {
        self.start();
        self.close();
        self.piece(Piece::Call(call));
    }

    fn shell(&mut self, id: String, command: &str) {
        if let Some(tool) = shell::find(&self.ask.tools) {
            let arguments = shell::arguments(tool, command);
            return self.call(Call { id, tool: tool.name.clone(), kind: tool.kind, arguments });
        }
        let names: Vec<&str> = self.ask.tools.iter().map(|tool| tool.name.as_str()).collect();
        let said = format!("None of these tools of {:?} looks like a shell: {}.", self.wire, names.join(", "));
        self.text(Kind::Text, &said, 1, Duration::ZERO);
    }
}
