//! The links between a log's entries: parents, the leaf, and damage of the tree.
//!
//! Nothing here recurses, and every walk ends, so a tree may have a million levels.

use crate::damage::{DamageKind, DamageList};
use crate::index::{EntryNo, EntryRecord, LeafMark, NONE, Owner, Parent, ParsedLog};

#[derive(Clone, Debug)]
pub(crate) struct TreeLinks {
    /// The parent of each entry in the tree, which excludes Grove's own entries.
    up: Vec<u32>,
    /// The entries that are their own ancestors, in order; mostly none.
    cyclic: Vec<u32>,
    pub(crate) leaf: Option<EntryNo>,
    pub(crate) damage: DamageList,
}

impl TreeLinks {
    pub(crate) fn of(parsed: &ParsedLog) -> Self {
        let mut damage = DamageList::default();
        let mut up = link_parents(parsed, &mut damage);
        let mut cyclic = cycles(&up);
        if !cyclic.is_empty() {
            break_cycles(parsed, &mut up, &cyclic);
            cyclic = cycles(&up);
        }
        report_cycles(parsed, &cyclic, &mut damage);
        let leaf = leaf(parsed, &mut damage);
        Self { up, cyclic, leaf, damage }
    }

    /// Adds the last entry, whose id is new and whose parent is known.
    pub(crate) fn append(&mut self, parsed: &ParsedLog) {
        let Some(record) = parsed.records.last() else { return };
        let parent = match record.parent {
            Parent::None | Parent::Invalid => NONE,
            Parent::Id(id) => parsed.entry_of[id.0 as usize],
        };
        let is_own = parent != NONE && parsed.records[parent as usize].owner == Owner::Grove;
        self.up.push(if is_own { self.up[parent as usize] } else { parent });
        // Damage of the leaf is listed last, and found again after each entry.
        self.damage.listed.pop_if(|last| last.kind == DamageKind::UnknownLeaf);
        self.leaf = leaf(parsed, &mut self.damage);
    }

    pub(crate) fn up(&self, entry: EntryNo) -> Option<EntryNo> {
        Some(self.up[entry.as_usize()]).filter(|up| *up != NONE).map(EntryNo)
    }

    pub(crate) fn is_cyclic(&self, entry: EntryNo) -> bool {
        self.cyclic.binary_search(&entry.0).is_ok()
    }

    /// The entries that are their own ancestors, in file order.
    pub(crate) fn cyclic(&self) -> impl Iterator<Item = EntryNo> {
        self.cyclic.iter().copied().map(EntryNo)
    }

    /// The entry at which the path up from another one enters a cycle, if it does.
    pub(crate) fn first_cyclic(&self, entry: EntryNo) -> Option<EntryNo> {
        if self.cyclic.is_empty() {
            return None;
        }
        self.ancestors(entry).find(|above| self.is_cyclic(*above))
    }

    /// An entry and its ancestors. Each entry of a cycle comes once.
    pub(crate) fn ancestors(&self, entry: EntryNo) -> Ancestors<'_> {
        Ancestors { links: self, next: Some(entry), into_cycle: None }
    }
}

/// A walk up the tree.
#[derive(Clone, Debug)]
pub(crate) struct Ancestors<'a> {
    links: &'a TreeLinks,
    next: Option<EntryNo>,
    /// The first entry of a passed cycle.
    into_cycle: Option<EntryNo>,
}

impl Iterator for Ancestors<'_> {
    type Item = EntryNo;

    fn next(&mut self) -> Option<EntryNo> {
        let entry = self.next?;
        self.next = self.links.up(entry);
        if !self.links.cyclic.is_empty() {
            if self.into_cycle.is_none() && self.links.is_cyclic(entry) {
                self.into_cycle = Some(entry);
            }
            self.next = self.next.filter(|next| Some(*next) != self.into_cycle);
        }
        Some(entry)
    }
}

fn report(damage: &mut DamageList, record: &EntryRecord, kind: DamageKind, message: impl FnOnce() -> String) {
    damage.add(u64::from(record.line), record.offset, kind, message);
}

fn id_of(parsed: &ParsedLog, record: &EntryRecord) -> String {
    String::from_utf8_lossy(parsed.ids.get(record.id)).into_owned()
}

/// Finds the parent of each entry.
fn link_parents(parsed: &ParsedLog, damage: &mut DamageList) -> Vec<u32> {
    let mut up: Vec<u32> = Vec::with_capacity(parsed.records.len());
    let mut earlier: Option<Vec<u32>> = None;
    for (at, record) in parsed.records.iter().enumerate() {
        let last = parsed.entry_of[record.id.0 as usize];
        if last as usize != at {
            let of_last = parsed.records[last as usize].line;
            report(damage, record, DamageKind::DuplicateId, || {
                format!("entry {} is repeated in line {of_last}; the last one counts", id_of(parsed, record))
            });
        }
        up.push(match record.parent {
            Parent::None => NONE,
            Parent::Invalid => {
                report(damage, record, DamageKind::Orphan, || {
                    format!("entry {} has an invalid parentId: it is a root", id_of(parsed, record))
                });
                NONE
            }
            Parent::Id(id) if id == record.id => {
                // A line that was written again below itself takes the position of the first one.
                let earlier = earlier.get_or_insert_with(|| earlier_parents(parsed))[at];
                if earlier != NONE {
                    up.push(up[earlier as usize]);
                    continue;
                }
                report(damage, record, DamageKind::SelfParent, || {
                    format!("entry {} is its own parent: it is a root", id_of(parsed, record))
                });
                NONE
            }
            Parent::Id(id) => {
                let parent = parsed.entry_of[id.0 as usize];
                if parent == NONE {
                    report(damage, record, DamageKind::Orphan, || {
                        let parent = String::from_utf8_lossy(parsed.ids.get(id));
                        format!(
                            "entry {} has the parent {parent}, which is not in the file: it is a root",
                            id_of(parsed, record)
                        )
                    });
                }
                parent
            }
        });
    }
    skip_grove_entries(parsed, &mut up);
    up
}

