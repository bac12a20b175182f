//! The children of each entry, as flat lists.

use std::collections::HashSet;

use crate::index::{EntryNo, LogIndex, Owner};

/// The roots of a tree and the children of each entry.
#[derive(Clone, Debug)]
pub struct Children {
    roots: Vec<EntryNo>,
    /// The start of each entry's children in `list`; they end at the next start.
    starts: Vec<u32>,
    list: Vec<EntryNo>,
}

impl Children {
    /// Arranges children like pi's and oh-my-pi's `getTree`: roots in file order, children by time, oldest first. An id
    /// that is used twice is under each of its parents. Entries of a cycle are under each other and under no root.
    pub fn oldest_first(index: &LogIndex) -> Self {
        let in_tree = index.entries().filter(|entry| index.owner(*entry) == Owner::Tree);
        let mut pairs: Vec<_> = in_tree.map(|entry| (index.parent(entry), index.canonical(entry))).collect();
        if index.entries().any(|entry| index.canonical(entry) != entry) {
            let mut seen = HashSet::new();
            pairs.retain(|pair| seen.insert(*pair));
        }
        let mut children = Self::gather(index.len(), &pairs);
        children.sort_by_time(index);
        children
    }

    /// Like [`Children::oldest_first`], for the first `entries` of a log and with each id once. The id is under the
    /// parent of its last entry: lists to navigate in have each entry in one place.
    pub(crate) fn once_oldest_first(index: &LogIndex, entries: u32) -> Self {
        let counted = index.entries().take(entries as usize);
        let counted = counted.filter(|entry| index.owner(*entry) == Owner::Tree && index.canonical(*entry) == *entry);
        let pairs: Vec<_> =
            counted.map(|entry| (index.parent(entry).filter(|parent| parent.0 < entries), entry)).collect();
        let mut children = Self::gather(entries as usize, &pairs);
        children.sort_by_time(index);
        children
    }

    /// Arranges children like `getChildren`: in the order in which ids first appear in the file, each id under the
    /// parent of its last entry. No entry is its own child.
    pub fn in_file_order(index: &LogIndex) -> Self {
        let mut seen = vec![false; index.parsed.ids.len()];
        let mut pairs = Vec::with_capacity(index.len());
        for entry in index.entries().filter(|entry| index.owner(*entry) == Owner::Tree) {
            let id = index.record(entry).id.0 as usize;
            if !std::mem::replace(&mut seen[id], true) {
                let counts = index.canonical(entry);
                pairs.push((index.parent(counts), counts));
            }
        }
        Self::gather(index.len(), &pairs)
    }

    /// Entries without a parent in the file.
    pub fn roots(&self) -> &[EntryNo] {
        &self.roots
    }

    pub fn of(&self, entry: EntryNo) -> &[EntryNo] {
        &self.list[self.starts[entry.as_usize()] as usize..self.starts[entry.as_usize() + 1] as usize]
    }

    fn sort_by_time(&mut self, index: &LogIndex) {
        for ends in self.starts.windows(2) {
            let siblings = &mut self.list[ends[0] as usize..ends[1] as usize];
            // If a time cannot be read, the file's order stays.
            if siblings.len() > 1 && siblings.iter().all(|entry| index.time(*entry).is_some()) {
                siblings.sort_by_key(|entry| index.time(*entry));
            }
        }
    }

    /// Builds the lists; siblings stay in the order of `pairs`.
    fn gather(entries: usize, pairs: &[(Option<EntryNo>, EntryNo)]) -> Self {
        let mut starts = vec![0u32; entries + 1];
        for parent in pairs.iter().filter_map(|(parent, _)| *parent) {
            starts[parent.as_usize() + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut roots = Vec::new();
        let mut list = vec![EntryNo(0); starts.last().copied().unwrap_or(0) as usize];
        let mut next = starts.clone();
        for (parent, child) in pairs {
            match parent {
                None => roots.push(*child),
                Some(parent) => {
                    let place = &mut next[parent.as_usize()];
                    list[*place as usize] = *child;
                    *place += 1;
                }
            }
        }
        Self { roots, starts, list }
    }
}
