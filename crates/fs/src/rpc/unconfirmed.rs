//! Unconfirmed changes: the storage client may have made them, or still will.
//!
//! An append whose call was not answered in time, or whose connection was lost, was reported as failed. The client may
//! have done it all the same, or may do it later. Sending it again blindly could write it twice, so until its fate is
//! known the file is *guarded*: it is read back before it is changed, and replaced as a whole instead of appended to.
//! An append that arrives after later reads or writes is cut off again.
//!
//! At most one such append is tracked per file, since a guarded file is never appended to. A file that is too large to
//! be read as a whole ([`Limits::file`](super::Limits::file)) is not guarded.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

/// The most guarded files. Beyond it, an append without an answer simply fails.
pub const MOST_FILES: usize = 256;
/// The most states of a file that are distinguished: the newest ones count.
const MOST_STATES: usize = 8;

/// The guarded files of a storage client, by their lock keys. The caller holds the file's lock.
#[derive(Debug, Default)]
pub(super) struct UnconfirmedAppends(Mutex<HashMap<String, UnconfirmedFile>>);

#[derive(Debug, Default)]
struct UnconfirmedFile {
    append: Option<UnconfirmedAppend>,
    /// Files whose rename to this one was not answered. They have to be deleted before the file is changed again.
    temporary: Vec<String>,
}

/// An append that may or may not have been made.
#[derive(Debug)]
struct UnconfirmedAppend {
    number: u64,
    content: Vec<u8>,
    /// The possible contents of the file without the append: as read since, or as replaced. Empty before the first
    /// read.
    states: Vec<ContentDigest>,
}

/// A digest of a file's content, to recognize it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ContentDigest {
    length: usize,
    digest: [u8; 32],
}

impl ContentDigest {
    fn of(content: &[u8]) -> Self {
        Self { length: content.len(), digest: Sha256::digest(content).into() }
    }

    fn is_start_of(&self, content: &[u8]) -> bool {
        content.get(..self.length).is_some_and(|start| Self::of(start) == *self)
    }
}

/// The meaning of a file's content that was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadBack {
    /// All of it counts.
    Whole,
    /// The first bytes count. The append, or its beginning, follows them.
    Late { counts: usize, is_all: bool },
    /// Others have changed the file since it was read.
    Changed,
}

impl UnconfirmedAppends {
    /// Adds an append without an answer. `false` if too many files are guarded.
    pub(super) fn add(&self, key: &str, content: Vec<u8>, number: u64) -> bool {
        let mut guards = self.guards();
        if guards.len() >= MOST_FILES && !guards.contains_key(key) {
            return false;
        }
        guards.entry(key.to_owned()).or_default().append =
            Some(UnconfirmedAppend { number, content, states: Vec::new() });
        true
    }

    pub(super) fn is_guarded(&self, key: &str) -> bool {
        self.guards().get(key).is_some_and(|guard| guard.append.is_some())
    }

    /// Returns whether this append is still unconfirmed.
    pub(super) fn has(&self, key: &str, number: u64) -> bool {
        let guards = self.guards();
        guards.get(key).and_then(|guard| guard.append.as_ref()).is_some_and(|append| append.number == number)
    }

    /// Notes that the fate of an append is known.
    pub(super) fn settle(&self, key: &str, number: u64) {
        let mut guards = self.guards();
        if let Some(guard) = guards.get_mut(key) {
            guard.append.take_if(|append| append.number == number);
            if guard.append.is_none() && guard.temporary.is_empty() {
                guards.remove(key);
            }
        }
    }

    /// Notes that the file is deleted or renamed: nothing is expected for it any more.
    pub(super) fn forget(&self, key: &str) {
        self.guards().remove(key);
    }

    /// Notes that a guarded file was read. From now on the caller knows this content.
    pub(super) fn read(&self, key: &str, content: &[u8]) -> ReadBack {
        let mut guards = self.guards();
        let Some(append) = guards.get_mut(key).and_then(|guard| guard.append.as_mut()) else { return ReadBack::Whole };
        if append.states.is_empty() {
            if content.ends_with(&append.content) {
                // It was made after all, before anybody looked.
                let number = append.number;
                drop(guards);
                self.settle(key, number);
            } else {
                append.states = vec![ContentDigest::of(content)];
            }
            return ReadBack::Whole;
        }
        // The longest first: a state may end with the same bytes as the append.
        append.states.sort_by_key(|state| std::cmp::Reverse(state.length));
        let known = append
            .states
            .iter()
            .copied()
            .find(|state| state.is_start_of(content) && append.content.starts_with(&content[state.length..]));
        append.states = vec![known.unwrap_or_else(|| ContentDigest::of(content))];
        match known {
            None => ReadBack::Changed,
            Some(state) if state.length == content.len() => ReadBack::Whole,
            Some(state) => {
                let is_all = content.len() - state.length == append.content.len();
                ReadBack::Late { counts: state.length, is_all }
            }
        }
    }

