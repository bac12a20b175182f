//! New logs from existing ones: a branch, or everything.
//!
//! The index alone decides the contents of the new log, so they are known at once however long the old one is. Its
//! bytes are a list of chunks: most are ranges of the old log, copied unread.

use grove_core::Timestamp;
use grove_fs::FsError;

use crate::entries::{self, Stamp, text};
use crate::fields::EntryFields;
use crate::header::{Header, VERSION};
use crate::index::{Ending, EntryNo, LeafMark, LogIndex, Owner, Parent};
use crate::kind::EntryType;
use crate::object::JsonObject;
use crate::role::Role;
use crate::scan::text_of;
use crate::source::{LogSource, line};
use crate::time::iso;
use crate::tree_edit::{TreeEditError, find};

/// The maximum number of attempts to get an unused id.
const ID_TRIES: usize = 100;
/// The size of one read of the old log.
const CHUNK: u64 = 1 << 20;

/// The header of a new log.
#[derive(Clone, Copy, Debug)]
pub struct NewHeader<'a> {
    pub id: &'a str,
    pub at: Timestamp,
    pub cwd: &'a str,
    /// The parent session, as a path or an id. A session that exists only in memory has none.
    pub parent_session: Option<&'a str>,
    pub title: Option<&'a str>,
}

/// A log to be written.
#[derive(Clone, Debug)]
pub struct NewLog {
    /// The leaf of the new log.
    pub leaf: Option<String>,
    /// The number of entries.
    pub entries: usize,
    /// The bytes, in order.
    pub pieces: Vec<LogChunk>,
}

/// A chunk of a new log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogChunk {
    /// Complete lines that are in no other log.
    Lines(Vec<u8>),
    /// Complete lines of the old log, unchanged.
    Copy { offset: u64, length: u64 },
    /// A line of the old log with a change, and its line feed.
    Changed { entry: EntryNo, change: LineChange },
}

/// A change of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineChange {
    /// The new parent, with `None` inside for a root; `None` outside leaves it unchanged.
    parent: Option<Option<EntryNo>>,
    /// The new first kept entry of a compaction.
    anchor: Option<EntryNo>,
}

