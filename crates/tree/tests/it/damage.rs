//! Damage in a log is reported, and everything else is read.

use grove_tree::{Ending, LogError, MAX_DAMAGE, open, repair};
use serde_json::json;

use crate::support::{HEADER, branch, children, damage, ids, leaf, log_of, opened, own, roots, user};

const NOTHING: [&str; 0] = [];

#[test]
fn a_torn_tail_is_told_with_the_place_to_cut() {
    let whole = log_of(&[user("a", None, 1), user("b", Some("a"), 2)]);
    let log = opened(format!("{whole}{{\"type\":\"message\",\"id\":\"c\",\"par"));
    assert_eq!(damage(log.index()), ["4 tornTail"]);
    assert_eq!(log.index().ending(), Ending::Torn { offset: whole.len() as u64 });
    assert_eq!(leaf(log.index()).as_deref(), Some("b"));
    assert_eq!(log.index().damage()[0].offset, whole.len() as u64);
}

#[test]
fn a_tail_of_zeros_is_a_torn_tail() {
    let whole = log_of(&[user("a", None, 1)]);
    let log = opened([whole.as_bytes(), &[0; 100]].concat());
    assert_eq!(damage(log.index()), ["3 tornTail"]);
    assert_eq!(log.index().ending(), Ending::Torn { offset: whole.len() as u64 });
}

#[test]
fn a_missing_line_feed_costs_nothing() {
    let text = log_of(&[user("a", None, 1)]);
    let log = opened(text.trim_end());
    assert_eq!(damage(log.index()), ["2 noFinalNewline"]);
    assert_eq!(log.index().ending(), Ending::NoNewline);
    assert_eq!(ids(log.index()), ["a"]);
    assert_eq!(log.index().log_length(), text.len() as u64 - 1);
}

#[test]
fn bad_lines_are_told_by_number_and_skipped() {
    let first = user("a", None, 1);
    let last = user("z", Some("lost"), 9);
    let text = format!(
        "{HEADER}\n{first}\nnot json\n\n   \n{{\"id\":\"lost\",\n42\n\"text\"\nnull\n[1]\n{{\"no\":\"id\"}}\n{{\"id\":7}}\n{last}\r\n"
    );
    let log = opened(text);
    let expected = [
        "3 badLine",
        "6 badLine",
        "7 notAnObject",
        "8 notAnObject",
        "9 notAnObject",
        "10 notAnObject",
        "11 noId",
        "12 noId",
        "13 orphan",
    ];
    assert_eq!(damage(log.index()), expected);
    assert_eq!(ids(log.index()), ["a", "z"]);
    assert_eq!(roots(log.index()), ["a", "z"]);
}

#[test]
fn what_is_no_text_is_read_with_replacements() {
    let mut bytes = log_of(&[]).into_bytes();
    bytes.extend(
        b"{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"\xff\"}}\n",
    );
    let log = opened(bytes);
    assert_eq!(damage(log.index()), ["2 notText"]);
    let context = log.context(grove_tree::Rules::Pi, log.index().leaf());
    assert_eq!(context.messages[0].json.get(), "{\"role\":\"user\",\"content\":\"\u{fffd}\"}");
}

#[test]
fn the_last_entry_with_an_id_counts() {
    let mut again = user("a", Some("b"), 5);
    again["message"]["content"] = json!("again");
    let lines = [user("a", None, 1), user("b", None, 2), again, user("c", Some("a"), 6)];
    let log = opened(log_of(&lines));
    assert_eq!(damage(log.index()), ["2 duplicateId"]);
    assert_eq!(ids(log.index()), ["a", "b", "a", "c"]);
    assert_eq!(branch(log.index()), ["b", "a", "c"]);
    assert_eq!(roots(log.index()), ["a", "b"], "it hangs from each of its parents");
    assert_eq!(children(log.index(), "b"), ["a"]);
}

