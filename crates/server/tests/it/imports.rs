//! Imported sessions: invisible before they are committed, and complete afterwards.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_fs::SessionFs;
use grove_host::{Config, Limits};
use grove_testkit::ahp::{Client, markdown};
use grove_wire::ahp::error_code;
use grove_wire::jsonrpc::{ErrorObject, code};
use serde_json::{Value, json};

use crate::harness::{TestHost, until};

const URI: &str = "scripted:/from-outside";

fn log() -> Vec<u8> {
    let lines = [
        json!({"type": "session", "version": 3, "id": "from-outside", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}),
        json!({"type": "message", "id": "a1", "parentId": null, "timestamp": "2026-01-01T00:00:01.000Z",
            "message": {"role": "user", "content": "hello", "timestamp": 1}}),
        json!({"type": "message", "id": "a2", "parentId": "a1", "timestamp": "2026-01-01T00:00:02.000Z",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "good day"}], "stopReason": "stop",
                "timestamp": 2}}),
    ];
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

async fn begin(client: &mut Client, params: Value) -> Result<u64, ErrorObject> {
    let begun = client.ask("x-grove/import/begin", params).await?;
    Ok(begun["import"].as_u64().unwrap())
}

async fn put(client: &mut Client, import: u64, path: &str, offset: usize, bytes: &[u8]) -> Result<Value, ErrorObject> {
    let params = json!({"import": import, "path": path, "offset": offset, "data": STANDARD.encode(bytes)});
    client.ask("x-grove/import/put", params).await
}

async fn commit(client: &mut Client, import: u64) -> Result<Value, ErrorObject> {
    client.ask("x-grove/import/commit", json!({"import": import})).await
}

fn about() -> Value {
    json!({"id": "from-outside", "title": "Brought along", "workingDirectory": "/w", "createdAt": 1_000, "modifiedAt": 2_000})
}

async fn listed(client: &mut Client) -> Vec<Value> {
    let list = client.ask("listSessions", json!({"channel": "ahp-root://"})).await.unwrap();
    list["items"].as_array().unwrap().clone()
}

async fn folders(host: &TestHost) -> Vec<String> {
    host.sessions.readdir("").await.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_session_from_outside_is_there_once_it_is_committed_and_goes_on() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("one").await;
    let mut other = host.ahp("two").await;
    let import = begin(&mut client, about()).await.unwrap();
    let log = log();
    let (first, rest) = log.split_at(100);
    put(&mut client, import, "events.jsonl", 0, first).await.unwrap();
    let put_all = put(&mut client, import, "events.jsonl", 100, rest).await.unwrap();
    assert_eq!(put_all["size"], log.len());
    put(&mut client, import, "plan.md", 0, b"# Plan").await.unwrap();
    put(&mut client, import, "files/notes/x.md", 0, b"x").await.unwrap();
    assert_eq!(listed(&mut other).await, Vec::<Value>::new(), "nobody sees it before");

    let committed = commit(&mut client, import).await.unwrap();
    assert_eq!((committed["session"].as_str(), committed["entries"].as_u64()), (Some(URI), Some(2)));
    assert!(committed.get("damage").is_none(), "{committed}");
    for _ in 0..2 {
        assert_eq!(folders(&host).await, ["from-outside"]);
        let mut client = host.ahp("three").await;
        let items = listed(&mut client).await;
        assert_eq!(items.len(), 1);
        assert_eq!(items[0]["title"], "Brought along");
        let chat = client.follow(URI).await;
        let turns: Vec<_> = client.chat(&chat).turns.iter().map(|turn| markdown(&turn.response_parts)).collect();
        assert_eq!(turns[0], "good day");
        let plan = client.ask("x-grove/workspace/plan", json!({"channel": URI})).await.unwrap();
        assert_eq!(plan["text"], "# Plan");
        // A killed host has it, too.
        host.kill_and_restart(Config::default()).await;
    }
    let mut client = host.ahp("four").await;
    let chat = client.follow(URI).await;
    client.run_script(&chat, "t1", json!([{"say": "more"}])).await;
    let turns: Vec<_> = client.chat(&chat).turns.iter().map(|turn| markdown(&turn.response_parts)).collect();
    assert_eq!(turns, ["good day", "more"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_from_outside_says_what_is_checked_out_where_it_works() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".git")).unwrap();
    std::fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/fix\n").unwrap();
    let mut about = about();
    about["workingDirectory"] = json!(folder.path());
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("one").await;
    let import = begin(&mut client, about).await.unwrap();
    put(&mut client, import, "events.jsonl", 0, &log()).await.unwrap();
    commit(&mut client, import).await.unwrap();
    assert_eq!(listed(&mut client).await[0]["_meta"]["branch"], "fix");
}

