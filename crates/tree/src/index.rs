//! The index of a log: the position and the parent of each entry, without bodies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::damage::{Damage, DamageList};
use crate::header::Header;
use crate::ids::{IdNo, Ids};
use crate::kind::EntryType;
use crate::links::TreeLinks;
use crate::role::Role;

/// An entry of a log: its number in the file, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryNo(pub(crate) u32);

impl EntryNo {
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// The indexed data of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryRecord {
    /// The offset of its line.
    pub(crate) offset: u64,
    /// Milliseconds since 1970, or [`NO_TIME`].
    pub(crate) time: i64,
    /// The bytes of its line without the line feed.
    pub(crate) length: u32,
    pub(crate) line: u32,
    pub(crate) id: IdNo,
    pub(crate) parent: Parent,
    pub(crate) kind: EntryType,
    pub(crate) owner: Owner,
    /// True if it is Grove's own and sets the leaf.
    pub(crate) is_leaf_mark: bool,
    /// The role, if it is a message.
    pub(crate) role: Option<Role>,
}

pub(crate) const NO_TIME: i64 = i64::MIN;

/// The parent that an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// None: it is a root.
    None,
    Id(IdNo),
    /// A value that is not an id.
    Invalid,
}

/// The owner of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The conversation: the entry is in the tree.
    Tree,
    /// Grove's bookkeeping (`custom` with a `customType` that begins with `grove.`): the entry is not in the tree.
    Grove,
}

/// The label of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) text: String,
    /// The label entry from which on it has had a label without a break.
    pub(crate) since: u32,
    /// The label entry that set the text.
    pub(crate) set_by: u32,
}

impl Label {
    pub(crate) fn new(since: u32) -> Self {
        Self { text: String::new(), since, set_by: since }
    }
}

/// The last explicit position of the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafMark {
    /// None: the last entry is the leaf.
    LastEntry,
    /// Set by a `grove.leaf` entry on this line, with no later entry of the tree.
    Moved { to: Option<IdNo>, line: u32, offset: u64 },
}

/// The end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a line feed, or an empty file.
    Whole,
    /// The last line is complete, except for its line feed.
    NoNewline,
    /// The last line is incomplete and begins at this offset: a writer truncates the file there first.
    Torn { offset: u64 },
}

/// The result of reading the lines. Everything else follows from it.
#[derive(Clone, Debug)]
pub(crate) struct ParsedLog {
    pub(crate) header: Option<Header>,
    pub(crate) records: Vec<EntryRecord>,
    pub(crate) ids: Ids,
    /// The last entry of each id, by the id's number; [`NONE`] if no entry has it.
    pub(crate) entry_of: Vec<u32>,
    pub(crate) labels: BTreeMap<u32, Label>,
    pub(crate) name: Option<String>,
    pub(crate) leaf: LeafMark,
    pub(crate) damage: DamageList,
    pub(crate) ending: Ending,
    /// The number of bytes and lines read.
    pub(crate) length: u64,
    pub(crate) lines: u64,
}

/// The mark for no entry in a list of entry numbers.
pub(crate) const NONE: u32 = u32::MAX;

/// A log's tree, without the bodies of its entries.
#[derive(Clone, Debug)]
pub struct LogIndex {
    pub(crate) parsed: ParsedLog,
    pub(crate) links: TreeLinks,
}

impl LogIndex {
    /// The header, unless the file ends before it is complete.
    pub fn header(&self) -> Option<&Header> {
        self.parsed.header.as_ref()
    }

    /// The number of entries, Grove's own included.
    pub fn len(&self) -> usize {
        self.parsed.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.parsed.records.is_empty()
    }

