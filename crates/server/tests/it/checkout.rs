//! The checkout of a session's folder: in its row, published when it changes, and stored.

use std::path::Path;

use grove_fs::SessionFs;
use grove_host::Config;
use grove_testkit::ahp::Client;
use grove_wire::ahp::ToolCallState;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{TestHost, until};

const URI: &str = "scripted:/s";
const ROOT: &str = "ahp-root://";
const PULL: &str = "https://github.com/acme/site/pull";

/// A repository with a remote that starts with `main`, on the branch `fix`.
fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), ".git/config", "[remote \"origin\"]\n\turl = https://me:secret@github.com/acme/site.git\n");
    put(folder.path(), ".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n");
    switch(folder.path(), "fix");
    folder
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn switch(folder: &Path, branch: &str) {
    put(folder, ".git/HEAD", &format!("ref: refs/heads/{branch}\n"));
}

async fn session_in(client: &mut Client, folder: &Path) -> String {
    let params = json!({"channel": URI, "workingDirectories": [format!("file://{}", folder.display())]});
    client.ask("createSession", params).await.unwrap();
    client.follow(URI).await
}

/// The members of a session's row beyond those of the protocol.
async fn row(client: &mut Client, session: &str) -> Value {
    let list = client.ask("listSessions", json!({"channel": ROOT})).await.unwrap();
    let row = list["items"].as_array().unwrap().iter().find(|row| row["resource"] == session).cloned();
    row.map(|row| row["_meta"].clone()).unwrap_or_default()
}

async fn until_row(client: &mut Client, session: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    until("the row is so", async || {
        found = row(client, session).await;
        holds(&found)
    })
    .await;
    found
}

/// Runs a turn with a command that has this output.
async fn run(client: &mut Client, chat: &str, turn: &str, output: &str) {
    let tool = json!({"tool": {"name": "shell", "input": "gh pr create", "output": output, "permission": "shell"}});
    client.script(chat, turn, json!([tool])).await;
    let asked = client.call_that(chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
    let approve = json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": asked.id().unwrap(),
        "approved": true, "confirmed": "user-action"});
    client.dispatch(chat, approve).await;
    client.turn_end(chat, turn).await;
}

#[tokio::test(start_paused = true)]
async fn a_row_says_what_is_checked_out_and_no_secret() {
    let folder = repository();
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    session_in(&mut client, folder.path()).await;
    let row = until_row(&mut client, URI, |row| row.get("branch").is_some()).await;
    let path = folder.path().to_str().unwrap();
    let expected = json!({"store": "local", "repositoryNwo": "acme/site", "repositoryPath": path, "branch": "fix",
        "repositoryUrl": "https://github.com/acme/site.git", "baseBranchName": "main"});
    assert_eq!(row, expected);
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_a_turn_switched_to_is_told_as_a_change_of_the_row() {
    let folder = repository();
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = session_in(&mut client, folder.path()).await;
    until_row(&mut client, URI, |row| row["branch"] == "fix").await;
    let mut other = host.ahp("b").await;
    other.subscribe(ROOT).await.unwrap();
    switch(folder.path(), "main");
    assert_eq!(row(&mut client, URI).await["branch"], "fix", "a list looks nowhere");
    client.run_script(&chat, "t1", json!([{"say": "switched"}])).await;
    let told = |other: &Client| {
        let changes = other.told("root/sessionSummaryChanged").into_iter();
        changes.filter_map(|told| told["changes"].get("_meta").cloned()).collect::<Vec<_>>()
    };
    other.until(|other| !told(other).is_empty()).await;
    let expected = row(&mut client, URI).await;
    assert_eq!((&expected["branch"], expected.get("baseBranchName")), (&json!("main"), None), "it is the base itself");
    assert_eq!(told(&other), [expected]);
    // A turn that does not change it publishes nothing.
    client.run_script(&chat, "t2", json!([{"say": "same"}])).await;
    // The clock stands still during a scan.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    other.barrier().await;
    assert_eq!(told(&other).len(), 1);
}

async fn until_manifest(host: &TestHost, line: &str) {
    until("the manifest has the line", async || {
        host.sessions.read_text("s/workspace.yaml").await.is_ok_and(|text| text.contains(line))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pull_request_that_a_command_made_wins_over_the_branchs() {
    let folder = repository();
    let config = std::fs::read_to_string(folder.path().join(".git/config")).unwrap();
    let tied = format!("{config}[branch \"fix\"]\n\tremote = origin\n\tmerge = refs/pull/7/head\n");
    put(folder.path(), ".git/config", &tied);
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = session_in(&mut client, folder.path()).await;
    until_row(&mut client, URI, |row| row["pullRequestUrl"] == format!("{PULL}/7")).await;
    run(&mut client, &chat, "t1", &format!("Creating pull request\n\n{PULL}/8\n")).await;
    until_row(&mut client, URI, |row| row["pullRequestUrl"] == format!("{PULL}/8")).await;
    run(&mut client, &chat, "t2", &format!("{PULL}/9\n")).await;
    until_row(&mut client, URI, |row| row["pullRequestUrl"] == format!("{PULL}/9")).await;
    // It belongs to this session, and not to its forks.
    let forked = client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap();
    let fork = forked["session"].as_str().unwrap();
    let of_fork = until_row(&mut client, fork, |row| row.get("branch").is_some()).await;
    assert_eq!((&of_fork["branch"], &of_fork["baseBranchName"]), (&json!("fix"), &json!("main")));
    assert_eq!(of_fork["pullRequestUrl"], format!("{PULL}/7"));
}

#[tokio::test(start_paused = true)]
async fn what_was_checked_out_is_known_after_a_restart_and_when_the_folder_is_gone() {
    let folder = repository();
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = session_in(&mut client, folder.path()).await;
    run(&mut client, &chat, "t1", &format!("{PULL}/8\n")).await;
    let before = until_row(&mut client, URI, |row| row.get("pullRequestUrl").is_some()).await;
    until_manifest(&host, "branch: fix").await;
    folder.close().unwrap();
    // Once from the journal, once from the folder.
    for _ in 0..2 {
        host.kill_and_restart(Config::default()).await;
        let mut client = host.ahp("b").await;
        assert_eq!(row(&mut client, URI).await, before);
        let chat = client.follow(URI).await;
        client.run_script(&chat, &format!("t{}", client.chat(&chat).turns.len() + 1), json!([{"say": "on"}])).await;
        assert_eq!(row(&mut client, URI).await, before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_folder_without_a_repository_has_a_row_that_says_nothing_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = session_in(&mut client, folder.path()).await;
    client.run_script(&chat, "t1", json!([{"say": "hi"}])).await;
    assert_eq!(row(&mut client, URI).await, json!({"store": "local"}));
}
