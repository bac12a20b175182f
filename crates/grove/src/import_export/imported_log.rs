//! Turns of another tool as a Grove log.
//!
//! Turns are written as Grove writes its own. A compaction becomes one, with its checkpoint, so that the agent gets the
//! summary; a change of the model becomes one. Hidden and unknown events become custom entries beside the turn.

use std::io::{self, Write};

use grove_core::{AgentId, ModelId, Session, SessionId, Timestamp, Turn};
use grove_transcript::{Notice, TranscriptPart, TranscriptTurn, TurnParent, core_turn};
use grove_tree::entries::{self, Compaction, Stamp};
use grove_tree::turns::{TurnAttribution, header_line, turn_lines};
use grove_tree::{AppendError, Indexer, LogError, LogIndex};
use serde_json::{Value, json};

/// The maximum size of an unknown event that is kept: snapshots of a whole conversation are not.
const MAX_EVENT_BYTES: usize = 64 << 10;

/// An error of writing a log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("the session's log could not be written: {0}")]
    Io(#[from] io::Error),
    #[error("cannot create the session's log: {0}")]
    Log(#[from] LogError),
    #[error("an entry of the session does not fit into its log: {0}")]
    Append(#[from] AppendError),
}

/// A log that is being written.
pub(super) struct ImportedLogWriter<W> {
    out: W,
    index: LogIndex,
    session: SessionId,
    agent: AgentId,
    /// The time of the last event.
    last: Timestamp,
    /// The model of the last turn.
    model: Option<ModelId>,
    made: u32,
    /// The parent of the next entry.
    leaf: Option<String>,
    /// The last entry of each turn: a later turn may follow any of them.
    ends: Vec<Option<String>>,
    omissions: Omissions,
}

/// The numbers of omitted parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Omissions {
    /// Conversations of subagents.
    pub(super) chats: usize,
    /// Events that were too large.
    pub(super) events: usize,
}

/// A completed log.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenLog {
    pub(super) turns: usize,
    pub(super) omissions: Omissions,
}

/// An entry beside a turn.
#[derive(Debug, PartialEq)]
enum SideEntry {
    Compaction {
        summary: String,
        tokens: u64,
        details: Value,
        place: CompactionPosition,
    },
    /// Any other event.
    Event(Value),
}

/// The position of a compaction within its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompactionPosition {
    /// The turn continued after it, so the whole turn is kept.
    Within,
    Behind,
}

impl<W: Write> ImportedLogWriter<W> {
    /// Starts a log.
    pub(super) fn begin(mut out: W, session: &Session) -> Result<Self, WriteError> {
        let header = header_line(session);
        out.write_all(&header)?;
        let mut indexer = Indexer::new();
        indexer.feed(&header);
        Ok(Self {
            out,
            index: indexer.finish()?,
            session: session.id.clone(),
            agent: session.agent.clone(),
            last: session.created_at,
            model: None,
            made: 0,
            leaf: None,
            ends: Vec::new(),
            omissions: Omissions::default(),
        })
    }

    /// Writes a turn, and the entries beside it.
    pub(super) fn turn(&mut self, mut foreign: TranscriptTurn) -> Result<(), WriteError> {
        // The context that the tool adds for each turn is not part of the conversation.
        foreign.context.clear();
        foreign.rounds.clear();
        let (parts, side_entries) = split_parts(std::mem::take(&mut foreign.parts));
        foreign.parts = parts;
        match foreign.follows {
            TurnParent::Previous => {}
            TurnParent::Turn(turn) => {
                let end = usize::try_from(turn).ok().and_then(|turn| self.ends.get(turn));
                // A parent that was not written yet is ignored.
                self.leaf = end.cloned().unwrap_or(self.leaf.take());
            }
            TurnParent::Nothing => self.leaf = None,
        }
        let converted = core_turn(&foreign, self.last);
        self.omissions.chats += converted.chats.len();
        self.write_model(converted.turn.message.model.clone())?;
        let first = self.index.len();
        self.write_turn(&converted.turn)?;
        // Counted from the end, so that the cost does not depend on the length of the log.
        let behind = self.index.len().checked_sub(first + 1);
        let first = behind.and_then(|behind| self.index.entries().nth_back(behind));
        let first = first.map(|first| self.index.id(first).into_owned());
        for side_entry in side_entries {
            self.write_side_entry(side_entry, first.as_deref())?;
        }
        self.ends.push(self.leaf.clone());
        Ok(())
    }

    /// Writes a fact about the session.
    pub(super) fn note(&mut self, data: &Value) -> Result<(), WriteError> {
        let (id, leaf) = (self.new_id(), self.leaf.clone());
        let stamp = Stamp { id: &id, parent: leaf.as_deref(), at: self.last };
        self.line(&entries::info(stamp, data))
    }

    /// Sets the name of the session.
    pub(super) fn name(&mut self, name: &str) -> Result<(), WriteError> {
        let (id, leaf) = (self.new_id(), self.leaf.clone());
        let stamp = Stamp { id: &id, parent: leaf.as_deref(), at: self.last };
        self.line(&entries::session_info(stamp, name))
    }

    pub(super) fn finish(mut self) -> Result<WrittenLog, WriteError> {
        self.out.flush()?;
        Ok(WrittenLog { turns: self.ends.len(), omissions: self.omissions })
    }

