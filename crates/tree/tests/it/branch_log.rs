//! New logs from existing ones.

use grove_core::Timestamp;
use grove_tree::tree_edit::TreeEditError;
use grove_tree::{Ending, Log, LogChunk, NewHeader, NewLog, NewLogError, branch_log, fork_index, fork_log, open};
use serde_json::{Value, json};

use crate::support::{branch, damage, ids, ids_from, leaf, log_of, opened, own, user};

const HEADER: NewHeader<'static> = NewHeader {
    id: "new",
    at: Timestamp(1_767_323_045_678),
    cwd: "/work place",
    parent_session: Some("/old.jsonl"),
    title: None,
};

fn entry(kind: &str, id: &str, parent: &str, second: u32, fields: Value) -> Value {
    let mut entry = user(id, Some(parent), second);
    entry.as_object_mut().unwrap().remove("message");
    entry["type"] = json!(kind);
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    entry
}

fn label(id: &str, parent: &str, second: u32, target: &str, text: &str) -> Value {
    entry("label", id, parent, second, json!({"targetId": target, "label": text}))
}

fn written(log: &Log, new: &NewLog) -> Log {
    let mut bytes = Vec::new();
    new.write(log.index(), log, |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })
    .unwrap();
    let written = open(bytes, &mut || unreachable!()).unwrap();
    assert_eq!(written.index().len(), new.entries);
    assert_eq!(leaf(written.index()), new.leaf);
    written
}

fn branch_of(log: &Log, at: &str) -> Log {
    let new = branch_log(log.index(), log, at, &HEADER, &mut ids_from(1)).unwrap();
    let written = written(log, &new);
    assert_eq!(damage(written.index()), [""; 0]);
    written
}

fn line(log: &Log, id: &str) -> Value {
    serde_json::from_slice(log.line(log.index().find(id).unwrap())).unwrap()
}

#[test]
fn the_branch_and_nothing_else_is_taken_byte_for_byte() {
    let odd = r#"{"type":"message" , "id":"b","parentId":"a","x":1.50,"message":{"role":"user","content":"\ud800"}}"#;
    let text = log_of(&[user("a", None, 1), user("other", Some("a"), 2)]) + odd + "\n";
    let log = opened(text + &format!("{}\n", user("c", Some("b"), 3)));
    let new = branch_of(&log, "b");
    assert_eq!(ids(new.index()), ["a", "b"]);
    assert_eq!(new.line(new.index().find("b").unwrap()), odd.as_bytes());
    let header: Value = serde_json::from_slice(new.index().header().unwrap().line()).unwrap();
    let expected = json!({
        "type": "session", "version": 3, "id": "new", "timestamp": "2026-01-02T03:04:05.678Z", "cwd": "/work place",
        "parentSession": "/old.jsonl",
    });
    assert_eq!(header, expected);
}

#[test]
fn a_session_in_memory_names_no_parent() {
    let log = opened(log_of(&[user("a", None, 1)]));
    let header = NewHeader { parent_session: None, title: Some("Birches"), ..HEADER };
    let new = written(&log, &branch_log(log.index(), &log, "a", &header, &mut ids_from(1)).unwrap());
    assert_eq!(new.index().header().unwrap().parent_session(), None);
    assert_eq!(new.index().name().as_deref(), Some("Birches"));
}

