//! Migrates versions 1 and 2 to version 3.
//!
//! A migration is a function from a file's bytes to a file's bytes. The loader of an old log keeps the result in
//! memory. At the first write it writes the result to another file and renames that to the old name. Lines that cannot
//! be read are copied unchanged, so that nothing is lost and line numbers stay.

use crate::error::LogError;
use crate::header::{FormatVersion, VERSION, is_type};
use crate::object::JsonObject;
use crate::object::quoted;

/// A migrated log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The version of the file.
    pub from: u32,
    /// The contents in version 3.
    pub bytes: Vec<u8>,
}

/// Migrates a log of version 1 or 2 to version 3; `None` if it has version 3 already. `new_id` makes the ids of version
/// 1's entries, one call for each in file order.
pub fn migrate(bytes: &[u8], new_id: &mut dyn FnMut() -> String) -> Result<Option<Migration>, LogError> {
    let mut lines = MigrationLines::split(bytes);
    let Some(version) = lines.version()? else { return Ok(None) };
    let from = match version {
        FormatVersion::One => {
            lines.give_ids(new_id);
            1
        }
        FormatVersion::Two => 2,
        FormatVersion::Three | FormatVersion::Unknown(_) => return Ok(None),
    };
    lines.rename_hook_messages();
    Ok(Some(Migration { from, bytes: lines.render() }))
}

/// A file's lines.
struct MigrationLines<'a> {
    lines: Vec<MigrationLine<'a>>,
    /// True if the last line has a line feed.
    ends_whole: bool,
}

enum MigrationLine<'a> {
    /// Copied unchanged: a blank or bad line, or oh-my-pi's title line.
    Raw(&'a [u8]),
    /// JSON that is not an object. It counts as a line.
    Value(&'a [u8]),
    JsonObject {
        raw: &'a [u8],
        object: JsonObject<'a>,
        changed: bool,
    },
}

impl<'a> MigrationLines<'a> {
    fn split(bytes: &'a [u8]) -> Self {
        let ends_whole = bytes.is_empty() || bytes.ends_with(b"\n");
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let mut before_header = true;
        let lines = bytes.split(|byte| *byte == b'\n').map(|raw| match JsonObject::parse(raw) {
            Some(object) if before_header && object.is("type", "title") => MigrationLine::Raw(raw),
            Some(object) => {
                before_header = false;
                MigrationLine::JsonObject { raw, object, changed: false }
            }
            None => match serde_json::from_slice::<Option<serde::de::IgnoredAny>>(raw) {
                Ok(Some(_)) => MigrationLine::Value(raw),
                Ok(None) | Err(_) => MigrationLine::Raw(raw),
            },
        });
        Self { lines: lines.collect(), ends_whole }
    }

    /// The version in the header, if the first readable line is one.
    fn version(&self) -> Result<Option<FormatVersion>, LogError> {
        let first = self.lines.iter().position(|line| !matches!(line, MigrationLine::Raw(_)));
        let Some(first) = first else { return Ok(None) };
        match &self.lines[first] {
            MigrationLine::JsonObject { object, .. } if is_header(object) => {
                match FormatVersion::of(object.get("version")) {
                    FormatVersion::Unknown(version) => Err(LogError::UnknownVersion { version }),
                    version => Ok(Some(version)),
                }
            }
            _ => Err(LogError::NoHeader { line: first as u64 + 1 }),
        }
    }

    /// Version 1 to 2: entries get ids and parents (the previous entry), and a compaction names its first kept entry by
    /// id.
    fn give_ids(&mut self, new_id: &mut dyn FnMut() -> String) {
        let counted: Vec<usize> =
            (0..self.lines.len()).filter(|at| !matches!(self.lines[*at], MigrationLine::Raw(_))).collect();
        let mut parent = b"null".to_vec();
        for at in 0..self.lines.len() {
            let MigrationLine::JsonObject { object, changed, .. } = &mut self.lines[at] else { continue };
            if is_header(object) {
                continue;
            }
            let id = quoted(new_id().as_bytes());
            object.set("id", id.clone());
            object.set("parentId", std::mem::replace(&mut parent, id));
            *changed = true;
            let index = object.get("firstKeptEntryIndex").and_then(number).filter(|_| object.is("type", "compaction"));
            let Some(index) = index else { continue };
            // Lines are counted in the old numbering: later entries have no new id yet.
            let kept_id = whole(index).and_then(|index| counted.get(index)).and_then(|line| match &self.lines[*line] {
                MigrationLine::JsonObject { object, .. } if !is_header(object) => {
                    Some(object.get("id").map(<[u8]>::to_vec))
                }
                _ => None,
            });
            let MigrationLine::JsonObject { object, .. } = &mut self.lines[at] else { continue };
            match kept_id {
                Some(Some(id)) => object.set("firstKeptEntryId", id),
                Some(None) => object.remove("firstKeptEntryId"),
                None => {}
            }
            object.remove("firstKeptEntryIndex");
        }
    }

    /// Version 2 to 3: messages of hooks become custom messages.
    fn rename_hook_messages(&mut self) {
        for line in &mut self.lines {
            let MigrationLine::JsonObject { object, changed, .. } = line else { continue };
            if is_header(object) {
                object.set("version", VERSION.to_string());
                *changed = true;
                continue;
            }
            let renamed = object.get("message").filter(|_| object.is("type", "message")).and_then(|message| {
                let mut message = JsonObject::parse(message).filter(|message| message.is("role", "hookMessage"))?;
                message.set("role", br#""custom""#);
                Some(message.render())
            });
            if let Some(message) = renamed {
                object.set("message", message);
                *changed = true;
            }
        }
    }

    fn render(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            match line {
                MigrationLine::JsonObject { object, changed: true, .. } => out.extend(object.render()),
                MigrationLine::JsonObject { raw, .. } | MigrationLine::Raw(raw) | MigrationLine::Value(raw) => {
                    out.extend_from_slice(raw)
                }
            }
            if at + 1 < self.lines.len() || self.ends_whole {
                out.push(b'\n');
            }
        }
        out
    }
}

fn is_header(object: &JsonObject<'_>) -> bool {
    is_type(object.get("type"), "session")
}

fn number(value: &[u8]) -> Option<f64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn whole(number: f64) -> Option<usize> {
    (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as usize)
}
