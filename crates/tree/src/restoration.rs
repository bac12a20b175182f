//! A damaged log, completed with the lines of one that was built again from elsewhere.
//!
//! Both are logs of the same chat, so that an entry has the same id in both. Neither needs to be sound.

use std::collections::{HashMap, HashSet};

use grove_core::TurnId;

use crate::header::{FormatVersion, is_type};
use crate::object::{JsonObject, field};
use crate::scan::text_of;
use crate::turns;

/// The log that counts for an entry that both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The one that was built again. Entries that only the damaged one has are kept from this byte of it on.
    Rebuilt { others_from: u64 },
    /// The damaged one, unless its entry has another parent. Entries that only it has are kept.
    Damaged,
}

/// Completes a damaged log. Lines that cannot be read are left out, and so are entries of a turn that was built again
/// under other ids: their own ids are damaged.
pub fn complete(damaged: &[u8], rebuilt: &[u8], trust: Trust) -> Vec<u8> {
    let (damaged, rebuilt) = (ReadableLines::of(damaged), ReadableLines::of(rebuilt));
    let places: HashMap<&[u8], usize> =
        rebuilt.entries.iter().enumerate().map(|(at, entry)| (entry.id.as_slice(), at)).collect();
    let turns: HashSet<TurnId> = rebuilt.entries.iter().filter_map(|entry| turns::turn_in(entry.line)).collect();
    let is_kept = |entry: &Entry<'_>| match trust {
        Trust::Rebuilt { others_from } if entry.offset < others_from => false,
        Trust::Rebuilt { .. } | Trust::Damaged => turns::turn_in(entry.line).is_none_or(|turn| !turns.contains(&turn)),
    };
    let headers = match trust {
        Trust::Rebuilt { .. } => [&rebuilt.header, &damaged.header],
        Trust::Damaged => [&damaged.header, &rebuilt.header],
    };
    let mut out = Vec::new();
    let mut push = |line: &[u8]| {
        out.extend_from_slice(line);
        out.push(b'\n');
    };
    headers.into_iter().find(|header| !header.is_empty()).into_iter().flatten().for_each(|line| push(line));
    let mut next = 0;
    for entry in &damaged.entries {
        match places.get(entry.id.as_slice()) {
            Some(&at) if at >= next => {
                rebuilt.entries[next..at].iter().for_each(|missing| push(missing.line));
                let same = &rebuilt.entries[at];
                let is_trusted = trust == Trust::Damaged && parent(entry.line) == parent(same.line);
                push(if is_trusted { entry.line } else { same.line });
                next = at + 1;
            }
            // It stands there already.
            Some(_) => {}
            None if is_kept(entry) => push(entry.line),
            None => {}
        }
    }
    rebuilt.entries[next..].iter().for_each(|missing| push(missing.line));
    out
}

/// The lines of a log before the first entry that `begins` picks, without those that cannot be read.
pub fn beginning(log: &[u8], begins: impl Fn(&str, Option<&TurnId>) -> bool) -> Vec<u8> {
    let lines = ReadableLines::of(log);
    let is_before =
        |entry: &&Entry<'_>| !begins(&String::from_utf8_lossy(&entry.id), turns::turn_in(entry.line).as_ref());
    let entries = lines.entries.iter().take_while(is_before).map(|entry| entry.line);
    joined(lines.header.iter().copied().chain(entries))
}

/// A log whose header is the one of another.
pub fn with_header_of(log: &[u8], other: &[u8]) -> Vec<u8> {
    let (log, other) = (ReadableLines::of(log), ReadableLines::of(other));
    let header = if other.header.is_empty() { &log.header } else { &other.header };
    let entries = log.entries.iter().map(|entry| entry.line);
    joined(header.iter().copied().chain(entries))
}

/// Lines as a log, each with its end.
fn joined<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    lines.flat_map(|line| [line, b"\n".as_slice()]).flatten().copied().collect()
}

struct Entry<'a> {
    id: Vec<u8>,
    offset: u64,
    line: &'a [u8],
}

/// The lines of a log that can be read.
struct ReadableLines<'a> {
    /// The header, and what may stand in front of it.
    header: Vec<&'a [u8]>,
    entries: Vec<Entry<'a>>,
}

impl<'a> ReadableLines<'a> {
    fn of(log: &'a [u8]) -> Self {
        let mut lines = Self { header: Vec::new(), entries: Vec::new() };
        let mut offset = 0;
        let mut title = None;
        for line in log.split(|byte| *byte == b'\n') {
            let (begins, content) = (offset, line.strip_suffix(b"\r").unwrap_or(line));
            offset += line.len() as u64 + 1;
            let Some(object) = JsonObject::parse(content) else { continue };
            if is_type(object.get("type"), "session") {
                let is_known = FormatVersion::of(object.get("version")).number() == Some(crate::VERSION);
                if lines.header.is_empty() && is_known {
                    lines.header.extend(title.take().into_iter().chain([content]));
                }
            } else if is_type(object.get("type"), "title") && lines.header.is_empty() {
                title = Some(content);
            } else if let Some(id) = object.text("id") {
                lines.entries.push(Entry { id: id.into_owned(), offset: begins, line: content });
            }
        }
        lines
    }
}

fn parent(line: &[u8]) -> Option<Vec<u8>> {
    field(line, "parentId").and_then(text_of).map(std::borrow::Cow::into_owned)
}
