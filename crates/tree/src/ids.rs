//! Interned ids. An entry refers to its own id and to its parent's by a small number.

use std::hash::{DefaultHasher, Hasher};

use crate::error::LogError;

/// The number of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IdNo(pub(crate) u32);

/// All ids of a log, of entries and of references to missing ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    /// The ids' bytes, concatenated.
    pub(crate) bytes: Vec<u8>,
    /// The end of each id.
    pub(crate) ends: Vec<u32>,
    /// A hash table of numbers plus one, with 0 for a free slot. Its length is a power of two.
    slots: Vec<u32>,
}

impl Ids {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, id: IdNo) -> &[u8] {
        let at = id.0 as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// The number of a known id.
    pub(crate) fn find(&self, id: &[u8]) -> Option<IdNo> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(id) as usize & mask;
        loop {
            match self.slots[at] {
                0 => return None,
                number if self.get(IdNo(number - 1)) == id => return Some(IdNo(number - 1)),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// The number of an id, new or known.
    pub(crate) fn intern(&mut self, id: &[u8]) -> Result<IdNo, LogError> {
        if self.ends.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(id) as usize & mask;
        loop {
            match self.slots[at] {
                0 => break,
                number if self.get(IdNo(number - 1)) == id => return Ok(IdNo(number - 1)),
                _ => at = (at + 1) & mask,
            }
        }
        let number = u32::try_from(self.ends.len()).map_err(|_| LogError::TooLarge)?;
        let end = u32::try_from(self.bytes.len() + id.len()).map_err(|_| LogError::TooLarge)?;
        // The largest number is the mark for "none".
        if number >= u32::MAX - 1 {
            return Err(LogError::TooLarge);
        }
        self.bytes.extend_from_slice(id);
        self.ends.push(end);
        self.slots[at] = number + 1;
        Ok(IdNo(number))
    }

    /// Restores stored ids. `None` if they are inconsistent.
    pub(crate) fn from_stored(bytes: Vec<u8>, ends: Vec<u32>) -> Option<Self> {
        let ascending = ends.is_sorted() && ends.last().copied().unwrap_or(0) as usize == bytes.len();
        if !ascending {
            return None;
        }
        let mut ids = Ids { bytes, ends, slots: Vec::new() };
        ids.rebuild((ids.ends.len() * 2 + 2).next_power_of_two());
        Some(ids)
    }

    fn grow(&mut self) {
        self.rebuild((self.slots.len() * 2).max(64));
    }

    fn rebuild(&mut self, size: usize) {
        let mask = size - 1;
        let mut slots = vec![0; size];
        for number in 0..self.ends.len() as u32 {
            let mut at = hash(self.get(IdNo(number))) as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = number + 1;
        }
        self.slots = slots;
    }
}

/// Hashes an id. Files may come from others, who could slow down loading if they could choose collisions.
fn hash(id: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(id);
    hasher.finish()
}
