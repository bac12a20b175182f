//! A long session in each contestant's format: the same turns, the same events.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use grove_core::*;
use grove_testkit::read_only_turn;
use grove_tree::turns::{TurnAttribution, header_line, turn_lines};
use grove_wire::copilot::project;
use serde::Serialize;
use serde_json::json;

use crate::job::Contestant;

const BEGAN: Timestamp = Timestamp(1_767_322_800_000);
/// The number of words of an answer.
const ANSWER: usize = 50;
/// The number of words of a tool's output: in sessions with many events, and in those with many bytes.
const SHORT: usize = 25;
const LONG: usize = 3_000;

/// The length of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    /// At least this many events, of a few hundred bytes each.
    Events(usize),
    /// At least this many bytes, with long tool output.
    Bytes(u64),
}

/// A stored session, in the SDK's terms.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stored {
    pub(crate) session: String,
    pub(crate) events: usize,
    /// The ids of the first and the last event.
    pub(crate) first: String,
    pub(crate) last: String,
    /// The size of its log.
    #[serde(skip)]
    pub(crate) bytes: u64,
}

/// Writes a session into the folder of a contestant's sessions.
pub(crate) fn write(contestant: Contestant, sessions: &Path, number: u32, length: Length) -> Result<Stored> {
    let id = format!("00000000-0000-4000-8000-{number:012}");
    let folder = sessions.join(&id);
    fs::create_dir_all(&folder)?;
    let new = NewSession {
        id: id.as_str().into(),
        uri: format!("scripted:/{id}").into(),
        agent: "scripted".into(),
        model: None,
        working_directories: Vec::new(),
        config: None,
        store: StoreName::default(),
    };
    let session = Session::new(&new, BEGAN);
    let turns = turns(&session, length);
    let out = BufWriter::with_capacity(1 << 20, File::create(folder.join("events.jsonl"))?);
    let bytes = match contestant {
        Contestant::Grove => {
            fs::write(folder.join("session.json"), beside(&session).to_string())?;
            write_tree(out, &session, &turns)?
        }
        Contestant::Copilot => write_events(out, &session, &turns)?,
    };
    let mut ids = project::history(&session, turns.iter().map(Arc::as_ref), &[]).map(|event| event.id.to_string());
    let first = ids.next().context("a session has a first event")?;
    let (more, last) = ids.fold((0, first.clone()), |(count, _), id| (count + 1, id));
    Ok(Stored { session: id, events: more + 1, first, last, bytes })
}

fn turns(session: &Session, length: Length) -> Vec<Arc<Turn>> {
    let words = match length {
        Length::Events(_) => SHORT,
        Length::Bytes(_) => LONG,
    };
    let mut turns = Vec::new();
    let (mut events, mut bytes) = (1, 0);
    for number in 0.. {
        let is_over = match length {
            Length::Events(wanted) => events >= wanted,
            Length::Bytes(wanted) => bytes >= wanted,
        };
        if is_over {
            break;
        }
        let turn = Arc::new(turn(number, words));
        bytes += lines(session, &turn, None, &HashSet::new()).bytes.len() as u64;
        events += project::history(session, [turn.as_ref()], &[]).count() - 1;
        turns.push(turn);
    }
    turns
}

/// Grove's own log: a tree of entries.
fn write_tree(mut out: BufWriter<File>, session: &Session, turns: &[Arc<Turn>]) -> Result<u64> {
    let header = header_line(session);
    out.write_all(&header)?;
    let mut length = header.len() as u64;
    let mut ids = HashSet::new();
    let mut parent: Option<String> = None;
    for turn in turns {
        let lines = lines(session, turn, parent.as_deref(), &ids);
        for line in lines.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let entry: Entry = serde_json::from_slice(line)?;
            ids.insert(entry.id);
        }
        out.write_all(&lines.bytes)?;
        length += lines.bytes.len() as u64;
        parent = lines.leaf;
    }
    out.into_inner()?.sync_all()?;
    Ok(length)
}

/// The needed part of an entry.
#[derive(serde::Deserialize)]
struct Entry {
    id: String,
}

fn lines(session: &Session, turn: &Turn, parent: Option<&str>, ids: &HashSet<String>) -> grove_tree::turns::LogLines {
    let origin =
        TurnAttribution { session: &session.id, agent: &session.agent, model: None, spent: None, seen_end: None };
    turn_lines(turn, origin, parent, &|id| ids.contains(id))
}

/// The CLI's format: the events themselves.
fn write_events(mut out: BufWriter<File>, session: &Session, turns: &[Arc<Turn>]) -> Result<u64> {
    let mut length = 0;
    for event in project::history(session, turns.iter().map(Arc::as_ref), &[]) {
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        out.write_all(&line)?;
        length += line.len() as u64;
    }
    out.into_inner()?.sync_all()?;
    Ok(length)
}

/// The content of Grove's file beside the log.
fn beside(session: &Session) -> serde_json::Value {
    let at = session.created_at;
    json!({
        "version": 1, "seq": 0, "disposed": false, "failed": false, "id": session.id, "uri": session.uri,
        "provider": session.agent, "title": "Long", "lifecycle": "ready", "model": null, "workingDirectories": [],
        "isRead": true, "isArchived": false, "createdAt": at, "modifiedAt": at,
        "chat": {"title": "Long", "steering": null, "queued": [], "draft": null, "modifiedAt": at},
    })
}

fn turn(number: u64, output: usize) -> Turn {
    read_only_turn(number, Timestamp(BEGAN.0 + number * 1_000), output, ANSWER)
}
