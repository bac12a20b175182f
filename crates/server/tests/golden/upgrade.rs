//! Hosts on copies of the committed folders, as the next version finds them.

use std::path::Path;
use std::sync::Arc;

use grove_fs::LocalFs;
use grove_storage::{FileJournal, Stores, recover, verify_all};
use serde_json::{Map, Value, json};

use crate::client::{Client, Dialect};
use crate::folder;
use crate::scenarios::storage_config;
use crate::timed_fs::run_paused;
use crate::world::{World, config, settle};

/// The committed folders. Those that begin with `numbered` are from before positions: each number is one above the last.
pub(crate) const SCENARIOS: [&str; 8] = [
    "events",
    "tree",
    "killed",
    "stored-by-client",
    "numbered-events",
    "numbered-tree",
    "numbered-killed",
    "numbered-stored-by-client",
];

/// Everything that a client can see of every session: its row, its state and its chats' states.
async fn look(client: &mut Client) -> Value {
    let list = client.call("listSessions", json!({"channel": "ahp-root://"})).await;
    let mut all = Map::new();
    for row in list["items"].as_array().unwrap() {
        let uri = row["resource"].as_str().unwrap();
        let session = client.subscribe(uri).await;
        let mut chats = Map::new();
        for chat in session["chats"].as_array().unwrap() {
            let chat = chat["resource"].as_str().unwrap();
            chats.insert(chat.to_owned(), client.subscribe(chat).await);
        }
        all.insert(uri.to_owned(), json!({"row": row, "state": session, "chats": chats}));
    }
    Value::Object(all)
}

/// The words of each turn of a chat, and how it ended.
fn turns(seen: &Value, session: &str) -> Vec<(String, String)> {
    let chat = seen[session]["state"]["defaultChat"].as_str().unwrap_or_else(|| panic!("no {session} in {seen}"));
    let chat = &seen[session]["chats"][chat];
    let turns = chat["turns"].as_array().unwrap();
    let words = |turn: &Value| {
        let parts = turn["responseParts"].as_array().unwrap().iter();
        parts.filter(|part| part["kind"] == "markdown").filter_map(|part| part["content"].as_str()).collect()
    };
    turns.iter().map(|turn| (words(turn), turn["state"].as_str().unwrap().to_owned())).collect()
}

fn ended(turns: &[(&str, &str)]) -> Vec<(String, String)> {
    turns.iter().map(|(said, state)| ((*said).to_owned(), (*state).to_owned())).collect()
}

fn write_or_compare(scenario: &str, seen: &Value) {
    let text = format!("{}\n", serde_json::to_string_pretty(seen).unwrap());
    folder::compare(&format!("{scenario}-upgraded"), &[("seen.json".into(), text.into_bytes())].into());
}

/// The golden with what is seen after an upgrade. Older folders show the same, except for who answered: they do not say it.
fn golden_of(scenario: &str) -> &str {
    match scenario {
        "numbered-events" => scenario,
        _ => scenario.trim_start_matches("numbered-"),
    }
}

/// Starts a host on a committed folder, has `finish` do what is left, and looks twice.
async fn upgrade(scenario: &str, finish: impl AsyncFnOnce(&mut Client)) -> Value {
    let world = World::load(scenario).await;
    let host = world.start().await;
    let mut client = world.client(&host, Dialect::Ahp10, "upgrade").await;
    look(&mut client).await;
    settle().await;
    finish(&mut client).await;
    settle().await;
    let seen = look(&mut client).await;
    assert_eq!(host.host.damage(), [""; 0]);
    host.kill().await;
    write_or_compare(golden_of(scenario), &seen);

    let before = world.stored().await;
    let host = world.start().await;
    let mut client = world.client(&host, Dialect::Ahp10, "second").await;
    assert_eq!(look(&mut client).await, seen, "a second look shows the same");
    settle().await;
    assert_eq!(host.host.damage(), [""; 0]);
    host.kill().await;
    assert!(world.stored().await == before, "a second look changes no file of a session");
    seen
}

#[test]
fn sessions_of_an_older_version_are_there_with_their_turns() {
    for scenario in ["numbered-events", "events"] {
        run_paused(async {
            let seen = upgrade(scenario, async |_| {}).await;
            let said = turns(&seen, "scripted:/s");
            let states: Vec<&str> = said.iter().map(|(_, state)| state.as_str()).collect();
            assert_eq!(states[..6], ["complete", "complete", "complete", "complete", "error", "cancelled"]);
            assert_eq!(said[0].0, "hello there*part*");
            assert_eq!(turns(&seen, "tape:/t"), ended(&[("played", "complete")]));
            assert_eq!(turns(&seen, "scripted:/sdk").len(), 1);
        });
    }
}

