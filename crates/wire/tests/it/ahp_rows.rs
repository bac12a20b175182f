//! The version control state in rows of the list.

use grove_core::*;
use grove_wire::ahp::uri::{SessionUris, Spelling};
use grove_wire::ahp::{Notification, Object, encode, project};
use serde_json::{Value, json};

use crate::random::new_session;

fn session() -> Session {
    let text = |text: &str| Some(text.to_owned());
    let checkout = Checkout {
        root: text("/w/fix"),
        worktree_of: text("/w/site"),
        remote: text("git@github.com:acme/site.git"),
        github: text("acme/site"),
        branch: text("fix"),
        base_branch: text("main"),
        branch_pull_request: text("https://github.com/acme/site/pull/7"),
        own_pull_request: None,
    };
    Session { checkout, lifecycle: Lifecycle::Ready, ..Session::new(&new_session(), Timestamp(1)) }
}

/// The notification of a change of the checkout to subscribers of the root.
fn told(session: &Session) -> Option<Object> {
    let change = SessionEvent::CheckoutChanged(Box::new(session.checkout.clone()));
    match encode::notification(&change, session, &SessionUris::of(session), Spelling::Computed)? {
        Notification::SessionSummaryChanged(changed) => changed.changes.meta,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_row_says_what_is_checked_out_and_a_change_says_all_of_it() {
    let mut session = session();
    let expected = json!({"store": "local", "repositoryNwo": "acme/site", "repositoryUrl": "git@github.com:acme/site.git",
        "repositoryPath": "/w/site", "worktreePath": "/w/fix", "branch": "fix", "baseBranchName": "main",
        "pullRequestUrl": "https://github.com/acme/site/pull/7"});
    let row = |session: &Session| project::summary(session, false, &SessionUris::of(session), Spelling::Computed).meta;
    assert_eq!(row(&session).map(Value::Object), Some(expected));
    assert_eq!(told(&session), row(&session));
    session.checkout.own_pull_request = Some("https://github.com/acme/site/pull/8".to_owned());
    assert_eq!(told(&session).unwrap()["pullRequestUrl"], "https://github.com/acme/site/pull/8");
}

#[test]
fn of_a_session_without_a_row_nothing_is_told() {
    assert_eq!(told(&Session { lifecycle: Lifecycle::Creating, ..session() }), None);
}