#[test]
fn a_file_that_was_written_twice_is_read_once() {
    let lines = format!("{}\n{}\n", user("a", None, 1), user("b", Some("a"), 2));
    let log = opened(format!("{HEADER}\n{lines}{HEADER}\n{lines}"));
    assert_eq!(damage(log.index()), ["2 duplicateId", "3 duplicateId", "4 secondHeader"]);
    assert_eq!(roots(log.index()), ["a"]);
    assert_eq!(children(log.index(), "a"), ["b"]);
}

#[test]
fn orphans_and_self_parents_are_roots() {
    let mut nonsense = user("n", None, 3);
    nonsense["parentId"] = json!(7);
    let lines = [user("o", Some("gone"), 1), user("s", Some("s"), 2), nonsense, user("c", Some("s"), 4)];
    let log = opened(log_of(&lines));
    assert_eq!(damage(log.index()), ["2 orphan", "3 selfParent", "4 orphan"]);
    assert_eq!(roots(log.index()), ["o", "s", "n"]);
    assert_eq!(branch(log.index()), ["s", "c"]);
    assert_eq!(children(log.index(), "s"), ["c"]);
}

#[test]
fn branches_end_where_they_would_meet_themselves() {
    let lines = [
        user("u", None, 1),
        user("x", Some("z"), 2),
        user("y", Some("x"), 3),
        user("z", Some("y"), 4),
        user("l", Some("y"), 5),
    ];
    let log = opened(log_of(&lines));
    assert_eq!(damage(log.index()), ["3 cycle", "4 cycle", "5 cycle"]);
    assert_eq!(branch(log.index()), ["z", "x", "y", "l"]);
    assert_eq!(roots(log.index()), ["u"]);
}

/// Before titles were normalised, reading a tree could write the same line again, below itself.
#[test]
fn a_line_that_was_written_again_below_itself_costs_nothing_before_it() {
    let name = |id: &str, parent: &str| json!({"type": "session_info", "id": id, "parentId": parent, "name": "n"});
    let lines = [user("a", None, 1), user("b", Some("a"), 2), name("n", "b"), user("c", Some("n"), 3)];
    let twice = [&lines[..], &[name("n", "c")]].concat();
    let log = opened(log_of(&twice));
    assert_eq!(damage(log.index()), ["4 duplicateId"]);
    assert_eq!(branch(log.index()), ["a", "b", "c", "n"]);
    assert_eq!((roots(log.index()), children(log.index(), "b")), (vec!["a".into()], vec!["n".into(), "c".into()]));
    let below_itself = [&twice[..], &[name("n", "n"), name("n", "n")]].concat();
    let log = opened(log_of(&below_itself));
    assert_eq!(damage(log.index()), ["4 duplicateId", "6 duplicateId", "7 duplicateId"]);
    assert_eq!(branch(log.index()), ["a", "b", "c", "n"]);
}

#[test]
fn many_lines_that_were_written_again_are_read_in_one_pass() {
    // Each has the same parent id, which comes again at the end: a search back for each of them would take minutes.
    let many = 60_000;
    let first = user("first", None, 1);
    let chain = (0..many).map(|number| user(&format!("e{number}"), Some("again"), 2));
    let again = |parent: String| user("again", Some(&parent), 3);
    let agains = (0..many).map(|number| again(format!("e{number}")));
    let lines: Vec<_> = [first.clone(), again("first".into())].into_iter().chain(chain).chain(agains).collect();
    let log = opened(log_of(&lines));
    assert_eq!(branch(log.index()), ["first", &format!("e{}", many - 1), "again"]);
}

#[test]
fn what_is_no_log_is_refused() {
    let refused = |text: &str| open(text.into(), &mut || unreachable!()).unwrap_err();
    let entry = user("a", None, 1);
    assert_eq!(refused(&format!("{entry}\n{HEADER}\n")), LogError::NoHeader { line: 1 });
    assert_eq!(refused(&format!("garbage\n\nnull\n{entry}\n")), LogError::NoHeader { line: 4 });
    assert_eq!(refused("42\n"), LogError::NoHeader { line: 1 });
    for text in ["Dear diary,\n", "Dear diary", "\n\n", "  ", "# notes\n{\"type\":\"sess", "{\"typo"] {
        assert_eq!(refused(text), LogError::NothingReadable, "{text:?}");
    }
    let message = refused("Dear diary").to_string();
    assert_eq!(message, "no line is a session header: the file is not a session log and is left unchanged");
}

