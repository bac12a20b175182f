//! The tree: roots, children, branches, labels, names.

use grove_tree::{Children, EntryType};
use serde_json::{Value, json};

use crate::support::{branch, children, damage, leaf, log_of, opened, roots, user};

fn label(id: &str, parent: &str, target: &str, label: Option<&str>) -> Value {
    let mut entry = json!({"type": "label", "id": id, "parentId": parent, "targetId": target});
    if let Some(label) = label {
        entry["label"] = json!(label);
    }
    entry
}

#[test]
fn the_leaf_is_the_last_entry_of_the_file() {
    let log = opened(log_of(&[user("a", None, 1), user("b", Some("a"), 2), user("c", Some("a"), 3)]));
    assert_eq!(leaf(log.index()).as_deref(), Some("c"));
    assert_eq!(branch(log.index()), ["a", "c"]);
    let empty = opened(log_of(&[]));
    assert_eq!(leaf(empty.index()), None);
    assert_eq!(branch(empty.index()), [""; 0]);
}

#[test]
fn children_are_the_oldest_first_and_roots_in_file_order() {
    let lines = [
        user("r2", None, 9),
        user("r1", None, 1),
        user("late", Some("r1"), 7),
        user("early", Some("r1"), 3),
        user("same", Some("r1"), 7),
    ];
    let log = opened(log_of(&lines));
    assert_eq!(roots(log.index()), ["r2", "r1"]);
    assert_eq!(children(log.index(), "r1"), ["early", "late", "same"]);
    let in_file_order = Children::in_file_order(log.index());
    let ids: Vec<_> = in_file_order.of(log.index().find("r1").unwrap()).iter().map(|e| log.index().id(*e)).collect();
    assert_eq!(ids, ["late", "early", "same"]);
}

#[test]
fn without_a_readable_time_children_stay_in_file_order() {
    let mut odd = user("odd", Some("r"), 1);
    odd["timestamp"] = json!("once upon a time");
    let log = opened(log_of(&[user("r", None, 0), user("late", Some("r"), 7), odd, user("early", Some("r"), 3)]));
    assert_eq!(children(log.index(), "r"), ["late", "odd", "early"]);
}

#[test]
fn a_child_may_stand_before_its_parent() {
    let log = opened(log_of(&[user("b", Some("a"), 2), user("a", None, 1), user("c", Some("b"), 3)]));
    assert_eq!(branch(log.index()), ["a", "b", "c"]);
    assert_eq!(damage(log.index()), [""; 0]);
}

#[test]
fn labels_are_replayed_over_the_whole_file() {
    let log = opened(log_of(&[
        user("a", None, 1),
        user("b", Some("a"), 2),
        label("l1", "b", "a", Some("first")),
        label("l2", "l1", "a", Some("renamed")),
        label("l3", "l2", "b", Some("gone")),
        label("l4", "l3", "b", None),
        label("l5", "l4", "nobody", Some("ghost")),
        label("l6", "l5", "l1", Some("")),
        label("l7", "a", "l2", Some("of a label")),
    ]));
    let index = log.index();
    let labels: Vec<_> = index.labels().map(|(entry, label)| (index.id(entry).into_owned(), label)).collect();
    assert_eq!(labels, [("a".to_owned(), "renamed"), ("l2".to_owned(), "of a label")]);
    assert_eq!(index.label(index.find("a").unwrap()), Some("renamed"));
    assert_eq!(leaf(index).as_deref(), Some("l7"), "a label is an entry and becomes the leaf");
}

#[test]
fn the_last_name_counts_and_an_empty_one_clears() {
    let info = |id: &str, name: Value| json!({"type": "session_info", "id": id, "parentId": null, "name": name});
    let title = |id: &str, name: &str| json!({"type": "title_change", "id": id, "parentId": null, "title": name});
    let name = |lines: &[Value]| opened(log_of(lines)).index().name();
    assert_eq!(name(&[]), None);
    assert_eq!(name(&[info("1", json!("  one "))]).as_deref(), Some("one"));
    assert_eq!(name(&[info("1", json!("one")), title("2", "two")]).as_deref(), Some("two"));
    assert_eq!(name(&[info("1", json!("one")), info("2", json!(""))]), None);
    assert_eq!(name(&[info("1", json!("one")), json!({"type": "session_info", "id": "2", "parentId": null})]), None);
}

#[test]
fn unknown_types_stand_in_the_tree_like_any_other() {
    let log = opened(log_of(&[
        user("a", None, 1),
        json!({"type": "from_the_future", "id": "f", "parentId": "a", "payload": [1]}),
        json!({"id": "n", "parentId": "f"}),
    ]));
    let index = log.index();
    assert_eq!(branch(index), ["a", "f", "n"]);
    assert_eq!(index.kind(index.find("f").unwrap()), EntryType::Unknown);
    assert_eq!(index.kind(index.find("a").unwrap()), EntryType::Message);
}

#[test]
fn a_million_levels_are_no_deeper_than_ten() {
    let mut text = log_of(&[]);
    let count = 1_000_000;
    for number in 0..count {
        let parent = if number == 0 { "null".to_owned() } else { format!("\"{}\"", number - 1) };
        text.push_str(&format!("{{\"type\":\"custom\",\"id\":\"{number}\",\"parentId\":{parent}}}\n"));
    }
    let log = opened(text);
    let index = log.index();
    assert_eq!(index.branch(index.leaf().unwrap()).len(), count);
    assert_eq!(Children::oldest_first(index).roots().len(), 1);
    assert_eq!(damage(index), [""; 0]);
}

#[test]
fn ids_are_compared_by_what_they_say() {
    let text = log_of(&[])
        + r#"{"type":"custom","id":"\u0061\ud800","parentId":null}
{"type":"custom","id":"b","parentId":"a\uD800"}
"#;
    let log = opened(text);
    assert_eq!(damage(log.index()), [""; 0]);
    assert_eq!(branch(log.index()).len(), 2);
}
