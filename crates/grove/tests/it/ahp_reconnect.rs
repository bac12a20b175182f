//! Reconnecting in both shapes of the Agent Host Protocol.

use grove_testkit::ahp::{ReconnectOutcome, markdown};
use grove_testkit::{ConnectionEnd, PATIENCE};
use grove_wire::ahp::{Method, ROOT};
use serde_json::{Value, json};

use crate::ahp_support::*;
use crate::support::*;

fn back(client: &str, seen: u64, subscriptions: &[&str]) -> Value {
    json!({"channel": ROOT, "clientId": client, "lastSeenServerSeq": seen, "subscriptions": subscriptions})
}

#[tokio::test]
async fn what_was_missed_is_replayed_exactly() {
    let host = Host::start();
    let mut speaker = host.ahp_with_session("speaker").await;
    speaker.ready_session("scripted:/other").await;
    let mut client = host.ahp_subscriber("a").await;
    client.run_script(CHAT, "seen", json!([{"say": "seen"}])).await;
    client.barrier().await;
    speaker.turn_end(CHAT, "seen").await;
    speaker.barrier().await;
    client.cut().await;
    speaker.envelopes.clear();
    let other = speaker.session("scripted:/other").default_chat.clone().unwrap();
    speaker.run_script(&other, "t", json!([{"say": "not subscribed to"}])).await;
    let steps = json!([
        {"say": "missed", "chunks": 6}, {"reason": "why"}, {"title": "New"}, {"usage": {"inputTokens": 1}},
        {"tool": {"name": "ls", "output": "x"}}, {"part": {"mimeType": "a/b", "text": "p"}},
    ]);
    speaker.run_script(CHAT, "missed", steps).await;
    speaker.barrier().await;
    let told: Vec<Value> = speaker
        .envelopes
        .iter()
        .filter(|envelope| [S, CHAT].contains(&envelope.channel.as_str()))
        .map(|envelope| serde_json::to_value(envelope).unwrap())
        .collect();

    host.ahp_redial(&mut client).await;
    let result = client.get(Method::Reconnect, back("a", client.seen, &[S, CHAT, "scripted:/none"])).await;
    assert_eq!(result, json!({"type": "replay", "actions": told, "missing": ["scripted:/none"]}));
    client.take_reconnect_outcome(result);
    client.must_agree_on_all().await;
    client.run_script(CHAT, "live", json!([{"say": "again"}])).await;
    client.must_agree_on_all().await;

    // VS Code leaves out the channel.
    let mut again = host.ahp_connect("a").await;
    let last = told.last().unwrap()["serverSeq"].as_u64().unwrap();
    let mut params = back("a", last, &[S]);
    params.as_object_mut().unwrap().remove("channel");
    let result = again.get(Method::Reconnect, params).await;
    assert_eq!(result["type"], "replay");
}

#[tokio::test]
async fn a_client_that_is_not_known_is_32008_and_begins_anew() {
    let host = Host::start();
    host.ahp_with_session("first").await;
    let mut client = host.ahp_connect("stranger").await;
    assert_eq!(client.refused(Method::Reconnect, back("stranger", 1, &[S])).await.code, -32008);
    let cursors = json!({"channel": ROOT, "clientId": "stranger", "subscriptions": []});
    assert_eq!(client.refused(Method::Reconnect, cursors).await.code, -32008);
    client.initialize(&[S]).await;
    // Nor is a client of another protocol.
    host.client("old").await;
    let mut client = host.ahp_connect("old").await;
    assert_eq!(client.refused(Method::Reconnect, back("old", 1, &[S])).await.code, -32008);
}

#[tokio::test]
async fn numbers_that_the_host_does_not_have_bring_snapshots() {
    let host = Host::start();
    let mut speaker = host.ahp_with_session("speaker").await;
    speaker.run_script(CHAT, "t", json!([{"say": "x"}])).await;
    host.ahp("a").await;
    for seen in [0, 1 << 40] {
        let mut client = host.ahp_connect("a").await;
        let result = client.get(Method::Reconnect, back("a", seen, &[ROOT, S, CHAT, "ahp-chat:/none"])).await;
        assert_eq!(client.take_reconnect_outcome(result), ReconnectOutcome::Snapshots);
        assert_eq!(client.states.len(), 3);
        client.run_script(CHAT, &format!("t{seen}"), json!([{"say": "live"}])).await;
        client.must_agree_on_all().await;
    }
}