#[test]
fn labels_leave_the_branch_and_are_rebuilt_behind_it_with_their_times() {
    let log = opened(log_of(&[
        user("a", None, 1),
        label("l1", "a", 2, "b", "later"),
        user("b", Some("l1"), 3),
        label("l2", "b", 4, "a", "start"),
        label("l3", "l2", 5, "b", "renamed"),
        user("c", Some("l3"), 6),
        label("l4", "c", 7, "c", "gone"),
        label("l5", "l4", 8, "c", ""),
        user("off", Some("a"), 9),
        label("l6", "off", 10, "off", "elsewhere"),
        label("l7", "l6", 11, "l1", "of a label"),
    ]));
    let new = branch_of(&log, "c");
    let new_ids = ["a", "b", "c", "e0000001", "e0000002"];
    assert_eq!(ids(new.index()), new_ids);
    assert_eq!(branch(new.index()), new_ids, "what hung from a label hangs from what that hung from");
    let labels: Vec<_> =
        new.index().labels().map(|(entry, label)| (new.index().id(entry).into_owned(), label)).collect();
    assert_eq!(labels, [("a".to_owned(), "start"), ("b".to_owned(), "renamed")]);
    // In the order in which the entries were first labelled, with the times of the current labels.
    let first = line(&new, "e0000001");
    assert_eq!((&first["targetId"], &first["timestamp"]), (&json!("b"), &json!("2026-01-02T03:00:05.000Z")));
    let second = line(&new, "e0000002");
    assert_eq!((&second["targetId"], &second["timestamp"]), (&json!("a"), &json!("2026-01-02T03:00:04.000Z")));
    assert_eq!(leaf(new.index()).as_deref(), Some("e0000002"));
}

#[test]
fn a_branch_may_end_at_a_label() {
    let log = opened(log_of(&[user("a", None, 1), label("l", "a", 2, "a", "x")]));
    let new = branch_of(&log, "l");
    assert_eq!(branch(new.index()), ["a", "e0000001"]);
    let only_labels = opened(log_of(&[json!({"type": "label", "id": "l", "parentId": null, "targetId": "l"})]));
    assert_eq!(ids(branch_of(&only_labels, "l").index()), [""; 0]);
}

#[test]
fn a_compaction_that_began_at_a_label_begins_at_the_next_entry_that_stays() {
    let compaction = |id: &str, parent: &str, first: &str| {
        entry("compaction", id, parent, 9, json!({"summary": "s", "firstKeptEntryId": first}))
    };
    let log = opened(log_of(&[
        user("a", None, 1),
        label("l1", "a", 2, "a", "x"),
        label("l2", "l1", 3, "a", "y"),
        user("b", Some("l2"), 4),
        compaction("c1", "b", "l1"),
        user("d", Some("c1"), 5),
        label("l3", "d", 6, "a", "z"),
        compaction("c2", "l3", "l3"),
        compaction("c3", "c2", "b"),
        compaction("c4", "c3", "nowhere"),
    ]));
    let new = branch_of(&log, "c4");
    assert_eq!(line(&new, "c1")["firstKeptEntryId"], "b");
    assert_eq!(line(&new, "c2")["firstKeptEntryId"], "c2", "nothing is left to be kept");
    assert_eq!(line(&new, "c3")["firstKeptEntryId"], "b");
    assert_eq!(line(&new, "c4")["firstKeptEntryId"], "nowhere");
    let rules = grove_tree::Rules::Grove;
    for at in ["c1", "d", "c3"] {
        let messages = |log: &Log| -> Vec<String> {
            let context = log.context(rules, log.index().find(at));
            context.messages.iter().map(|message| message.json.get().to_owned()).collect()
        };
        assert_eq!(messages(&new), messages(&log), "{at}");
    }
}

#[test]
fn the_ends_of_turns_go_with_the_branch_and_leaf_marks_do_not() {
    let end = |id: &str, parent: &str, turn: &str| own(id, Some(parent), "grove.turnEnd", json!({"turn": turn}));
    let answer = |id: &str, parent: &str| {
        let mut entry = user(id, Some(parent), 5);
        entry["message"]["role"] = json!("assistant");
        entry
    };
    let log = opened(log_of(&[
        user("u1", None, 1),
        answer("a1", "u1"),
        answer("a2", "a1"),
        end("e1", "a2", "t1"),
        own("m1", Some("a1"), "grove.leaf", json!({"leafId": "a1"})),
        user("u2", Some("m1"), 2),
        answer("b2", "u2"),
        end("e2", "b2", "t2"),
        label("l", "b2", 3, "u1", "x"),
        end("e3", "l", "t3"),
        user("u3", Some("a2"), 4),
        end("e4", "u3", "t4"),
        own("m2", Some("b2"), "grove.leaf", json!({"leafId": "b2"})),
    ]));
    let new = branch_of(&log, "l");
    // The first turn was left in the middle: its end is recorded all the same.
    assert_eq!(ids(new.index()), ["u1", "a1", "e1", "u2", "b2", "e2", "e3", "e0000001"]);
    assert_eq!(branch(new.index()), ["u1", "a1", "u2", "b2", "e0000001"]);
    assert_eq!(line(&new, "e1")["parentId"], "a1");
    assert_eq!(line(&new, "u2")["parentId"], "a1", "not from a mark");
    assert_eq!(line(&new, "e3")["parentId"], "b2", "not from a label");
}