    /// Writes a change of the model.
    fn write_model(&mut self, model: Option<ModelId>) -> Result<(), WriteError> {
        let Some(model) = model else { return Ok(()) };
        let before = self.model.replace(model.clone());
        if before.is_none_or(|before| before == model) {
            return Ok(());
        }
        let (id, leaf) = (self.new_id(), self.leaf.clone());
        let stamp = Stamp { id: &id, parent: leaf.as_deref(), at: self.last };
        self.line(&entries::model_change(stamp, self.agent.as_str(), model.as_str()))
    }

    fn write_turn(&mut self, turn: &Turn) -> Result<(), WriteError> {
        let model: Option<&ModelId> = turn.message.model.as_ref();
        let (session, agent) = (self.session.clone(), self.agent.clone());
        let origin = TurnAttribution { session: &session, agent: &agent, model, spent: None, seen_end: None };
        let lines = turn_lines(turn, origin, self.leaf.as_deref(), &|id| self.index.find(id).is_some());
        for line in lines.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.line(line)?;
        }
        self.last = self.last.max(turn.ended_at);
        Ok(())
    }

    fn write_side_entry(&mut self, side_entry: SideEntry, first: Option<&str>) -> Result<(), WriteError> {
        let (id, leaf) = (self.new_id(), self.leaf.clone());
        let stamp = Stamp { id: &id, parent: leaf.as_deref(), at: self.last };
        let line = match side_entry {
            SideEntry::Compaction { summary, tokens, details, place } => {
                let first_kept = first.filter(|_| place == CompactionPosition::Within);
                let compaction = Compaction {
                    summary: &summary,
                    first_kept,
                    tokens_before: tokens,
                    details: Some(&details),
                    origin: entries::SummaryOrigin::Host,
                };
                entries::compaction(stamp, &compaction)
            }
            SideEntry::Event(event) => {
                let message = event.get("type").and_then(Value::as_str).unwrap_or("an event").to_owned();
                let data = json!({"infoType": "event", "message": message, "event": event});
                let line = entries::info(stamp, &data);
                if line.len() > MAX_EVENT_BYTES {
                    self.omissions.events += 1;
                    return Ok(());
                }
                line
            }
        };
        self.line(&line)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), WriteError> {
        self.out.write_all(line)?;
        self.out.write_all(b"\n")?;
        self.index.append(line)?;
        self.leaf = self.index.leaf().map(|leaf| self.index.id(leaf).into_owned());
        Ok(())
    }

    fn new_id(&mut self) -> String {
        loop {
            self.made = self.made.wrapping_add(1);
            // Spread out, so that the beginning of an id is enough to name it.
            let id = format!("{:08x}", self.made.wrapping_mul(0x9e37_79b9));
            if self.index.find(&id).is_none() {
                return id;
            }
        }
    }
}

/// Splits parts into those that a turn shows, and the entries beside it.
fn split_parts(parts: Vec<TranscriptPart>) -> (Vec<TranscriptPart>, Vec<SideEntry>) {
    let is_said = |part: &TranscriptPart| !matches!(part, TranscriptPart::Notice(_) | TranscriptPart::Raw(_));
    let last_said = parts.iter().rposition(is_said);
    let (mut shown, mut side_entries) = (Vec::new(), Vec::new());
    for (at, part) in parts.into_iter().enumerate() {
        let place = if last_said > Some(at) { CompactionPosition::Within } else { CompactionPosition::Behind };
        match part {
            TranscriptPart::Raw(value) => side_entries.push(SideEntry::Event(value)),
            TranscriptPart::Notice(notice) => match side_entry(notice, place) {
                Ok(side_entry) => side_entries.push(side_entry),
                Err(notice) => shown.push(TranscriptPart::Notice(notice)),
            },
            part => shown.push(part),
        }
    }
    (shown, side_entries)
}

/// The entry for a notice, or the notice itself if people should see it.
fn side_entry(notice: Notice, place: CompactionPosition) -> Result<SideEntry, Notice> {
    let failed = notice.raw.get("success") == Some(&Value::Bool(false));
    match notice.kind.as_str() {
        "session.compaction_complete" if !notice.text.is_empty() && !failed => {
            let tokens = notice.raw.get("preCompactionTokens").and_then(Value::as_u64).unwrap_or(0);
            let details = ["checkpointNumber", "checkpointPath"].into_iter().filter_map(|name| {
                let value = notice.raw.get(name).filter(|value| !value.is_null())?;
                Some((name.to_owned(), value.clone()))
            });
            let details = Value::Object(details.collect());
            Ok(SideEntry::Compaction { summary: notice.text, tokens, details, place })
        }
        // The end of the turn has the same information.
        "abort" | "session.error" => Ok(SideEntry::Event(event_of(notice))),
        _ if notice.text.is_empty() => Ok(SideEntry::Event(event_of(notice))),
        _ => Err(notice),
    }
}

fn event_of(notice: Notice) -> Value {
    let mut event = notice.raw;
    event.insert("type".to_owned(), notice.kind.into());
    if !notice.text.is_empty() {
        event.insert("text".to_owned(), notice.text.into());
    }
    Value::Object(event)
}
