//! The log law, for reading: a log cut at any byte opens, and has exactly the entries whose lines are complete.

use grove_tree::{Indexer, open};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::samples;
use crate::support::{HEADER, branch, damage, ids, leaf, opened, own, user};

/// The contents of an index, without positions.
fn said(index: &grove_tree::LogIndex) -> (Vec<String>, Option<String>, Vec<String>, Vec<String>) {
    (ids(index), leaf(index), branch(index), damage(index))
}

#[test]
fn a_log_cut_at_every_byte_gives_the_entries_whose_lines_are_whole() {
    for (name, bytes) in samples::sound_version_3() {
        let whole = opened(&bytes);
        let all = ids(whole.index());
        for cut in 0..=bytes.len() {
            let prefix = &bytes[..cut];
            let log =
                open(prefix.to_vec(), &mut || unreachable!()).unwrap_or_else(|error| panic!("{name} {cut}: {error}"));
            let index = log.index();
            let ends =
                whole.index().entries().map(|entry| whole.index().offset(entry) as usize + whole.index().length(entry));
            let expected = ends.filter(|end| *end <= cut).count();
            assert_eq!(ids(index), all[..expected], "{name} cut at {cut}");
            for (entry, same) in index.entries().zip(whole.index().entries()) {
                assert_eq!(log.line(entry), whole.line(same), "{name} cut at {cut}");
            }
            assert!(damage(index).len() <= 2, "{name} cut at {cut}: {:?}", damage(index));
            assert_eq!(index.log_length(), cut as u64);
        }
    }
}

#[test]
fn a_log_can_be_fed_in_chunks_of_any_size() {
    for (name, bytes) in samples::all() {
        let whole = opened(&bytes);
        let bytes = whole.bytes();
        for size in [1, 2, 3, 7, 64, 1000] {
            let mut indexer = Indexer::new();
            bytes.chunks(size).for_each(|chunk| indexer.feed(chunk));
            let index = indexer.finish().unwrap();
            assert_eq!(said(&index), said(whole.index()), "{name} in chunks of {size}");
        }
    }
}

/// Any line of a log, valid or not.
fn any_line() -> impl Strategy<Value = String> {
    let id = || (0u8..8).prop_map(|id| id.to_string());
    let parent = || proptest::option::of(prop_oneof![5 => id(), 1 => (0u8..8).prop_map(|id| format!("m{id}"))]);
    prop_oneof![
        6 => (id(), parent(), 0u32..50)
            .prop_map(|(id, parent, second)| user(&id, parent.as_deref(), second).to_string()),
        2 => (id(), parent())
            .prop_map(|(id, parent)| own(&id, parent.as_deref(), "grove.turn", json!({})).to_string()),
        1 => (id(), proptest::option::of(id())).prop_map(|(id, leaf)| {
            own(&format!("m{id}"), None, "grove.leaf", json!({"leafId": leaf})).to_string()
        }),
        1 => (id(), id()).prop_map(|(id, target)| {
            json!({"type": "label", "id": format!("l{id}"), "parentId": id, "targetId": target, "label": id}).to_string()
        }),
        1 => Just(HEADER.to_owned()),
        1 => "[ -~]{0,20}",
        1 => Just("null".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_lines_load_and_every_walk_ends(lines in vec(any_line(), 0..40), cut in any::<prop::sample::Index>()) {
        let text = format!("{HEADER}\n{}", lines.join("\n"));
        let log = open(text.clone().into_bytes(), &mut || unreachable!()).unwrap();
        let index = log.index();
        for entry in index.entries() {
            let path = index.branch(entry);
            prop_assert!(!path.is_empty() && path.len() <= index.len());
            prop_assert_eq!(index.tail(entry, 3), path[path.len().saturating_sub(3)..].to_vec());
            log.context(grove_tree::Rules::Grove, Some(entry));
        }
        let repaired = open(grove_tree::repair::repair(&log), &mut || unreachable!()).unwrap();
        prop_assert_eq!(damage(repaired.index()), Vec::<String>::new());
        prop_assert_eq!(leaf(repaired.index()), leaf(index));

        // Any two chunks give the same log.
        let cut = cut.index(text.len());
        let mut indexer = Indexer::new();
        indexer.feed(&text.as_bytes()[..cut]);
        indexer.feed(&text.as_bytes()[cut..]);
        prop_assert_eq!(said(&indexer.finish().unwrap()), said(index));
    }

    #[test]
    fn any_bytes_are_a_log_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(log) = open(bytes, &mut || "id".to_owned()) {
            prop_assert!(log.index().leaf().is_none());
        }
    }
}