#[test]
fn what_was_cut_off_before_its_header_is_an_empty_log() {
    for text in
        ["", "{", "{\"type\":\"ses", "{\"type\":\"session\",\"version\":3,\"id\":\"s", "{\"type\":\"title\",\"v\":1"]
    {
        let log = opened(text);
        assert!(log.index().header().is_none() && log.index().is_empty(), "{text:?}");
        assert_eq!(damage(log.index()), [if text.is_empty() { "1 empty" } else { "1 tornTail" }]);
    }
    let slot = "{\"type\":\"title\",\"v\":1,\"title\":\"T\",\"updatedAt\":\"\",\"pad\":\"\"}\n";
    assert_eq!(damage(opened(slot).index()), NOTHING);
    assert_eq!(damage(opened(format!("{slot}{{\"type\":\"se")).index()), ["2 tornTail"]);
}

#[test]
fn a_header_may_follow_lines_that_cannot_be_read() {
    let log = opened(format!("garbage\n{HEADER}\n{}\n", user("a", None, 1)));
    assert_eq!(damage(log.index()), ["1 badLine"]);
    assert_eq!(log.index().header().unwrap().id().as_deref(), Some("s"));
}

#[test]
fn a_version_that_is_not_known_is_refused_by_name() {
    for version in ["4", "99", "3.5", "\"3\"", "{}"] {
        let text = format!("{{\"type\":\"session\",\"version\":{version},\"id\":\"s\"}}\n");
        let error = open(text.into(), &mut || unreachable!()).unwrap_err();
        assert_eq!(error, LogError::UnknownVersion { version: version.to_owned() });
        assert!(error.to_string().contains(&format!("version {version}, and this Grove knows versions 1 to 3")));
    }
}

#[test]
fn much_damage_is_counted_and_not_all_told() {
    let mut text = log_of(&[]);
    (0..MAX_DAMAGE + 5).for_each(|_| text.push_str("x\n"));
    let log = opened(text);
    assert_eq!(log.index().damage().len(), MAX_DAMAGE);
    assert_eq!(log.index().unlisted_damage(), 5);
}

#[test]
fn a_mended_copy_has_the_same_tree_and_no_damage() {
    let damaged = format!(
        "{}junk\n42\n{}\n{{\"torn",
        log_of(&[
            user("a", None, 1),
            user("b", Some("a"), 2),
            user("b", Some("a"), 3),
            user("o", Some("gone"), 4),
            user("s", Some("s"), 5),
            user("x", Some("y"), 6),
            user("y", Some("x"), 7),
            own("g1", Some("g2"), "grove.turn", json!({})),
            own("g2", Some("g1"), "grove.turn", json!({})),
            user("h", Some("g1"), 8),
            user("l", Some("y"), 9),
        ]),
        HEADER,
    );
    let before = opened(&damaged);
    let repaired = repair::repair(&before);
    let after = opened(repaired);
    assert_eq!(damage(after.index()), NOTHING);
    assert_eq!(branch(before.index()), ["x", "y", "l"]);
    assert_eq!(branch(after.index()), ["x", "y", "l"]);
    assert_eq!(roots(after.index()), ["a", "o", "s", "x", "h"]);
    assert_eq!(children(after.index(), "a"), ["b"]);
    let sound = log_of(&[user("a", None, 1), own("g", Some("a"), "grove.turn", json!({}))]);
    assert_eq!(repair::repair(&opened(&sound)), sound.as_bytes(), "what is sound stays as it is");
    assert_eq!(repair::repaired_name("events.jsonl"), "events.repaired.jsonl");
}
