//! Moving the leaf, labels, and the lines that Grove writes.

use grove_core::Timestamp;
use grove_tree::entries::{self, BranchSummary, Compaction, CustomMessage, Stamp, SummaryOrigin};
use grove_tree::tree_edit::{self, NewEntry, TreeEdit, TreeEditError};
use grove_tree::{Log, Rules};
use serde_json::{Value, json};

use crate::support::{branch, children, damage, leaf, log_of, opened, own, roots, user};

const AT: Timestamp = Timestamp(1_767_323_045_678);

fn new(id: &str) -> NewEntry<'_> {
    NewEntry { id, at: AT }
}

fn start() -> Log {
    opened(log_of(&[user("a", None, 1), user("b", Some("a"), 2), user("c", Some("b"), 3)]))
}

/// The log with a further line.
fn with(log: &Log, line: &[u8]) -> Log {
    let mut index = log.index().clone();
    index.append(line).unwrap();
    let log = opened([log.bytes(), line, b"\n"].concat());
    assert_eq!(leaf(log.index()), leaf(&index), "the index follows its log");
    assert_eq!(damage(log.index()), [""; 0]);
    log
}

fn done(log: &Log, plan: &TreeEdit) -> Log {
    let log = plan.line.as_ref().map_or_else(|| log.clone(), |line| with(log, line));
    assert_eq!(leaf(log.index()), plan.leaf);
    log
}

