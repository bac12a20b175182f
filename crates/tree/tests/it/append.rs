//! An index that is extended line by line equals the index of the whole log.

use grove_tree::AppendError;
use proptest::prelude::*;
use serde_json::json;

use crate::samples;
use crate::side_index::told;
use crate::support::{HEADER, branch, damage, leaf, log_of, opened, own, user};

#[test]
fn line_by_line_it_is_the_same_index() {
    for (name, bytes) in samples::sound_version_3() {
        let whole = opened(&bytes);
        let start = whole.index().offset(whole.index().entries().next().unwrap()) as usize;
        let mut index = opened(&bytes[..start]).index().clone();
        for entry in whole.index().entries() {
            assert_eq!(index.append(whole.line(entry)), Ok(entry), "{name}");
        }
        assert_eq!(told(&index), told(whole.index()), "{name}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut index = opened(log_of(&[user("a", None, 1), user("b", Some("a"), 2)])).index().clone();
    let before = told(&index);
    for (line, error) in [
        (user("a", None, 3).to_string(), AppendError::IdInUse { id: "a".into() }),
        (user("c", Some("gone"), 3).to_string(), AppendError::UnknownParent { id: "gone".into() }),
        (user("c", Some("c"), 3).to_string(), AppendError::UnknownParent { id: "c".into() }),
        (json!({"id": "c", "parentId": 7}).to_string(), AppendError::UnknownParent { id: "7".into() }),
        (HEADER.to_owned(), AppendError::NotAnEntry),
        ("{\"id\":\"c\"".to_owned(), AppendError::NotAnEntry),
        ("{\"no\":\"id\"}".to_owned(), AppendError::NotAnEntry),
        ("{\"id\":\n\"c\"}".to_owned(), AppendError::NotAnEntry),
    ] {
        assert_eq!(index.append(line.as_bytes()), Err(error), "{line}");
    }
    assert_eq!(told(&index), before);
    let mut torn = opened(log_of(&[]) + "{\"ty").index().clone();
    assert_eq!(torn.append(user("a", None, 1).to_string().as_bytes()), Err(AppendError::NotWhole));
    let mut empty = opened("").index().clone();
    assert_eq!(empty.append(user("a", None, 1).to_string().as_bytes()), Err(AppendError::NoHeader));
}

#[test]
fn an_entry_that_was_missed_takes_its_children() {
    let mut index = opened(log_of(&[user("b", Some("a"), 2)])).index().clone();
    assert_eq!(damage(&index), ["2 orphan"]);
    index.append(user("a", None, 1).to_string().as_bytes()).unwrap();
    assert_eq!(damage(&index), [""; 0]);
    index.append(own("m", Some("a"), "grove.leaf", json!({"leafId": "b"})).to_string().as_bytes()).unwrap();
    assert_eq!(leaf(&index).as_deref(), Some("b"));
    assert_eq!(branch(&index), ["a", "b"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_fits_gives_the_same_index_as_reading_it(
        entries in proptest::collection::vec((0u8..30, proptest::option::of(0u8..30), 0u8..4), 0..40),
    ) {
        let mut text = log_of(&[]);
        let mut index = opened(&text).index().clone();
        for (id, parent, kind) in entries {
            let (id, parent) = (id.to_string(), parent.map(|parent| parent.to_string()));
            let line = match kind {
                0 => own(&id, parent.as_deref(), "grove.turn", json!({})),
                1 => own(&id, parent.as_deref(), "grove.leaf", json!({"leafId": parent})),
                _ => user(&id, parent.as_deref(), 1),
            };
            if index.append(line.to_string().as_bytes()).is_ok() {
                text.push_str(&format!("{line}\n"));
            }
            prop_assert_eq!(branch(&index), branch(opened(&text).index()));
        }
        prop_assert_eq!(told(&index), told(opened(&text).index()));
    }
}
