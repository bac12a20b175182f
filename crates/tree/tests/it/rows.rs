//! The tree as flat rows: filters, search, pages.

use grove_tree::{Cursor, EntryRow, Log, Outline, RowFilter, RowsError, RowsRequest, rows};
use serde_json::{Value, json};

use crate::support::{log_of, opened, own, user};

const FILTERS: [RowFilter; 5] =
    [RowFilter::Default, RowFilter::NoTools, RowFilter::UserOnly, RowFilter::LabeledOnly, RowFilter::All];

fn entry(kind: &str, id: &str, parent: &str, fields: Value) -> Value {
    let mut entry = user(id, Some(parent), 30);
    entry.as_object_mut().unwrap().remove("message");
    entry["type"] = json!(kind);
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    entry
}

fn message(id: &str, parent: &str, message: Value) -> Value {
    entry("message", id, parent, json!({ "message": message }))
}

fn assistant(id: &str, parent: &str, content: Value, stop: &str) -> Value {
    message(id, parent, json!({"role": "assistant", "content": content, "stopReason": stop}))
}

fn call(id: &str, command: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": command}})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// One entry of each kind, in a chain: user, silent assistant, result, failed silent assistant, assistant, then
/// bookkeeping, then the leaf.
fn one_of_each() -> Log {
    opened(log_of(&[
        user("u", None, 1),
        assistant(
            "silent",
            "u",
            json!([{"type": "thinking", "thinking": "hm"}, call("c", "cargo test --all")]),
            "toolUse",
        ),
        message(
            "result",
            "silent",
            json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "content": [text("2 passed")]}),
        ),
        assistant("failed", "result", json!([call("d", "rm")]), "error"),
        assistant("said", "failed", json!([text("All  done.\nReally.")]), "stop"),
        entry("label", "label", "said", json!({"targetId": "said", "label": "Milestone"})),
        entry("custom", "custom", "label", json!({"customType": "ext", "data": 1})),
        entry("model_change", "model", "custom", json!({"provider": "acme", "modelId": "oak-2"})),
        entry("thinking_level_change", "level", "model", json!({"thinkingLevel": "high"})),
        entry("session_info", "name", "level", json!({"name": "Birches"})),
        entry("mode_change", "mode", "name", json!({"mode": "plan"})),
        own("g", Some("mode"), "grove.turnEnd", json!({})),
        entry("custom_message", "note", "mode", json!({"customType": "ext", "content": "a note", "display": false})),
        entry("compaction", "compaction", "note", json!({"summary": "so far"})),
        entry("branch_summary", "summary", "compaction", json!({"summary": "tried elsewhere", "fromId": "root"})),
        entry("from_the_future", "unknown", "summary", json!({})),
        assistant("leaf", "unknown", json!([call("e", "ls")]), "toolUse"),
    ]))
}

fn all(log: &Log, filter: RowFilter, search: &str) -> Vec<EntryRow> {
    let request = RowsRequest { filter, search, leaf: log.index().leaf(), after: None, limit: usize::MAX };
    let page = rows(log.index(), log, &request).unwrap();
    assert_eq!(page.next, None);
    assert_eq!(page.total, page.rows.len());
    page.rows
}

