//! Entries with parents: the turn of each entry, and so the parent of each turn.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::limits::MAX_ENTRIES;
use crate::tail_index::ParentLookup;

/// The turn of each entry. Ids are kept as hashes, so that memory does not depend on their length.
#[derive(Debug, Default)]
pub(crate) struct ParentIndex {
    turns: HashMap<u64, Option<u32>>,
    /// True if the read started after the file's beginning, so that earlier entries are not known.
    is_partial: bool,
    /// The lookups since the last call of `found`.
    found: Vec<(u64, Option<u32>)>,
}

/// The turn of an entry's parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentTurn {
    /// This turn; `None` for an entry before the first turn.
    Of(Option<u32>),
    /// The parent is not in the file.
    Missing,
    /// The parent may be before the start of the read: only a full read can tell.
    Unknown,
}

impl ParentIndex {
    pub(crate) fn new(is_partial: bool) -> Self {
        Self { turns: HashMap::new(), is_partial, found: Vec::new() }
    }

    pub(crate) fn find(&mut self, id: &str) -> ParentTurn {
        let number = number_of(id);
        match self.turns.get(&number) {
            Some(turn) => {
                self.found.push((number, *turn));
                ParentTurn::Of(*turn)
            }
            None if self.is_partial => ParentTurn::Unknown,
            None => ParentTurn::Missing,
        }
    }

    /// True if the parent in a line may belong to a turn before `number`, or to none. A missing id is that of a later
    /// entry, if the read began with the file.
    pub(crate) fn is_before(&self, parent: Option<&str>, number: u32) -> bool {
        let Some(parent) = parent.filter(|_| !self.is_partial && self.turns.len() < MAX_ENTRIES) else { return true };
        self.turns.get(&number_of(parent)).is_some_and(|turn| turn.is_none_or(|turn| turn < number))
    }

    /// The lookups since the last call.
    pub(crate) fn found(&mut self) -> impl Iterator<Item = (u64, Option<u32>)> {
        self.found.drain(..)
    }

    /// Adds known entries from before the start of the read. The first of two lookups of an entry counts: later ones
    /// were found later.
    pub(crate) fn preload(&mut self, lookups: &[ParentLookup]) {
        for ParentLookup { entry, turn, .. } in lookups {
            self.turns.entry(*entry).or_insert(*turn);
        }
    }

    pub(crate) fn add(&mut self, id: &str, turn: Option<u32>) {
        if self.turns.len() < MAX_ENTRIES {
            self.turns.insert(number_of(id), turn);
        }
    }
}

fn number_of(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_before_a_turn_if_it_is_known_there_or_cannot_be_known() {
        let mut index = ParentIndex::new(false);
        for (id, turn) in [("start", None), ("a", Some(0)), ("b", Some(1)), ("c", Some(2))] {
            index.add(id, turn);
        }
        let before: Vec<bool> = ["start", "a", "b", "c", "later"].map(|id| index.is_before(Some(id), 1)).into();
        assert_eq!(before, [true, true, false, false, false]);
        assert!(index.is_before(None, 1), "the beginning of a conversation");
        assert!(ParentIndex::new(true).is_before(Some("later"), 1), "earlier entries were not read");
    }
}
