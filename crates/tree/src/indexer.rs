//! Reads a log's lines, in chunks of any size, and builds its index.

use std::borrow::Cow;

use crate::damage::DamageKind;
use crate::error::LogError;
use crate::fields::{EntryFields, LineFields};
use crate::header::{FormatVersion, Header, could_become_header, is_type};
use crate::ids::IdNo;
use crate::index::{Ending, EntryRecord, Label, LeafMark, LogIndex, NO_TIME, NONE, Owner, Parent, ParsedLog};
use crate::kind::EntryType;
use crate::links::TreeLinks;
use crate::object::JsonObject;
use crate::role::Role;
use crate::scan::{Reason, ScanError, Scanner, Shape, lossy, text_of};
use crate::time::milliseconds;

/// The maximum length of a line. Longer ones are bad lines; the format's other readers cannot hold them either.
pub const MAX_LINE: usize = 512 << 20;

/// The prefix of the `customType` of Grove's own entries.
pub const GROVE_PREFIX: &str = "grove.";
/// The `customType` of a leaf mark: `{"data":{"leafId":"…"}}`, or `null` for before the first entry.
pub const LEAF_MARK: &str = "grove.leaf";

/// Builds an index from chunks. It holds at most one incomplete line.
#[derive(Debug)]
pub struct Indexer {
    parsed: ParsedLog,
    scanner: Scanner,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    /// The offset of that line.
    line_offset: u64,
    /// The number of skipped bytes of a line that is too long.
    too_long: u64,
    version: Option<FormatVersion>,
    /// oh-my-pi's title line, until the header comes.
    slot: Option<Vec<u8>>,
    /// The error that ended the reading.
    failed: Option<LogError>,
}

impl Default for Indexer {
    fn default() -> Self {
        Self::new()
    }
}

impl Indexer {
    pub fn new() -> Self {
        Self::on(ParsedLog::empty())
    }

    /// Continues an index with the bytes that were appended since. `None` if the index ends inside a line, or before
    /// the header.
    pub fn resume(index: LogIndex) -> Option<Self> {
        let whole = index.parsed.ending == Ending::Whole && index.parsed.header.is_some();
        whole.then(|| Self::on(index.parsed))
    }

    pub(crate) fn on(parsed: ParsedLog) -> Self {
        Self {
            scanner: Scanner::default(),
            partial: Vec::new(),
            line_offset: parsed.length,
            too_long: 0,
            version: parsed.header.as_ref().map(|_| FormatVersion::Three),
            slot: None,
            failed: None,
            parsed,
        }
    }

    /// The version in the header, once that was read. Files below version 3 have to be migrated
    /// ([`migrate`](crate::migrate::migrate)), so reading on is useless.
    pub fn version(&self) -> Option<u32> {
        self.version.as_ref().and_then(FormatVersion::number)
    }