#[tokio::test]
async fn each_channel_comes_back_by_itself_where_the_client_says_so() {
    let host = Host::start();
    let mut speaker = host.ahp_with_session("speaker").await;
    let gone = speaker.ready_session("scripted:/gone").await;
    let mut client = host.ahp_connect("a").await;
    client.initialize(&[ROOT, S, CHAT, "scripted:/gone"]).await;
    let seen = client.seen;
    client.cut().await;
    speaker.run_script(CHAT, "t", json!([{"say": "missed"}])).await;
    speaker.get(Method::DisposeSession, json!({"channel": "scripted:/gone"})).await;
    host.ahp_redial(&mut client).await;
    let cursor = |channel: &str, seen: u64| json!({"channel": channel, "lastSeenServerSeq": seen});
    let params = json!({"channel": ROOT, "clientId": "a", "subscriptions": [
        cursor(CHAT, seen), cursor("scripted:/gone", seen), cursor(S, 0), cursor(ROOT, seen), cursor(&gone, seen),
        cursor("nonsense", 0), cursor(PLAIN, 1 << 40),
    ]});
    let result = client.get(Method::Reconnect, params).await;
    let outcomes = client.take_outcomes(&result);
    let outcomes: Vec<(&str, &str)> =
        outcomes.iter().map(|(channel, kind)| (channel.as_str(), kind.as_str())).collect();
    assert_eq!(
        outcomes,
        [
            (CHAT, "replay"),
            ("scripted:/gone", "missing"),
            (S, "snapshot"),
            (ROOT, "replay"),
            (gone.as_str(), "missing"),
            ("nonsense", "missing"),
            (PLAIN, "snapshot"),
        ]
    );
    assert_eq!(client.chat(CHAT).turns.len(), 1);
    client.must_agree(CHAT).await;
    client.must_agree(ROOT).await;
    client.run_script(CHAT, "u", json!([{"say": "live"}])).await;
    client.barrier().await;
    client.must_agree(CHAT).await;
}

#[tokio::test]
async fn a_client_comes_back_in_its_own_spelling_and_version() {
    let host = Host::start();
    host.ahp_with_session("speaker").await;
    let mut plain = host.ahp_connect("plain").await;
    plain.initialize_with(&["0.9.0"], &[PLAIN, PLAIN_CHAT]).await.unwrap();
    plain.cut().await;
    let mut speaker = host.ahp_subscriber("other").await;
    speaker.run_script(CHAT, "t", json!([{"title": "Named"}, {"say": "x"}])).await;
    let host = host.stop().serve(&[]);
    assert_eq!(host.ahp_reconnect(&mut plain).await, ReconnectOutcome::Replay { missing: vec![] });
    assert_eq!(plain.chat(PLAIN_CHAT).turns.len(), 1);
    assert_eq!(plain.session(PLAIN).title, "Named");
    assert!(plain.envelopes.iter().all(|envelope| [PLAIN, PLAIN_CHAT].contains(&envelope.channel.as_str())));
    plain.run_script(PLAIN_CHAT, "u", json!([{"say": "y"}])).await;
    plain.must_agree_on_all().await;
}

#[tokio::test]
async fn a_kill_in_mid_stream_costs_a_client_nothing_that_it_saw() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    client.script(CHAT, "t", json!([{"say": "x".repeat(2_000), "chunks": 2_000, "delayMs": 1}])).await;
    client
        .until(|client| {
            client.chat(CHAT).active_turn.as_ref().is_some_and(|turn| markdown(&turn.response_parts).len() > 50)
        })
        .await;
    let place = host.kill();
    // Messages in the socket were seen, too.
    assert_eq!(client.until_end().await, ConnectionEnd::Broken);
    let seen = markdown(&client.active(CHAT).response_parts).len();
    let host = place.serve(&[]);
    assert_eq!(host.ahp_reconnect(&mut client).await, ReconnectOutcome::Replay { missing: vec![] });
    let turn = client.turn_end(CHAT, "t").await;
    assert!(markdown(&turn.response_parts).len() >= seen, "nothing that was seen is missing");
    client.barrier().await;
    client.must_agree_on_all().await;
    client.run_script(CHAT, "u", json!([{"say": "and it goes on"}])).await;
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_client_that_comes_back_again_and_again_in_mid_stream_misses_nothing() {
    let host = Host::start();
    let mut speaker = host.ahp_with_session("speaker").await;
    let mut client = host.ahp_subscriber("a").await;
    speaker.script(CHAT, "t", json!([{"say": "x".repeat(300), "chunks": 300, "delayMs": 1}])).await;
    let since = std::time::Instant::now();
    while client.chat(CHAT).turns.is_empty() {
        assert!(since.elapsed() < PATIENCE);
        client.cut().await;
        assert_eq!(host.ahp_reconnect(&mut client).await, ReconnectOutcome::Replay { missing: vec![] });
        client.barrier().await;
    }
    speaker.turn_end(CHAT, "t").await;
    assert_eq!(client.chat(CHAT).turns, speaker.chat(CHAT).turns);
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn notifications_are_not_replayed() {
    let host = Host::start();
    let mut client = host.ahp_connect("a").await;
    client.initialize(&[ROOT]).await;
    client.cut().await;
    host.ahp_with_session("b").await;
    host.ahp_reconnect(&mut client).await;
    client.barrier().await;
    assert_eq!(client.told("root/sessionAdded"), Vec::<&Value>::new());
    let list = client.get(Method::ListSessions, on_root(json!({}))).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    client.must_agree(ROOT).await;
}

#[tokio::test]
async fn a_client_that_comes_twice_is_the_newer_one() {
    let host = Host::start();
    let mut first = host.ahp_with_session("a").await;
    let mut second = host.ahp_connect("a").await;
    second.get(Method::Reconnect, back("a", first.seen, &[S])).await;
    assert!(matches!(first.until_end().await, ConnectionEnd::Closed { code: 4010, .. }));
}