#[test]
fn trees_and_forks_of_an_older_version_are_as_they_were() {
    for scenario in ["numbered-tree", "tree"] {
        run_paused(async {
            let seen = upgrade(scenario, async |client| {
                let rows = client.call("x-grove/tree", json!({"channel": "scripted:/s"})).await;
                let labels: Vec<&str> =
                    rows["rows"].as_array().unwrap().iter().filter_map(|row| row["label"].as_str()).collect();
                assert!(labels.contains(&"here"), "{labels:?}");
            })
            .await;
            let stores: Vec<&str> = seen
                .as_object()
                .unwrap()
                .values()
                .filter_map(|session| session["row"]["_meta"]["store"].as_str())
                .collect();
            assert_eq!(stores.iter().filter(|store| **store == "other").count(), 2, "{stores:?}");
            assert_eq!(seen["scripted:/s"]["chats"].as_object().unwrap().len(), 3);
        });
    }
}

#[test]
fn turns_that_an_older_version_left_open_are_finished() {
    for scenario in ["numbered-killed", "killed"] {
        run_paused(async {
            let seen = upgrade(scenario, async |client| {
                let approve = json!({"type": "chat/toolCallConfirmed", "turnId": "t2", "toolCallId": "t2-call-1",
                "approved": true, "confirmed": "user-action"});
                client.dispatch("ahp-chat:/waiting", approve).await;
                let given = json!({"answer": {"state": "submitted", "value": {"kind": "text", "value": "blue"}}});
                let answer = json!({"type": "chat/inputCompleted", "requestId": "t2-ask-0", "response": "accept",
                "answers": given});
                client.dispatch("ahp-chat:/asking", answer).await;
                settle().await;
            })
            .await;
            assert_eq!(turns(&seen, "scripted:/running"), ended(&[("before", "complete"), ("half", "error")]));
            assert_eq!(
                turns(&seen, "scripted:/waiting"),
                ended(&[("before", "complete"), ("may I?after", "complete")])
            );
            let expected = [("before", "complete"), ("after", "complete"), ("from the queue", "complete")];
            assert_eq!(turns(&seen, "scripted:/asking"), ended(&expected));
            assert_eq!(turns(&seen, "tape:/outlasting"), ended(&[("begun, heard up to 1, finished", "complete")]));
        });
    }
}

#[test]
fn a_session_that_a_client_stored_with_an_older_version_is_resumed() {
    for scenario in ["numbered-stored-by-client", "stored-by-client"] {
        run_paused(async {
            let mut world = World::load(scenario).await;
            let host = world.start().await;
            let mut sdk = world.sdk(&host, "storage");
            sdk.authenticate().await;
            *sdk.storage.lock().unwrap() = Some(world.storage("kept"));
            sdk.call("sessionFs.setProvider", storage_config()).await;
            let listed = sdk.call("session.list", json!({})).await;
            assert_eq!(listed["sessions"][0]["sessionId"], "kept", "{listed}");
            sdk.call("session.resume", json!({"sessionId": "kept"})).await;
            let messages = sdk.call("session.getMessages", json!({"sessionId": "kept"})).await.to_string();
            assert!(messages.contains("\"content\":\"one\"") && messages.contains("\"content\":\"two\""), "{messages}");
            let steps = json!([{"say": "three"}]);
            sdk.call("session.send", json!({"sessionId": "kept", "prompt": format!("script:{steps}")})).await;
            settle().await;
            assert_eq!(host.host.damage(), [""; 0]);
            host.kill().await;
        });
    }
}

fn copy(from: &Path, to: &Path) {
    for (path, bytes) in folder::read(from) {
        let path = to.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// The scenarios run in memory; on a disk their folders mean the same.
#[tokio::test]
async fn folders_of_an_older_version_are_whole_on_a_disk() {
    for scenario in SCENARIOS {
        let copied = tempfile::tempdir().unwrap();
        copy(&folder::root(scenario), copied.path());
        std::fs::create_dir_all(copied.path().join("other")).unwrap();
        let data = copied.path().join("data");
        let local = Arc::new(LocalFs::new(grove_storage::paths::root(&data)));
        let other = Arc::new(LocalFs::new(copied.path().join("other")));
        let stores = Stores::new(local.clone()).with(&"other".into(), other.clone()).unwrap();
        let journal = data.join("journal");
        assert_eq!(verify_all(&journal, &[local, other]).await, [""; 0], "{scenario}");
        let (_journal, contents) = FileJournal::open(&journal).unwrap();
        let recovered = recover(contents, &stores, config().limits.snapshot()).await.unwrap();
        assert_eq!(recovered.damage, [""; 0], "{scenario}");
    }
}
