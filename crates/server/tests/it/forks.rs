//! Forked sessions and chats: the journal's record creates them, and the copy follows.

mod chats;

use std::time::Duration;

use grove_fs::SessionFs;
use grove_host::{Config, Limits};
use grove_testkit::ahp::{Client, markdown};
use serde_json::{Value, json};

use crate::harness::{TestHost, until};

const URI: &str = "scripted:/s";
const NEW: &str = "ahp-chat:/other";

fn source(kind: &str, chat: &str, turn: &str) -> Value {
    json!({"channel": URI, "chat": NEW, "source": {"kind": kind, "chat": chat, "turnId": turn}})
}

async fn say(client: &mut Client, chat: &str, turn: &str, text: &str) {
    client.run_script(chat, turn, json!([{"say": text}])).await;
}

fn said(client: &Client, chat: &str) -> Vec<String> {
    client.chat(chat).turns.iter().map(|turn| markdown(&turn.response_parts)).collect()
}

async fn fork(client: &mut Client, channel: &str) -> String {
    let forked = client.ask("x-grove/fork", json!({"channel": channel})).await.unwrap();
    forked["session"].as_str().unwrap().to_owned()
}

fn id_of(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap()
}

fn log_of(uri: &str) -> String {
    format!("{}/events.jsonl", id_of(uri))
}

async fn is_there(host: &TestHost, uri: &str) -> bool {
    host.sessions.exists(&log_of(uri)).await.unwrap()
}

