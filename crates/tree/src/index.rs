//! The index of a log: where each entry stands and what it hangs from. It holds no bodies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::damage::{Damage, DamageList};
use crate::header::Header;
use crate::ids::{IdNo, Ids};
use crate::kind::EntryType;
use crate::links::TreeLinks;
use crate::role::Role;

/// An entry of a log: the how-manieth it is in the file, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryNo(pub(crate) u32);

impl EntryNo {
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// What the index keeps of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryRecord {
    /// The first byte of its line.
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
    /// Whether it is Grove's own and puts the leaf somewhere.
    pub(crate) is_leaf_mark: bool,
    /// Who speaks, where it is a message.
    pub(crate) role: Option<Role>,
}

pub(crate) const NO_TIME: i64 = i64::MIN;

/// What an entry says it hangs from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// Nothing: it is a root.
    None,
    Id(IdNo),
    /// Something that is no id.
    Invalid,
}

/// Who an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The conversation: it stands in the tree.
    Tree,
    /// Grove's bookkeeping (`custom` with a `customType` that begins with `grove.`): the tree does not see it.
    Grove,
}

/// The label that an entry has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) text: String,
    /// The label entry with which it has been labelled ever since.
    pub(crate) since: u32,
    /// The label entry that said the text.
    pub(crate) set_by: u32,
}

impl Label {
    pub(crate) fn new(since: u32) -> Self {
        Self { text: String::new(), since, set_by: since }
    }
}

/// Where the leaf was put last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafMark {
    /// Nowhere: it is the last entry.
    LastEntry,
    /// By a `grove.leaf` entry on this line, after which no entry of the tree came.
    Moved { to: Option<IdNo>, line: u32, offset: u64 },
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a line feed, or with nothing at all.
    Whole,
    /// The last line is whole but for its line feed.
    NoNewline,
    /// The last line was cut off. It begins at this byte: what goes on writing cuts the file there.
    Torn { offset: u64 },
}

/// What reading the lines gave. Everything else follows from it.
#[derive(Clone, Debug)]
pub(crate) struct ParsedLog {
    pub(crate) header: Option<Header>,
    pub(crate) records: Vec<EntryRecord>,
    pub(crate) ids: Ids,
    /// The last entry of each id, by the id's number; [`NONE`] where no entry has it.
    pub(crate) entry_of: Vec<u32>,
    pub(crate) labels: BTreeMap<u32, Label>,
    pub(crate) name: Option<String>,
    pub(crate) leaf: LeafMark,
    pub(crate) damage: DamageList,
    pub(crate) ending: Ending,
    /// The bytes and lines that were read.
    pub(crate) length: u64,
    pub(crate) lines: u64,
}

/// In a list of entry numbers: no entry.
pub(crate) const NONE: u32 = u32::MAX;

/// A log's tree, without the bodies of its entries.
#[derive(Clone, Debug)]
pub struct LogIndex {
    pub(crate) parsed: ParsedLog,
    pub(crate) links: TreeLinks,
}

impl LogIndex {
    /// The header, unless the file was cut off before its end.
    pub fn header(&self) -> Option<&Header> {
        self.parsed.header.as_ref()
    }

    /// How many entries there are, Grove's own among them.
    pub fn len(&self) -> usize {
        self.parsed.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.parsed.records.is_empty()
    }

