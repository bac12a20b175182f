//! The side index is trusted only if it is valid and belongs to the log at hand.

use grove_tree::side_index::{self, PROBE, SideIndex, SideIndexError};
use grove_tree::{Children, Indexer, LogIndex};

use crate::samples;
use crate::support::{branch, damage, ids, leaf, log_of, opened, user};

/// The complete contents of an index.
pub(crate) fn told(index: &LogIndex) -> String {
    let entries: Vec<_> = index
        .entries()
        .map(|entry| {
            let places = (index.offset(entry), index.length(entry), index.line(entry), index.time(entry));
            (
                places,
                index.id(entry),
                index.parent_id(entry),
                index.parent(entry),
                index.kind(entry),
                index.owner(entry),
            )
        })
        .collect();
    let tree = Children::oldest_first(index);
    let labels: Vec<_> = index.labels().collect();
    let header = index.header().map(|header| String::from_utf8_lossy(&header.to_json()).into_owned());
    let summary = (leaf(index), branch(index), damage(index), index.name(), header, index.log_length());
    format!("{entries:?} {tree:?} {labels:?} {summary:?}")
}

fn probed(bytes: &[u8]) -> [&[u8]; 2] {
    side_index::probes(bytes.len() as u64).map(|(offset, length)| &bytes[offset as usize..][..length])
}

fn rendered(bytes: &[u8]) -> Option<Vec<u8>> {
    let [head, tail] = probed(bytes);
    side_index::render(opened(bytes).index(), head, tail)
}

#[test]
fn what_was_stored_comes_back() {
    for (name, bytes) in samples::all() {
        let log = opened(&bytes);
        let bytes = log.bytes();
        let Some(stored) = rendered(bytes) else {
            assert!(!bytes.ends_with(b"\n"), "{name}");
            continue;
        };
        let [head, tail] = probed(bytes);
        let index = SideIndex::parse(&stored).unwrap().trust(head, tail).unwrap();
        assert_eq!(told(&index), told(log.index()), "{name}");
    }
}

#[test]
fn another_log_is_noticed() {
    let lines: Vec<_> = (0..200).map(|id| user(&id.to_string(), None, id % 60)).collect();
    let bytes = log_of(&lines).into_bytes();
    assert!(bytes.len() > 3 * PROBE);
    let stored = rendered(&bytes).unwrap();
    for at in [20, bytes.len() - 20] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let [head, tail] = probed(&changed);
        let trusted = SideIndex::parse(&stored).unwrap().trust(head, tail);
        assert_eq!(trusted.unwrap_err(), SideIndexError::OtherLog);
    }
}

#[test]
fn a_damaged_one_is_noticed_at_every_byte() {
    let stored = rendered(&samples::all().into_iter().find(|(name, _)| name == "pi-v3.jsonl").unwrap().1).unwrap();
    for at in 0..stored.len() {
        let mut changed = stored.clone();
        changed[at] ^= 0x40;
        assert!(SideIndex::parse(&changed).is_err(), "byte {at}");
        assert!(SideIndex::parse(&stored[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(SideIndex::parse(b"").unwrap_err(), SideIndexError::Foreign);
}

#[test]
fn reading_goes_on_where_an_index_ends() {
    for (name, bytes) in samples::sound_version_3() {
        let ends = (0..bytes.len()).filter(|at| bytes[*at] == b'\n');
        for end in ends {
            let (covered, rest) = bytes.split_at(end + 1);
            let Some(mut indexer) = Indexer::resume(opened(covered).index().clone()) else { continue };
            indexer.feed(rest);
            assert_eq!(told(&indexer.finish().unwrap()), told(opened(&bytes).index()), "{name} from {end}");
        }
    }
    assert!(Indexer::resume(opened("{\"type\":\"ses").index().clone()).is_none());
    assert_eq!(ids(opened(log_of(&[])).index()), [""; 0]);
}