fn ids(rows: &[EntryRow]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

#[test]
fn each_filter_shows_what_it_says() {
    let log = one_of_each();
    let preview = |filter| ids(&all(&log, filter, "")).join(" ");
    assert_eq!(preview(RowFilter::Default), "u result failed said note compaction summary unknown leaf");
    assert_eq!(preview(RowFilter::NoTools), "u failed said note compaction summary unknown leaf");
    assert_eq!(preview(RowFilter::UserOnly), "u");
    assert_eq!(preview(RowFilter::LabeledOnly), "said");
    assert_eq!(
        preview(RowFilter::All),
        "u silent result failed said label custom model level name mode note compaction summary unknown leaf"
    );
}

#[test]
fn the_position_is_always_shown() {
    let log = one_of_each();
    for (filter, position) in FILTERS.into_iter().zip(["leaf", "leaf", "u", "said", "leaf"]) {
        for search in ["", "no such words"] {
            let rows = all(&log, filter, search);
            let leaf = rows.iter().find(|row| row.is_leaf).unwrap();
            assert_eq!(leaf.id, position, "{filter:?} {search}");
        }
    }
}

#[test]
fn children_of_hidden_entries_hang_from_the_nearest_visible_one() {
    let log = one_of_each();
    let rows = all(&log, RowFilter::Default, "");
    let parents: Vec<_> = rows.iter().map(|row| row.parent.as_deref().unwrap_or("-")).collect();
    assert_eq!(parents, ["-", "u", "result", "failed", "said", "note", "compaction", "summary", "unknown"]);
    let depths: Vec<_> = rows.iter().map(|row| row.depth).collect();
    assert_eq!(depths, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(rows.iter().all(|row| row.indent == 0), "without a fork nothing is indented");
    assert!(rows.iter().all(|row| row.has_children != row.is_leaf));
}

#[test]
fn the_active_branch_comes_first_among_siblings_and_roots() {
    let log = opened(log_of(&[
        user("r1", None, 1),
        user("a", Some("r1"), 2),
        user("r2", None, 3),
        user("b", Some("r2"), 4),
        user("c", Some("r2"), 5),
        user("c1", Some("c"), 6),
        user("d", Some("r2"), 7),
        own("g", Some("c1"), "grove.leaf", json!({"leafId": "c1"})),
    ]));
    let rows = all(&log, RowFilter::Default, "");
    assert_eq!(ids(&rows), ["r2", "c", "c1", "b", "d", "r1", "a"]);
    let active: Vec<_> = rows.iter().filter(|row| row.is_active).map(|row| row.id.as_str()).collect();
    assert_eq!(active, ["r2", "c", "c1"]);
    assert_eq!(rows.iter().map(|row| row.indent).collect::<Vec<_>>(), [0, 1, 1, 1, 1, 0, 0]);
    let request = RowsRequest { filter: RowFilter::All, search: "", leaf: None, after: None, limit: 99 };
    let page = rows_of(&log, &request);
    assert_eq!(page, ["r1", "a", "r2", "b", "c", "c1", "d"], "before the first entry nothing is active");
}

fn rows_of(log: &Log, request: &RowsRequest<'_>) -> Vec<String> {
    rows(log.index(), log, request).unwrap().rows.into_iter().map(|row| row.id).collect()
}

#[test]
fn rows_show_who_speaks_and_what_is_said() {
    let log = one_of_each();
    let rows = all(&log, RowFilter::All, "");
    let preview: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.preview.role, row.preview.text)).collect();
    assert_eq!(
        preview,
        [
            "user: u",
            "assistant: bash cargo test --all",
            "toolResult: bash cargo test --all 2 passed",
            "assistant: bash rm",
            "assistant: All done. Really.",
            "label: Milestone",
            "custom: ext",
            "model_change: acme/oak-2",
            "thinking_level_change: high",
            "session_info: Birches",
            "mode_change: plan",
            "ext: a note",
            "compaction: so far",
            "branch_summary: tried elsewhere",
            "unknown: from_the_future",
            "assistant: bash ls",
        ]
    );
    assert_eq!(rows[4].label.as_deref(), Some("Milestone"));
    assert_eq!(rows[0].time, Some(1_767_322_801_000));
}

#[test]
fn a_user_message_names_its_turn_and_no_other_entry_does() {
    let mut written = user("w", None, 1);
    written["grove"] =
        json!({"turn": "t1", "message": {"text": "", "attachments": [], "origin": "user", "model": null}});
    let mut answer = assistant("a", "w", json!([text("yes")]), "stop");
    answer["grove"] = json!({"turn": "t1"});
    let log = opened(log_of(&[written, answer, user("x", Some("a"), 3)]));
    let turns: Vec<_> =
        all(&log, RowFilter::All, "").into_iter().map(|row| row.turn.map(|turn| turn.to_string())).collect();
    // Another program names no turns: there it has the entry's id, as when the turns are read.
    assert_eq!(turns, [Some("t1".to_owned()), None, Some("x".to_owned())]);
}

#[test]
fn search_finds_every_word_in_any_order_in_what_a_row_shows() {
    let log = one_of_each();
    let found = |filter, search| ids(&all(&log, filter, search)).join(" ").replace(" leaf", "");
    assert_eq!(found(RowFilter::Default, "TEST cargo"), "result", "the command of a tool's call");
    assert_eq!(found(RowFilter::Default, "milestone"), "said", "a label");
    assert_eq!(found(RowFilter::Default, "done assistant"), "said", "who speaks");
    assert_eq!(found(RowFilter::Default, "elsewhere"), "summary");
    assert_eq!(found(RowFilter::All, "oak-2"), "model");
    assert_eq!(found(RowFilter::All, "plan"), "mode");
    assert_eq!(found(RowFilter::Default, "oak-2"), "leaf", "what is not shown is not found");
    assert_eq!(found(RowFilter::Default, "cargo elsewhere"), "leaf", "all words in one row");
    assert_eq!(found(RowFilter::Default, "   "), found(RowFilter::Default, ""));
}

