//! The side index: an index as bytes, kept beside its log so that opening needs no full read.
//!
//! It can be deleted at any time. It identifies its log by the length and by checksums of the log's first and last
//! bytes. If those match, it is trusted for the part of the log that it covers, and only later bytes are read.
//! `docs/format.md` describes the format.

use std::collections::BTreeMap;

use crate::damage::{Damage, DamageKind, DamageList, MAX_DAMAGE};
use crate::header::Header;
use crate::ids::{IdNo, Ids};
use crate::index::{Ending, EntryRecord, Label, LeafMark, LogIndex, NONE, Owner, Parent, ParsedLog};
use crate::kind::EntryType;
use crate::links::TreeLinks;
use crate::role::Role;

const MAGIC: &[u8; 8] = b"groveidx";
const FORMAT: u32 = 2;
/// The number of bytes at the log's beginning, and at its end, that the checksums cover.
pub const PROBE: usize = 4096;

/// The reason why a side index cannot be used. The log is then read instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SideIndexError {
    #[error("it is not a side index of this version")]
    Foreign,
    #[error("it is damaged")]
    Damaged,
    #[error("it belongs to another log")]
    OtherLog,
}

/// A valid side index, not yet matched with its log.
#[derive(Debug)]
pub struct SideIndex {
    parsed: ParsedLog,
    head: u64,
    tail: u64,
}

/// The size of a record in a side index.
const RECORD_BYTES: usize = 35;

/// Renders a side index. `head` and `tail` are the log's first and last [`PROBE`] bytes (all of them if it has fewer).
/// `None` if the log does not end with a complete line, or has no header: such a log is about to be changed.
pub fn render(index: &LogIndex, head: &[u8], tail: &[u8]) -> Option<Vec<u8>> {
    let parsed = &index.parsed;
    let header = parsed.header.as_ref().filter(|_| parsed.ending == Ending::Whole)?;
    let mut out = SideIndexWriter(Vec::with_capacity(
        parsed.records.len() * RECORD_BYTES + parsed.ids.bytes.len() + parsed.ids.ends.len() * 4 + 4096,
    ));
    out.bytes(MAGIC);
    out.u32(FORMAT);
    out.u64(parsed.length);
    out.u64(parsed.lines);
    out.u64(checksum(head));
    out.u64(checksum(tail));
    out.blob(&header.line);
    out.option(header.slot.as_deref(), SideIndexWriter::blob);
    out.option(parsed.name.as_deref(), |out, name| out.blob(name.as_bytes()));
    match parsed.leaf {
        LeafMark::LastEntry => out.u8(0),
        LeafMark::Moved { to, line, offset } => {
            out.u8(if to.is_some() { 2 } else { 1 });
            out.u32(to.map_or(NONE, |id| id.0));
            out.u32(line);
            out.u64(offset);
        }
    }
    out.u32(parsed.labels.len() as u32);
    for (id, label) in &parsed.labels {
        out.u32(*id);
        out.u32(label.since);
        out.u32(label.set_by);
        out.blob(label.text.as_bytes());
    }
    out.u64(parsed.damage.unlisted);
    out.u32(parsed.damage.listed.len() as u32);
    for damage in &parsed.damage.listed {
        out.u64(damage.line);
        out.u64(damage.offset);
        out.u8(damage.kind as u8);
        out.blob(damage.message.as_bytes());
    }
    out.blob(&parsed.ids.bytes);
    out.u32(parsed.ids.ends.len() as u32);
    parsed.ids.ends.iter().for_each(|end| out.u32(*end));
    out.u32(parsed.records.len() as u32);
    for record in &parsed.records {
        out.u64(record.offset);
        out.u64(record.time as u64);
        out.u32(record.length);
        out.u32(record.line);
        out.u32(record.id.0);
        out.u32(match record.parent {
            Parent::None => NONE,
            Parent::Invalid => NONE - 1,
            Parent::Id(id) => id.0,
        });
        out.u8(record.kind as u8);
        out.u8(match (record.owner, record.is_leaf_mark) {
            (Owner::Tree, _) => 0,
            (Owner::Grove, false) => 1,
            (Owner::Grove, true) => 2,
        });
        out.u8(Role::number(record.role));
    }
    let sum = checksum(&out.0);
    out.u64(sum);
    Some(out.0)
}