    /// Notes that a guarded file is about to be replaced by this, or was.
    pub(super) fn replaced(&self, key: &str, content: &[u8], is_sure: bool) {
        let mut guards = self.guards();
        let Some(append) = guards.get_mut(key).and_then(|guard| guard.append.as_mut()) else { return };
        let new = ContentDigest::of(content);
        if is_sure {
            append.states.clear();
        }
        if append.states.len() >= MOST_STATES {
            append.states.remove(0);
        }
        append.states.push(new);
    }

    /// Adds a file whose rename to this one got no answer, and which could not be deleted.
    pub(super) fn add_temporary(&self, key: &str, location: String) {
        let mut guards = self.guards();
        if guards.len() < MOST_FILES || guards.contains_key(key) {
            guards.entry(key.to_owned()).or_default().temporary.push(location);
        }
    }

    /// The files that have to be deleted before this one is changed.
    pub(super) fn temporary(&self, key: &str) -> Vec<String> {
        self.guards().get(key).map(|guard| guard.temporary.clone()).unwrap_or_default()
    }

    pub(super) fn temporary_gone(&self, key: &str, location: &str) {
        let mut guards = self.guards();
        if let Some(guard) = guards.get_mut(key) {
            guard.temporary.retain(|known| known != location);
            if guard.append.is_none() && guard.temporary.is_empty() {
                guards.remove(key);
            }
        }
    }

    // No step under this lock can panic half way.
    fn guards(&self) -> MutexGuard<'_, HashMap<String, UnconfirmedFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(content: &str) -> UnconfirmedAppends {
        let unconfirmed = UnconfirmedAppends::default();
        assert!(unconfirmed.add("k", content.into(), 1));
        unconfirmed
    }

    #[test]
    fn an_append_that_is_there_before_anybody_looked_was_made() {
        let unconfirmed = guarded("b\n");
        assert_eq!(unconfirmed.read("k", b"a\nb\n"), ReadBack::Whole);
        assert!(!unconfirmed.is_guarded("k"));
    }

    #[test]
    fn an_append_that_arrives_behind_what_was_read_or_written_does_not_count() {
        let unconfirmed = guarded("b\n");
        assert_eq!(unconfirmed.read("k", b"a\n"), ReadBack::Whole);
        assert_eq!(unconfirmed.read("k", b"a\nb"), ReadBack::Late { counts: 2, is_all: false });
        assert_eq!(unconfirmed.read("k", b"a\nb\n"), ReadBack::Late { counts: 2, is_all: true });
        unconfirmed.replaced("k", b"a\nb\n", true);
        assert_eq!(unconfirmed.read("k", b"a\nb\n"), ReadBack::Whole);
        assert_eq!(unconfirmed.read("k", b"a\nb\nb\n"), ReadBack::Late { counts: 4, is_all: true });
        assert_eq!(unconfirmed.read("k", b"a\nother\n"), ReadBack::Changed);
        assert_eq!(unconfirmed.read("k", b"a\nother\n"), ReadBack::Whole);
    }

    #[test]
    fn a_replacement_without_an_answer_may_have_happened_or_not() {
        for found in [&b"a\n"[..], b"a\nb\n"] {
            let unconfirmed = guarded("b\n");
            unconfirmed.read("k", b"a\n");
            unconfirmed.replaced("k", b"a\nb\n", false);
            assert_eq!(unconfirmed.read("k", found), ReadBack::Whole);
            assert_eq!(
                unconfirmed.read("k", &[found, b"b\n"].concat()),
                ReadBack::Late { counts: found.len(), is_all: true }
            );
        }
    }

    #[test]
    fn guards_are_bounded_and_end() {
        let unconfirmed = UnconfirmedAppends::default();
        for number in 0..MOST_FILES {
            assert!(unconfirmed.add(&number.to_string(), Vec::new(), 1));
        }
        assert!(!unconfirmed.add("one more", Vec::new(), 1));
        unconfirmed.settle("0", 2);
        assert!(unconfirmed.is_guarded("0"), "another append");
        unconfirmed.settle("0", 1);
        assert!(unconfirmed.add("one more", Vec::new(), 1));
    }
}
