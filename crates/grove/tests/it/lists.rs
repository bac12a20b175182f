//! The list of sessions, and pages of turns.

use grove_testkit::Client;
use serde_json::{Value, json};

use crate::support::*;

async fn listed(client: &mut Client, filter: Value) -> Vec<String> {
    let result = client.get("listSessions", json!({"filter": filter})).await;
    let sessions = result["sessions"].as_array().unwrap().iter();
    let mut uris: Vec<String> = sessions.map(|session| session["resource"].as_str().unwrap().to_owned()).collect();
    uris.sort();
    uris
}

#[tokio::test]
async fn the_list_holds_every_session_and_each_filter_narrows_it() {
    let host = Host::start();
    let mut client = host.client("a").await;
    let create = |uri: &str, folder: &str| json!({"session": uri, "provider": "scripted", "workingDirectory": folder});
    for (uri, folder) in [("scripted:/idle", "/one"), ("scripted:/running", "/two"), ("x:/failed", "file:///tw%6F")] {
        client.get("createSession", create(uri, folder)).await;
        client.subscribe(uri).await.unwrap();
    }
    client.script("scripted:/running", "t", json!([{"say": "x"}, {"hang": true}])).await;
    client.streamed("scripted:/running", "x").await;
    client.run_script("x:/failed", "t", json!([{"fail": "f"}])).await;
    let all = ["scripted:/idle", "scripted:/running", "x:/failed"];

    assert_eq!(listed(&mut client, json!(null)).await, all);
    assert_eq!(listed(&mut client, json!({})).await, all);
    assert_eq!(client.get("listSessions", json!({})).await["sessions"].as_array().unwrap().len(), 3);

    assert_eq!(listed(&mut client, json!({"provider": "scripted"})).await, all);
    assert_eq!(listed(&mut client, json!({"provider": "copilot"})).await, [""; 0]);

    assert_eq!(listed(&mut client, json!({"status": "idle"})).await, ["scripted:/idle"]);
    assert_eq!(listed(&mut client, json!({"status": "in-progress"})).await, ["scripted:/running"]);
    assert_eq!(listed(&mut client, json!({"status": "error"})).await, ["x:/failed"]);

    for folder in ["/one", "file:///one", "file://localhost/one"] {
        assert_eq!(listed(&mut client, json!({"workingDirectory": folder})).await, ["scripted:/idle"], "{folder}");
    }
    for folder in ["/two", "file:///two"] {
        assert_eq!(listed(&mut client, json!({"workingDirectory": folder})).await, ["scripted:/running", "x:/failed"]);
    }
    assert_eq!(listed(&mut client, json!({"workingDirectory": "/three"})).await, [""; 0]);

    let newest = ["scripted:/idle", "scripted:/running", "x:/failed"]
        .map(|uri| client.session(uri).summary.modified_at)
        .into_iter()
        .max()
        .unwrap();
    assert_eq!(listed(&mut client, json!({"modifiedSince": 0})).await, all);
    assert_eq!(listed(&mut client, json!({"modifiedSince": newest + 1})).await, [""; 0]);
    assert!(listed(&mut client, json!({"modifiedSince": newest})).await.len() < 4);
    assert!(!listed(&mut client, json!({"modifiedSince": newest})).await.is_empty());

    for history in [true, false] {
        assert_eq!(listed(&mut client, json!({"history": history})).await, all, "there is no history here");
    }
    assert_eq!(listed(&mut client, json!({"status": "idle", "provider": "scripted"})).await, ["scripted:/idle"]);
    assert_eq!(listed(&mut client, json!({"status": "idle", "workingDirectory": "/two"})).await, [""; 0]);
    assert_eq!(listed(&mut client, json!({"colour": "green", "size": {"min": 3}})).await, all, "unknown keys");
    assert_eq!(listed(&mut client, json!({"colour": "green", "status": "error"})).await, ["x:/failed"]);
    assert_eq!(client.refused("listSessions", json!({"filter": {"status": "odd"}})).await.code, -32602);
}