    /// All entries in the order of the file, Grove's own among them.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = EntryNo> + ExactSizeIterator + use<> {
        (0..self.parsed.records.len() as u32).map(EntryNo)
    }

    /// The entry with an id; of several the last.
    pub fn find(&self, id: &str) -> Option<EntryNo> {
        self.find_bytes(id.as_bytes())
    }

    /// The entry with an id that may not be Unicode.
    pub(crate) fn find_bytes(&self, id: &[u8]) -> Option<EntryNo> {
        self.entry_of(self.parsed.ids.find(id)?)
    }

    /// An entry's id. (An id that is not Unicode is shown with replacement characters.)
    pub fn id(&self, entry: EntryNo) -> Cow<'_, str> {
        String::from_utf8_lossy(self.parsed.ids.get(self.record(entry).id))
    }

    /// The id that an entry names as its parent, whether there is such an entry or not.
    pub fn parent_id(&self, entry: EntryNo) -> Option<Cow<'_, str>> {
        match self.record(entry).parent {
            Parent::Id(id) => Some(String::from_utf8_lossy(self.parsed.ids.get(id))),
            Parent::None | Parent::Invalid => None,
        }
    }

    /// What an entry hangs from: its parent, or where that is Grove's own, what that one hangs from.
    pub fn parent(&self, entry: EntryNo) -> Option<EntryNo> {
        self.links.up(entry)
    }

    pub fn kind(&self, entry: EntryNo) -> EntryType {
        self.record(entry).kind
    }

    /// Who speaks, where an entry is a message.
    pub fn role(&self, entry: EntryNo) -> Option<Role> {
        self.record(entry).role
    }

    pub fn owner(&self, entry: EntryNo) -> Owner {
        self.record(entry).owner
    }

    /// Milliseconds since 1970, where the entry's time can be read.
    pub fn time(&self, entry: EntryNo) -> Option<i64> {
        Some(self.record(entry).time).filter(|time| *time != NO_TIME)
    }

    /// The first byte of an entry's line.
    pub fn offset(&self, entry: EntryNo) -> u64 {
        self.record(entry).offset
    }

    /// The bytes of an entry's line without its line feed.
    pub fn length(&self, entry: EntryNo) -> usize {
        self.record(entry).length as usize
    }

    /// The number of an entry's line, counted from 1.
    pub fn line(&self, entry: EntryNo) -> u64 {
        u64::from(self.record(entry).line)
    }

    /// The leaf: where the last `grove.leaf` entry put it, else the last entry. `None` before the first entry, or where
    /// it was put there.
    pub fn leaf(&self) -> Option<EntryNo> {
        self.links.leaf
    }

    /// The way from its root to an entry. It ends where it would meet itself.
    pub fn branch(&self, entry: EntryNo) -> Vec<EntryNo> {
        let mut path: Vec<EntryNo> = self.links.ancestors(self.canonical(entry)).collect();
        path.reverse();
        path
    }

    /// The newest entries of the way to an entry, at most `count`, in the branch's order.
    pub fn tail(&self, entry: EntryNo, count: usize) -> Vec<EntryNo> {
        let mut path: Vec<EntryNo> = self.links.ancestors(self.canonical(entry)).take(count).collect();
        path.reverse();
        path
    }

    /// The labels that entries have, by entry in the order of their ids' first appearance.
    pub fn labels(&self) -> impl Iterator<Item = (EntryNo, &str)> {
        let labels = self.parsed.labels.iter();
        labels.filter_map(|(id, label)| Some((self.entry_of(IdNo(*id))?, label.text.as_str())))
    }

    pub fn label(&self, entry: EntryNo) -> Option<&str> {
        self.label_of(entry).map(|label| label.text.as_str())
    }

    /// The label entry that gave an entry the label that it has.
    pub fn labelled_by(&self, entry: EntryNo) -> Option<EntryNo> {
        self.label_of(entry).map(|label| EntryNo(label.set_by))
    }

    pub(crate) fn label_of(&self, entry: EntryNo) -> Option<&Label> {
        self.parsed.labels.get(&self.record(entry).id.0)
    }

    /// The session's name: of the last `session_info` or `title_change`, else what oh-my-pi keeps beside the header.
    pub fn name(&self) -> Option<String> {
        match &self.parsed.name {
            Some(name) => Some(name.clone()).filter(|name| !name.is_empty()),
            None => self.header().and_then(Header::title),
        }
    }

    /// What is wrong, in the order of the file.
    pub fn damage(&self) -> Vec<&Damage> {
        let mut damage: Vec<&Damage> = self.parsed.damage.listed.iter().chain(&self.links.damage.listed).collect();
        damage.sort_by_key(|one| one.line);
        damage
    }

    /// How much more is wrong than [`LogIndex::damage`] tells.
    pub fn unlisted_damage(&self) -> u64 {
        self.parsed.damage.unlisted + self.links.damage.unlisted
    }

    pub fn ending(&self) -> Ending {
        self.parsed.ending
    }

    /// The bytes that were read.
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

    /// Lets an entry count for its id: it is the last, unless it is Grove's own and the tree has one of that id.
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
