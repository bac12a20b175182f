//! The sources of the list: this host, other hosts, and other tools.

use std::time::Duration;

use serde_json::{Value, json};

use super::{LOCAL, Page, Protocol};
use crate::support::{Deadline, TestHome};

#[tokio::test]
async fn the_hosts_connection_to_itself_begins_with_the_first_who_lists_and_keeps_no_host_alive() {
    let mut host = TestHome::new().serve(&["--idle-exit", "1"]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    assert_eq!(host.connections(), 1);
    page.listed().await;
    assert_eq!(host.connections(), 2);
    let providers = page.get("providers", json!({})).await;
    let local = &providers["providers"][0];
    assert_eq!((&local["id"], &local["availability"]), (&json!(LOCAL), &json!("ready")));
    assert!(providers["providers"].as_array().unwrap().iter().any(|provider| provider["environment"] == "history"));
    drop(page);
    assert!(host.exit().success());
}

#[tokio::test]
async fn what_other_hosts_have_and_other_tools_left_is_in_the_same_list_once() {
    let (near, far) = (TestHome::new(), TestHome::new());
    let user = json!({"type": "user", "uuid": "u", "sessionId": "s", "cwd": "/w", "version": "2.1.0",
        "timestamp": "2026-01-02T03:04:05.000Z", "message": {"role": "user", "content": "old words"}});
    near.write("home/.claude/projects/-w/s.jsonl", format!("{user}\n"));
    let far_host = far.serve(&[]);
    let mut maker = far_host.client("maker").await;
    maker.ready_session("scripted:/far").await;
    let host = near.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    page.listed().await;
    // A host that is added while the hub runs is listed for the next client.
    let token = near.write("token", &far_host.token);
    let add = near.run(&["hosts", "add", "lab", &far_host.ws, "--token-file", token.to_str().unwrap()]);
    assert_eq!(add.code, Some(0), "{}", add.stderr);
    let mut later = Page::open(&host, "later", Protocol::V1).await;
    later.listed().await;
    let is_far = |row: &Value| row["title"].is_string() && row["id"].as_str().unwrap().ends_with("scripted:/far");
    let has_far = |params: &Value| params["added"].as_array().into_iter().flatten().any(is_far);
    page.told("changed", has_far).await;
    // Scanning the stores takes time.
    let deadline = Deadline::new("the stores are not looked at");
    let rows = loop {
        deadline.check();
        let listed = page.get("list", json!({})).await["sessions"].take();
        let rows = listed.as_array().unwrap().clone();
        if rows.len() > 1 {
            break rows;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let of = |provider: &str| rows.iter().filter(|row| row["providerId"] == provider).count();
    assert_eq!((rows.len(), of("history-claude"), of(LOCAL)), (2, 1, 0), "{rows:?}");
    let old = rows.iter().find(|row| row["providerId"] == "history-claude").unwrap();
    assert_eq!((&old["title"], &old["chats"][0]["interactivity"]), (&json!("old words"), &json!("readOnly")));
    let refused = page.refused("archive", json!({"session": old["id"]})).await;
    assert!(refused.code == -32602 && refused.message.contains("read-only"), "{refused:?}");
    // A person continues it with an agent of this host. The list has both: the copy, and the original.
    let imported = json!({"resource": old["resource"], "agent": "scripted"});
    let session = page.ask("x-grove/history/import", imported.clone()).await.unwrap()["session"].take();
    assert!(session.as_str().unwrap().starts_with("scripted:/"), "{session}");
    let shown = near.run(&["show", session.as_str().unwrap()]);
    assert!(shown.stdout.contains("old words"), "{}", shown.stderr);
    assert!(page.ask("x-grove/history/import", imported).await.is_err(), "its id is used");
    let again = json!({"resource": old["resource"], "agent": "scripted", "newId": true});
    let again = page.ask("x-grove/history/import", again).await.unwrap()["session"].take();
    assert_ne!(again, session);
    let unknown = json!({"resource": "claude:/none"});
    assert_eq!(page.ask("x-grove/history/import", unknown).await.unwrap_err().code, -32001);
    for made in [session, again] {
        let removed = near.run(&["rm", "--yes", made.as_str().unwrap()]);
        assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    }
    let view = page.get("open", json!({"resource": old["resource"]})).await;
    assert_eq!(view["session"]["id"], old["id"]);
    let view = page.told("view", |view| view["activeSession"]["id"] == old["id"]).await;
    assert_eq!(view["context"]["isActiveSessionBackgroundProvider"], false);
    let ran = near.run(&["hosts", "rm", "lab"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut last = Page::open(&host, "last", Protocol::Ahp).await;
    assert_eq!(last.listed().await.len(), 1);
}

fn told(place: &TestHome, args: &[&str]) -> String {
    let ran = place.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

/// The provider of another host, once it matches.
async fn until_provider(page: &mut Page, fits: impl Fn(&Value) -> bool) -> Value {
    let deadline = Deadline::new("the provider of the other host is not so");
    loop {
        let providers = page.get("providers", json!({})).await;
        let other = providers["providers"].as_array().unwrap().iter().find(|one| one["environment"] == "otherHost");
        match other {
            Some(other) if fits(other) => return other.clone(),
            _ => deadline.check(),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_listed(page: &mut Page, count: usize) -> Vec<String> {
    let deadline = Deadline::new("the list is another");
    loop {
        let listed = page.listed().await;
        if listed.len() == count {
            return listed;
        }
        deadline.check();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The output of `grove ls` about sessions of other hosts.
fn ls(place: &TestHome) -> Value {
    serde_json::from_str(&told(place, &["ls", "--json", "--no-start"])).unwrap()
}

/// The time of the session hub's last answer, in milliseconds since 1970.
fn seen_by_ls(place: &TestHome) -> u64 {
    grove_wire::ahp::time::parse(ls(place)["away"][0]["seenAt"].as_str().unwrap()).unwrap().0
}

#[tokio::test]
async fn what_either_saw_last_of_a_host_is_shown_by_both_while_it_is_away_and_after_a_restart() {
    let (near, far) = (TestHome::new(), TestHome::new());
    let far_host = far.serve(&[]);
    let mut maker = far_host.client("maker").await;
    maker.ready_session("scripted:/one").await;
    let host = near.serve(&[]);
    // Its socket is in the same place when it is started again.
    told(&near, &["hosts", "add", "lab", &format!("unix:{}", far.data().join("host.sock").display())]);

    // Only the session hub has seen it.
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    let seen = until_listed(&mut page, 1).await;
    let kept = near.data().join("hosts-seen/lab.json");
    let deadline = Deadline::new("it is not written down");
    while !kept.exists() {
        deadline.check();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(until_provider(&mut page, |lab| lab["availability"] == "ready").await.get("seenAt"), None);
    let near = host.kill();
    let far = far_host.kill();
    let before = seen_by_ls(&near);
    let rows = ls(&near)["sessions"].clone();
    assert_eq!((&rows[0]["resource"], &rows[0]["cached"]), (&json!("scripted:/one"), &json!(true)));
    let host = near.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::V1).await;
    assert_eq!(page.listed().await, seen, "at once, and under the same id");
    let lab = until_provider(&mut page, |lab| lab["availability"] == "away").await;
    assert_eq!(lab["seenAt"], before);
    drop(page);

    // Only `grove ls` has seen the other sessions, while the session hub does not run.
    let near = host.kill();
    let far_host = far.serve(&[]);
    let mut maker = far_host.client("maker").await;
    maker.ready_session("scripted:/two").await;
    assert_eq!(ls(&near)["sessions"].as_array().unwrap().len(), 2);
    let _far = far_host.kill();
    let later = seen_by_ls(&near);
    assert!(later > before);
    let host = near.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    assert_eq!(page.listed().await.len(), 2);
    let lab = until_provider(&mut page, |lab| lab["availability"] == "away").await;
    assert_eq!(lab["seenAt"], later);
}

#[tokio::test]
async fn hosts_that_come_change_and_go_are_noticed_while_somebody_looks() {
    let (near, far) = (TestHome::new(), TestHome::new());
    let far_host = far.serve(&[]);
    let mut maker = far_host.client("maker").await;
    maker.ready_session("scripted:/far").await;
    let host = near.serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    assert_eq!(page.listed().await.len(), 0);

    let token = near.write("token", &far_host.token);
    told(&near, &["hosts", "add", "lab", &far_host.ws, "--token-file", token.to_str().unwrap()]);
    let is_far = |row: &Value| row["id"].as_str().unwrap().ends_with("scripted:/far");
    let added = |params: &Value| params["added"].as_array().into_iter().flatten().any(is_far);
    page.told("changed", added).await;
    let listed = until_listed(&mut page, 1).await;

    // A token that the host refuses, and then the right one again.
    let hosts = near.data().join("hosts.toml");
    let text = std::fs::read_to_string(&hosts).unwrap();
    page.told.clear();
    std::fs::write(&hosts, text.replace(&far_host.token, "00000000000000000000000000000000")).unwrap();
    until_provider(&mut page, |lab| lab["availability"] == "away").await;
    assert_eq!(page.listed().await, listed);
    std::fs::write(&hosts, "[lab").unwrap();
    let deadline = Deadline::new("the host does not look at the list");
    let is_noticed = || std::fs::read_to_string(near.path("stderr")).unwrap().contains("cannot read the list of hosts");
    while !is_noticed() {
        deadline.check();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(page.listed().await, listed, "a list that somebody is writing costs nothing");
    std::fs::write(&hosts, &text).unwrap();
    until_provider(&mut page, |lab| lab["availability"] == "ready").await;
    assert_eq!(page.listed().await, listed);
    for list in ["added", "removed"] {
        assert_eq!(page.count_told(list, &listed[0]), 0, "{list}");
    }

    // Another name is another provider of the same id.
    std::fs::write(&hosts, text.replace("[lab]", "[den]")).unwrap();
    until_provider(&mut page, |den| den["label"] == "den" && den["availability"] == "ready").await;
    assert_eq!(until_listed(&mut page, 1).await, listed);
    told(&near, &["hosts", "rm", "den"]);
    until_listed(&mut page, 0).await;
    assert!(!near.data().join("hosts-seen/den.json").exists());
}