    /// All entries in file order, Grove's own included.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = EntryNo> + ExactSizeIterator + use<> {
        (0..self.parsed.records.len() as u32).map(EntryNo)
    }

    /// The last entry with an id.
    pub fn find(&self, id: &str) -> Option<EntryNo> {
        self.find_bytes(id.as_bytes())
    }

    /// The entry with an id that may not be valid Unicode.
    pub(crate) fn find_bytes(&self, id: &[u8]) -> Option<EntryNo> {
        self.entry_of(self.parsed.ids.find(id)?)
    }

    /// An entry's id, with replacement characters for invalid Unicode.
    pub fn id(&self, entry: EntryNo) -> Cow<'_, str> {
        String::from_utf8_lossy(self.parsed.ids.get(self.record(entry).id))
    }

    /// The id that an entry names as its parent, existing or not.
    pub fn parent_id(&self, entry: EntryNo) -> Option<Cow<'_, str>> {
        match self.record(entry).parent {
            Parent::Id(id) => Some(String::from_utf8_lossy(self.parsed.ids.get(id))),
            Parent::None | Parent::Invalid => None,
        }
    }

    /// The parent of an entry in the tree: Grove's own entries are skipped.
    pub fn parent(&self, entry: EntryNo) -> Option<EntryNo> {
        self.links.up(entry)
    }

    pub fn kind(&self, entry: EntryNo) -> EntryType {
        self.record(entry).kind
    }

    /// The role of an entry that is a message.
    pub fn role(&self, entry: EntryNo) -> Option<Role> {
        self.record(entry).role
    }

    pub fn owner(&self, entry: EntryNo) -> Owner {
        self.record(entry).owner
    }

    /// Milliseconds since 1970, if the entry's time can be read.
    pub fn time(&self, entry: EntryNo) -> Option<i64> {
        Some(self.record(entry).time).filter(|time| *time != NO_TIME)
    }

    /// The offset of an entry's line.
    pub fn offset(&self, entry: EntryNo) -> u64 {
        self.record(entry).offset
    }

    /// The length of an entry's line without its line feed.
    pub fn length(&self, entry: EntryNo) -> usize {
        self.record(entry).length as usize
    }

    /// The number of an entry's line, counted from 1.
    pub fn line(&self, entry: EntryNo) -> u64 {
        u64::from(self.record(entry).line)
    }

    /// The leaf: as set by the last `grove.leaf` entry, else the last entry. `None` in an empty tree, or if it was set
    /// before the first entry.
    pub fn leaf(&self) -> Option<EntryNo> {
        self.links.leaf
    }

    /// The path from the root to an entry. It stops before an entry would repeat.
    pub fn branch(&self, entry: EntryNo) -> Vec<EntryNo> {
        let mut path: Vec<EntryNo> = self.links.ancestors(self.canonical(entry)).collect();
        path.reverse();
        path
    }

    /// The newest entries of the path to an entry, at most `count`, in the branch's order.
    pub fn tail(&self, entry: EntryNo, count: usize) -> Vec<EntryNo> {
        let mut path: Vec<EntryNo> = self.links.ancestors(self.canonical(entry)).take(count).collect();
        path.reverse();
        path
    }

    /// The current labels with their entries, in the order of the ids' first appearance.
    pub fn labels(&self) -> impl Iterator<Item = (EntryNo, &str)> {
        let labels = self.parsed.labels.iter();
        labels.filter_map(|(id, label)| Some((self.entry_of(IdNo(*id))?, label.text.as_str())))
    }

    pub fn label(&self, entry: EntryNo) -> Option<&str> {
        self.label_of(entry).map(|label| label.text.as_str())
    }

    /// The label entry that set an entry's current label.
    pub fn labelled_by(&self, entry: EntryNo) -> Option<EntryNo> {
        self.label_of(entry).map(|label| EntryNo(label.set_by))
    }

    pub(crate) fn label_of(&self, entry: EntryNo) -> Option<&Label> {
        self.parsed.labels.get(&self.record(entry).id.0)
    }

    /// The session's name: from the last `session_info` or `title_change`, else from oh-my-pi's title beside the
    /// header.
    pub fn name(&self) -> Option<String> {
        match &self.parsed.name {
            Some(name) => Some(name.clone()).filter(|name| !name.is_empty()),
            None => self.header().and_then(Header::title),
        }
    }

    /// The damage, in file order.
    pub fn damage(&self) -> Vec<&Damage> {
        let mut damage: Vec<&Damage> = self.parsed.damage.listed.iter().chain(&self.links.damage.listed).collect();
        damage.sort_by_key(|one| one.line);
        damage
    }

    /// The number of damages beyond [`LogIndex::damage`].
    pub fn unlisted_damage(&self) -> u64 {
        self.parsed.damage.unlisted + self.links.damage.unlisted
    }

    pub fn ending(&self) -> Ending {
        self.parsed.ending
    }

    /// The number of bytes read.
    pub fn log_length(&self) -> u64 {
        self.parsed.length
    }

    pub(crate) fn record(&self, entry: EntryNo) -> &EntryRecord {
        &self.parsed.records[entry.as_usize()]
    }

    /// The entry that counts for an entry's id.
    pub(crate) fn canonical(&self, entry: EntryNo) -> EntryNo {
        self.entry_of(self.record(entry).id).unwrap_or(entry)
    }

    fn entry_of(&self, id: IdNo) -> Option<EntryNo> {
        self.parsed.entry_of(id)
    }
}

impl ParsedLog {
    pub(crate) fn empty() -> Self {
        Self {
            header: None,
            records: Vec::new(),
            ids: Ids::default(),
            entry_of: Vec::new(),
            labels: BTreeMap::new(),
            name: None,
            leaf: LeafMark::LastEntry,
            damage: DamageList::default(),
            ending: Ending::Whole,
            length: 0,
            lines: 0,
        }
    }

    /// Records the entry that counts for its id: the last one, unless it is Grove's own and the tree has one of that
    /// id.
    pub(crate) fn note_entry(&mut self, number: u32) {
        let record = &self.records[number as usize];
        let counts = &mut self.entry_of[record.id.0 as usize];
        let of_tree = *counts != NONE && self.records[*counts as usize].owner == Owner::Tree;
        if record.owner == Owner::Tree || !of_tree {
            *counts = number;
        }
    }

    pub(crate) fn entry_of(&self, id: IdNo) -> Option<EntryNo> {
        Some(self.entry_of[id.0 as usize]).filter(|entry| *entry != NONE).map(EntryNo)
    }
}
