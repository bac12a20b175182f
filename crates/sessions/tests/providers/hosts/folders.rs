//! The repository of a folder, on a Grove host whose rows do not name it.

use grove_sessions::SessionsProvider;
use grove_sessions::provider::Availability;
use serde_json::{Value, json};

use super::faulty_host::{FaultyHost, initialized, row, unknown};
use super::harness::until;

const MANIFEST: &str = "x-grove/workspace/manifest";

fn row_in(name: &str, folder: &str, meta: Value) -> Value {
    let mut row = row(name, 1);
    row["workingDirectories"] = json!([format!("file://{folder}")]);
    row["_meta"] = meta;
    row
}

#[tokio::test]
async fn the_repository_of_a_folder_that_is_first_used_later_is_learnt_at_once_and_once() {
    let host = FaultyHost::start(Box::new(|method, params| match method {
        "initialize" => {
            let mut answer = initialized("1.0.0");
            answer["_meta"] = json!({"x-grove": {"version": 1, "methods": [MANIFEST]}});
            Ok(answer)
        }
        "listSessions" => Ok(json!({"items": []})),
        MANIFEST => Ok(json!({"id": params["channel"], "path": "/sessions/1", "gitRoot": "/srv/site",
            "repository": "acme/site", "userNamed": false, "summaryCount": 0, "forkCount": 0})),
        _ => Err(unknown()),
    }))
    .await;
    let provider = host.provider();
    until("a connection", || provider.availability() == Availability::Ready).await;
    provider.listed().await;
    let add = |row: Value| host.tell("root/sessionAdded", json!({"channel": "ahp-root://", "summary": row}));
    let told = |title: &str| provider.sessions().into_iter().find(|session| &*session.title() == title);
    let is_known = |title: &str| told(title).is_some_and(|session| session.github_info().is_some());

    add(row_in("first", "/srv/site", Value::Null));
    until("its repository", || is_known("first")).await;
    assert_eq!(
        told("first").unwrap().workspace().unwrap().repositories[0].identity.as_deref(),
        Some("github.com/acme/site")
    );
    add(row_in("second", "/srv/site", Value::Null));
    add(row_in("third", "/srv/other", json!({"repositoryNwo": "acme/other"})));
    until("the others", || is_known("second") && is_known("third")).await;
    assert_eq!(host.heard(MANIFEST), 1, "a folder is asked for once, and one of which its row tells is not");
    // Nobody asks for it a moment later either.
    add(row_in("fourth", "/srv/last", Value::Null));
    until("the last repository", || is_known("fourth")).await;
    assert_eq!(host.heard(MANIFEST), 2);
}
