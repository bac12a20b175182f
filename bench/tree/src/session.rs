//! A session's folder as a host stores it: a long Grove log, and the files beside it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use grove_core::*;
use grove_testkit::read_only_turn;
use grove_tree::turns::{TurnAttribution, header_line, turn_lines};
use serde_json::json;

pub(crate) const URI: &str = "scripted:/long";
const ID: &str = "long";
/// The number of words of an answer and of a result.
const ANSWER: usize = 50;
const RESULT: usize = 25;

/// Writes a session with at least this many entries and bytes. Returns its actual numbers.
pub(crate) fn write(sessions: &Path, entries: usize, bytes: u64) -> Result<(usize, u64)> {
    let folder = sessions.join(ID);
    fs::create_dir_all(&folder)?;
    let new = NewSession {
        id: ID.into(),
        uri: URI.into(),
        agent: "scripted".into(),
        model: None,
        working_directories: Vec::new(),
        config: None,
        store: StoreName::default(),
    };
    let session = Session::new(&new, Timestamp(1_767_322_800_000));
    let mut out = BufWriter::with_capacity(1 << 20, File::create(folder.join("events.jsonl"))?);
    let header = header_line(&session);
    out.write_all(&header)?;
    let mut ids: HashSet<String> = HashSet::new();
    let mut parent: Option<String> = None;
    let (mut count, mut length) = (0, header.len() as u64);
    for number in 0.. {
        if count >= entries && length >= bytes {
            break;
        }
        let origin =
            TurnAttribution { session: &session.id, agent: &session.agent, model: None, spent: None, seen_end: None };
        let lines = turn_lines(&turn(number), origin, parent.as_deref(), &|id| ids.contains(id));
        for line in lines.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let entry: serde_json::Value = serde_json::from_slice(line)?;
            ids.extend(entry["id"].as_str().map(ToOwned::to_owned));
            count += 1;
        }
        out.write_all(&lines.bytes)?;
        length += lines.bytes.len() as u64;
        parent = lines.leaf;
    }
    out.into_inner()?.sync_all()?;
    let file = json!({
        "version": 1, "seq": 0, "disposed": false, "failed": false, "id": ID, "uri": URI, "provider": "scripted",
        "title": "Long", "lifecycle": "ready", "model": null, "workingDirectories": [], "isRead": true,
        "isArchived": false, "createdAt": session.created_at, "modifiedAt": session.created_at,
        "chat": {"title": "Long", "steering": null, "queued": [], "draft": null, "modifiedAt": session.created_at},
    });
    fs::write(folder.join("session.json"), file.to_string())?;
    Ok((count, length))
}

/// Five entries.
fn turn(number: u64) -> Turn {
    read_only_turn(number, Timestamp(1_767_322_800_000 + number * 1_000), RESULT, ANSWER)
}