fn json_of(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

#[test]
fn after_a_move_the_leaf_is_the_target_and_the_next_entry_hangs_from_it() {
    let moved = done(&start(), &tree_edit::branch(start().index(), "a", new("m")).unwrap());
    assert_eq!(branch(moved.index()), ["a"]);
    assert_eq!(children(moved.index(), "a"), ["b"], "nothing was added to the tree");
    let next = with(&moved, user("d", Some("a"), 4).to_string().as_bytes());
    assert_eq!(branch(next.index()), ["a", "d"]);
    assert_eq!(children(next.index(), "a"), ["b", "d"]);
}

#[test]
fn a_program_that_takes_the_last_line_for_the_leaf_lands_on_the_same_branch() {
    let moved = done(&start(), &tree_edit::branch(start().index(), "a", new("m")).unwrap());
    let last = moved.index().entries().next_back().unwrap();
    assert_eq!(moved.index().parent_id(last).unwrap(), "a");
    // The entry that it appends there is in the right place.
    let next = with(&moved, user("d", Some("m"), 4).to_string().as_bytes());
    assert_eq!(branch(next.index()), ["a", "d"]);
}

#[test]
fn after_a_reset_the_next_entry_is_a_root_and_the_context_is_empty() {
    let reset = done(&start(), &tree_edit::reset_leaf(start().index(), new("m")));
    assert_eq!(leaf(reset.index()), None);
    assert!(reset.context(Rules::Grove, reset.index().leaf()).messages.is_empty());
    let next = with(&reset, user("d", None, 4).to_string().as_bytes());
    assert_eq!(roots(next.index()), ["a", "d"]);
}

#[test]
fn the_leaf_outlives_a_restart_and_needs_no_second_mark() {
    let moved = done(&start(), &tree_edit::branch(start().index(), "b", new("m")).unwrap());
    let again = opened(moved.bytes());
    assert_eq!(leaf(again.index()).as_deref(), Some("b"));
    assert_eq!(tree_edit::branch(again.index(), "b", new("n")).unwrap().line, None);
    let empty = opened(log_of(&[]));
    assert_eq!(tree_edit::reset_leaf(empty.index(), new("n")), TreeEdit { line: None, leaf: None });
    let back = tree_edit::branch(again.index(), "c", new("n")).unwrap();
    assert_eq!(leaf(done(&again, &back).index()).as_deref(), Some("c"));
}

#[test]
fn an_unknown_entry_is_an_error_that_changes_nothing() {
    let log = opened(log_of(&[user("a", None, 1), own("g", Some("a"), "grove.turnEnd", json!({}))]));
    let index = log.index();
    for id in ["nope", "", "g"] {
        let unknown = Err(TreeEditError::UnknownEntry { id: id.to_owned() });
        assert_eq!(tree_edit::branch(index, id, new("n")), unknown, "{id}");
        assert_eq!(tree_edit::branch_with_summary(index, Some(id), "s", None, SummaryOrigin::Host, new("n")), unknown);
        assert_eq!(tree_edit::label(index, id, Some("l"), new("n")), unknown);
    }
    assert!(TreeEditError::UnknownEntry { id: "nope".into() }.to_string().contains("look at its tree again"));
}

#[test]
fn a_summary_hangs_from_the_target_and_says_what_was_gone_to() {
    let details = json!({"readFiles": ["a.rs"]});
    let plan = tree_edit::branch_with_summary(
        start().index(),
        Some("a"),
        "tried b",
        Some(&details),
        SummaryOrigin::Extension,
        new("s"),
    );
    let plan = plan.unwrap();
    let line = json_of(plan.line.as_ref().unwrap());
    assert_eq!((&line["parentId"], &line["fromId"]), (&json!("a"), &json!("a")));
    assert_eq!((&line["fromHook"], &line["fromExtension"]), (&json!(true), &json!(true)));
    assert_eq!((&line["summary"], &line["details"]), (&json!("tried b"), &details));
    assert_eq!(branch(done(&start(), &plan).index()), ["a", "s"]);
}

#[test]
fn a_summary_before_the_first_entry_says_root() {
    let plan = tree_edit::branch_with_summary(start().index(), None, "all of it", None, SummaryOrigin::Host, new("s"))
        .unwrap();
    let line = json_of(plan.line.as_ref().unwrap());
    assert_eq!((&line["parentId"], &line["fromId"]), (&Value::Null, &json!("root")));
    assert_eq!((&line["fromHook"], &line["fromExtension"]), (&json!(false), &json!(false)));
    assert_eq!(line.get("details"), None);
    assert_eq!(roots(done(&start(), &plan).index()), ["a", "s"]);
}

#[test]
fn a_summary_of_another_program_is_read_as_it_is() {
    // pi 1.5 writes the abandoned leaf into fromId.
    let summary = json!({
        "type": "branch_summary", "id": "s", "parentId": "a", "timestamp": "2026-01-02T03:04:05.000Z", "fromId": "c",
        "summary": "tried",
    });
    let log = with(&start(), summary.to_string().as_bytes());
    let context = log.context(Rules::Pi, log.index().leaf());
    let message: Value = serde_json::from_str(context.messages[1].json.get()).unwrap();
    assert_eq!(message["fromId"], "c");
}

#[test]
fn a_label_is_an_entry_at_the_leaf_and_holds_at_once_on_every_branch() {
    let labelled = done(&start(), &tree_edit::label(start().index(), "a", Some("first"), new("l1")).unwrap());
    assert_eq!(leaf(labelled.index()).as_deref(), Some("l1"));
    assert_eq!(labelled.index().parent_id(labelled.index().find("l1").unwrap()).unwrap(), "c");
    assert_eq!(labelled.index().label(labelled.index().find("a").unwrap()), Some("first"));
    let elsewhere = done(&labelled, &tree_edit::branch(labelled.index(), "a", new("m")).unwrap());
    assert_eq!(elsewhere.index().label(elsewhere.index().find("a").unwrap()), Some("first"));
    let again = done(&elsewhere, &tree_edit::label(elsewhere.index(), "a", Some("second"), new("l2")).unwrap());
    assert_eq!(again.index().label(again.index().find("a").unwrap()), Some("second"));
    assert_eq!(again.index().labelled_by(again.index().find("a").unwrap()), again.index().find("l2"));
    for cleared in [None, Some("")] {
        let cleared = done(&again, &tree_edit::label(again.index(), "a", cleared, new("l3")).unwrap());
        assert_eq!(cleared.index().label(cleared.index().find("a").unwrap()), None);
        assert_eq!(cleared.index().labels().count(), 0);
    }
}

#[test]
fn a_compaction_begins_on_the_branch_or_not_at_all() {
    let moved = done(&start(), &tree_edit::branch(start().index(), "b", new("m")).unwrap());
    let compaction = |first_kept| Compaction {
        summary: "so far",
        first_kept,
        tokens_before: 42,
        details: None,
        origin: SummaryOrigin::Host,
    };
    let refused = tree_edit::compact(moved.index(), &compaction(Some("c")), new("x"));
    assert_eq!(refused, Err(TreeEditError::NotOnBranch { id: "c".into() }));
    assert!(tree_edit::compact(moved.index(), &compaction(Some("nope")), new("x")).is_err());
    let kept = done(&moved, &tree_edit::compact(moved.index(), &compaction(Some("b")), new("x")).unwrap());
    let nothing = done(&moved, &tree_edit::compact(moved.index(), &compaction(None), new("x")).unwrap());
    for rules in [Rules::Pi, Rules::Omp, Rules::Grove] {
        assert_eq!(kept.context(rules, kept.index().leaf()).messages.len(), 2, "{rules:?}");
        assert_eq!(nothing.context(rules, nothing.index().leaf()).messages.len(), 1, "{rules:?}");
    }
}

#[test]
fn every_line_fits_its_log_and_says_what_it_was_told() {
    let content = json!([{"type": "text", "text": "note"}]);
    let stamp = |id| Stamp { id, parent: Some("c"), at: AT };
    let summary = BranchSummary { from: None, summary: "\"s\"\n", details: None, origin: SummaryOrigin::Host };
    let compaction = Compaction {
        summary: "s",
        first_kept: Some("b"),
        tokens_before: 9,
        details: Some(&content),
        origin: SummaryOrigin::Extension,
    };
    let message = CustomMessage { custom_type: "ext", content: &content, display: true, details: None };
    let base = |kind: &str, id: &str| json!({"type": kind, "id": id, "parentId": "c", "timestamp": "2026-01-02T03:04:05.678Z"});
    let cases = [
        (entries::label(stamp("1"), "a", Some("l\u{1f332}")), "label", json!({"targetId": "a", "label": "l\u{1f332}"})),
        (entries::label(stamp("1"), "a", None), "label", json!({"targetId": "a"})),
        (
            entries::branch_summary(stamp("1"), &summary),
            "branch_summary",
            json!({"fromId": "root", "summary": "\"s\"\n", "fromHook": false, "fromExtension": false}),
        ),
        (
            entries::compaction(stamp("1"), &compaction),
            "compaction",
            json!({"summary": "s", "firstKeptEntryId": "b", "tokensBefore": 9, "details": content, "fromHook": true,
                "fromExtension": true}),
        ),
        (
            entries::model_change(stamp("1"), "acme", "oak/2"),
            "model_change",
            json!({"provider": "acme", "modelId": "oak/2", "model": "acme/oak/2", "role": "default"}),
        ),
        (entries::thinking_level_change(stamp("1"), "high"), "thinking_level_change", json!({"thinkingLevel": "high"})),
        (entries::mode_change(stamp("1"), "plan", Some(&json!(1))), "mode_change", json!({"mode": "plan", "data": 1})),
        (
            entries::custom_message(stamp("1"), &message),
            "custom_message",
            json!({"customType": "ext", "content": content, "display": true}),
        ),
        (entries::session_info(stamp("1"), "Birches"), "session_info", json!({"name": "Birches"})),
    ];
    for (line, kind, fields) in cases {
        let mut expected = base(kind, "1");
        expected.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(json_of(&line), expected);
        assert_eq!(leaf(with(&start(), &line).index()).as_deref(), Some("1"));
    }
}

#[test]
fn both_programs_find_the_model_and_the_level_that_were_set() {
    let log = start();
    let log = with(&log, &entries::model_change(Stamp { id: "m", parent: Some("c"), at: AT }, "acme", "oak"));
    let log = with(&log, &entries::thinking_level_change(Stamp { id: "t", parent: Some("m"), at: AT }, "low"));
    let log = with(&log, &entries::mode_change(Stamp { id: "o", parent: Some("t"), at: AT }, "plan", None));
    let context = |rules| serde_json::to_value(log.context(rules, log.index().leaf())).unwrap();
    for rules in [Rules::Pi, Rules::Grove] {
        assert_eq!(context(rules)["model"], json!({"provider": "acme", "modelId": "oak"}));
    }
    assert_eq!(context(Rules::Omp)["model"], json!({"default": "acme/oak"}));
    assert_eq!(context(Rules::Omp)["mode"], "plan");
    assert_eq!(context(Rules::Grove)["mode"], "plan");
    assert_eq!(context(Rules::Pi)["thinkingLevel"], "low");
}