#[test]
fn groves_own_entries_are_no_rows() {
    for filter in FILTERS {
        assert!(all(&one_of_each(), filter, "").iter().all(|row| row.id != "g"));
    }
}

#[test]
fn entries_of_a_cycle_are_shown_once_each() {
    let log = opened(log_of(&[
        user("off", Some("y"), 1),
        user("x", Some("y"), 2),
        user("y", Some("x"), 3),
        user("z", None, 4),
        user("z2", Some("y"), 5),
    ]));
    let rows = all(&log, RowFilter::All, "");
    assert_eq!(ids(&rows), ["z", "x", "y", "off", "z2"]);
    assert_eq!(rows[1].parent, None);
    let twice =
        opened(log_of(&[user("a", None, 1), user("b", None, 2), user("c", Some("a"), 3), user("c", Some("b"), 4)]));
    assert_eq!(ids(&all(&twice, RowFilter::All, "")), ["b", "c", "a"], "an id that comes twice is where it was last");
}

#[test]
fn the_position_is_the_nearest_row_above_a_leaf_that_the_filter_leaves_out() {
    let result = json!({"type": "message", "id": "r", "parentId": "a", "timestamp": "2026-01-02T03:04:05.000Z",
        "message": {"role": "toolResult", "toolCallId": "c", "content": []}});
    let answer = json!({"type": "message", "id": "a", "parentId": "u", "timestamp": "2026-01-02T03:04:05.000Z",
        "message": {"role": "assistant", "content": "yes"}});
    let label = json!({"type": "label", "id": "l", "parentId": "r", "targetId": "u", "label": "x"});
    let name = json!({"type": "session_info", "id": "n", "parentId": "l", "name": "x"});
    let here = |log: &Log, filter, search: &str| {
        let rows = all(log, filter, search);
        let position: Vec<String> = rows.iter().filter(|row| row.is_leaf).map(|row| row.id.clone()).collect();
        (ids(&rows).join(" "), position.join(" "))
    };
    let position = |preview: &str, at: &str| (preview.to_owned(), at.to_owned());
    for more in [vec![], vec![label.clone()], vec![label.clone(), name]] {
        let log = opened(log_of(&[vec![user("u", None, 1), answer.clone(), result.clone()], more].concat()));
        assert_eq!(here(&log, RowFilter::Default, ""), position("u a r", "r"));
        assert_eq!(here(&log, RowFilter::NoTools, ""), position("u a", "a"));
        assert_eq!(here(&log, RowFilter::UserOnly, ""), position("u", "u"));
        assert_eq!(
            here(&log, RowFilter::NoTools, "nothing that is there"),
            position("a", "a"),
            "a search shows it too"
        );
        let leaf = log.index().id(log.index().leaf().unwrap()).into_owned();
        assert_eq!(here(&log, RowFilter::All, "").1, leaf);
    }
    let unlabelled = opened(log_of(&[user("u", None, 1), json!({"type": "session_info", "id": "n", "parentId": "u"})]));
    assert_eq!(
        here(&unlabelled, RowFilter::LabeledOnly, ""),
        position("u", "u"),
        "there is one where something was said"
    );
    let unsaid = opened(log_of(&[user("u", None, 1), json!({"type": "session_info", "id": "n", "parentId": null})]));
    assert_eq!(
        here(&unsaid, RowFilter::Default, ""),
        position("u", ""),
        "a name before the first message is no position"
    );
}

/// All rows, a page at a time, with entries appended between pages.
fn paged(mut bytes: String, filter: RowFilter, limit: usize, between: &[Value]) -> Vec<String> {
    let mut between = between.iter();
    let mut preview = Vec::new();
    let mut after: Option<Cursor> = None;
    loop {
        let log = opened(&bytes);
        let request = RowsRequest { filter, search: "", leaf: log.index().leaf(), after, limit };
        let page = rows(log.index(), &log, &request).unwrap();
        assert!(page.rows.len() <= limit);
        preview.extend(page.rows.into_iter().map(|row| row.id));
        let Some(next) = page.next else { return preview };
        after = Some(next.to_string().parse().unwrap());
        assert_eq!(after, Some(next));
        if let Some(line) = between.next() {
            bytes.push_str(&format!("{line}\n"));
        }
    }
}

