//! Versions 1 and 2 are migrated to version 3.

use grove_tree::{LogError, open};
use serde_json::{Value, json};

use crate::support::{branch, damage, ids_from, opened};

/// A file of these lines as version 3.
fn migrated(lines: &[&str]) -> Vec<Value> {
    let log = opened(lines.join("\n") + "\n");
    assert!(log.migrated_from().is_some());
    let text = String::from_utf8(log.bytes().to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!(line))).collect()
}

#[test]
fn entries_of_version_1_get_ids_and_hang_in_a_row() {
    let lines = migrated(&[
        r#"{"type":"session","id":"s","provider":"p"}"#,
        r#"{"type":"message","message":{"role":"user"}}"#,
        r#"{"type":"compaction","firstKeptEntryIndex":1,"summary":"x"}"#,
        r#"{"type":"message","id":"old","parentId":"older","message":{"role":"hookMessage","content":"h"}}"#,
    ]);
    assert_eq!(lines[0], json!({"type": "session", "id": "s", "provider": "p", "version": 3}));
    assert_eq!(lines[1]["id"], "e0000001");
    assert_eq!(lines[1]["parentId"], Value::Null);
    let compaction = json!({"type": "compaction", "summary": "x", "id": "e0000002", "parentId": "e0000001",
        "firstKeptEntryId": "e0000001"});
    assert_eq!(lines[2], compaction);
    assert_eq!((&lines[3]["id"], &lines[3]["parentId"]), (&json!("e0000003"), &json!("e0000002")));
    assert_eq!(lines[3]["message"], json!({"role": "custom", "content": "h"}));
}

#[test]
fn an_index_counts_lines_that_can_be_read() {
    let kept = |index: &str| {
        let compaction = format!(r#"{{"type":"compaction","firstKeptEntryIndex":{index}}}"#);
        let lines = migrated(&[
            r#"{"type":"session","id":"s"}"#,
            r#"{"type":"message"}"#,
            "{bad",
            "null",
            "7",
            &compaction,
            r#"{"type":"message","id":"later"}"#,
            r#"{"type":"message"}"#,
        ]);
        assert!(lines[5].get("firstKeptEntryIndex").is_none_or(|_| index == "\"1\""));
        lines[5].get("firstKeptEntryId").cloned()
    };
    assert_eq!(kept("1"), Some(json!("e0000001")));
    assert_eq!(kept("1.0"), Some(json!("e0000001")));
    assert_eq!(kept("3"), Some(json!("e0000002")), "itself");
    assert_eq!(kept("4"), Some(json!("later")), "an id that is still to be replaced");
    for nothing in ["0", "2", "5", "99", "-1", "1.5", "\"1\""] {
        assert_eq!(kept(nothing), None, "{nothing}");
    }
}

#[test]
fn version_2_changes_only_hook_messages() {
    let lines = [
        r#"{"type":"session","version":2,"id":"s"}"#,
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user", "content":"\ud800"} }"#,
        "{bad",
        r#"{"type":"message","id":"h","parentId":"a","message":{"role":"hookMessage","content":"\ud800"}}"#,
    ];
    let log = opened(lines.join("\n"));
    let text = String::from_utf8(log.bytes().to_vec()).unwrap();
    let after: Vec<&str> = text.split('\n').collect();
    assert_eq!(after[0], r#"{"type":"session","version":3,"id":"s"}"#);
    assert_eq!(after[1..3], lines[1..3], "what is not touched stays byte for byte");
    assert_eq!(
        after[3],
        r#"{"type":"message","id":"h","parentId":"a","message":{"role":"custom","content":"\ud800"}}"#
    );
    assert_eq!(log.migrated_from(), Some(2));
    assert_eq!(damage(log.index()), ["3 badLine", "4 noFinalNewline"], "migrating hides no damage");
    assert_eq!(branch(log.index()), ["a", "h"]);
}

#[test]
fn migrating_twice_changes_nothing() {
    let old = "{\"type\":\"session\",\"id\":\"s\"}\n{\"type\":\"message\",\"message\":{\"role\":\"user\"}}\n";
    let once = opened(old);
    let twice = open(once.bytes().to_vec(), &mut || unreachable!()).unwrap();
    assert_eq!(twice.migrated_from(), None);
    assert_eq!(twice.bytes(), once.bytes());
}

#[test]
fn a_header_alone_is_migrated_too() {
    for text in ["{\"type\":\"session\",\"id\":\"s\"}", "{\"type\":\"session\",\"id\":\"s\"}\n"] {
        let log = opened(text);
        assert_eq!(log.migrated_from(), Some(1));
        assert_eq!(String::from_utf8_lossy(log.bytes()), text.replace('}', ",\"version\":3}"));
    }
}

#[test]
fn what_has_no_header_is_not_migrated() {
    let text = "{\"type\":\"message\"}\n{\"type\":\"session\"}\n";
    let error = open(text.into(), &mut ids_from(1)).unwrap_err();
    assert_eq!(error, LogError::NoHeader { line: 1 });
}