impl SideIndex {
    /// Reads the bytes of a side index.
    pub fn parse(bytes: &[u8]) -> Result<Self, SideIndexError> {
        let mut reader = SideIndexReader(bytes);
        if reader.take(8) != Some(MAGIC) || reader.u32() != Some(FORMAT) {
            return Err(SideIndexError::Foreign);
        }
        let (body, sum) = bytes.split_last_chunk::<8>().ok_or(SideIndexError::Damaged)?;
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err(SideIndexError::Damaged);
        }
        Self::body(SideIndexReader(&body[12..])).ok_or(SideIndexError::Damaged)
    }

    fn body(mut from: SideIndexReader<'_>) -> Option<Self> {
        let (length, lines) = (from.u64()?, from.u64()?);
        let (head, tail) = (from.u64()?, from.u64()?);
        let header = Header { line: from.blob()?.to_vec(), slot: from.option(|from| Some(from.blob()?.to_vec()))? };
        let name = from.option(SideIndexReader::text)?;
        let leaf = match from.u8()? {
            0 => LeafMark::LastEntry,
            mark @ 1..=2 => {
                let to = from.u32()?;
                let to = (mark == 2).then_some(IdNo(to));
                LeafMark::Moved { to, line: from.u32()?, offset: from.u64()? }
            }
            _ => return None,
        };
        let mut labels = BTreeMap::new();
        for _ in 0..from.u32()? {
            let id = from.u32()?;
            labels.insert(id, Label { since: from.u32()?, set_by: from.u32()?, text: from.text()? });
        }
        let mut damage = DamageList { unlisted: from.u64()?, listed: Vec::new() };
        for _ in 0..from.u32()? {
            let (line, offset) = (from.u64()?, from.u64()?);
            let kind = DamageKind::from_number(from.u8()?)?;
            damage.listed.push(Damage { line, offset, kind, message: from.text()? });
        }
        let ids = from.ids()?;
        let records = from.records(length, ids.len())?;
        let known = |id: u32| (id as usize) < ids.len();
        let leaf_is_known = match leaf {
            LeafMark::Moved { to: Some(id), .. } => known(id.0),
            LeafMark::Moved { to: None, .. } | LeafMark::LastEntry => true,
        };
        let sound = from.0.is_empty() && leaf_is_known && labels.keys().all(|id| known(*id));
        let entry = |number: u32| (number as usize) < records.len();
        let sound = sound && labels.values().all(|label| entry(label.since) && entry(label.set_by));
        if !sound || damage.listed.len() > MAX_DAMAGE {
            return None;
        }
        let entry_of = vec![NONE; ids.len()];
        let mut parsed = ParsedLog {
            header: Some(header),
            records,
            ids,
            entry_of,
            labels,
            name,
            leaf,
            damage,
            ending: Ending::Whole,
            length,
            lines,
        };
        (0..parsed.records.len() as u32).for_each(|number| parsed.note_entry(number));
        Some(Self { parsed, head, tail })
    }

    /// The number of bytes of the log that it covers.
    pub fn log_length(&self) -> u64 {
        self.parsed.length
    }

    /// The ranges of the log that [`SideIndex::trust`] needs: its first bytes, and the last covered ones.
    pub fn probes(&self) -> [(u64, usize); 2] {
        probes(self.parsed.length)
    }

    /// The index, if these bytes match its checksums.
    pub fn trust(self, head: &[u8], tail: &[u8]) -> Result<LogIndex, SideIndexError> {
        if checksum(head) != self.head || checksum(tail) != self.tail {
            return Err(SideIndexError::OtherLog);
        }
        let links = TreeLinks::of(&self.parsed);
        Ok(LogIndex { parsed: self.parsed, links })
    }
}

/// The ranges of a log of this length whose checksums a side index has.
pub fn probes(length: u64) -> [(u64, usize); 2] {
    let probe = length.min(PROBE as u64);
    [(0, probe as usize), (length - probe, probe as usize)]
}

struct SideIndexWriter(Vec<u8>);

impl SideIndexWriter {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    fn blob(&mut self, bytes: &[u8]) {
        // Nothing here comes near the bound: ids are checked, lines are shorter.
        self.u32(bytes.len() as u32);
        self.bytes(bytes);
    }

    fn option<T: ?Sized>(&mut self, value: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

struct SideIndexReader<'a>(&'a [u8]);

/// The number of bytes of a record.
const RECORD: usize = 35;

impl<'a> SideIndexReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn blob(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    fn text(&mut self) -> Option<String> {
        Some(std::str::from_utf8(self.blob()?).ok()?.to_owned())
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.u8()? {
            0 => Some(None),
            1 => read(self).map(Some),
            _ => None,
        }
    }

    fn ids(&mut self) -> Option<Ids> {
        let bytes = self.blob()?.to_vec();
        let count = self.u32()? as usize;
        let ends = self.take(count.checked_mul(4)?)?;
        let ends = ends.chunks_exact(4).filter_map(|chunk| chunk.first_chunk()).map(|end| u32::from_le_bytes(*end));
        Ids::from_stored(bytes, ends.collect())
    }

    fn records(&mut self, log_length: u64, ids: usize) -> Option<Vec<EntryRecord>> {
        let count = self.u32()? as usize;
        let bytes = self.take(count.checked_mul(RECORD)?)?;
        let mut records = Vec::with_capacity(count);
        let mut from = 0;
        for chunk in bytes.chunks_exact(RECORD) {
            let record = SideIndexReader(chunk).record(ids)?;
            let end = record.offset.checked_add(u64::from(record.length))?;
            if record.offset < from || end >= log_length {
                return None;
            }
            from = end;
            records.push(record);
        }
        Some(records)
    }

    fn record(&mut self, ids: usize) -> Option<EntryRecord> {
        let id = |number: u32| Some(IdNo(number)).filter(|_| (number as usize) < ids);
        let (offset, time) = (self.u64()?, self.u64()? as i64);
        let (length, line) = (self.u32()?, self.u32()?);
        let own_id = id(self.u32()?)?;
        let parent = match self.u32()? {
            NONE => Parent::None,
            nonsense if nonsense == NONE - 1 => Parent::Invalid,
            number => Parent::Id(id(number)?),
        };
        let kind = EntryType::from_number(self.u8()?)?;
        let (owner, is_leaf_mark) = match self.u8()? {
            0 => (Owner::Tree, false),
            1 => (Owner::Grove, false),
            2 => (Owner::Grove, true),
            _ => return None,
        };
        Some(EntryRecord {
            offset,
            time,
            length,
            line,
            id: own_id,
            parent,
            kind,
            owner,
            is_leaf_mark,
            role: Role::from_number(self.u8()?)?,
        })
    }
}

/// The checksum of the log's ends, and of the side index itself: against accidents, eight bytes at a time.
pub fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(PRIME).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| step(sum, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    step(step(sum, u64::from_le_bytes(last)), PRIME)
}