/// Waits until a log is there.
async fn copied(host: &TestHost, uri: &str) {
    until("the log is copied", async || is_there(host, uri).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_answered_and_used_before_its_log_is_copied() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    host.gate.close_behind(0);
    let forked = fork(&mut client, URI).await;
    let forked_chat = client.follow(&forked).await;
    say(&mut client, &forked_chat, "t2", "two").await;
    assert_eq!(said(&client, &forked_chat), ["one", "two"]);
    say(&mut client, &chat, "t3", "three").await;
    assert!(!is_there(&host, &forked).await);
    let journal = String::from_utf8(host.journal.bytes.lock().unwrap().clone()).unwrap();
    let inherited = journal.lines().find(|line| line.contains("turnsInherited")).unwrap();
    assert!(!inherited.contains("one"), "the turns are not written again: {inherited}");
    assert!(host.sessions.read_file(&format!("{}/session.json", id_of(&forked))).await.is_err());

    host.gate.open();
    // Readers of its tree wait.
    let tree = client.ask("x-grove/tree", json!({"channel": forked})).await.unwrap();
    let text = tree["rows"].to_string();
    assert!(text.contains("two") && !text.contains("three"), "what the source said since is not in it: {text}");
    let log = String::from_utf8(host.sessions.read_file(&log_of(&forked)).await.unwrap()).unwrap();
    assert!(log.lines().next().unwrap().contains(r#""parentSession":"s""#), "{log}");
    for channel in [&forked_chat, &forked] {
        client.must_agree(channel).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_killed_anywhere_in_a_copy_makes_it_whole_at_the_next_start() {
    for steps in 0..8 {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        let chat = client.ready_session(URI).await;
        say(&mut client, &chat, "t1", "one").await;
        client.run_script(&chat, "t2", json!([{"part": {"mimeType": "image/png", "base64": "/wAB"}}])).await;
        host.gate.close_behind(steps);
        let forked = fork(&mut client, URI).await;
        // The source continues, and so does the fork.
        say(&mut client, &chat, "t3", "three").await;
        let forked_chat = client.follow(&forked).await;
        if steps % 2 == 1 {
            say(&mut client, &forked_chat, "t4", "four").await;
        }
        host.kill_and_restart(Config::default()).await;
        let mut late = host.ahp("late").await;
        let forked_chat = late.follow(&forked).await;
        let expected: &[&str] = if steps % 2 == 1 { &["one", "", "four"] } else { &["one", ""] };
        assert_eq!(said(&late, &forked_chat), expected, "killed behind {steps} steps");
        copied(&host, &forked).await;
        say(&mut late, &forked_chat, "t5", "five").await;
        let tree = late.ask("x-grove/tree", json!({"channel": forked})).await.unwrap();
        let text = tree["rows"].to_string();
        assert!(text.contains("five") && !text.contains("three"), "killed behind {steps} steps: {text}");
        let content = grove_testkit::ahp::contents(&late.chat(&forked_chat).turns[1].response_parts)[0].uri.clone();
        let read = late.ask("resourceRead", json!({"channel": forked, "uri": content})).await.unwrap();
        assert_eq!(read["data"], "/wAB");
        let left = host.sessions.readdir(id_of(&forked)).await.unwrap();
        assert!(!left.iter().any(|name| name.ends_with(".copy")), "{left:?}");

        // The folder alone gives the same.
        host.kill_and_restart(Config::default()).await;
        let mut last = host.ahp("last").await;
        let forked_chat = last.follow(&forked).await;
        assert_eq!(said(&last, &forked_chat).len(), expected.len() + 1);
        last.follow(URI).await;
        assert_eq!(said(&last, &chat), ["one", "", "three"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_outlives_the_session_that_it_comes_from() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    host.gate.close_behind(1);
    let forked = fork(&mut client, URI).await;
    client.ask("disposeSession", json!({"channel": URI})).await.unwrap();
    // The name is free, the folder is not.
    let refused = client.ask("createSession", json!({"channel": URI})).await.unwrap_err();
    assert!(refused.message.contains("still being copied"), "{refused:?}");
    host.kill_and_restart(Config::default()).await;
    let mut late = host.ahp("late").await;
    late.ask("createSession", json!({"channel": URI})).await.unwrap();
    let forked_chat = late.follow(&forked).await;
    assert_eq!(said(&late, &forked_chat), ["one"]);
    copied(&host, &forked).await;
    say(&mut late, &forked_chat, "t2", "two").await;
    assert_eq!(said(&late, &forked_chat), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_fork_waits_for_the_first_and_a_disposed_one_leaves_nothing_behind() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    host.gate.close_behind(0);
    let first = fork(&mut client, URI).await;
    let gone = fork(&mut client, URI).await;
    tokio::spawn({
        let gate = host.gate.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            gate.open();
        }
    });
    client.ask("disposeSession", json!({"channel": gone})).await.unwrap();
    let second = fork(&mut client, &first).await;
    let second_chat = client.follow(&second).await;
    say(&mut client, &second_chat, "t2", "two").await;
    assert_eq!(said(&client, &second_chat), ["one", "two"]);
    copied(&host, &second).await;
    let file = host.sessions.read_file(&format!("{}/session.json", id_of(&gone))).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&file).unwrap()["disposed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_cannot_be_written_makes_no_fork() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    host.journal.full.store(true, std::sync::atomic::Ordering::SeqCst);
    let refused = client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap_err();
    assert!(refused.message.contains("cannot write to the journal"), "{refused:?}");
    let refused = client.ask("createChat", source("fork", &chat, "t1")).await.unwrap_err();
    assert!(refused.message.contains("cannot write to the journal"), "{refused:?}");
    host.journal.full.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(host.host.status().await.unwrap().sessions, 1);
    assert_eq!(client.session(URI).chats.len(), 1);
    fork(&mut client, URI).await;
}

#[tokio::test(start_paused = true)]
async fn older_turns_of_a_fork_can_be_paged_to_however_often_it_was_forked() {
    let limits = Limits { snapshot_turns: 2, ..Limits::default() };
    let config = || Config { limits, ..Config::default() };
    let mut host = TestHost::start(config()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let texts = ["one", "two", "three", "four", "five", "six"];
    for (number, text) in texts.iter().enumerate() {
        say(&mut client, &chat, &format!("t{number}"), text).await;
    }
    let first = fork(&mut client, URI).await;
    let second = fork(&mut client, &first).await;
    copied(&host, &second).await;
    client.follow(&second).await;
    for restarted in [false, true] {
        if restarted {
            host.kill_and_restart(config()).await;
        }
        for uri in [URI, &first, &second] {
            let mut late = host.ahp(&format!("late {restarted} {uri}")).await;
            let chat = late.follow(uri).await;
            assert_eq!(said(&late, &chat), texts[4..], "{uri}");
            while let Some(cursor) = late.chat(&chat).turns_next_cursor.clone() {
                late.ask("fetchTurns", json!({"channel": chat, "cursor": cursor})).await.unwrap();
            }
            assert_eq!(said(&late, &chat), texts, "{uri}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn older_turns_of_a_fork_wait_for_its_log() {
    let limits = Limits { snapshot_turns: 1, ..Limits::default() };
    let config = || Config { limits, ..Config::default() };
    let mut host = TestHost::start(config()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    for (turn, text) in [("t1", "one"), ("t2", "two"), ("t3", "three")] {
        say(&mut client, &chat, turn, text).await;
    }
    // Nothing older is in memory after this.
    host.kill_and_restart(config()).await;
    host.gate.close_behind(0);
    let mut client = host.ahp("b").await;
    let forked = fork(&mut client, URI).await;
    let chat = client.follow(&forked).await;
    assert_eq!(said(&client, &chat), ["three"]);
    tokio::spawn({
        let gate = host.gate.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            gate.open();
        }
    });
    let cursor = client.chat(&chat).turns_next_cursor.clone().unwrap();
    client.ask("fetchTurns", json!({"channel": chat, "cursor": cursor})).await.unwrap();
    assert_eq!(said(&client, &chat), ["one", "two", "three"]);
}