#[test]
fn an_unknown_entry_has_no_branch() {
    let log = opened(log_of(&[user("a", None, 1), own("g", Some("a"), "grove.turnEnd", json!({}))]));
    for id in ["nope", "g"] {
        let refused = branch_log(log.index(), &log, id, &HEADER, &mut ids_from(1)).unwrap_err();
        assert_eq!(refused, NewLogError::TreeEdit(TreeEditError::UnknownEntry { id: id.into() }));
    }
}

#[test]
fn ids_that_are_in_use_are_not_taken_for_labels() {
    let log = opened(log_of(&[user("e0000001", None, 1), label("e0000002", "e0000001", 2, "e0000001", "x")]));
    assert_eq!(ids(branch_of(&log, "e0000001").index()), ["e0000001", "e0000003"]);
    let mut stuck = || "e0000001".to_owned();
    let refused = branch_log(log.index(), &log, "e0000001", &HEADER, &mut stuck).unwrap_err();
    assert_eq!(refused, NewLogError::NoFreeId);
}

#[test]
fn a_branch_of_a_damaged_log_is_sound() {
    let text = log_of(&[user("orphan", Some("gone"), 1), user("a", Some("orphan"), 2)])
        + "not json\n"
        + &user("b", Some("a"), 3).to_string();
    let log = opened(text);
    assert_eq!(ids(branch_of(&log, "b").index()), ["orphan", "a", "b"]);
    let cyclic = opened(log_of(&[user("x", Some("y"), 1), user("y", Some("x"), 2)]));
    assert_eq!(branch(branch_of(&cyclic, "y").index()), ["x", "y"]);
}

#[test]
fn a_fork_has_every_line_as_it_stands() {
    let lines = [
        user("a", None, 1),
        user("b", Some("a"), 2),
        label("l", "b", 3, "a", "x"),
        user("c", Some("a"), 4),
        own("m", Some("b"), "grove.leaf", json!({"leafId": "b"})),
    ];
    let text = log_of(&lines);
    let body = text.split_once('\n').unwrap().1.to_owned();
    for (ending, torn) in [("", ""), ("", "{\"ty")] {
        let log = opened(text.trim_end_matches(ending).to_owned() + torn);
        let new = written(&log, &fork_log(log.index(), &HEADER));
        // Without damage, its index is known without reading it.
        let known = fork_index(log.index(), &HEADER).map(|index| format!("{index:?}"));
        let is_sound = log.index().damage().is_empty() && log.index().ending() == Ending::Whole;
        assert_eq!(known, (is_sound && !log.index().is_empty()).then(|| format!("{:?}", new.index())));
        assert!(new.bytes().ends_with(body.as_bytes()));
        assert_eq!(new.bytes().iter().filter(|byte| **byte == b'\n').count(), 6);
        assert_eq!(leaf(new.index()).as_deref(), Some("b"));
    }
    let no_newline = opened(text.trim_end());
    assert!(written(&no_newline, &fork_log(no_newline.index(), &HEADER)).bytes().ends_with(body.as_bytes()));
    let empty = opened(log_of(&[]));
    assert_eq!(written(&empty, &fork_log(empty.index(), &HEADER)).index().len(), 0);
}

#[test]
fn lines_that_stand_together_are_one_piece() {
    let lines: Vec<Value> = (0..100u32)
        .map(|number| user(&number.to_string(), number.checked_sub(1).map(|n| n.to_string()).as_deref(), number))
        .collect();
    let log = opened(log_of(&lines));
    let new = branch_log(log.index(), &log, "99", &HEADER, &mut ids_from(1)).unwrap();
    assert_eq!(new.pieces.len(), 2);
    assert!(matches!(new.pieces[1], LogChunk::Copy { .. }));
}