/// For each line, the last earlier entry with its parent's id; [`NONE`] if there is none.
fn earlier_parents(parsed: &ParsedLog) -> Vec<u32> {
    let mut newest = vec![NONE; parsed.entry_of.len()];
    let mut earlier = Vec::with_capacity(parsed.records.len());
    for (at, record) in parsed.records.iter().enumerate() {
        earlier.push(match record.parent {
            Parent::Id(id) => newest[id.0 as usize],
            Parent::None | Parent::Invalid => NONE,
        });
        if record.owner == Owner::Tree {
            newest[record.id.0 as usize] = at as u32;
        }
    }
    earlier
}

/// Breaks cycles that come from an id that is used twice, the second time below itself. The last entry of an id counts,
/// so the entries between the two get the first one's parent.
fn break_cycles(parsed: &ParsedLog, up: &mut [u32], cyclic: &[u32]) {
    let earlier = earlier_parents(parsed);
    for at in cyclic.iter().map(|at| *at as usize) {
        if up[at] != NONE && up[at] as usize > at && earlier[at] != NONE {
            up[at] = up[earlier[at] as usize];
        }
    }
}

/// Replaces parents that are Grove's own by those entries' parents.
fn skip_grove_entries(parsed: &ParsedLog, up: &mut [u32]) {
    let is_own = |entry: u32| entry != NONE && parsed.records[entry as usize].owner == Owner::Grove;
    for at in 0..up.len() {
        if !is_own(up[at]) {
            continue;
        }
        let mut end = up[at];
        // Each step goes to another of them, unless they are a cycle: then there is no parent.
        let mut steps = 0;
        let mut passed = Vec::new();
        while is_own(end) && steps <= up.len() {
            passed.push(end);
            end = up[end as usize];
            steps += 1;
        }
        if is_own(end) || end == at as u32 {
            end = NONE;
        }
        // The passed entries get the same parent, so that no chain is walked twice.
        up[at] = end;
        passed.iter().filter(|own| **own != end).for_each(|own| up[*own as usize] = end);
    }
}

/// Finds the entries that are their own ancestors.
fn cycles(up: &[u32]) -> Vec<u32> {
    // There are none if every entry comes after its parent.
    if up.iter().enumerate().all(|(at, up)| *up == NONE || (*up as usize) < at) {
        return Vec::new();
    }
    let mut cyclic = Vec::new();
    // The number, from 1, of the walk that visited each entry.
    let mut seen = vec![0u32; up.len()];
    for start in 0..up.len() as u32 {
        let mut entry = start;
        while entry != NONE && seen[entry as usize] == 0 {
            seen[entry as usize] = start + 1;
            entry = up[entry as usize];
        }
        if entry == NONE || seen[entry as usize] != start + 1 {
            continue;
        }
        let first = entry;
        loop {
            cyclic.push(entry);
            entry = up[entry as usize];
            if entry == first {
                break;
            }
        }
    }
    cyclic.sort_unstable();
    cyclic
}

fn report_cycles(parsed: &ParsedLog, cyclic: &[u32], damage: &mut DamageList) {
    for entry in cyclic {
        let record = &parsed.records[*entry as usize];
        report(damage, record, DamageKind::Cycle, || {
            format!("entry {} is its own ancestor: branches end before they would repeat", id_of(parsed, record))
        });
    }
}

fn leaf(parsed: &ParsedLog, damage: &mut DamageList) -> Option<EntryNo> {
    let last = || {
        let last = parsed.records.iter().rposition(|record| record.owner == Owner::Tree)?;
        parsed.entry_of(parsed.records[last].id)
    };
    match parsed.leaf {
        LeafMark::LastEntry => last(),
        LeafMark::Moved { to: None, .. } => None,
        LeafMark::Moved { to: Some(id), line, offset } => {
            let found = parsed.entry_of(id).filter(|entry| parsed.records[entry.as_usize()].owner == Owner::Tree);
            if found.is_some() {
                return found;
            }
            damage.add(u64::from(line), offset, DamageKind::UnknownLeaf, || {
                let id = String::from_utf8_lossy(parsed.ids.get(id));
                format!("the leaf was set to {id}, which is not an entry of the tree: the last entry is the leaf")
            });
            last()
        }
    }
}
