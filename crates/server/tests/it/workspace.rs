//! The workspace of a session: over the wire, after a restart, and in a fork.

use std::collections::BTreeMap;
use std::time::Duration;

use grove_fs::{FileKind, MemoryFs, SessionFs};
use grove_host::{Compaction, Config};
use grove_testkit::Client as V1;
use grove_testkit::ahp::Client;
use serde_json::{Value, json};

use crate::harness::{TestHost, until};
use crate::tree::{URI, entry, go, rows, say};

fn small() -> Config {
    Config { compaction: Compaction { at_percent: 80, keep_tokens: 5 }, ..Config::default() }
}

async fn ask(client: &mut Client, method: &str, params: Value) -> Value {
    refusable(client, method, params).await.unwrap()
}

async fn refusable(
    client: &mut Client,
    method: &str,
    params: Value,
) -> Result<Value, grove_wire::jsonrpc::ErrorObject> {
    let mut all = json!({"channel": URI});
    all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
    client.ask(&format!("x-grove/workspace/{method}"), all).await
}

fn meta(client: &Client) -> Value {
    let meta = client.session(URI).meta.clone().unwrap_or_default();
    meta.get("workspace").cloned().unwrap_or_default()
}

/// Every file in a session's folder except its log and the files derived from it.
async fn artifacts(files: &MemoryFs, session: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![session.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in files.readdir_with_types(&folder).await.unwrap() {
            let path = format!("{folder}/{}", entry.name);
            match entry.kind {
                FileKind::Folder => folders.push(path),
                _ => {
                    let text = String::from_utf8_lossy(&files.read_file(&path).await.unwrap()).into_owned();
                    found.insert(path[session.len() + 1..].to_owned(), text);
                }
            }
        }
    }
    for beside in ["events.jsonl", "events.idx", "session.json"] {
        found.remove(beside);
    }
    found
}

async fn until_there(files: &MemoryFs, path: &str) {
    until("the file is there", async || files.exists(path).await.unwrap()).await;
}

