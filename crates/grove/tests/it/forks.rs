//! Forks and `kill -9`: an answered fork exists, whenever its log is copied.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{S, TestHome};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_that_was_answered_is_whole_after_kill_9_at_any_moment() {
    let mut host = TestHome::new().serve(&[]);
    let mut client = host.client_with_session("a").await;
    // Long enough that some kills happen during the copy.
    let long = "long ".repeat(40_000);
    for number in 0..10 {
        client.run_script(S, &format!("t{number}"), json!([{"say": long}])).await;
    }
    for round in 0..8u64 {
        let forked: Value = client.call("x-grove/fork", json!({"session": S})).await.unwrap();
        let forked = forked["session"].as_str().unwrap().to_owned();
        // The source continues.
        client.script(S, &format!("more-{round}"), json!([{"say": "more"}])).await;
        tokio::time::sleep(Duration::from_micros(round * round * 400)).await;
        host = host.kill().serve(&[]);
        client = host.subscriber(&format!("client {round}")).await;
        client.subscribe(&forked).await.unwrap();
        let turns = client.session(&forked).turns.clone();
        assert!(turns.len() >= 10, "round {round}: {} turns", turns.len());
        // Its messages refer to its own files.
        let folder = |uri: &str| format!("/{}/files/paste-", uri.rsplit('/').next().unwrap());
        let theirs = serde_json::to_string(&client.session(S).turns[..turns.len()]).unwrap();
        let theirs = theirs.replace(&folder(S), &folder(&forked));
        assert!(theirs == serde_json::to_string(&turns).unwrap(), "round {round}");
        client.run_script(&forked, &format!("own-{round}"), json!([{"say": "own"}])).await;
        let tree: Value = client.call("x-grove/tree", json!({"session": forked, "filter": "user-only"})).await.unwrap();
        // The leaf, an answer, is left out: its prompt is the position.
        assert_eq!(tree["total"], turns.len() + 1, "round {round}: {tree}");
        client.must_agree(&forked).await;
        client.must_agree(S).await;
    }
    let place = host.stop();
    for folder in std::fs::read_dir(place.data().join("session-state")).unwrap() {
        let file = folder.unwrap().path().join("events.jsonl");
        let log = grove_tree::open(std::fs::read(&file).unwrap(), &mut || unreachable!()).unwrap();
        assert!(log.index().damage().is_empty(), "{}: {:?}", file.display(), log.index().damage());
    }
}
