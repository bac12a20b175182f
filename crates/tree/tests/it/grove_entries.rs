//! Grove's own entries: in the file, and not in the tree.

use grove_tree::object::field;
use grove_tree::{Children, Owner};
use serde_json::json;

use crate::support::{branch, children, damage, ids, leaf, log_of, opened, own, roots, user};

#[test]
fn own_entries_never_become_leaf_or_parent() {
    let log = opened(log_of(&[
        own("g0", None, "grove.start", json!({})),
        user("a", None, 1),
        own("g1", Some("a"), "grove.turn", json!({"end": 1})),
        own("g2", Some("a"), "grove.turn", json!({})),
    ]));
    let index = log.index();
    assert_eq!(leaf(index).as_deref(), Some("a"));
    assert_eq!(branch(index), ["a"]);
    assert_eq!(roots(index), ["a"]);
    assert_eq!(children(index, "a"), [""; 0]);
    assert!(Children::in_file_order(index).of(index.find("a").unwrap()).is_empty());
    assert_eq!(ids(index), ["g0", "a", "g1", "g2"], "the file holds them all the same");
    assert_eq!(index.owner(index.find("g1").unwrap()), Owner::Grove);
    assert_eq!(damage(index), [""; 0]);
}

#[test]
fn what_hangs_from_an_own_entry_hangs_from_its_parent() {
    // As pi appends to a log of Grove's: its leaf is the last line.
    let log = opened(log_of(&[
        user("a", None, 1),
        own("g1", Some("a"), "grove.turn", json!({})),
        own("g2", Some("g1"), "grove.turn", json!({})),
        user("b", Some("g2"), 2),
        user("c", Some("b"), 3),
    ]));
    assert_eq!(branch(log.index()), ["a", "b", "c"]);
    assert_eq!(children(log.index(), "a"), ["b"]);
    assert_eq!(log.index().parent_id(log.index().find("b").unwrap()).unwrap(), "g2");
}

#[test]
fn only_custom_entries_of_groves_prefix_are_own() {
    let mut message = own("m", Some("a"), "grove.x", json!({}));
    message["type"] = json!("custom_message");
    let log = opened(log_of(&[user("a", None, 1), own("o", Some("a"), "groves.x", json!({})), message]));
    assert_eq!(branch(log.index()), ["a", "m"]);
    assert_eq!(children(log.index(), "a"), ["o", "m"]);
}

#[test]
fn a_leaf_mark_moves_the_leaf() {
    let start = [user("a", None, 1), user("b", Some("a"), 2)];
    let with = |more: &[serde_json::Value]| opened(log_of(&[&start, more].concat()));
    let mark = |id: serde_json::Value| own("g", Some("a"), "grove.leaf", json!({"leafId": id}));
    assert_eq!(leaf(with(&[mark(json!("a"))]).index()).as_deref(), Some("a"));
    assert_eq!(leaf(with(&[mark(json!(null))]).index()), None);
    let moved_on = with(&[mark(json!("a")), user("c", Some("a"), 3)]);
    assert_eq!(branch(moved_on.index()), ["a", "c"], "the next entry is the leaf again");
    let unknown = with(&[mark(json!("gone"))]);
    assert_eq!(leaf(unknown.index()).as_deref(), Some("b"));
    assert_eq!(damage(unknown.index()), ["4 unknownLeaf"]);
    let own_one = with(&[mark(json!("g"))]);
    assert_eq!(damage(own_one.index()), ["4 unknownLeaf"]);
    for nonsense in [json!(7), json!({})] {
        assert_eq!(leaf(with(&[mark(nonsense)]).index()).as_deref(), Some("b"));
    }
}

#[test]
fn own_entries_that_are_a_cycle_hang_from_nothing() {
    let log = opened(log_of(&[
        own("g1", Some("g2"), "grove.x", json!({})),
        own("g2", Some("g1"), "grove.x", json!({})),
        user("a", Some("g1"), 1),
        own("g3", Some("b"), "grove.x", json!({})),
        user("b", Some("g3"), 2),
    ]));
    assert_eq!(roots(log.index()), ["a", "b"]);
    assert_eq!(branch(log.index()), ["b"]);
}

#[test]
fn the_field_grove_is_kept_as_it_stands() {
    let line = r#"{"type":"message","id":"a","parentId":null,"message":{},"grove": {"turn" : "t1","x":"\ud800"} }"#;
    let log = opened(format!("{}{line}\n", log_of(&[])));
    let kept = log.line(log.index().leaf().unwrap());
    assert_eq!(kept, line.as_bytes());
    assert_eq!(field(kept, "grove"), Some(br#"{"turn" : "t1","x":"\ud800"}"#.as_slice()));
    assert_eq!(field(kept, "message.x"), None);
}
