//! Everything that any client saw survives `kill -9`.
//!
//! `GROVE_KILLS` sets how often the host is killed (25 by default).

use std::time::Duration;

use grove_testkit::Client;
use grove_wire::v1::TurnState;
use serde_json::json;

use crate::support::{Deadline, Host, S as URI, TestHome, permission_resolved};

/// A small generator, so that a failing run can be repeated from its printed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Acts like a busy client until the host is gone: starts turns, streams, answers requests.
async fn work(client: &mut Client, turn: String) {
    let steps = json!([{"say": "streaming some text", "chunks": 19, "delayMs": 1},
        {"tool": {"name": "sh", "input": "ls", "output": "out", "permission": "shell"}},
        {"say": " and more of it", "chunks": 15, "delayMs": 1}]);
    client.script(URI, &turn, steps).await;
    while let Some(text) = client.frame().await {
        client.take(&text);
        let Some(active) = client.session(URI).active_turn.clone() else { continue };
        if let Some(request) = active.pending_permissions.keys().next().cloned() {
            client.dispatch(permission_resolved(URI, &active.id, &request, true)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_client_saw_is_lost_by_kill_9() {
    let kills: u64 = std::env::var("GROVE_KILLS").ok().map_or(25, |text| text.parse().unwrap());
    let seed = std::env::var("GROVE_SEED").ok().map_or(u64::from(std::process::id()), |text| text.parse().unwrap());
    eprintln!("GROVE_SEED={seed} repeats this run");
    let mut dice = Dice(seed);
    let mut host = TestHome::new().serve(&[]);
    let mut clients = vec![host.client_with_session("a").await];
    for id in ["b", "c"] {
        let mut client = host.client(id).await;
        client.subscribe(URI).await.unwrap();
        clients.push(client);
    }
    let mut finished = 0;
    for round in 0..kills {
        let pause = Duration::from_micros(dice.below(60_000));
        let busy = dice.below(3) as usize;
        let turn = format!("turn-{round}");
        // Every client reads until the connection breaks; one of them also works.
        let mut tasks = Vec::new();
        for (n, mut client) in clients.drain(..).enumerate() {
            let turn = turn.clone();
            tasks.push(tokio::spawn(async move {
                if n == busy {
                    work(&mut client, turn).await;
                } else {
                    client.until_end().await;
                }
                client
            }));
        }
        tokio::time::sleep(pause).await;
        let place = host.kill();
        for task in tasks {
            clients.push(task.await.unwrap());
        }
        host = place.serve(&[]);
        for client in &mut clients {
            let seen = client.seen;
            assert!(host.reconnect(client).await, "round {round}: what was missed is replayed");
            assert!(client.seen >= seen, "round {round}: numbers do not go back");
            // Everything that the client saw is in its state, which must be the host's.
            client.must_agree(URI).await;
        }
        let done = clients[0].session(URI).turns.len();
        assert!(done >= finished, "round {round}: a finished turn is gone");
        finished = done;
    }
    // A turn that waited is still waiting, and continues.
    let first = &mut clients[0];
    if let Some(active) = first.session(URI).active_turn.clone() {
        if let Some(request) = active.pending_permissions.keys().next() {
            first.dispatch(permission_resolved(URI, &active.id, request, true)).await;
        }
        first.turn_end(URI, &active.id).await;
    }
    let last = first.run_script(URI, "last", json!([{"say": "still here"}])).await;
    assert_eq!(last.state, TurnState::Complete);
    for client in &mut clients {
        client.turn_end(URI, "last").await;
        client.must_agree(URI).await;
    }
    // The log, written after the journal and killed as often, has every turn once.
    let place = host.kill();
    let host = place.serve(&[]);
    let mut client = host.subscriber("reader").await;
    client.run_script(URI, "very-last", json!([{"say": "and here"}])).await;
    let ids: Vec<String> = client.session(URI).turns.iter().map(|turn| turn.id.clone()).collect();
    let place = host.stop();
    let file = place.data().join("session-state/s/events.jsonl");
    let log = grove_tree::open(std::fs::read(&file).unwrap(), &mut || unreachable!()).unwrap();
    let logged: Vec<String> = grove_tree::turns::turns(&log).iter().map(|turn| turn.id.to_string()).collect();
    assert_eq!(logged, ids);
    assert_eq!(log.index().damage().len(), 0, "{:?}", log.index().damage());
}

#[tokio::test]
async fn a_sessions_log_can_be_inspected_and_checked_by_its_id() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let steps = json!([{"title": "A title"}, {"say": "one"}, {"tool": {"name": "ls", "input": "ls", "output": "x"}}, {"say": "two"}]);
    client.run_script(URI, "t1", steps).await;
    client.run_script(URI, "t2", json!([{"say": "three"}])).await;
    let place = host.stop();
    let shown = place.run(&["inspect", "s", "--json", "--rules", "pi"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let roles: Vec<_> = shown["context"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant", "user", "assistant"]);
    assert_eq!(shown["damage"], json!([]));
    assert_eq!(shown["header"]["version"], 3);
    let checked = place.run(&["check", "s"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);
}

#[tokio::test]
async fn sessions_contents_and_waiting_turns_survive_an_orderly_stop_and_a_new_start() {
    let host = Host::start();
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.run_script(URI, "t1", json!([{"tool": {"name": "cat", "output": "0123456789", "repeat": 10_000}}])).await;
    let part = serde_json::to_value(&client.session(URI).turns[0].response_parts[0]).unwrap();
    let content = part["uri"].as_str().unwrap().to_owned();
    let place = host.stop();
    let host = place.serve(&[]);
    let mut other = host.client("other").await;
    let fetched: serde_json::Value = other.call("fetchContent", json!({"uri": content})).await.unwrap();
    assert_eq!(fetched["mimeType"], "text/plain", "for any first client");
    assert!(host.reconnect(&mut client).await);
    client.must_agree(URI).await;
    let fetched: serde_json::Value = client.call("fetchContent", json!({"uri": content})).await.unwrap();
    assert_eq!(fetched["data"].as_str().unwrap().len(), 100_000);
    let listed: serde_json::Value = client.call("listSessions", json!({})).await.unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_data_folder_of_a_newer_version_is_refused_by_name() {
    let place = TestHome::new();
    place.write("data/version", "2\n");
    let ran = place.run(&["serve"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is of version 2, and this Grove knows version 1"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(place.data().join("version")).unwrap(), "2\n", "and left as it was");
}

#[tokio::test]
async fn the_journal_keeps_only_what_the_sessions_folders_do_not_have() {
    let host = TestHome::new().serve(&["--replay-actions", "50"]);
    let mut client = host.client_with_session("a").await;
    // Each turn takes some 6 MB of the journal: the prompt, and the same text streamed.
    let text = "0123456789".repeat(300_000);
    for turn in 0..7 {
        client.run_script(URI, &format!("t{turn}"), json!([{"say": text, "chunks": 100}])).await;
    }
    let journal = host.place.data().join("journal");
    let size = || -> u64 {
        let files = std::fs::read_dir(&journal).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
        files.sum()
    };
    let deadline = Deadline::new("the journal does not let go of old segments");
    while size() > 24 << 20 {
        deadline.check();
        client.settle().await;
    }
    client.run_script(URI, "small", json!([{"say": "x"}])).await;
    let turns = client.session(URI).turns.clone();
    let place = host.kill();
    let host = place.serve(&[]);
    let mut late = host.subscriber("late").await;
    late.must_agree(URI).await;
    let kept = &late.session(URI).turns;
    assert_eq!(kept[..], turns[turns.len() - kept.len()..], "the folder has what the journal let go");
}

#[tokio::test]
async fn sessions_from_before_are_listed_without_being_loaded_and_open_when_asked_for() {
    let host = Host::start();
    let mut client = host.client("a").await;
    for n in 0..20 {
        let uri = format!("scripted:/s{n}");
        client.ready_session(&uri).await;
        let steps = if n == 7 { json!([{"title": "seven"}, {"fail": "no"}]) } else { json!([{"say": "x"}]) };
        client.run_script(&uri, "t", steps).await;
    }
    let place = host.stop();
    let host = place.serve(&[]);
    let mut client = host.client("b").await;
    let listed: serde_json::Value = client.call("listSessions", json!({"filter": {"status": "error"}})).await.unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(listed["sessions"][0]["title"], "seven");
    let all: serde_json::Value = client.call("listSessions", json!({})).await.unwrap();
    assert_eq!(all["sessions"].as_array().unwrap().len(), 20);
    client.subscribe("scripted:/s3").await.unwrap();
    assert_eq!(client.session("scripted:/s3").turns.len(), 1);
    client.run_script("scripted:/s3", "t2", json!([{"say": "y"}])).await;
    assert_eq!(client.create_session("scripted:/s4").await.unwrap_err().code, -32003, "its place is taken");
    client.call::<()>("disposeSession", json!({"session": "scripted:/s5"})).await.unwrap();
    let place = host.kill();
    let host = place.serve(&[]);
    let mut client = host.client("c").await;
    let all: serde_json::Value = client.call("listSessions", json!({})).await.unwrap();
    assert_eq!(all["sessions"].as_array().unwrap().len(), 19);
    client.subscribe("scripted:/s3").await.unwrap();
    assert_eq!(client.session("scripted:/s3").turns.len(), 2);
}