    /// True if reading has failed, so that more bytes change nothing.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Reads the next bytes of the file.
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while self.failed.is_none() {
            let Some(end) = memchr::memchr(b'\n', rest) else { break };
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if self.too_long > 0 || self.partial.len() + line.len() > MAX_LINE {
                self.pass_too_long(line.len());
                self.end_too_long();
            } else if self.partial.is_empty() {
                self.line(line);
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.line(&whole);
                whole.clear();
                // Keeps the buffer for the next incomplete line, unless it is unusually large.
                if whole.capacity() <= 1 << 20 {
                    self.partial = whole;
                }
            }
            rest = after;
        }
        if self.failed.is_some() {
            return;
        }
        if self.too_long > 0 || self.partial.len() + rest.len() > MAX_LINE {
            self.pass_too_long(rest.len());
        } else {
            self.partial.extend_from_slice(rest);
        }
    }

    /// The index of all bytes read.
    pub fn finish(mut self) -> Result<LogIndex, LogError> {
        self.last_line();
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.parsed.header.is_none() {
            self.check_headerless()?;
        }
        let mut parsed = self.parsed;
        parsed.records.shrink_to_fit();
        let links = TreeLinks::of(&parsed);
        Ok(LogIndex { parsed, links })
    }

    /// Checks a file without a header: it is a log only if it ends before the header is complete.
    fn check_headerless(&mut self) -> Result<(), LogError> {
        if self.parsed.length == 0 {
            self.parsed.damage.add(1, 0, DamageKind::Empty, || "the file is empty: it has no header yet".to_owned());
            return Ok(());
        }
        let mut damage = self.parsed.damage.listed.iter();
        let only_cut_off = damage.all(|one| matches!(one.kind, DamageKind::TornTail | DamageKind::NoFinalNewline));
        let torn = matches!(self.parsed.ending, Ending::Torn { .. });
        let begins_well = match &self.slot {
            Some(_) => !torn || could_become_header(&self.partial),
            None => torn && self.line_offset == 0 && could_become_header(&self.partial),
        };
        if only_cut_off && begins_well { Ok(()) } else { Err(LogError::NothingReadable) }
    }

    /// Reads the bytes after the last line feed.
    fn last_line(&mut self) {
        if self.failed.is_some() {
            return;
        }
        if self.too_long > 0 {
            self.parsed.ending = Ending::Torn { offset: self.line_offset };
            return self.end_too_long();
        }
        let line = std::mem::take(&mut self.partial);
        let text = String::from_utf8_lossy(&line);
        match self.scanner.scan(text.as_bytes(), |_, _| {}) {
            Ok(Shape::Blank) => {
                self.parsed.length += line.len() as u64;
                if !line.is_empty() {
                    self.parsed.ending = Ending::NoNewline;
                }
            }
            Ok(Shape::JsonObject) => {
                let (number, offset) = (self.parsed.lines + 1, self.line_offset);
                self.line(&line);
                // There was no line feed to count.
                self.parsed.length -= 1;
                self.parsed.ending = Ending::NoNewline;
                self.parsed.damage.add(number, offset, DamageKind::NoFinalNewline, || {
                    "the last line has no line feed: appended text would continue it".to_owned()
                });
            }
            Ok(Shape::Null | Shape::Other) | Err(_) => {
                let offset = self.line_offset;
                self.parsed.lines += 1;
                self.parsed.length += line.len() as u64;
                self.parsed.ending = Ending::Torn { offset };
                let length = line.len();
                self.parsed.damage.add(self.parsed.lines, offset, DamageKind::TornTail, || {
                    format!("the last line was cut off after {length} bytes")
                });
                self.partial = line;
            }
        }
    }

    fn pass_too_long(&mut self, more: usize) {
        self.too_long += (self.partial.len() + more) as u64;
        self.partial = Vec::new();
    }

    fn end_too_long(&mut self) {
        let length = std::mem::take(&mut self.too_long);
        self.parsed.lines += 1;
        self.parsed.damage.add(self.parsed.lines, self.line_offset, DamageKind::TooLong, || {
            format!("the line has {length} bytes, more than the limit of {MAX_LINE}")
        });
        let newline = u64::from(!matches!(self.parsed.ending, Ending::Torn { .. }));
        self.parsed.length += length + newline;
        self.line_offset = self.parsed.length;
    }

    /// The result so far, and the error that ended the reading.
    pub(crate) fn into_parsed(self) -> (ParsedLog, Option<LogError>) {
        (self.parsed, self.failed)
    }

    /// Reads a line without its line feed.
    pub(crate) fn line(&mut self, line: &[u8]) {
        self.parsed.lines += 1;
        let place = LinePosition { line: self.parsed.lines, offset: self.line_offset, length: line.len() };
        let text = match std::str::from_utf8(line) {
            Ok(_) => Cow::Borrowed(line),
            Err(_) => Cow::Owned(String::from_utf8_lossy(line).into_owned().into_bytes()),
        };
        if let Err(error) = self.fields(&text, place, matches!(text, Cow::Owned(_))) {
            self.failed = Some(error);
        }
        self.parsed.length += line.len() as u64 + 1;
        self.line_offset = self.parsed.length;
    }

    fn fields(&mut self, line: &[u8], place: LinePosition, replaced: bool) -> Result<(), LogError> {
        let mut parts = EntryFields::default();
        let shape = match parts.scan(&mut self.scanner, line) {
            Ok(shape) => shape,
            Err(ScanError { reason, at }) => {
                let reason = match reason {
                    // Inside a file, a line that ends too early was overwritten by something.
                    Reason::Ends => "it ends too early",
                    other => other.text(),
                };
                self.report(place, DamageKind::BadLine, || format!("{reason} (at its byte {at}): it is skipped"));
                return Ok(());
            }
        };
        match shape {
            Shape::Blank => return Ok(()),
            Shape::Null => {
                self.report(place, DamageKind::NotAnObject, || "the line is null: it is skipped".to_owned());
                return Ok(());
            }
            Shape::JsonObject | Shape::Other => {}
        }
        if replaced {
            self.report(place, DamageKind::NotText, || {
                "it has invalid UTF-8: it is read as replacement characters".to_owned()
            });
        }
        let fields = &parts.line;
        let is_header = shape == Shape::JsonObject && is_type(fields.kind, "session");
        if self.parsed.header.is_none() {
            if is_header {
                return self.header(line, fields);
            }
            if self.slot.is_none() && is_type(fields.kind, "title") && fields.id.is_none() {
                self.slot = Some(line.to_vec());
                return Ok(());
            }
            return Err(LogError::NoHeader { line: place.line });
        }
        if is_header {
            self.report(place, DamageKind::SecondHeader, || {
                "there is a header already: this one is ignored".to_owned()
            });
        } else if shape == Shape::Other {
            self.report(place, DamageKind::NotAnObject, || "it is JSON but not an object: it is skipped".to_owned());
        } else {
            self.entry(&parts, place)?;
        }
        Ok(())
    }

    fn header(&mut self, line: &[u8], fields: &LineFields<'_>) -> Result<(), LogError> {
        let version = FormatVersion::of(fields.version);
        if let FormatVersion::Unknown(version) = version {
            return Err(LogError::UnknownVersion { version });
        }
        self.version = Some(version);
        self.parsed.header = Some(Header { line: line.to_vec(), slot: self.slot.take() });
        Ok(())
    }

    fn entry(&mut self, parts: &EntryFields<'_>, place: LinePosition) -> Result<(), LogError> {
        let fields = &parts.line;
        let Some(id) = fields.id.and_then(text_of).filter(|id| !id.is_empty()) else {
            self.report(place, DamageKind::NoId, || "it has no id, so it is not an entry: it is skipped".to_owned());
            return Ok(());
        };
        let parent = match fields.parent.map(|value| (value, text_of(value))) {
            None | Some((b"null", _)) => Parent::None,
            Some((_, None)) => Parent::Invalid,
            Some((_, Some(parent))) if parent.is_empty() => Parent::None,
            Some((_, Some(parent))) => Parent::Id(self.parent_id(&parent)?),
        };
        let id = self.intern(&id)?;
        let number = u32::try_from(self.parsed.records.len()).map_err(|_| LogError::TooLarge)?;
        let kind = fields.kind.and_then(text_of).map_or(EntryType::Unknown, |kind| EntryType::named(&kind));
        let custom_type = fields.custom_type.filter(|_| kind == EntryType::Custom).and_then(text_of);
        let is_leaf_mark = custom_type.as_deref() == Some(LEAF_MARK.as_bytes());
        let is_own = custom_type.as_ref().is_some_and(|name| name.starts_with(GROVE_PREFIX.as_bytes()));
        self.parsed.records.push(EntryRecord {
            offset: place.offset,
            time: fields.timestamp.and_then(milliseconds).unwrap_or(NO_TIME),
            length: u32::try_from(place.length).map_err(|_| LogError::TooLarge)?,
            line: u32::try_from(place.line).unwrap_or(u32::MAX),
            id,
            parent,
            kind,
            owner: if is_own { Owner::Grove } else { Owner::Tree },
            is_leaf_mark,
            role: (kind == EntryType::Message).then(|| Role::of(&parts.message)),
        });
        self.parsed.note_entry(number);
        if is_own {
            if is_leaf_mark {
                self.leaf_mark(fields, place)?;
            }
            return Ok(());
        }
        self.parsed.leaf = LeafMark::LastEntry;
        match kind {
            EntryType::Label => self.label(fields, number)?,
            EntryType::SessionInfo => self.parsed.name = Some(trimmed(fields.name)),
            EntryType::TitleChange => self.parsed.name = Some(trimmed(fields.title)),
            _ => {}
        }
        Ok(())
    }

    fn label(&mut self, fields: &LineFields<'_>, number: u32) -> Result<(), LogError> {
        let Some(target) = fields.target.and_then(text_of) else { return Ok(()) };
        let target = self.intern(&target)?;
        match fields.label.and_then(lossy).filter(|label| !label.is_empty()) {
            Some(text) => {
                let label = self.parsed.labels.entry(target.0).or_insert_with(|| Label::new(number));
                (label.text, label.set_by) = (text, number);
            }
            None => drop(self.parsed.labels.remove(&target.0)),
        }
        Ok(())
    }

    fn leaf_mark(&mut self, fields: &LineFields<'_>, place: LinePosition) -> Result<(), LogError> {
        let Some(data) = fields.data.and_then(JsonObject::parse) else { return Ok(()) };
        let to = match data.get("leafId") {
            Some(b"null") => None,
            Some(value) => match text_of(value) {
                Some(id) => Some(self.intern(&id)?),
                None => return Ok(()),
            },
            None => return Ok(()),
        };
        let line = u32::try_from(place.line).unwrap_or(u32::MAX);
        self.parsed.leaf = LeafMark::Moved { to, line, offset: place.offset };
        Ok(())
    }

    /// Interns a parent's id. Most entries are children of the previous one.
    fn parent_id(&mut self, parent: &[u8]) -> Result<IdNo, LogError> {
        match self.parsed.records.last() {
            Some(last) if self.parsed.ids.get(last.id) == parent => Ok(last.id),
            _ => self.intern(parent),
        }
    }

    fn intern(&mut self, id: &[u8]) -> Result<IdNo, LogError> {
        let id = self.parsed.ids.intern(id)?;
        if id.0 as usize == self.parsed.entry_of.len() {
            self.parsed.entry_of.push(NONE);
        }
        Ok(id)
    }

    fn report(&mut self, place: LinePosition, kind: DamageKind, message: impl FnOnce() -> String) {
        self.parsed.damage.add(place.line, place.offset, kind, message);
    }
}

/// Indexes a whole file. Versions below 3 are refused: see [`open`](crate::open).
pub(crate) fn index(bytes: &[u8]) -> Result<LogIndex, LogError> {
    let mut indexer = Indexer::new();
    indexer.feed(bytes);
    indexer.finish()
}

/// The position of a line.
#[derive(Clone, Copy)]
struct LinePosition {
    line: u64,
    offset: u64,
    length: usize,
}

fn trimmed(value: Option<&[u8]>) -> String {
    value.and_then(lossy).map(|text| text.trim().to_owned()).unwrap_or_default()
}