async fn log_lines(files: &MemoryFs, session: &str) -> Vec<Value> {
    let text = files.read_text(&format!("{session}/events.jsonl")).await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn id_of(uri: &Value) -> String {
    uri.as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn every_session_has_a_manifest_that_is_kept_true() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    until_there(&host.sessions, "s/workspace.yaml").await;
    let first = ask(&mut client, "manifest", json!({})).await;
    assert_eq!((&first["id"], &first["userNamed"], &first["name"]), (&json!("s"), &json!(false), &Value::Null));
    assert!(first["path"].as_str().unwrap().ends_with('s'), "{first}");
    client.dispatch(URI, json!({"type": "session/titleChanged", "title": "By hand"})).await;
    say(&mut client, &chat, "t1", "one").await;
    let named = ask(&mut client, "manifest", json!({})).await;
    assert_eq!((&named["name"], &named["userNamed"]), (&json!("By hand"), &json!(true)));
    assert_eq!(named["createdAt"], first["createdAt"]);
    until("the manifest names it", async || {
        host.sessions.read_text("s/workspace.yaml").await.unwrap().contains("By hand")
    })
    .await;
    // Other programs' members stay.
    let text = host.sessions.read_text("s/workspace.yaml").await.unwrap();
    host.sessions.write_text("s/workspace.yaml", &format!("{text}theirs: 1\n")).await.unwrap();
    host.kill_and_restart(Config::default()).await;
    host.bring_back_ahp(&mut client).await;
    client.dispatch(URI, json!({"type": "session/titleChanged", "title": "Again"})).await;
    say(&mut client, &chat, "t2", "two").await;
    until("the manifest names it again", async || {
        host.sessions.read_text("s/workspace.yaml").await.unwrap().contains("Again")
    })
    .await;
    let text = host.sessions.read_text("s/workspace.yaml").await.unwrap();
    assert!(text.contains("theirs: 1") && text.contains("user_named: true"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_written_and_taken_away_and_everybody_hears_of_it() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let mut other = host.ahp("b").await;
    other.follow(URI).await;
    assert_eq!(ask(&mut client, "plan", json!({})).await, json!({"text": null}));
    // While a turn runs, too.
    client.script(&chat, "t1", json!([{"hang": true}])).await;
    client.until(|client| client.chat(&chat).active_turn.is_some()).await;
    assert_eq!(ask(&mut client, "setPlan", json!({"text": "# All\n"})).await, json!({"changed": true}));
    other.until(|other| meta(other)["plan"].is_u64()).await;
    let first = meta(&other)["plan"].as_u64().unwrap();
    ask(&mut client, "setPlan", json!({"text": "# More\n"})).await;
    other.until(|other| meta(other)["plan"].as_u64() > Some(first)).await;
    let mut old: V1 = host.client("old").await;
    let plan: Value = old.call("x-grove/workspace/plan", json!({"session": URI})).await.unwrap();
    assert_eq!(plan, json!({"text": "# More\n"}));
    let forgotten = refusable(&mut client, "setPlan", json!({})).await.unwrap_err();
    assert_eq!(forgotten.code, -32602, "nobody takes a plan away by forgetting its text");
    host.kill_and_restart(Config::default()).await;
    host.bring_back_ahp(&mut other).await;
    assert!(meta(&other)["plan"].as_u64() > Some(first));
    assert_eq!(ask(&mut other, "plan", json!({})).await, json!({"text": "# More\n"}));
    assert_eq!(ask(&mut other, "setPlan", json!({"text": null})).await, json!({"changed": true}));
    assert_eq!(ask(&mut other, "setPlan", json!({"text": null})).await, json!({"changed": false}));
    other.until(|other| meta(other).is_null()).await;
    other.must_agree(URI).await;
    let gone = other.ask("x-grove/workspace/plan", json!({"channel": "scripted:/no"})).await.unwrap_err();
    assert_eq!(gone.code, -32001);
}

#[tokio::test(start_paused = true)]
async fn files_are_put_listed_read_and_removed_in_both_dialects() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    let mut other = host.ahp("b").await;
    other.follow(URI).await;
    assert_eq!(ask(&mut client, "files", json!({})).await, json!({"files": [], "more": false}));
    let put = json!({"name": "notes/x.md", "data": "what I know"});
    assert_eq!(ask(&mut client, "writeFile", put).await, json!({"size": 11}));
    other.until(|other| meta(other)["files"].is_u64()).await;
    let bytes = json!({"name": "b.bin", "shelf": "research", "data": "/wD+", "encoding": "base64"});
    ask(&mut client, "writeFile", bytes).await;
    let files = ask(&mut client, "files", json!({})).await;
    assert_eq!((&files["files"][0]["name"], &files["files"][0]["size"]), (&json!("notes/x.md"), &json!(11)));
    let read = ask(&mut client, "readFile", json!({"name": "notes/x.md", "offset": 5, "length": 4})).await;
    assert_eq!(read, json!({"data": "I kn", "encoding": "utf-8", "more": true}));
    let mut old: V1 = host.client("old").await;
    let params = json!({"session": URI, "name": "b.bin", "shelf": "research"});
    let read: Value = old.call("x-grove/workspace/readFile", params).await.unwrap();
    assert_eq!(read, json!({"data": "/wD+", "encoding": "base64", "more": false}));
    assert_eq!(ask(&mut client, "removeFile", json!({"name": "notes/x.md"})).await, json!({"removed": true}));
    assert_eq!(ask(&mut client, "removeFile", json!({"name": "notes/x.md"})).await, json!({"removed": false}));
    let missing = refusable(&mut client, "readFile", json!({"name": "notes/x.md"})).await.unwrap_err();
    assert_eq!(missing.code, -32008, "{missing:?}");
    let todos = ask(&mut client, "todos", json!({})).await;
    assert_eq!(todos, json!({"todos": []}), "a store without a database has none");
    other.must_agree(URI).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_leads_out_or_a_file_that_is_too_large_is_refused_with_its_reason() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    for name in ["../events.jsonl", "/etc/passwd", "a\\b", "", "a\u{202e}b", "CON", "C:x"] {
        for method in ["readFile", "writeFile", "removeFile"] {
            let refused = refusable(&mut client, method, json!({"name": name, "data": ""})).await.unwrap_err();
            assert_eq!(refused.code, -32602, "{method} {name:?}: {refused:?}");
            assert!(refused.message.contains("cannot be the name"), "{refused:?}");
        }
    }
    let large = json!({"name": "x", "data": "x".repeat((2 << 20) + 1)});
    let refused = refusable(&mut client, "writeFile", large).await.unwrap_err();
    assert_eq!((refused.code, refused.message.contains("may have")), (-32602, true), "{refused:?}");
    let refused = refusable(&mut client, "writeFile", json!({"name": "x", "data": "!", "encoding": "base64"})).await;
    assert_eq!(refused.unwrap_err().code, -32602);
    assert_eq!(refusable(&mut client, "files", json!({"shelf": "x"})).await.unwrap_err().code, -32602);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_at_once_is_done_in_order() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    for number in 0..20 {
        let params = json!({"channel": URI, "text": number.to_string()});
        let request =
            json!({"jsonrpc": "2.0", "id": 900 + number, "method": "x-grove/workspace/setPlan", "params": params});
        client.send(request.to_string()).await;
    }
    let last = json!({"jsonrpc": "2.0", "id": 999, "method": "x-grove/workspace/plan", "params": {"channel": URI}});
    client.send(last.to_string()).await;
    let plan = loop {
        let message = client.json().await;
        if message["id"] == 999 {
            break message;
        }
        assert_eq!(message["error"], Value::Null, "{message}");
    };
    assert_eq!(plan["result"], json!({"text": "19"}));
}

#[tokio::test(start_paused = true)]
async fn a_compaction_writes_a_checkpoint_that_is_listed_on_its_branch_alone() {
    let mut host = TestHost::start(small()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    let two = entry(&mut client, "two").await;
    let compacted = client.ask("x-grove/compact", json!({"channel": URI})).await.unwrap();
    let all = log_lines(&host.sessions, "s").await;
    let line = all.iter().find(|line| line["id"] == compacted["compactionEntry"]).unwrap().clone();
    let path = line["details"]["checkpointPath"].as_str().unwrap().to_owned();
    assert_eq!(line["details"]["checkpointNumber"], 1);
    assert!(path.starts_with("s/checkpoints/001-"), "{path}");
    assert_eq!(host.sessions.read_text(&path).await.unwrap(), compacted["summary"].as_str().unwrap());
    let listed = ask(&mut client, "checkpoints", json!({})).await;
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(path, format!("s/checkpoints/{}", listed["checkpoints"][0]["file"].as_str().unwrap()));
    let text = ask(&mut client, "checkpoint", json!({"number": 1})).await;
    assert_eq!(text["text"], compacted["summary"]);
    assert_eq!(refusable(&mut client, "checkpoint", json!({"number": 7})).await.unwrap_err().code, -32008);
    client.until(|client| meta(client)["checkpoints"] == 1).await;
    assert_eq!(ask(&mut client, "manifest", json!({})).await["summaryCount"], 1);

    // Moving back before it removes it from the list, and the file stays.
    go(&mut client, two).await;
    client.until(|client| meta(client).is_null()).await;
    assert_eq!(ask(&mut client, "checkpoints", json!({})).await, json!({"checkpoints": []}));
    assert!(host.sessions.exists(&path).await.unwrap());
    assert!(!host.sessions.read_text("s/checkpoints/index.md").await.unwrap().contains("001-"));
    host.kill_and_restart(small()).await;
    host.bring_back_ahp(&mut client).await;
    go(&mut client, compacted["compactionEntry"].clone()).await;
    client.until(|client| meta(client)["checkpoints"] == 1).await;
    assert_eq!(ask(&mut client, "checkpoints", json!({})).await, listed, "as it was before");
    client.must_agree(URI).await;
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_cannot_be_written_is_no_reason_not_to_compact() {
    let host = TestHost::start(small()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    until_there(&host.sessions, "s/checkpoints/index.md").await;
    host.sessions.rm("s/checkpoints", grove_fs::Removal::Everything).await.unwrap();
    host.sessions.write_text("s/checkpoints", "in the way").await.unwrap();
    let compacted = client.ask("x-grove/compact", json!({"channel": URI})).await.unwrap();
    let all = client.ask("x-grove/entries", json!({"channel": URI})).await.unwrap();
    let all = all["entries"].as_array().unwrap();
    let line = all.iter().find(|line| line["id"] == compacted["compactionEntry"]).unwrap();
    assert_eq!(line["details"]["checkpointPath"], Value::Null, "{line}");
}

/// Creates a session with everything, and returns what came after its second turn.
async fn full(host: &TestHost) -> (Client, String) {
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    client.dispatch(URI, json!({"type": "session/titleChanged", "title": "All of it"})).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    ask(&mut client, "setPlan", json!({"text": "the plan"})).await;
    ask(&mut client, "writeFile", json!({"name": "a/early.md", "data": "early"})).await;
    ask(&mut client, "writeFile", json!({"name": "r.md", "shelf": "research", "data": "found"})).await;
    client.ask("x-grove/compact", json!({"channel": URI})).await.unwrap();
    // Files and messages are told apart by milliseconds of the real clock.
    std::thread::sleep(Duration::from_millis(20));
    say(&mut client, &chat, "t3", "three").await;
    std::thread::sleep(Duration::from_millis(20));
    ask(&mut client, "writeFile", json!({"name": "late.md", "data": "late"})).await;
    ask(&mut client, "writeFile", json!({"name": "late.md", "shelf": "research", "data": "late"})).await;
    say(&mut client, &chat, "t4", "four").await;
    client.ask("x-grove/compact", json!({"channel": URI})).await.unwrap();
    (client, chat)
}

/// Waits until a fork is complete and written.
async fn at_rest(host: &TestHost, client: &mut Client, fork: &Value) -> String {
    let id = id_of(fork);
    let chat = client.follow(fork.as_str().unwrap()).await;
    say(client, &chat, "f1", "in the fork").await;
    until("the manifest is written", async || {
        host.sessions.read_text(&format!("{id}/workspace.yaml")).await.is_ok_and(|text| text.contains(&id))
    })
    .await;
    until("the copy is finished", async || !host.sessions.exists(&format!("{id}/.copying")).await.unwrap()).await;
    id
}

fn without_manifest(mut files: BTreeMap<String, String>) -> BTreeMap<String, String> {
    files.remove("workspace.yaml");
    files
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_everything_that_stands_beside_the_log() {
    let mut host = TestHost::start(small()).await;
    let (mut client, _) = full(&host).await;
    let manifest = host.sessions.read_text("s/workspace.yaml").await.unwrap();
    host.sessions.write_text("s/workspace.yaml", &format!("{manifest}mc_task_id: 1\ntheirs: 1\n")).await.unwrap();
    let forked = client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap();
    let id = at_rest(&host, &mut client, &forked["session"]).await;
    let (source, fork) = (artifacts(&host.sessions, "s").await, artifacts(&host.sessions, &id).await);
    assert_eq!(without_manifest(fork.clone()), without_manifest(source));
    let manifest = &fork["workspace.yaml"];
    let about = [id.as_str(), "name: All of it (fork)\n", "user_named: false\n", "summary_count: 2\n", "theirs: 1\n"];
    for line in about {
        assert!(manifest.contains(line), "{line} in {manifest}");
    }
    assert!(!manifest.contains("mc_"), "{manifest}");
    // The log names the fork's own checkpoints, and its origin.
    let lines = log_lines(&host.sessions, &id).await;
    let paths: Vec<&str> = lines.iter().filter_map(|line| line["details"]["checkpointPath"].as_str()).collect();
    assert_eq!(paths.len(), 2);
    for path in paths {
        assert!(path.starts_with(&format!("{id}/checkpoints/")), "{path}");
        assert!(host.sessions.exists(path).await.unwrap(), "{path}");
    }
    let info: Vec<_> = lines.iter().filter(|line| line["data"]["infoType"] == "fork").collect();
    assert_eq!((info.len(), &info[0]["data"]["from"]["session"]), (1, &json!("s")));
    // So does the source's.
    let entries = client.ask("x-grove/entries", json!({"channel": URI, "limit": 1000})).await.unwrap();
    let told = entries["entries"].as_array().unwrap().iter().filter(|line| line["data"]["infoType"] == "fork");
    assert_eq!(told.map(|line| line["data"]["into"]["session"].clone()).collect::<Vec<_>>(), [json!(id)]);
    assert_eq!(ask(&mut client, "manifest", json!({})).await["forkCount"], 1);
    // Clients of the fork see its workspace, also after a restart.
    let known = |client: &Client| client.session(forked["session"].as_str().unwrap()).meta.clone().unwrap_or_default();
    client.until(|client| known(client).get("workspace").is_some_and(|known| known["checkpoints"] == 2)).await;
    host.kill_and_restart(small()).await;
    host.bring_back_ahp(&mut client).await;
    let tree = client.ask("x-grove/tree", json!({"channel": forked["session"], "filter": "all"})).await.unwrap();
    let total = tree["rows"].as_array().unwrap().len();
    assert!(total > 8, "{tree}");
    let named = client.ask("x-grove/fork", json!({"channel": URI, "title": "Mine"})).await.unwrap();
    let id = at_rest(&host, &mut client, &named["session"]).await;
    let manifest = host.sessions.read_text(&format!("{id}/workspace.yaml")).await.unwrap();
    assert!(manifest.contains("name: Mine\n") && manifest.contains("user_named: true\n"), "{manifest}");
}

#[tokio::test(start_paused = true)]
async fn a_branch_has_what_there_was_when_its_message_was_said() {
    let host = TestHost::start(small()).await;
    let (mut client, _) = full(&host).await;
    let messages = rows(&mut client, json!({"filter": "user-only"})).await;
    let fourth = messages.iter().find(|row| row["text"].as_str().unwrap().contains("four")).unwrap()["id"].clone();
    let third = messages.iter().find(|row| row["text"].as_str().unwrap().contains("three")).unwrap()["id"].clone();
    let branched = client.ask("x-grove/branch", json!({"channel": URI, "entry": third})).await.unwrap();
    let id = at_rest(&host, &mut client, &branched["session"]).await;
    let source = artifacts(&host.sessions, "s").await;
    let mut fork = artifacts(&host.sessions, &id).await;
    assert_eq!(source.keys().filter(|name| name.contains("late")).count(), 2);
    let names: Vec<&str> = fork.keys().map(String::as_str).collect();
    let first = source.keys().find(|name| name.starts_with("checkpoints/001-")).unwrap().clone();
    assert_eq!(
        names,
        [
            &first,
            "checkpoints/index.md",
            "files/a/early.md",
            "plan-history.jsonl",
            "plan.md",
            "research/r.md",
            "workspace.yaml"
        ]
    );
    for name in [first.as_str(), "files/a/early.md", "plan.md", "research/r.md"] {
        assert_eq!(fork[name], source[name], "{name}");
    }
    let index = fork.remove("checkpoints/index.md").unwrap();
    assert!(index.contains("001-") && !index.contains("002-"), "{index}");
    assert!(fork["workspace.yaml"].contains("summary_count: 1\n"), "{}", fork["workspace.yaml"]);
    let lines = log_lines(&host.sessions, &id).await;
    let info = lines.iter().find(|line| line["data"]["infoType"] == "fork").unwrap();
    assert_eq!(info["data"]["leftOut"].as_array().unwrap().len(), 3, "the second checkpoint, and two files: {info}");
    assert_eq!(info["data"]["asOfNow"], Value::Null, "{info}");

    // The plan is the one of that moment, and later versions are not mentioned.
    std::thread::sleep(Duration::from_millis(20));
    ask(&mut client, "setPlan", json!({"text": "another plan"})).await;
    let (files, info) = branch(&host, &mut client, &fourth).await;
    assert_eq!((files["plan.md"].as_str(), &info["asOfNow"]), ("the plan", &Value::Null), "{info}");
    assert!(files.contains_key("files/late.md"), "it was there before that message");
    // If the history is missing, it is the current one, and marked.
    host.sessions.rm("s/plan-history.jsonl", grove_fs::Removal::One).await.unwrap();
    let (files, info) = branch(&host, &mut client, &fourth).await;
    assert_eq!((files["plan.md"].as_str(), &info["asOfNow"]), ("another plan", &json!(["plan.md"])), "{info}");
}

/// Branches off before a message, and returns the artifacts and what the log says about them.
async fn branch(host: &TestHost, client: &mut Client, entry: &Value) -> (BTreeMap<String, String>, Value) {
    let branched = client.ask("x-grove/branch", json!({"channel": URI, "entry": entry})).await.unwrap();
    let id = at_rest(host, client, &branched["session"]).await;
    let lines = log_lines(&host.sessions, &id).await;
    let info = lines.iter().rfind(|line| line["data"]["infoType"] == "fork").unwrap();
    (artifacts(&host.sessions, &id).await, info["data"].clone())
}

#[tokio::test(start_paused = true)]
async fn the_plan_of_a_branch_is_that_of_its_message_whoever_wrote_it() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    // Files and messages are told apart by milliseconds of the real clock.
    let pause = || std::thread::sleep(Duration::from_millis(10));
    say(&mut client, &chat, "t0", "nothing yet").await;
    until_there(&host.sessions, "s/session.json").await;
    assert!(!host.sessions.exists("s/plan-history.jsonl").await.unwrap(), "a session without a plan writes nothing");
    pause();
    // An agent writes it in its turn, the user before the next one, a client later, and then it is deleted.
    client.script(&chat, "t1", json!([{"hang": true}])).await;
    client.until(|client| client.chat(&chat).active_turn.is_some()).await;
    pause();
    host.sessions.write_text("s/plan.md", "the agent's").await.unwrap();
    pause();
    client.dispatch(&chat, json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})).await;
    client.until(|client| client.chat(&chat).active_turn.is_none()).await;
    until_there(&host.sessions, "s/plan-history.jsonl").await;
    say(&mut client, &chat, "t2", "behind the agent's").await;
    pause();
    host.sessions.write_text("s/plan.md", "the person's").await.unwrap();
    pause();
    say(&mut client, &chat, "t3", "behind the person's").await;
    until_noted(&host, "the person's").await;
    host.kill_and_restart(Config::default()).await;
    host.bring_back_ahp(&mut client).await;
    pause();
    ask(&mut client, "setPlan", json!({"text": "the client's"})).await;
    pause();
    say(&mut client, &chat, "t4", "behind the client's").await;
    pause();
    ask(&mut client, "setPlan", json!({"text": null})).await;
    pause();
    say(&mut client, &chat, "t5", "behind all").await;
    pause();
    ask(&mut client, "setPlan", json!({"text": "now"})).await;

    let messages = rows(&mut client, json!({"filter": "user-only"})).await;
    let message = |text: &str| {
        let found = messages.iter().find(|row| row["text"].as_str().unwrap().contains(text));
        found.unwrap_or_else(|| panic!("no {text} in {messages:?}"))["id"].clone()
    };
    for (text, plan) in [
        ("nothing yet", None),
        ("hang", None),
        ("behind the agent's", Some("the agent's")),
        ("behind the person's", Some("the person's")),
        ("behind the client's", Some("the client's")),
        ("behind all", None),
    ] {
        let (files, info) = branch(&host, &mut client, &message(text)).await;
        assert_eq!(files.get("plan.md").map(String::as_str), plan, "{text}: {info}");
        assert_eq!(info["asOfNow"], Value::Null, "{text}: {info}");
        let history = files.get("plan-history.jsonl").cloned().unwrap_or_default();
        assert!(!history.contains("now"), "what came later is nowhere in it: {history}");
    }
    // A whole fork's history continues from there.
    let forked = client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap();
    let id = at_rest(&host, &mut client, &forked["session"]).await;
    let files = artifacts(&host.sessions, &id).await;
    assert_eq!((files["plan.md"].as_str(), files["plan-history.jsonl"].lines().count()), ("now", 6));
    let params = json!({"channel": forked["session"], "entry": message("behind the client's")});
    let branched = client.ask("x-grove/branch", params).await.unwrap();
    let id = at_rest(&host, &mut client, &branched["session"]).await;
    assert_eq!(artifacts(&host.sessions, &id).await["plan.md"], "the client's");
}

async fn until_noted(host: &TestHost, text: &str) {
    until("the plan is noted", async || host.sessions.read_text("s/plan-history.jsonl").await.unwrap().contains(text))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_fork_that_was_cut_off_is_finished_by_the_next_host() {
    for steps in 0..4 {
        let mut host = TestHost::start(small()).await;
        let (mut client, _) = full(&host).await;
        let source = without_manifest(artifacts(&host.sessions, "s").await);
        host.gate.close_behind(steps);
        let forked = client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap();
        let id = id_of(&forked["session"]);
        until_there(&host.sessions, &format!("{id}/.copying")).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(!host.sessions.exists(&format!("{id}/events.jsonl")).await.unwrap());
        host.kill_and_restart(small()).await;
        let mut client = host.ahp("late").await;
        at_rest(&host, &mut client, &forked["session"]).await;
        assert_eq!(without_manifest(artifacts(&host.sessions, &id).await), source);
        let lines = log_lines(&host.sessions, &id).await;
        assert_eq!(lines.iter().filter(|line| line["data"]["infoType"] == "fork").count(), 1);
    }
}
