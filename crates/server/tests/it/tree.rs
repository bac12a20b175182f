//! A session's tree over the wire: reading it, navigating it, labelling its entries.

use grove_host::Config;
use grove_testkit::ahp::{Client, ReconnectOutcome, markdown};
use grove_testkit::{Client as V1, ConnectionEnd};
use serde_json::{Value, json};

use crate::harness::TestHost;

pub(crate) const URI: &str = "scripted:/s";

pub(crate) async fn say(client: &mut Client, chat: &str, turn: &str, text: &str) {
    client.run_script(chat, turn, json!([{"say": text}])).await;
}

pub(crate) async fn rows(client: &mut Client, params: Value) -> Vec<Value> {
    let mut all = json!({"channel": URI});
    all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
    client.ask("x-grove/tree", all).await.unwrap()["rows"].as_array().unwrap().clone()
}

/// The id of the answer with this text: the prompt, being a script, contains it as well.
pub(crate) async fn entry(client: &mut Client, text: &str) -> String {
    let found = rows(client, json!({"search": text})).await;
    let row = found.iter().find(|row| row["role"] == "assistant" && row["text"] == text);
    row.unwrap_or_else(|| panic!("no {text} in {found:?}"))["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn go(client: &mut Client, entry: impl Into<Value>) -> Value {
    client.ask("x-grove/navigate", json!({"channel": URI, "entry": entry.into()})).await.unwrap()
}

pub(crate) fn said(client: &Client, chat: &str) -> Vec<String> {
    client.chat(chat).turns.iter().map(|turn| markdown(&turn.response_parts)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_tree_is_given_as_rows_with_its_leaf_and_the_way_to_it() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    assert_eq!(rows(&mut client, json!({})).await, Vec::<Value>::new(), "nothing has been said");
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    let all = rows(&mut client, json!({})).await;
    let roles: Vec<_> = all.iter().map(|row| row["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert!(all.iter().all(|row| row["active"] == true));
    assert_eq!(all.iter().filter(|row| row["leaf"] == true).count(), 1);
    let users = rows(&mut client, json!({"filter": "user-only"})).await;
    assert_eq!(users.len(), 2);
    assert_eq!(users[1]["leaf"], true, "the position is shown by the nearest row above it");
    assert_eq!(client.ask("x-grove/tree", json!({"channel": URI, "filter": "x"})).await.unwrap_err().code, -32602);
    assert_eq!(client.ask("x-grove/tree", json!({"channel": "scripted:/no"})).await.unwrap_err().code, -32001);
}

#[tokio::test(start_paused = true)]
async fn moving_the_leaf_shows_other_turns_and_loses_none() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let mut other = host.ahp("b").await;
    other.follow(URI).await;
    for (turn, text) in [("t1", "one"), ("t2", "two"), ("t3", "three")] {
        say(&mut client, &chat, turn, text).await;
    }
    let end = entry(&mut client, "three").await;
    // Going to a user message returns its text, to be rephrased.
    let second = rows(&mut client, json!({"filter": "user-only"})).await[1]["id"].clone();
    let gone = go(&mut client, second).await;
    assert_eq!(gone["moved"], true);
    assert!(gone["text"].as_str().unwrap().contains("two"), "{gone}");
    client.until(|client| said(client, &chat) == ["one"]).await;
    say(&mut client, &chat, "t4", "four").await;
    assert_eq!(said(&client, &chat), ["one", "four"]);
    assert_eq!(go(&mut client, end.clone()).await["leaf"], json!(end));
    client.until(|client| said(client, &chat) == ["one", "two", "three"]).await;
    assert_eq!(go(&mut client, end).await["moved"], false, "who is there stays there");
    assert_eq!(go(&mut client, Value::Null).await["leaf"], Value::Null);
    client.until(|client| said(client, &chat).is_empty()).await;
    say(&mut client, &chat, "t5", "five").await;
    other.turn_end(&chat, "t5").await;
    for client in [&mut client, &mut other] {
        client.must_agree(&chat).await;
        client.must_agree(URI).await;
    }
    let all = rows(&mut client, json!({})).await;
    let roots = all.iter().filter(|row| row["parent"].is_null()).count();
    assert_eq!((all.len(), roots), (10, 2), "every entry is there: {all:?}");
    assert_eq!(all[0]["active"], true, "the active branch comes first");
}

#[tokio::test(start_paused = true)]
async fn where_the_leaf_is_survives_a_kill() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    let one = entry(&mut client, "one").await;
    go(&mut client, one).await;
    host.kill_and_restart(Config::default()).await;
    assert!(matches!(host.bring_back_ahp(&mut client).await, ReconnectOutcome::Replay { .. }));
    assert_eq!(said(&client, &chat), ["one"]);
    say(&mut client, &chat, "t3", "three").await;
    host.kill_and_restart(Config::default()).await;
    host.bring_back_ahp(&mut client).await;
    assert_eq!(said(&client, &chat), ["one", "three"]);
    client.must_agree(&chat).await;
    // The log alone gives the same.
    let mut late = host.ahp("late").await;
    late.follow(URI).await;
    assert_eq!(said(&late, &chat), ["one", "three"]);
    assert_eq!(rows(&mut late, json!({})).await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn version_1_begins_anew_when_the_leaf_moves() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    let mut old: V1 = host.client("old").await;
    old.subscribe(URI).await.unwrap();
    let one = entry(&mut client, "one").await;
    go(&mut client, one).await;
    let ended = old.until_end().await;
    assert!(matches!(ended, ConnectionEnd::Closed { code: 4009, .. }), "{ended:?}");
    assert!(!host.bring_back(&mut old).await, "snapshots, not a replay");
    assert_eq!(old.session(URI).turns.len(), 1);
    old.must_agree(URI).await;
    let tree: Value = old.call("x-grove/tree", json!({"session": URI})).await.unwrap();
    assert_eq!(tree["total"], 4, "it can look at the tree, too");
}

#[tokio::test(start_paused = true)]
async fn a_version_1_client_hears_the_answer_to_its_own_navigate_before_it_is_closed() {
    let host = TestHost::start(Config::default()).await;
    let mut old: V1 = host.client("old").await;
    old.ready_session(URI).await;
    old.run_script(URI, "t1", json!([{"say": "one"}])).await;
    let attachments = json!([
        {"type": "file", "path": "/w/a.rs", "displayName": "a.rs"},
        {"type": "directory", "path": "/w"},
        {"type": "selection", "path": "/w/b.rs"},
    ]);
    let prompt = |turn: &str, attachments: &Value| {
        json!({"type": "session/turnStarted", "session": URI, "turnId": turn,
            "userMessage": {"text": "script:[{\"say\":\"two\"}]", "attachments": attachments}})
    };
    old.dispatch(prompt("t2", &attachments)).await;
    old.turn_end(URI, "t2").await;
    let tree: Value = old.call("x-grove/tree", json!({"session": URI, "filter": "user-only"})).await.unwrap();
    let second = tree["rows"][1]["id"].clone();
    // It answers, alone or in a batch, and only then closes.
    let went: Value = old.call("x-grove/navigate", json!({"session": URI, "entry": second})).await.unwrap();
    assert_eq!((&went["moved"], &went["attachments"]), (&json!(true), &attachments), "{went}");
    assert!(went["text"].as_str().unwrap().contains("two"), "{went}");
    let ended = old.until_end().await;
    assert!(matches!(ended, ConnectionEnd::Closed { code: 4009, .. }), "{ended:?}");
    assert!(!host.bring_back(&mut old).await, "snapshots, not a replay");
    assert_eq!(old.session(URI).turns.len(), 1);
    // The host accepts the prefill as a prompt.
    let seq = old.dispatch(prompt("t3", &went["attachments"])).await;
    assert_eq!(old.answer_to(seq).await.rejection_reason, None);
    old.turn_end(URI, "t3").await;
    old.must_agree(URI).await;
    let branched: Value = old.call("x-grove/branch", json!({"session": URI, "entry": second})).await.unwrap();
    assert_eq!(branched["attachments"], attachments, "a new session begins with the same");
}

#[tokio::test(start_paused = true)]
async fn going_to_a_message_that_the_leaf_is_before_already_moves_nothing() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    let second = rows(&mut client, json!({"filter": "user-only"})).await[1]["id"].clone();
    let first = go(&mut client, second.clone()).await;
    assert_eq!(first["moved"], true);
    let before = rows(&mut client, json!({"filter": "all"})).await;
    let mut old: V1 = host.client("old").await;
    old.subscribe(URI).await.unwrap();
    let again = go(&mut client, second.clone()).await;
    assert_eq!((&again["moved"], &again["leaf"], &again["text"]), (&json!(false), &first["leaf"], &first["text"]));
    assert_eq!(rows(&mut client, json!({"filter": "all"})).await, before, "nothing is written");
    let named = json!({"channel": URI, "entry": second.clone(), "label": "here"});
    let named = client.ask("x-grove/navigate", named).await.unwrap();
    assert_eq!(named["moved"], false, "a label is no move");
    let labelled = rows(&mut client, json!({"filter": "labeled-only", "search": "here"})).await;
    assert!(labelled.iter().any(|row| row["label"] == "here" && row["id"] == second), "{labelled:?}");
    old.settle().await;
    assert_eq!(old.ended(), None, "a version-1 client is not closed");
    assert_eq!(said(&client, &chat), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_gone_to_changes_nothing() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    let one = entry(&mut client, "one").await;
    say(&mut client, &chat, "t2", "two").await;
    let unknown = client.ask("x-grove/navigate", json!({"channel": URI, "entry": "nobody"})).await.unwrap_err();
    assert!(unknown.message.contains("no entry nobody"), "{unknown:?}");
    client.script(&chat, "t3", json!([{"hang": true}])).await;
    client.until(|client| client.chat(&chat).active_turn.is_some()).await;
    let busy = client.ask("x-grove/navigate", json!({"channel": URI, "entry": one})).await.unwrap_err();
    assert_eq!(busy.code, -32004, "{busy:?}");
    assert!(busy.message.contains("a turn is running"), "{busy:?}");
    assert_eq!(said(&client, &chat), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_label_names_an_entry_until_it_is_taken_away() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    let one = entry(&mut client, "one").await;
    let label = |label: Value| json!({"channel": URI, "entry": one, "label": label});
    // A label may be set while a turn runs: it comes after the finished entries.
    client.script(&chat, "t2", json!([{"ask": "go on?"}, {"say": "two"}])).await;
    client
        .until(|client| client.chat(&chat).active_turn.as_ref().is_some_and(|turn| !turn.response_parts.is_empty()))
        .await;
    client.ask("x-grove/label", label("good".into())).await.unwrap();
    let answer = json!({"type": "chat/inputCompleted", "requestId": "t2-ask-0", "response": "decline"});
    client.dispatch(&chat, answer).await;
    client.turn_end(&chat, "t2").await;
    host.kill_and_restart(Config::default()).await;
    host.bring_back_ahp(&mut client).await;
    let named = rows(&mut client, json!({"filter": "labeled-only", "search": "good"})).await;
    assert_eq!((&named[0]["id"], &named[0]["label"]), (&json!(one), &json!("good")));
    client.ask("x-grove/label", label(Value::Null)).await.unwrap();
    let named = rows(&mut client, json!({"filter": "labeled-only"})).await;
    assert!(named.iter().all(|row| row["label"].is_null()), "{named:?}");
    assert_eq!(said(&client, &chat), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_branches_off_before_a_message_and_a_fork_has_everything() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    for (turn, text) in [("t1", "one"), ("t2", "two"), ("t3", "three")] {
        say(&mut client, &chat, turn, text).await;
    }
    let users: Vec<String> = rows(&mut client, json!({"filter": "user-only"})).await[..3]
        .iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    let label = json!({"channel": URI, "entry": users[1], "label": "second"});
    client.ask("x-grove/label", label).await.unwrap();
    let branch = |entry: &str| json!({"channel": URI, "entry": entry});

    let third = client.ask("x-grove/branch", branch(&users[2])).await.unwrap();
    assert!(third["text"].as_str().unwrap().contains("three"));
    let branched = third["session"].as_str().unwrap().to_owned();
    let branched_chat = client.follow(&branched).await;
    assert_eq!(said(&client, &branched_chat), ["one", "two"]);
    say(&mut client, &branched_chat, "t4", "four").await;
    assert_eq!(said(&client, &branched_chat), ["one", "two", "four"]);
    assert_eq!(said(&client, &chat), ["one", "two", "three"], "the other goes its own way");

    let first = client.ask("x-grove/branch", branch(&users[0])).await.unwrap();
    let empty = client.follow(first["session"].as_str().unwrap()).await;
    assert!(said(&client, &empty).is_empty(), "nothing was said before the first message");

    let answer = rows(&mut client, json!({"search": "one"})).await;
    let answer = answer.iter().find(|row| row["role"] == "assistant").unwrap()["id"].as_str().unwrap().to_owned();
    let refused = client.ask("x-grove/branch", branch(&answer)).await.unwrap_err();
    assert!(refused.message.contains("not a user message"), "{refused:?}");

    let forked = client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap();
    let forked = forked["session"].as_str().unwrap().to_owned();
    let forked_chat = client.follow(&forked).await;
    assert_eq!(said(&client, &forked_chat), ["one", "two", "three"]);
    assert_eq!(client.session(&forked).title, "script:[{\"say\":\"one\"}] (fork)");

    host.kill_and_restart(Config::default()).await;
    let mut late = host.ahp("late").await;
    let late_chat = late.follow(&branched).await;
    assert_eq!(said(&late, &late_chat), ["one", "two", "four"]);
    let tree = late.ask("x-grove/tree", json!({"channel": branched, "filter": "labeled-only"})).await.unwrap();
    assert_eq!(tree["rows"][0]["label"], "second", "labels go with what they name");
    let late_chat = late.follow(&forked).await;
    assert_eq!(said(&late, &late_chat), ["one", "two", "three"]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_made_before_the_first_entry_has_every_branch() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    client.ask("x-grove/navigate", json!({"channel": URI, "entry": null})).await.unwrap();
    let forked = client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap();
    let forked = forked["session"].as_str().unwrap().to_owned();
    let forked_chat = client.follow(&forked).await;
    assert!(said(&client, &forked_chat).is_empty(), "its leaf is where the other's is");
    let words = |tree: &Value| tree["rows"].as_array().unwrap().iter().filter(|row| row["role"] == "user").count();
    let tree = client.ask("x-grove/tree", json!({"channel": forked})).await.unwrap();
    assert_eq!(words(&tree), 1, "{tree}");
    host.kill_and_restart(Config::default()).await;
    let mut late = host.ahp("late").await;
    let late_chat = late.follow(&forked).await;
    assert!(said(&late, &late_chat).is_empty());
    let tree = late.ask("x-grove/tree", json!({"channel": forked})).await.unwrap();
    assert_eq!(words(&tree), 1, "{tree}");
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_beside_a_log_goes_with_a_fork() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    client.run_script(&chat, "t1", json!([{"part": {"mimeType": "image/png", "base64": "/wAB"}}])).await;
    let forked = client.ask("x-grove/fork", json!({"channel": URI, "title": "Mine"})).await.unwrap();
    let forked = forked["session"].as_str().unwrap().to_owned();
    let chat = client.follow(&forked).await;
    assert_eq!(client.session(&forked).title, "Mine");
    let content = grove_testkit::ahp::contents(&client.chat(&chat).turns[0].response_parts)[0].uri.clone();
    assert!(content.starts_with(&format!("grove-content://{}", forked.rsplit('/').next().unwrap())), "{content}");
    let read = client.ask("resourceRead", json!({"channel": forked, "uri": content})).await.unwrap();
    assert_eq!(read["data"], "/wAB");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_taken_back_comes_with_its_attachments() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    let attachments = json!([{"type": "resource", "uri": "file:///x/notes.md", "label": "notes.md",
        "displayKind": "document"}]);
    let text = "script:[{\"say\": \"two\"}]";
    let mut started = grove_testkit::ahp::turn_started("t2", text);
    started["message"]["attachments"] = attachments.clone();
    client.dispatch(&chat, started).await;
    client.turn_end(&chat, "t2").await;
    let user = rows(&mut client, json!({"filter": "user-only"})).await[1]["id"].clone();
    let params = json!({"channel": URI, "entry": user});
    let branched = client.ask("x-grove/branch", params.clone()).await.unwrap();
    assert_eq!((&branched["text"], &branched["attachments"]), (&json!(text), &attachments));
    let gone = client.ask("x-grove/navigate", params).await.unwrap();
    assert_eq!((&gone["text"], &gone["attachments"]), (&json!(text), &attachments));
    let nowhere = client.ask("x-grove/branch", json!({"channel": URI, "entry": null})).await.unwrap_err();
    assert_eq!(nowhere.code, -32602, "who means no entry goes there, and does not branch off");
}

/// Changes the model as a client of version 1 does, and returns the session's model then.
async fn choose_model(host: &TestHost, model: Option<&str>) -> Option<String> {
    let mut old: V1 = host.client("chooser").await;
    old.subscribe(URI).await.unwrap();
    if let Some(model) = model {
        old.dispatch(json!({"type": "session/modelChanged", "session": URI, "model": model})).await;
        old.until(|old| old.session(URI).summary.model.as_deref() == Some(model)).await;
    }
    old.session(URI).summary.model.clone()
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_never_named_a_model_goes_on_with_the_default() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    let one = entry(&mut client, "one").await;
    choose_model(&host, Some("scripted/slow-start")).await;
    say(&mut client, &chat, "t2", "two").await;
    let two = entry(&mut client, "two").await;
    go(&mut client, one).await;
    assert_eq!(choose_model(&host, None).await, None, "nobody had chosen one there");
    go(&mut client, two.clone()).await;
    assert_eq!(choose_model(&host, None).await.as_deref(), Some("scripted/slow-start"));
    go(&mut client, Value::Null).await;
    assert_eq!(choose_model(&host, None).await, None, "the log began without one");
    host.kill_and_restart(Config::default()).await;
    assert_eq!(choose_model(&host, None).await, None);
    let mut client = host.ahp("b").await;
    client.follow(URI).await;
    go(&mut client, two).await;
    assert_eq!(choose_model(&host, None).await.as_deref(), Some("scripted/slow-start"));
}

#[tokio::test(start_paused = true)]
async fn before_the_first_message_a_session_has_the_model_that_it_began_with() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    choose_model(&host, Some("scripted")).await;
    say(&mut client, &chat, "t1", "one").await;
    choose_model(&host, Some("scripted/slow-start")).await;
    say(&mut client, &chat, "t2", "two").await;
    go(&mut client, Value::Null).await;
    assert_eq!(choose_model(&host, None).await.as_deref(), Some("scripted"));
}

#[tokio::test(start_paused = true)]
async fn going_to_another_branch_brings_its_model_back() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    choose_model(&host, Some("scripted")).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    let (one, two) = (entry(&mut client, "one").await, entry(&mut client, "two").await);
    go(&mut client, one.clone()).await;
    choose_model(&host, Some("scripted/slow-start")).await;
    say(&mut client, &chat, "t3", "three").await;
    let three = entry(&mut client, "three").await;
    let kinds = |rows: &[Value]| -> Vec<String> {
        let changes = rows.iter().filter(|row| row["kind"] == "model_change");
        changes.map(|row| row["text"].as_str().unwrap().to_owned()).collect()
    };
    let all = rows(&mut client, json!({"filter": "all"})).await;
    assert_eq!(kinds(&all).len(), 2, "each branch says its model once: {all:?}");
    for (target, model) in [(&two, "scripted"), (&three, "scripted/slow-start"), (&one, "scripted")] {
        go(&mut client, target.clone()).await;
        assert_eq!(choose_model(&host, None).await.as_deref(), Some(model));
    }
    let again = rows(&mut client, json!({"filter": "all"})).await;
    assert_eq!(kinds(&again), kinds(&all), "going there and back writes no model");
    go(&mut client, three).await;
    host.kill_and_restart(Config::default()).await;
    assert_eq!(choose_model(&host, None).await.as_deref(), Some("scripted/slow-start"));
}
