//! Entries that name the one they hang from: which turn each belongs to, and so which turn a turn goes on from.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::limits::MAX_ENTRIES;
use crate::tail_index::ParentLookup;

/// Which turn each entry belongs to. Ids are kept as numbers made of them, so that memory does not follow their length.
#[derive(Debug, Default)]
pub(crate) struct ParentIndex {
    turns: HashMap<u64, Option<u32>>,
    /// Whether reading began behind the file's beginning, so that entries before that are not known.
    is_partial: bool,
    /// What was found since somebody last looked here.
    found: Vec<(u64, Option<u32>)>,
}

/// Where an entry hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentTurn {
    /// From an entry of this turn; from one before the first turn where there is none.
    Of(Option<u32>),
    /// From one that is nowhere in the file.
    Missing,
    /// From one that may stand before the place where reading began: only reading anew can tell.
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

    /// What was found since this was last called.
    pub(crate) fn found(&mut self) -> impl Iterator<Item = (u64, Option<u32>)> {
        self.found.drain(..)
    }

    /// Takes in what is known of entries before the place where reading begins. Of an entry that is told twice the first
    /// counts: what is told later was found later.
    pub(crate) fn preload(&mut self, asked: &[ParentLookup]) {
        for ParentLookup { entry, turn, .. } in asked {
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