#[tokio::test]
async fn turns_come_by_the_page_oldest_first() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    for n in 0..7 {
        client.run_script(S, &format!("t{n}"), json!([{"say": n.to_string()}])).await;
    }
    let mut page = async |params: Value| {
        let mut all = json!({"session": S});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        let result = client.get("fetchTurns", all).await;
        let turns = result["turns"].as_array().unwrap();
        let ids: Vec<String> = turns.iter().map(|turn| turn["id"].as_str().unwrap().to_owned()).collect();
        (ids.join(" "), result["hasMore"].as_bool().unwrap())
    };
    assert_eq!(page(json!({})).await, ("t0 t1 t2 t3 t4 t5 t6".into(), false));
    assert_eq!(page(json!({"limit": 7})).await, ("t0 t1 t2 t3 t4 t5 t6".into(), false));
    assert_eq!(page(json!({"limit": 3})).await, ("t4 t5 t6".into(), true));
    assert_eq!(page(json!({"limit": 3, "before": "t4"})).await, ("t1 t2 t3".into(), true));
    assert_eq!(page(json!({"limit": 3, "before": "t1"})).await, ("t0".into(), false));
    assert_eq!(page(json!({"limit": 3, "before": "t3"})).await, ("t0 t1 t2".into(), false));
    assert_eq!(page(json!({"before": "t0"})).await, (String::new(), false));
    assert_eq!(page(json!({"limit": 0})).await, (String::new(), true));
    assert!(!page(json!({"limit": 1_000_000_000_000u64})).await.1);

    let turns = client.get("fetchTurns", json!({"session": S})).await["turns"].clone();
    assert_eq!(turns, serde_json::to_value(&client.session(S).turns).unwrap(), "they are the state's turns");
}

#[tokio::test]
async fn the_active_turn_is_no_page_but_a_place_to_look_back_from() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.run_script(S, "t", json!([])).await;
    client.script(S, "active", json!([{"say": "x"}, {"hang": true}])).await;
    client.streamed(S, "x").await;
    for params in [json!({"session": S}), json!({"session": S, "before": "active"})] {
        let result = client.get("fetchTurns", params).await;
        assert_eq!((result["turns"].as_array().unwrap().len(), &result["hasMore"]), (1, &json!(false)));
    }
}

#[tokio::test]
async fn turns_of_an_unknown_session_are_32001_and_before_an_unknown_turn_32602() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    assert_eq!(client.refused("fetchTurns", json!({"session": "scripted:/none-such"})).await.code, -32001);
    assert_eq!(client.refused("fetchTurns", json!({"session": S, "before": "none-such"})).await.code, -32602);
    assert_eq!(client.refused("fetchTurns", json!({"session": S, "limit": -1})).await.code, -32602);
}

#[tokio::test]
async fn a_snapshot_holds_the_newest_1000_turns_and_older_ones_are_fetched_50_at_a_time() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let id = |n: usize| format!("t{n}");
    for n in 0..1_060 {
        client.script(S, &id(n), json!([])).await;
        client.until(|client| client.session(S).turns.len() == n + 1).await;
    }
    let snapshot = host.snapshot(S).await;
    assert_eq!((snapshot.turns.len(), snapshot.turns[0].id.as_str()), (1_000, "t60"));
    assert_eq!(snapshot.turns.last().unwrap().id, "t1059");
    let page = client.get("fetchTurns", json!({"session": S, "before": "t60"})).await;
    let ids: Vec<&str> = page["turns"].as_array().unwrap().iter().map(|turn| turn["id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), ids[0], ids[49], &page["hasMore"]), (50, "t10", "t59", &json!(true)));
    let page = client.get("fetchTurns", json!({"session": S, "before": "t10"})).await;
    assert_eq!((page["turns"].as_array().unwrap().len(), &page["hasMore"]), (10, &json!(false)));
}

#[tokio::test]
async fn a_snapshot_holds_at_most_8_mib_of_turns() {
    let host = TestHome::new().serve(&["--spill-bytes", "8000000"]);
    let mut client = host.client_with_session("a").await;
    // The message and the agent's answer: 4 MB each.
    let text = "x".repeat(2_000_000);
    for turn in ["t0", "t1", "t2"] {
        client.run_script(S, turn, json!([{"say": text}])).await;
    }
    let snapshot = host.snapshot(S).await;
    let ids: Vec<&str> = snapshot.turns.iter().map(|turn| turn.id.as_str()).collect();
    assert_eq!(ids, ["t1", "t2"]);
    let page = client.get("fetchTurns", json!({"session": S, "before": "t1"})).await;
    assert_eq!((&page["turns"][0]["id"], &page["hasMore"]), (&json!("t0"), &json!(false)));
    let page = client.get("fetchTurns", json!({"session": S})).await;
    assert_eq!((page["turns"].as_array().unwrap().len(), &page["hasMore"]), (2, &json!(true)), "pages too");
}
