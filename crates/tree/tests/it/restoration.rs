//! A damaged log is completed with the lines of one that was built again, and keeps what it alone has.

use grove_tree::restoration::{Trust, beginning, complete};

use crate::support::{HEADER, branch, damage, ids, log_of, opened, user};

#[test]
fn lines_that_cannot_be_read_come_from_the_other_log_in_their_place() {
    let whole = log_of(&[user("a", None, 1), user("b", Some("a"), 2), user("c", Some("b"), 3)]);
    for at in (0..whole.len()).filter(|at| !whole[..*at].ends_with('\n')) {
        let mut damaged = whole.clone().into_bytes();
        damaged[at] = 0;
        assert_eq!(complete(&damaged, whole.as_bytes(), Trust::Rebuilt { others_from: 0 }), whole.as_bytes(), "{at}");
    }
    let lost = log_of(&[user("a", None, 1), user("c", Some("b"), 3)]);
    assert_eq!(complete(lost.as_bytes(), whole.as_bytes(), Trust::Damaged), whole.as_bytes());
    let torn = &whole[..whole.len() - 5];
    assert_eq!(complete(torn.as_bytes(), whole.as_bytes(), Trust::Damaged), whole.as_bytes());
    assert_eq!(complete(b"", whole.as_bytes(), Trust::Damaged), whole.as_bytes());
    assert_eq!(complete(whole.as_bytes(), b"", Trust::Damaged), whole.as_bytes());
}

#[test]
fn entries_that_the_damaged_log_alone_has_are_kept_where_they_stood() {
    let rebuilt = log_of(&[user("a", None, 1), user("b", Some("a"), 2), user("d", Some("b"), 4)]);
    let damaged =
        log_of(&[user("a", None, 1), user("x", Some("a"), 2), user("d", Some("b"), 4), user("y", Some("d"), 5)]);
    let log = opened(complete(damaged.as_bytes(), rebuilt.as_bytes(), Trust::Damaged));
    assert_eq!(ids(log.index()), ["a", "x", "b", "d", "y"]);
    assert_eq!(branch(log.index()), ["a", "b", "d", "y"]);
    assert_eq!(damage(log.index()), [""; 0]);
    let behind = damaged.find(r#""id":"y""#).unwrap() as u64 - 50;
    let log = opened(complete(damaged.as_bytes(), rebuilt.as_bytes(), Trust::Rebuilt { others_from: behind }));
    assert_eq!(ids(log.index()), ["a", "b", "d", "y"]);
}

#[test]
fn a_line_that_can_be_read_is_not_changed_without_a_proof_unless_its_parent_is_lost() {
    let rebuilt = log_of(&[user("a", None, 1), user("b", Some("a"), 2)]);
    let edited = rebuilt.replace(r#""content":"b""#, r#""content":"B""#);
    assert_eq!(complete(edited.as_bytes(), rebuilt.as_bytes(), Trust::Damaged), edited.as_bytes());
    let orphan = rebuilt.replace(r#""parentId":"a""#, r#""parentId":"e""#);
    assert_eq!(complete(orphan.as_bytes(), rebuilt.as_bytes(), Trust::Damaged), rebuilt.as_bytes());
}

#[test]
fn the_beginning_of_a_log_ends_before_the_entry_that_is_asked_for() {
    let whole = log_of(&[user("a", None, 1), user("b", Some("a"), 2)]);
    let text = whole.replace(HEADER, &format!("{HEADER}\nnonsense"));
    let expected = log_of(&[user("a", None, 1)]);
    assert_eq!(beginning(text.as_bytes(), |id, _| id == "b"), expected.as_bytes());
    assert_eq!(beginning(text.as_bytes(), |_, _| false), whole.as_bytes());
}