#[tokio::test(start_paused = true)]
async fn others_hear_of_a_session_from_outside() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("one").await;
    let mut other = host.ahp("two").await;
    other.subscribe("ahp-root://").await.unwrap();
    let import = begin(&mut client, about()).await.unwrap();
    put(&mut client, import, "events.jsonl", 0, &log()).await.unwrap();
    commit(&mut client, import).await.unwrap();
    other.until(|other| other.root().active_sessions == Some(1)).await;
    let told = other.told("root/sessionAdded");
    assert_eq!((told.len(), &told[0]["summary"]["title"]), (1, &json!("Brought along")));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_an_import_that_did_not_come_to_its_end() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("one").await;
    // Discarded.
    let import = begin(&mut client, about()).await.unwrap();
    put(&mut client, import, "plan.md", 0, b"x").await.unwrap();
    assert_eq!(folders(&host).await, ["from-outside~import"]);
    assert_eq!(client.ask("x-grove/import/abort", json!({"import": import})).await.unwrap()["aborted"], true);
    assert_eq!(client.ask("x-grove/import/abort", json!({"import": import})).await.unwrap()["aborted"], false);
    assert_eq!(folders(&host).await, Vec::<String>::new());
    // Refused.
    let import = begin(&mut client, about()).await.unwrap();
    put(&mut client, import, "events.jsonl", 0, b"{\"no\": \"header\"}\n").await.unwrap();
    assert_eq!(commit(&mut client, import).await.unwrap_err().code, code::INVALID_PARAMS);
    assert_eq!(folders(&host).await, Vec::<String>::new());
    // Its connection ended.
    let import = begin(&mut client, about()).await.unwrap();
    put(&mut client, import, "plan.md", 0, b"x").await.unwrap();
    drop(client);
    until("the folder goes", async || folders(&host).await.is_empty()).await;
    // The host was killed.
    let mut client = host.ahp("two").await;
    let import = begin(&mut client, about()).await.unwrap();
    put(&mut client, import, "events.jsonl", 0, &log()).await.unwrap();
    host.kill_and_restart(Config::default()).await;
    assert_eq!(folders(&host).await, Vec::<String>::new());
    let mut client = host.ahp("three").await;
    assert_eq!(listed(&mut client).await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn an_import_is_bounded_and_takes_only_what_a_session_has() {
    let limits = Limits { imports: 2, import_files: 2, import_bytes: 10, ..Limits::default() };
    let host = TestHost::start(Config { limits, ..Config::default() }).await;
    let mut client = host.ahp("one").await;
    let import = begin(&mut client, about()).await.unwrap();
    let taken = begin(&mut client, about()).await.unwrap_err();
    assert_eq!(taken.code, error_code::SESSION_ALREADY_EXISTS, "{}", taken.message);
    let create = client.ask("createSession", json!({"channel": URI})).await.unwrap_err();
    assert_eq!(create.code, error_code::SESSION_ALREADY_EXISTS, "{}", create.message);
    begin(&mut client, json!({})).await.unwrap();
    assert!(begin(&mut client, json!({})).await.unwrap_err().message.contains("2 imports"));

    let refused = async |client: &mut Client, path: &str, offset, bytes: &[u8], words: &str| {
        let error = put(client, import, path, offset, bytes).await.unwrap_err();
        assert_eq!(error.code, code::INVALID_PARAMS, "{}", error.message);
        assert!(error.message.contains(words), "{}", error.message);
    };
    for path in ["session.json", "../x", "files/../../x", "/etc/x", "chats/a/events.jsonl", ""] {
        put(&mut client, import, path, 0, b"x").await.unwrap_err();
    }
    put(&mut client, import, "plan.md", 0, b"12345").await.unwrap();
    refused(&mut client, "plan.md", 3, b"x", "5 bytes so far").await;
    refused(&mut client, "plan.md", 5, b"678901", "10 bytes").await;
    put(&mut client, import, "files/a", 0, b"1").await.unwrap();
    refused(&mut client, "files/b", 0, b"1", "2 files").await;
    assert!(commit(&mut client, import).await.unwrap_err().message.contains("no events.jsonl"));
    assert_eq!(commit(&mut client, import).await.unwrap_err().code, error_code::NOT_FOUND);
    let unknown = begin(&mut client, json!({"provider": "nobody"})).await.unwrap_err();
    assert_eq!(unknown.code, error_code::PROVIDER_NOT_FOUND);
    for bad in
        [json!({"id": "a~b"}), json!({"id": ".."}), json!({"store": "nowhere"}), json!({"workingDirectory": "w"})]
    {
        assert_eq!(begin(&mut client, bad).await.unwrap_err().code, code::INVALID_PARAMS);
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_log_is_brought_forward_and_what_is_wrong_in_one_is_told() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("one").await;
    let import = begin(&mut client, json!({"id": "from-outside"})).await.unwrap();
    let old = "{\"type\":\"session\",\"id\":\"x\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n\
        {\"type\":\"message\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n\
        {broken\n";
    put(&mut client, import, "events.jsonl", 0, old.as_bytes()).await.unwrap();
    let committed = commit(&mut client, import).await.unwrap();
    assert!(committed["damage"][0].as_str().unwrap().starts_with("line 3: "), "{committed}");
    let text = host.sessions.read_text("from-outside/events.jsonl").await.unwrap();
    assert!(text.contains("\"version\":3"), "{text}");
    let tree = client.ask("x-grove/tree", json!({"channel": URI})).await.unwrap();
    assert!(tree["rows"].to_string().contains("hi"), "{tree}");
}

#[tokio::test(start_paused = true)]
async fn an_import_that_is_cut_off_anywhere_leaves_the_whole_session_or_nothing() {
    let mut outcomes = Vec::new();
    for steps in 0.. {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("one").await;
        // A disposed session had the id before, and its folder is there.
        client.ask("createSession", json!({"channel": URI})).await.unwrap();
        let chat = client.follow(URI).await;
        client.run_script(&chat, "t1", json!([{"say": "before"}])).await;
        client.ask("disposeSession", json!({"channel": URI})).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;

        host.changes.close_behind(steps);
        let all = async {
            let import = begin(&mut client, about()).await.unwrap();
            put(&mut client, import, "events.jsonl", 0, &log()).await.unwrap();
            put(&mut client, import, "plan.md", 0, b"# Plan").await.unwrap();
            commit(&mut client, import).await.unwrap();
        };
        let done = tokio::time::timeout(std::time::Duration::from_secs(5), all).await.is_ok();
        host.kill_and_restart(Config::default()).await;
        let mut late = host.ahp("late").await;
        let is_there = !listed(&mut late).await.is_empty();
        assert!(is_there || !done, "what was answered holds");
        if is_there {
            let chat = late.follow(URI).await;
            let turns: Vec<_> = late.chat(&chat).turns.iter().map(|turn| markdown(&turn.response_parts)).collect();
            assert_eq!(turns, ["good day"], "killed behind {steps} changes");
            assert_eq!(host.sessions.read_text("from-outside/plan.md").await.unwrap(), "# Plan");
        } else {
            assert!(!folders(&host).await.contains(&"from-outside~import".to_owned()), "{:?}", folders(&host).await);
            begin(&mut late, about()).await.unwrap();
        }
        outcomes.push(is_there);
        if done {
            break;
        }
    }
    // First there is nothing, from some moment on all of it.
    assert!(outcomes.len() > 4 && outcomes.is_sorted() && !outcomes[0], "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_log_with_a_cycle_of_parents_is_taken_in_with_each_turn_once() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("one").await;
    let header =
        json!({"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"});
    let entry = |id: &str, parent: &str, body: Value| {
        let mut entry = json!({"type": "message", "id": id, "parentId": parent, "message": body});
        entry["timestamp"] = json!("2026-01-01T00:00:01.000Z");
        entry
    };
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let without = [entry("a", "b", said("assistant", "x")), entry("b", "a", said("assistant", "y"))];
    let with = [entry("a", "b", said("user", "hello")), entry("b", "a", said("assistant", "good day"))];
    for (id, lines, expected) in [("no-turn", without, 0), ("a-turn", with, 1)] {
        let import = begin(&mut client, json!({"id": id, "workingDirectory": "/w"})).await.unwrap();
        let log = format!("{header}\n{}\n{}\n", lines[0], lines[1]);
        put(&mut client, import, "events.jsonl", 0, log.as_bytes()).await.unwrap();
        let committed = commit(&mut client, import).await.unwrap();
        assert_eq!(committed["damage"].as_array().unwrap().len(), 2, "{committed}");
        let uri = format!("scripted:/{id}");
        let chat = client.follow(&uri).await;
        assert_eq!(client.chat(&chat).turns.len(), expected, "{id}");
        let tree = client.ask("x-grove/tree", json!({"channel": uri})).await.unwrap();
        assert_eq!(tree["total"], 2, "{tree}");
        client.run_script(&chat, "t1", json!([{"say": "on"}])).await;
        assert_eq!(client.chat(&chat).turns.len(), expected + 1);
    }
}

/// Moves a session from one host to another as `grove move` does, with what happens to each file on the way.
async fn carry(
    from: &mut Client,
    to: &mut Client,
    on_the_way: impl Fn(&str, Vec<u8>) -> Vec<u8>,
) -> Result<Value, ErrorObject> {
    let has = from.ask("x-grove/handover/files", json!({"channel": URI})).await?;
    let origin = json!({"host": "near", "session": URI, "stamp": has["stamp"]});
    let about = json!({"id": "from-outside", "from": origin, "seal": has["seal"]});
    let import = begin(to, about).await?;
    for file in has["files"].as_array().unwrap() {
        let path = file["path"].as_str().unwrap();
        let piece = from.ask("x-grove/handover/read", json!({"channel": URI, "path": path, "offset": 0})).await?;
        let bytes = STANDARD.decode(piece["data"].as_str().unwrap()).unwrap();
        put(to, import, path, 0, &on_the_way(path, bytes)).await?;
    }
    commit(to, import).await
}

#[tokio::test(start_paused = true)]
async fn a_session_file_that_was_changed_on_its_way_to_another_host_is_refused() {
    let (near, far) = (TestHost::start(Config::default()).await, TestHost::start(Config::default()).await);
    let (mut from, mut to) = (near.ahp("mover").await, far.ahp("mover").await);
    let chat = from.ready_session(URI).await;
    from.run_script(&chat, "t1", json!([{"say": "one"}])).await;
    let changed = |path: &str, bytes: Vec<u8>| match path {
        "session.json" => {
            let mut file: Value = serde_json::from_slice(&bytes).unwrap();
            file["title"] = json!("Another one");
            serde_json::to_vec_pretty(&file).unwrap()
        }
        _ => bytes,
    };
    let refused = carry(&mut from, &mut to, changed).await.unwrap_err();
    assert_eq!(refused.code, code::INVALID_PARAMS, "{refused}");
    assert!(refused.message.contains("the received files differ from the sent ones"), "{refused}");
    assert_eq!(listed(&mut to).await, Vec::<Value>::new());
    assert_eq!(folders(&far).await, [""; 0], "nothing is left of it");
    carry(&mut from, &mut to, |_, bytes| bytes).await.unwrap();
    assert_eq!(listed(&mut to).await.len(), 1);
}