#[test]
fn pages_together_are_the_list_whatever_is_appended_meanwhile() {
    let mut lines = vec![user("r", None, 1)];
    for branch in 0..5 {
        lines.push(user(&format!("b{branch}"), Some("r"), 10 + branch));
        lines.push(user(&format!("c{branch}"), Some(&format!("b{branch}")), 20 + branch));
    }
    let bytes = log_of(&lines);
    let log = opened(&bytes);
    let whole: Vec<String> = all(&log, RowFilter::Default, "").into_iter().map(|row| row.id).collect();
    let between = [
        user("new", Some("b0"), 1),
        own("mark", Some("c2"), "grove.leaf", json!({"leafId": "c2"})),
        user("old", Some("c2"), 0),
        user("root", None, 0),
    ];
    for limit in 1..13 {
        assert_eq!(paged(bytes.clone(), RowFilter::Default, limit, &[]), whole);
        assert_eq!(paged(bytes.clone(), RowFilter::Default, limit, &between), whole, "{limit}");
    }
}

#[test]
fn a_page_goes_on_behind_a_row_that_is_shown_no_more() {
    let label = |id: &str, parent: &str, target: &str, text: &str| {
        entry("label", id, parent, json!({"targetId": target, "label": text}))
    };
    let lines = [
        user("a", None, 1),
        user("b", Some("a"), 2),
        user("c", Some("b"), 3),
        label("l1", "c", "a", "one"),
        label("l2", "l1", "b", "two"),
        label("l3", "l2", "c", "three"),
    ];
    let preview = paged(log_of(&lines), RowFilter::LabeledOnly, 1, &[label("l4", "l3", "a", "")]);
    assert_eq!(preview, ["a", "b", "c"], "a lost its label after it was shown");
}

#[test]
fn a_cursor_that_is_none_is_refused() {
    let log = one_of_each();
    for text in ["", "1", "1.2", "x.1.1", "1.2.3.4", "-1..0", "99999999999..0", "1. .0"] {
        assert!(matches!(text.parse::<Cursor>(), Err(RowsError::UnknownCursor)), "{text}");
    }
    // Beyond the log, an entry of Grove's own, a leaf that did not exist yet.
    for text in ["18..0", "17..17", "17..11", "17.11.0", "3.4.1", "0..0"] {
        let after = Some(text.parse().unwrap());
        let request = RowsRequest { filter: RowFilter::All, search: "", leaf: None, after, limit: 1 };
        assert!(matches!(rows(log.index(), &log, &request), Err(RowsError::UnknownCursor)), "{text}");
    }
}

#[test]
fn only_the_lines_that_are_shown_are_read() {
    use std::borrow::Cow;
    use std::cell::RefCell;
    struct Counting<'a>(&'a Log, RefCell<Vec<(u64, usize)>>);
    impl grove_tree::LogSource for Counting<'_> {
        fn read(&self, offset: u64, length: usize) -> Result<Cow<'_, [u8]>, grove_fs::FsError> {
            self.1.borrow_mut().push((offset, length));
            self.0.read(offset, length)
        }
    }
    let lines: Vec<Value> = (0..500)
        .map(|number: u32| {
            let parent = number.checked_sub(1).map(|parent| parent.to_string());
            let mut entry = user(&number.to_string(), parent.as_deref(), number);
            entry["message"]["content"] = json!("x".repeat(40_000));
            entry
        })
        .collect();
    let log = opened(log_of(&lines));
    let source = Counting(&log, RefCell::default());
    let request =
        RowsRequest { filter: RowFilter::Default, search: "", leaf: log.index().leaf(), after: None, limit: 10 };
    let page = rows(log.index(), &source, &request).unwrap();
    assert_eq!((page.rows.len(), page.total), (10, 500));
    let read: usize = source.1.borrow().iter().map(|(_, length)| length).sum();
    assert!(read < 11 * 41_000, "{read}");
    assert_eq!(Outline::of(log.index(), RowFilter::Default, log.index().leaf()).len(), 500);
}

#[test]
fn filters_are_known_by_their_names() {
    let names = ["default", "no-tools", "user-only", "labeled-only", "all"];
    for (name, filter) in names.into_iter().zip(FILTERS) {
        assert_eq!(name.parse::<RowFilter>(), Ok(filter));
    }
    assert!("labelled".parse::<RowFilter>().unwrap_err().to_string().contains("labeled-only"));
}
