//! Scanning lines beside the indexer, in a second thread.
//!
//! Most of the time of reading a log is scanning its lines, and a line can be scanned without the lines before it.
//! Numbering its ids cannot, so the indexer adds the scanned entries in their order.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use super::{GROVE_PREFIX, LEAF_MARK, MAX_LINE};
use crate::fields::EntryFields;
use crate::header::is_type;
use crate::index::{NO_TIME, Owner};
use crate::kind::EntryType;
use crate::role::Role;
use crate::scan::{Scanner, Shape, text_of};
use crate::time::milliseconds;

/// The least bytes that are worth a second thread, if there is a processor for it.
const LEAST_BYTES: usize = 128 << 10;
/// The most bytes that are scanned at a time, by both threads together.
const MOST_BYTES: usize = 1 << 20;

/// The fields of an entry that are indexed.
#[derive(Debug)]
pub(super) struct ScannedEntry<'a> {
    pub(super) id: Cow<'a, [u8]>,
    pub(super) parent: ScannedParent<'a>,
    pub(super) time: i64,
    pub(super) kind: EntryType,
    pub(super) owner: Owner,
    pub(super) is_leaf_mark: bool,
    pub(super) role: Option<Role>,
}

/// The parent that an entry names.
#[derive(Debug)]
pub(super) enum ScannedParent<'a> {
    None,
    Id(Cow<'a, [u8]>),
    Invalid,
}

/// A line without its line feed, and its entry if the indexer needs nothing else of it.
#[derive(Debug)]
pub(super) struct ScannedLine<'a> {
    pub(super) line: &'a [u8],
    pub(super) entry: Option<ScannedEntry<'a>>,
}

impl<'a> ScannedEntry<'a> {
    pub(super) fn of(id: Cow<'a, [u8]>, parts: &EntryFields<'a>) -> Self {
        let fields = &parts.line;
        let parent = match fields.parent.map(|value| (value, text_of(value))) {
            None | Some((b"null", _)) => ScannedParent::None,
            Some((_, None)) => ScannedParent::Invalid,
            Some((_, Some(parent))) if parent.is_empty() => ScannedParent::None,
            Some((_, Some(parent))) => ScannedParent::Id(parent),
        };
        let kind = fields.kind.and_then(text_of).map_or(EntryType::Unknown, |kind| EntryType::named(&kind));
        let custom_type = fields.custom_type.filter(|_| kind == EntryType::Custom).and_then(text_of);
        let is_own = custom_type.as_ref().is_some_and(|name| name.starts_with(GROVE_PREFIX.as_bytes()));
        Self {
            id,
            parent,
            time: fields.timestamp.and_then(milliseconds).unwrap_or(NO_TIME),
            kind,
            owner: if is_own { Owner::Grove } else { Owner::Tree },
            is_leaf_mark: custom_type.as_deref() == Some(LEAF_MARK.as_bytes()),
            role: (kind == EntryType::Message).then(|| Role::of(&parts.message)),
        }
    }

    /// The entry of a sound line. `None` if the line is anything else, or has an effect beyond its entry.
    fn of_line(scanner: &mut Scanner, line: &'a [u8]) -> Option<Self> {
        if line.len() > MAX_LINE {
            return None;
        }
        let mut parts = EntryFields::default();
        let is_object = parts.scan_utf8(scanner, line) == Ok(Shape::JsonObject);
        if !is_object || is_type(parts.line.kind, "session") {
            return None;
        }
        let id = parts.line.id.and_then(text_of).filter(|id| !id.is_empty())?;
        let entry = Self::of(id, &parts);
        let has_effects = entry.is_leaf_mark
            || matches!(entry.kind, EntryType::Label | EntryType::SessionInfo | EntryType::TitleChange);
        (!has_effects).then_some(entry)
    }
}

/// Scans complete lines, each with its line feed.
pub(super) fn scan_lines(bytes: &[u8]) -> Vec<ScannedLine<'_>> {
    let mut scanner = Scanner::default();
    let scan = |line| ScannedLine { line, entry: ScannedEntry::of_line(&mut scanner, line) };
    lines(bytes).map(scan).collect()
}

/// Complete lines without their line feeds.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut begin = 0;
    memchr::memchr_iter(b'\n', bytes).map(move |end| {
        let line = &bytes[begin..end];
        begin = end + 1;
        line
    })
}

/// Complete lines at the beginning of the bytes, in two parts of about the same size; `None` if that is not worth it.
pub(super) fn halves(bytes: &[u8], least: usize) -> Option<(&[u8], &[u8])> {
    if bytes.len() < least {
        return None;
    }
    let piece = &bytes[..bytes.len().min(MOST_BYTES)];
    let end = memchr::memrchr(b'\n', piece)? + 1;
    let middle = end / 2 + memchr::memchr(b'\n', &piece[end / 2..end])? + 1;
    (middle < end).then(|| piece[..end].split_at(middle))
}

/// The least bytes that are worth a second thread on this machine.
pub(super) fn least_bytes() -> usize {
    static LEAST: OnceLock<usize> = OnceLock::new();
    *LEAST.get_or_init(|| match available_parallelism() {
        Ok(processors) if processors.get() > 1 => LEAST_BYTES,
        _ => usize::MAX,
    })
}