/// The reason why there is no new log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NewLogError {
    #[error(transparent)]
    TreeEdit(#[from] TreeEditError),
    #[error("every generated id is in use already: the source of ids is broken")]
    NoFreeId,
    #[error(transparent)]
    Fs(#[from] FsError),
}

/// Creates the log of a session with only the branch of an entry. Labels are removed from the branch and appended:
/// those that its entries have now, with the times at which they were set. `new_id` makes their ids; `header.at`
/// replaces a label's time that cannot be read.
pub fn branch_log(
    index: &LogIndex,
    source: &(impl LogSource + ?Sized),
    leaf: &str,
    header: &NewHeader<'_>,
    new_id: &mut dyn FnMut() -> String,
) -> Result<NewLog, NewLogError> {
    let leaf = find(index, leaf)?;
    let branch = index.branch(leaf);
    let is_label = |entry: EntryNo| index.kind(entry) == EntryType::Label;
    let branch_entries: Vec<EntryNo> = branch.iter().copied().filter(|entry| !is_label(*entry)).collect();
    let mut builder = NewLogBuilder::new(index, header);
    let mut above = None;
    // A compaction may name a label as its first kept entry, which is removed.
    let has_labels = branch_entries.len() < branch.len();
    let mut own = grove_entries(index, &branch_entries).into_iter().peekable();
    for entry in &branch_entries {
        let mut change = LineChange::default();
        if !has_parent(index, *entry, above) {
            change.parent = Some(above);
        }
        if has_labels && index.kind(*entry) == EntryType::Compaction {
            change.anchor = anchor(index, source, &branch, *entry)?;
        }
        builder.entry(*entry, change);
        above = Some(*entry);
        // Grove's own entries follow their parents.
        while let Some((own, from)) = own.next_if(|(_, from)| *from == *entry) {
            let change =
                LineChange { parent: (!has_parent(index, own, Some(from))).then_some(Some(from)), anchor: None };
            builder.entry(own, change);
        }
    }
    let mut last = above.map(|entry| index.id(entry).into_owned());
    for (target, label) in labels(index, &branch_entries) {
        let id = free_id(index, new_id)?;
        let set_by = EntryNo(label.set_by);
        let at = index.time(set_by).and_then(|time| u64::try_from(time).ok()).map_or(header.at, Timestamp);
        let stamp = Stamp { id: &id, parent: last.as_deref(), at };
        builder.new_line(entries::label(stamp, &index.id(target), Some(&label.text)));
        last = Some(id);
    }
    Ok(NewLog { leaf: last, entries: builder.entries, pieces: builder.pieces })
}

/// Creates the log of a session with only a header.
pub fn empty_log(header: &NewHeader<'_>) -> NewLog {
    let mut line = header_line(header);
    line.push(b'\n');
    NewLog { leaf: None, entries: 0, pieces: vec![LogChunk::Lines(line)] }
}

/// Creates a full copy of a session's log, line by line, under a new header.
pub fn fork_log(index: &LogIndex, header: &NewHeader<'_>) -> NewLog {
    let mut builder = NewLogBuilder::new(index, header);
    let first = index.entries().next().map(|entry| index.offset(entry));
    let end = match index.ending() {
        Ending::Whole | Ending::NoNewline => index.log_length(),
        Ending::Torn { offset } => offset,
    };
    if let Some(first) = first {
        builder.copy(first, end - first);
        if index.ending() == Ending::NoNewline {
            builder.pieces.push(LogChunk::Lines(b"\n".to_vec()));
        }
    }
    let leaf = index.leaf().map(|leaf| index.id(leaf).into_owned());
    NewLog { leaf, entries: index.len(), pieces: builder.pieces }
}

/// The index of [`fork_log`]'s result, derived from the old log's. `None` if the old log has damage: then the new one
/// has to be read.
pub fn fork_index(index: &LogIndex, header: &NewHeader<'_>) -> Option<LogIndex> {
    if index.ending() != Ending::Whole || !index.damage().is_empty() {
        return None;
    }
    let line = header_line(header);
    let first = index.entries().next();
    let (old_offset, old_line) = first.map(|first| (index.offset(first), index.line(first)))?;
    let moved = |offset: u64| offset - old_offset + line.len() as u64 + 1;
    let moved_line = |number: u64| number - old_line + 2;
    let mut new = index.clone();
    for record in &mut new.parsed.records {
        record.offset = moved(record.offset);
        record.line = u32::try_from(moved_line(u64::from(record.line))).ok()?;
    }
    if let LeafMark::Moved { line, offset, .. } = &mut new.parsed.leaf {
        *offset = moved(*offset);
        *line = u32::try_from(moved_line(u64::from(*line))).ok()?;
    }
    new.parsed.length = moved(index.log_length());
    new.parsed.lines = moved_line(index.parsed.lines);
    new.parsed.header = Some(Header { line, slot: None });
    Some(new)
}

impl NewLog {
    /// Passes all bytes to `to` in order, in parts of at most one MiB or one line.
    pub fn write(
        &self,
        index: &LogIndex,
        source: &(impl LogSource + ?Sized),
        mut to: impl FnMut(&[u8]) -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        for piece in &self.pieces {
            match piece {
                LogChunk::Lines(lines) => to(lines)?,
                LogChunk::Copy { offset, length } => {
                    let mut done = 0;
                    while done < *length {
                        let part = source.read(offset + done, (length - done).min(CHUNK) as usize)?;
                        if part.is_empty() {
                            return Err(crate::source::too_short());
                        }
                        to(&part)?;
                        done += part.len() as u64;
                    }
                }
                LogChunk::Changed { entry, change } => to(&change.apply(index, &line(index, source, *entry)?))?,
            }
        }
        Ok(())
    }
}

impl LineChange {
    /// Applies this change to a line of the old log; the result includes the line feed.
    pub fn apply(&self, index: &LogIndex, line: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(line);
        let mut object = JsonObject::parse(text.as_bytes()).unwrap_or_default();
        if let Some(parent) = self.parent {
            object.set("parentId", parent.map_or_else(|| b"null".to_vec(), |entry| raw_id(index, entry)));
        }
        if let Some(first) = self.anchor {
            object.set("firstKeptEntryId", raw_id(index, first));
        }
        let mut line = object.render();
        line.push(b'\n');
        line
    }
}

/// An entry's id in JSON.
fn raw_id(index: &LogIndex, entry: EntryNo) -> Vec<u8> {
    crate::object::quoted(index.parsed.ids.get(index.record(entry).id))
}

/// Joins chunks. Adjacent lines of the old log become one chunk.
struct NewLogBuilder<'a> {
    index: &'a LogIndex,
    pieces: Vec<LogChunk>,
    entries: usize,
}

impl<'a> NewLogBuilder<'a> {
    fn new(index: &'a LogIndex, header: &NewHeader<'_>) -> Self {
        Self { index, pieces: empty_log(header).pieces, entries: 0 }
    }

    fn entry(&mut self, entry: EntryNo, change: LineChange) {
        self.entries += 1;
        if change != LineChange::default() {
            self.pieces.push(LogChunk::Changed { entry, change });
            return;
        }
        let (offset, length) = (self.index.offset(entry), self.index.length(entry) as u64);
        // The last line of the old log may have no line feed.
        if offset + length < self.index.log_length() {
            self.copy(offset, length + 1);
        } else {
            self.copy(offset, length);
            self.pieces.push(LogChunk::Lines(b"\n".to_vec()));
        }
    }

