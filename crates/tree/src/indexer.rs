//! Reads a log's lines, in chunks of any size, and builds its index.

mod scanned;

use std::thread;

use self::scanned::{ScannedEntry, ScannedLine, ScannedParent, halves, least_bytes, lines, scan_lines};

use crate::damage::DamageKind;
use crate::error::LogError;
use crate::fields::{EntryFields, LineFields};
use crate::header::{FormatVersion, Header, could_become_header, is_type};
use crate::ids::IdNo;
use crate::index::{Ending, EntryRecord, Label, LeafMark, LogIndex, NONE, Owner, Parent, ParsedLog};
use crate::kind::EntryType;
use crate::links::TreeLinks;
use crate::object::JsonObject;
use crate::scan::{Reason, ScanError, Scanner, Shape, lossy, text_of};

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

    /// Reads the next bytes of the file, in two threads if there are many.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.feed_in_parts(chunk, least_bytes());
    }

    /// Reads the next bytes. `least` bytes are worth a second thread.
    fn feed_in_parts(&mut self, chunk: &[u8], least: usize) {
        let mut rest = chunk;
        while self.failed.is_none() {
            // Lines before the header, and the end of a line that began in the last chunk, are read one by one.
            if self.partial.is_empty()
                && self.too_long == 0
                && self.parsed.header.is_some()
                && let Some((first, second)) = halves(rest, least)
            {
                self.lines_in_two(first, second);
                rest = &rest[first.len() + second.len()..];
                continue;
            }
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

    /// Reads complete lines: the second part is scanned while the first is read.
    fn lines_in_two(&mut self, first: &[u8], second: &[u8]) {
        let scanned = thread::scope(|scope| {
            let scanning = thread::Builder::new().spawn_scoped(scope, || scan_lines(second));
            self.lines(first);
            scanning.ok()?.join().ok()
        });
        // Without a second thread this one scans them.
        let Some(scanned) = scanned else { return self.lines(second) };
        for ScannedLine { line, entry } in scanned {
            if self.failed.is_some() {
                return;
            }
            match entry {
                Some(entry) => self.scanned_line(line, &entry),
                None => self.whole_line(line),
            }
        }
    }

    fn lines(&mut self, bytes: &[u8]) {
        for line in lines(bytes) {
            if self.failed.is_some() {
                return;
            }
            self.whole_line(line);
        }
    }

    /// Reads a line of any length.
    fn whole_line(&mut self, line: &[u8]) {
        if line.len() > MAX_LINE {
            self.pass_too_long(line.len());
            self.end_too_long();
        } else {
            self.line(line);
        }
    }

    fn scanned_line(&mut self, line: &[u8], entry: &ScannedEntry<'_>) {
        let place = self.begin_line(line);
        if let Err(error) = self.add(entry, place) {
            self.failed = Some(error);
        }
        self.end_line(line);
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
        let place = self.begin_line(line);
        let mut parts = EntryFields::default();
        let added = match parts.scan_utf8(&mut self.scanner, line) {
            Ok(shape) => self.fields(line, &parts, shape, place),
            Err(_) => self.unsound_line(line, place),
        };
        if let Err(error) = added {
            self.failed = Some(error);
        }
        self.end_line(line);
    }

    /// Reads a line that is not JSON in UTF-8. Invalid UTF-8 is replaced.
    fn unsound_line(&mut self, line: &[u8], place: LinePosition) -> Result<(), LogError> {
        let text = String::from_utf8_lossy(line);
        let mut parts = EntryFields::default();
        let shape = match parts.scan(&mut self.scanner, text.as_bytes()) {
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
        if matches!(shape, Shape::JsonObject | Shape::Other) {
            self.report(place, DamageKind::NotText, || {
                "it has invalid UTF-8: it is read as replacement characters".to_owned()
            });
        }
        self.fields(text.as_bytes(), &parts, shape, place)
    }

    fn begin_line(&mut self, line: &[u8]) -> LinePosition {
        self.parsed.lines += 1;
        LinePosition { line: self.parsed.lines, offset: self.line_offset, length: line.len() }
    }

    fn end_line(&mut self, line: &[u8]) {
        self.parsed.length += line.len() as u64 + 1;
        self.line_offset = self.parsed.length;
    }

    /// Reads a line by its fields.
    fn fields(
        &mut self,
        line: &[u8],
        parts: &EntryFields<'_>,
        shape: Shape,
        place: LinePosition,
    ) -> Result<(), LogError> {
        match shape {
            Shape::Blank => return Ok(()),
            Shape::Null => {
                self.report(place, DamageKind::NotAnObject, || "the line is null: it is skipped".to_owned());
                return Ok(());
            }
            Shape::JsonObject | Shape::Other => {}
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
            self.entry(parts, place)?;
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
        let scanned = ScannedEntry::of(id, parts);
        let number = self.add(&scanned, place)?;
        match (scanned.owner, scanned.kind) {
            (Owner::Grove, _) if scanned.is_leaf_mark => self.leaf_mark(fields, place)?,
            (Owner::Grove, _) => {}
            (Owner::Tree, EntryType::Label) => self.label(fields, number)?,
            (Owner::Tree, EntryType::SessionInfo) => self.parsed.name = Some(trimmed(fields.name)),
            (Owner::Tree, EntryType::TitleChange) => self.parsed.name = Some(trimmed(fields.title)),
            (Owner::Tree, _) => {}
        }
        Ok(())
    }

    /// Adds an entry, and returns its number.
    fn add(&mut self, scanned: &ScannedEntry<'_>, place: LinePosition) -> Result<u32, LogError> {
        let parent = match &scanned.parent {
            ScannedParent::None => Parent::None,
            ScannedParent::Invalid => Parent::Invalid,
            ScannedParent::Id(parent) => Parent::Id(self.parent_id(parent)?),
        };
        let id = self.intern(&scanned.id)?;
        let number = u32::try_from(self.parsed.records.len()).map_err(|_| LogError::TooLarge)?;
        self.parsed.records.push(EntryRecord {
            offset: place.offset,
            time: scanned.time,
            length: u32::try_from(place.length).map_err(|_| LogError::TooLarge)?,
            line: u32::try_from(place.line).unwrap_or(u32::MAX),
            id,
            parent,
            kind: scanned.kind,
            owner: scanned.owner,
            is_leaf_mark: scanned.is_leaf_mark,
            role: scanned.role,
        });
        self.parsed.note_entry(number);
        if scanned.owner == Owner::Tree {
            self.parsed.leaf = LeafMark::LastEntry;
        }
        Ok(number)
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

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/"}"#;

    /// Lines of every kind, sound and damaged.
    fn lines_of_every_kind() -> Vec<Vec<u8>> {
        let text = [
            r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02","message":{"role":"user","content":"x"}}"#,
            r#"{"type":"message","id":"\u0062","parentId":"\u0061","message":{"role":"assistant","content":[]}}"#,
            r#"{"type":"message","id":"c","parentId":7,"timestamp":12,"message":null}"#,
            r#"{"type":"label","id":"l","parentId":"b","targetId":"a","label":"here"}"#,
            r#"{"type":"session_info","id":"n","parentId":"l","name":" a name "}"#,
            r#"{"type":"title_change","id":"t","parentId":"n","title":"another"}"#,
            r#"{"type":"custom","id":"o","parentId":"t","customType":"grove.note"}"#,
            r#"{"type":"custom","id":"m","parentId":"t","customType":"grove.leaf","data":{"leafId":"a"}}"#,
            r#"{"type":"custom","id":"e","parentId":"gone","customType":"theirs"}"#,
            r#"{"type":"message","id":"a","parentId":"a"}"#,
            r#"{"type":"message","id":"","parentId":"a"}"#,
            r#"{"type":"session","version":3,"id":"s"}"#,
            r#"{"type":"message","id":"cut","par"#,
            "null",
            "[1]",
            "",
        ];
        let mut lines: Vec<Vec<u8>> = text.iter().map(|line| line.as_bytes().to_vec()).collect();
        lines.push(b"{\"type\":\"message\",\"id\":\"f\",\"parentId\":\"a\",\"x\":\"\xff\"}".to_vec());
        lines
    }

    fn parsed(bytes: &[u8], chunk: usize, least: usize) -> String {
        let mut indexer = Indexer::new();
        bytes.chunks(chunk).for_each(|chunk| indexer.feed_in_parts(chunk, least));
        format!("{:?}", indexer.finish())
    }

    #[test]
    fn two_threads_read_what_one_reads() {
        let lines = lines_of_every_kind();
        for seed in 0..60_usize {
            let mut log = format!("{HEADER}\n").into_bytes();
            for n in 0..40 {
                log.extend_from_slice(&lines[(seed * 7 + n * n * (seed % 5 + 1) + n) % lines.len()]);
                log.push(b'\n');
            }
            log.truncate(log.len() - seed % 3);
            let alone = parsed(&log, log.len(), usize::MAX);
            for chunk in [log.len(), 1_000, 333] {
                assert_eq!(parsed(&log, chunk, 0), alone, "{seed}, in chunks of {chunk}");
            }
        }
    }

    #[test]
    fn a_log_without_header_fails_alike() {
        let entry = r#"{"type":"message","id":"a","parentId":null}"#;
        let log = format!("{entry}\n{HEADER}\n{entry}\n{entry}\n");
        assert_eq!(parsed(log.as_bytes(), log.len(), 0), parsed(log.as_bytes(), log.len(), usize::MAX));
        assert!(parsed(log.as_bytes(), log.len(), 0).contains("NoHeader"));
    }
}
