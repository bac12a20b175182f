//! Navigation in a tree.

use grove_core::{Attachment, AttachmentKind, Message};
use grove_tree::Log;
use grove_tree::navigate::{
    BranchPointError, NavigateOptions, Navigation, TreePreparation, branch_point, prepare, resolve_target,
};
use grove_tree::tree_edit::TreeEditError;
use serde_json::{Value, json};

use crate::support::{log_of, opened, own, user};

fn entry(kind: &str, id: &str, parent: Option<&str>, fields: Value) -> Value {
    let mut entry = user(id, parent, 9);
    entry.as_object_mut().unwrap().remove("message");
    entry["type"] = json!(kind);
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    entry
}

fn assistant(id: &str, parent: &str) -> Value {
    entry("message", id, Some(parent), json!({"message": {"role": "assistant", "content": []}}))
}

/// Two branches from `b`: `c d` and `e f`; the leaf is `f`. And another root `z`.
fn forked(more: &[Value]) -> Log {
    let lines = [
        user("z", None, 0),
        user("a", None, 1),
        assistant("b", "a"),
        user("c", Some("b"), 3),
        assistant("d", "c"),
        user("e", Some("b"), 5),
        assistant("f", "e"),
    ];
    opened(log_of(&[&lines, more].concat()))
}

fn prepared(log: &Log, target: Option<&str>) -> TreePreparation {
    match prepare(log.index(), target, NavigateOptions::default()).unwrap() {
        Navigation::MoveTo(preparation) => preparation,
        Navigation::AlreadyThere => panic!("one is not there"),
    }
}

fn left(log: &Log, target: Option<&str>) -> (Option<String>, Vec<String>) {
    let preparation = prepared(log, target);
    let left = preparation.entries_to_summarize.iter().map(|entry| log.index().id(*entry).into_owned());
    (preparation.common_ancestor_id, left.collect())
}

fn ids(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_left_is_what_the_old_branch_has_behind_the_common_ancestor() {
    let log = forked(&[]);
    assert_eq!(left(&log, Some("d")), (Some("b".into()), ids(&["e", "f"])));
    assert_eq!(left(&log, Some("b")), (Some("b".into()), ids(&["e", "f"])));
    // A user message that is the target itself is not abandoned.
    assert_eq!(left(&log, Some("e")), (Some("e".into()), ids(&["f"])));
    assert_eq!(left(&log, Some("z")), (None, ids(&["a", "b", "e", "f"])));
    assert_eq!(left(&log, None), (None, ids(&["a", "b", "e", "f"])));
    let before_all = forked(&[own("m", None, "grove.leaf", json!({"leafId": null}))]);
    assert_eq!(left(&before_all, Some("d")), (None, ids(&[])));
}

#[test]
fn a_preparation_says_everything_that_a_hook_may_want_to_know() {
    let log = forked(&[]);
    let options = NavigateOptions {
        summarize: true,
        custom_instructions: Some("errors".into()),
        replace_instructions: true,
        label: Some("here".into()),
    };
    let Navigation::MoveTo(preparation) = prepare(log.index(), Some("d"), options).unwrap() else { panic!() };
    let entries = ["e", "f"].map(|id| log.index().find(id).unwrap());
    let expected = TreePreparation {
        target_id: Some("d".into()),
        old_leaf_id: Some("f".into()),
        common_ancestor_id: Some("b".into()),
        entries_to_summarize: entries.to_vec(),
        user_wants_summary: true,
        custom_instructions: Some("errors".into()),
        replace_instructions: true,
        label: Some("here".into()),
    };
    assert_eq!(preparation, expected);
}

#[test]
fn going_to_the_leaf_is_nothing() {
    let log = forked(&[]);
    assert_eq!(prepare(log.index(), Some("f"), NavigateOptions::default()), Ok(Navigation::AlreadyThere));
    let user_leaf = forked(&[user("g", Some("f"), 7)]);
    assert_eq!(prepare(user_leaf.index(), Some("g"), NavigateOptions::default()), Ok(Navigation::AlreadyThere));
    let empty = opened(log_of(&[]));
    assert_eq!(prepare(empty.index(), None, NavigateOptions::default()), Ok(Navigation::AlreadyThere));
}

#[test]
fn nobody_goes_where_nothing_is() {
    let unknown = Err(TreeEditError::UnknownEntry { id: "nope".into() });
    assert_eq!(prepare(forked(&[]).index(), Some("nope"), NavigateOptions::default()), unknown);
}

#[test]
fn messages_of_users_and_extensions_are_taken_back_and_anything_else_is_the_leaf() {
    let log = forked(&[
        entry("custom_message", "m", Some("f"), json!({"customType": "x", "content": "note"})),
        entry(
            "message",
            "h",
            Some("m"),
            json!({"message": {"role": "custom", "content": [{"type": "text", "text": "old"}]}}),
        ),
        entry("label", "l", Some("h"), json!({"targetId": "a", "label": "x"})),
    ]);
    let landed = |id: &str| {
        let landing = resolve_target(log.index(), &log, log.index().find(id).unwrap()).unwrap();
        let leaf = landing.leaf.map_or("-".to_owned(), |leaf| log.index().id(leaf).into_owned());
        (leaf, landing.prefill.map(|prefill| prefill.text))
    };
    assert_eq!(landed("a"), ("-".into(), Some("a".into())), "before the first entry");
    assert_eq!(landed("e"), ("b".into(), Some("e".into())));
    assert_eq!(landed("m"), ("f".into(), Some("note".into())));
    assert_eq!(landed("h"), ("m".into(), Some("old".into())));
    for id in ["b", "f", "l"] {
        assert_eq!(landed(id), (id.into(), None));
    }
}

#[test]
fn a_prompt_gets_the_text_the_images_and_the_attachments_back() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AA=="});
    let attachment = Attachment { kind: AttachmentKind::File, path: "/a.rs".into(), display_name: None };
    let message = Message { attachments: vec![attachment], ..Message::user("") };
    let content = json!([{"type": "text", "text": "look "}, image, {"type": "text", "text": "here"}]);
    let mut line = user("u", Some("f"), 8);
    line["message"]["content"] = content;
    line["grove"] = json!({"turn": "t", "message": message});
    let log = forked(&[line]);
    let point = branch_point(log.index(), &log, "u").unwrap();
    assert_eq!(point.prefill.text, "look here");
    assert_eq!(point.prefill.message, Some(message));
    assert_eq!(
        point.prefill.blocks.iter().map(|b| serde_json::from_str::<Value>(b).unwrap()).collect::<Vec<_>>(),
        [image]
    );
    let landing = resolve_target(log.index(), &log, log.index().find("u").unwrap()).unwrap();
    assert_eq!(landing.prefill, Some(point.prefill));
}

#[test]
fn a_session_branches_off_before_a_message_of_the_user_and_nowhere_else() {
    let log = forked(&[own("g", Some("f"), "grove.turnEnd", json!({})), user("n", Some("g"), 8)]);
    let point = |id: &str| branch_point(log.index(), &log, id);
    assert_eq!(point("a").unwrap().leaf, None, "from the first message a new session begins empty");
    assert_eq!(point("e").unwrap().leaf, log.index().find("b"));
    assert_eq!(point("n").unwrap().leaf, log.index().find("f"), "not from what is Grove's own");
    for id in ["b", "f"] {
        assert_eq!(point(id), Err(BranchPointError::NotAUserMessage { id: id.into() }));
    }
    assert!(matches!(point("nope"), Err(BranchPointError::TreeEdit(_))));
    assert!(matches!(point("g"), Err(BranchPointError::TreeEdit(_))));
}