    fn copy(&mut self, offset: u64, length: u64) {
        match self.pieces.last_mut() {
            Some(LogChunk::Copy { offset: from, length: so_far }) if *from + *so_far == offset => *so_far += length,
            _ => self.pieces.push(LogChunk::Copy { offset, length }),
        }
    }

    fn new_line(&mut self, mut line: Vec<u8>) {
        self.entries += 1;
        line.push(b'\n');
        self.pieces.push(LogChunk::Lines(line));
    }
}

fn header_line(header: &NewHeader<'_>) -> Vec<u8> {
    let mut object = JsonObject::default();
    object.set("type", text("session"));
    object.set("version", VERSION.to_string());
    object.set("id", text(header.id));
    object.set("timestamp", text(&iso(header.at)));
    object.set("cwd", text(header.cwd));
    for (name, value) in [("parentSession", header.parent_session), ("title", header.title)] {
        if let Some(value) = value {
            object.set(name, text(value));
        }
    }
    object.render()
}

/// True if an entry's own line names this parent.
fn has_parent(index: &LogIndex, entry: EntryNo, above: Option<EntryNo>) -> bool {
    match (index.record(entry).parent, above) {
        (Parent::None, None) => true,
        (Parent::Id(id), Some(above)) => index.record(above).id == id,
        (Parent::None | Parent::Invalid | Parent::Id(_), _) => false,
    }
}

/// The new first kept entry of a compaction that named a label: the next entry that stays.
fn anchor(
    index: &LogIndex,
    source: &(impl LogSource + ?Sized),
    branch: &[EntryNo],
    compaction: EntryNo,
) -> Result<Option<EntryNo>, FsError> {
    let line = line(index, source, compaction)?;
    let first = EntryFields::of(&line).line.first_kept.and_then(text_of).and_then(|id| index.find_bytes(&id));
    let Some(first) = first.filter(|first| index.kind(*first) == EntryType::Label) else { return Ok(None) };
    let Some(at) = branch.iter().position(|entry| *entry == first) else { return Ok(None) };
    Ok(branch[at..].iter().copied().find(|entry| index.kind(*entry) != EntryType::Label))
}

/// Labels of entries in the order in which they were set.
fn labels<'a>(index: &'a LogIndex, entries: &[EntryNo]) -> Vec<(EntryNo, &'a crate::index::Label)> {
    let labels = entries.iter().filter_map(|entry| Some((*entry, index.label_of(*entry)?)));
    let mut labels: Vec<_> = labels.collect();
    labels.sort_by_key(|(_, label)| label.since);
    labels
}

fn free_id(index: &LogIndex, new_id: &mut dyn FnMut() -> String) -> Result<String, NewLogError> {
    let mut ids = (0..ID_TRIES).map(|_| new_id());
    ids.find(|id| !id.is_empty() && index.find(id).is_none()).ok_or(NewLogError::NoFreeId)
}

/// Grove's own entries that belong to a branch, each with its ancestor on the branch, in the branch's order: children
/// of the branch, and entries on a turn that the branch left in the middle. Leaf marks are not included.
fn grove_entries(index: &LogIndex, branch: &[EntryNo]) -> Vec<(EntryNo, EntryNo)> {
    /// The position of an entry relative to the branch.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum BranchPosition {
        Unknown,
        Nothing,
        Branch(u32),
    }
    let mut from = vec![BranchPosition::Unknown; index.len()];
    for (place, entry) in branch.iter().enumerate() {
        from[entry.as_usize()] = BranchPosition::Branch(place as u32);
    }
    let mut found: Vec<(u32, EntryNo)> = Vec::new();
    let mut passed = Vec::new();
    let is_own = |entry: &EntryNo| index.record(*entry).owner == Owner::Grove && !index.record(*entry).is_leaf_mark;
    for own in index.entries().filter(|entry| is_own(entry) && index.canonical(*entry) == *entry) {
        // Walks up to the branch, or to the start of a turn elsewhere.
        let mut end = BranchPosition::Nothing;
        for entry in index.parent(own).into_iter().flat_map(|parent| index.links.ancestors(parent)) {
            end = from[entry.as_usize()];
            if end != BranchPosition::Unknown {
                break;
            }
            passed.push(entry);
            end = BranchPosition::Nothing;
            if index.role(entry) == Some(Role::User) {
                break;
            }
        }
        passed.drain(..).for_each(|entry| from[entry.as_usize()] = end);
        if let BranchPosition::Branch(place) = end {
            found.push((place, own));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(place, own)| (own, branch[place as usize])).collect()
}
