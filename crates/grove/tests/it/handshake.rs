//! Connecting and subscribing in version 1.

use grove_wire::v1::Method;
use serde_json::{Value, json};

use crate::support::*;

const ROOT: &str = "agenthost:root";
const ROOT_ALIAS: &str = "agenthost:/root";

#[tokio::test]
async fn initialize_answers_with_version_number_snapshots_and_folder() {
    let host = Host::start();
    host.client_with_session("first").await;
    let mut client = host.connect("a").await;
    let params = json!({"protocolVersion": 1, "clientId": "a", "initialSubscriptions": [ROOT, S]});
    let result = client.get("initialize", params).await;
    assert_eq!(result["protocolVersion"], 1);
    assert_eq!(result["defaultDirectory"], file_uri(&host.place.home()));
    let snapshots = result["snapshots"].as_array().unwrap();
    let resources: Vec<&Value> = snapshots.iter().map(|snapshot| &snapshot["resource"]).collect();
    assert_eq!(resources, [ROOT, S]);
    assert!(snapshots.iter().all(|snapshot| snapshot["fromSeq"] == result["serverSeq"]), "all cut at one number");
    let agent = &snapshots[0]["state"]["agents"][0];
    assert_eq!((&agent["provider"], &agent["displayName"]), (&json!("scripted"), &json!("Scripted")));
    assert!(agent["description"].is_string());
    let models: Vec<_> =
        agent["models"].as_array().unwrap().iter().map(|model| (&model["id"], &model["provider"])).collect();
    let scripted = &json!("scripted");
    assert_eq!(
        models,
        [
            (&json!("scripted"), scripted),
            (&json!("scripted/slow-start"), scripted),
            (&json!("scripted/fails-to-start"), scripted),
        ]
    );
    assert_eq!(snapshots[0]["state"].as_object().unwrap().len(), 1, "the root has agents and nothing else");
}

#[tokio::test]
async fn initialize_without_subscriptions_gives_no_snapshots() {
    let host = Host::start();
    let mut client = host.connect("a").await;
    let result = client.get("initialize", json!({"protocolVersion": 1, "clientId": "a"})).await;
    assert_eq!(result["snapshots"], json!([]));
}

#[tokio::test]
async fn a_version_above_ours_is_answered_with_ours_and_one_below_is_32005() {
    let host = Host::start();
    for (version, answered) in [(1, 1), (2, 1), (99, 1), (i64::MAX, 1)] {
        let mut client = host.connect("a").await;
        assert_eq!(client.initialize_with(version, &[ROOT]).await.unwrap().protocol_version, answered);
    }
    for version in [0, -1, i64::MIN] {
        let mut client = host.connect("b").await;
        let error = client.initialize_with(version, &[]).await.unwrap_err();
        assert_eq!(error.code, -32005, "{error}");
        // A client with an older version may still try that.
        client.initialize(&[ROOT]).await;
    }
}

#[tokio::test]
async fn any_request_before_initialize_is_32600_except_ping() {
    let host = Host::start();
    let mut client = host.connect("a").await;
    let params = |method: Method| match method {
        Method::Initialize | Method::Reconnect => None,
        Method::Ping | Method::ListSessions => Some(json!({})),
        Method::Subscribe => Some(json!({"resource": ROOT})),
        Method::CreateSession | Method::DisposeSession | Method::FetchTurns => Some(json!({"session": S})),
        Method::FetchContent | Method::BrowseDirectory => Some(json!({"uri": file_uri(&host.place.home())})),
    };
    for method in Method::ALL {
        let Some(params) = params(*method) else { continue };
        match method {
            Method::Ping => assert_eq!(client.get("ping", params).await, Value::Null),
            _ => assert_eq!(client.refused(method.as_str(), params).await.code, -32600, "{}", method.as_str()),
        }
    }
    assert_eq!(client.refused("noSuchMethod", json!({})).await.code, -32600);
    // Notifications have no answer, and no effect yet.
    client.send_json(dispatch(1, json!({"type": "root/agentsChanged", "agents": []}))).await;
    client.settle().await;
    assert_eq!(client.envelopes.len(), 0);
    client.initialize(&[ROOT]).await;
    assert_eq!(client.get("listSessions", json!({})).await, json!({"sessions": []}));
}

#[tokio::test]
async fn a_connection_is_initialized_once() {
    let host = Host::start();
    let mut client = host.client("a").await;
    let initialize = json!({"protocolVersion": 1, "clientId": "b"});
    assert_eq!(client.refused("initialize", initialize).await.code, -32600);
    let reconnect = json!({"clientId": "b", "lastSeenServerSeq": 0, "subscriptions": []});
    assert_eq!(client.refused("reconnect", reconnect).await.code, -32600);
    client.ready_session(S).await;
    let seq = client.script(S, "t", json!([])).await;
    assert_eq!(client.answer_to(seq).await.origin.unwrap().client_id, "a", "it is still who it was");
}

#[tokio::test]
async fn a_client_must_have_an_id() {
    let host = Host::start();
    let mut client = host.connect("a").await;
    for id in [json!(""), json!("x".repeat(10_000)), json!(null), json!(7)] {
        let error = client.refused("initialize", json!({"protocolVersion": 1, "clientId": id})).await;
        assert_eq!(error.code, -32602);
    }
}

#[tokio::test]
async fn ids_are_given_back_as_they_came() {
    let host = Host::start();
    let mut client = host.connect("a").await;
    for id in ["0", "-7", "1.50", "9007199254740993", r#""""#, r#""a \" b""#, r#""\u00e9""#, "null"] {
        client.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
        assert_eq!(client.frame().await.unwrap(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#));
        client.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"listSessions"}}"#)).await;
        let answer = client.frame().await.unwrap();
        assert!(answer.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#)), "{answer}");
    }
}

#[tokio::test]
async fn the_root_has_two_spellings_and_is_answered_in_the_clients() {
    let host = Host::start();
    for spelling in [ROOT, ROOT_ALIAS] {
        let mut client = host.client("a").await;
        let subscribed = client.subscribe(spelling).await.unwrap();
        assert_eq!(subscribed.resource, spelling);
        assert_eq!(client.roots[spelling].agents.len(), 1);
        let mut client = host.connect("b").await;
        let initialized = client.initialize(&[spelling]).await;
        assert_eq!(initialized.snapshots[0].resource, spelling);
        let mut client = host.connect("unknown-to-the-host").await;
        let reconnect = json!({"clientId": spelling, "lastSeenServerSeq": 0, "subscriptions": [spelling]});
        let reconnected = client.get("reconnect", reconnect).await;
        assert_eq!(reconnected["snapshots"][0]["resource"], spelling);
    }
}

#[tokio::test]
async fn a_subscription_to_an_unknown_uri_is_32001() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    for uri in ["scripted:/none-such", "elsewhere:/s", "agenthost:other", "", "nonsense"] {
        let error = client.refused("subscribe", json!({"resource": uri})).await;
        assert_eq!(error.code, -32001, "{uri}: {error}");
    }
}

#[tokio::test]
async fn unknown_uris_are_left_out_of_initial_subscriptions_and_reconnect() {
    let host = Host::start();
    host.client_with_session("first").await;
    let wanted = ["scripted:/none-such", S, "nonsense", ROOT];
    let mut client = host.connect("a").await;
    let initialized = client.initialize(&wanted).await;
    let resources: Vec<&str> = initialized.snapshots.iter().map(|snapshot| snapshot.resource.as_str()).collect();
    assert_eq!(resources, [S, ROOT]);
    let mut client = host.connect("b").await;
    let reconnect = json!({"clientId": "b", "lastSeenServerSeq": 0, "subscriptions": wanted});
    let result = client.get("reconnect", reconnect).await;
    let resources: Vec<_> =
        result["snapshots"].as_array().unwrap().iter().map(|snapshot| &snapshot["resource"]).collect();
    assert_eq!(resources, [S, ROOT]);
}

#[tokio::test]
async fn after_subscribing_come_the_actions_above_from_seq_and_after_unsubscribing_none() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    speaker.ready_session("scripted:/other").await;
    speaker.run_script(S, "t", json!([{"say": "before"}])).await;
    let mut client = host.client("a").await;
    let from = client.subscribe(S).await.unwrap().from_seq;
    assert_eq!(client.session(S).turns.len(), 1);
    speaker.run_script("scripted:/other", "t", json!([{"say": "elsewhere"}])).await;
    speaker.run_script(S, "u", json!([{"say": "after"}])).await;
    client.turn_end(S, "u").await;
    assert!(client.envelopes.iter().all(|envelope| envelope.server_seq > from));
    assert_eq!(client.kinds(), ["session/turnStarted", "session/delta", "session/turnComplete"]);

    client.send_json(json!({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"resource": S}})).await;
    client.barrier().await;
    let told = client.envelopes.len();
    speaker.run_script(S, "v", json!([{"say": "unheard"}])).await;
    client.barrier().await;
    assert_eq!(client.envelopes.len(), told);
    // Unsubscribing without a subscription has no effect.
    for uri in ["scripted:/other", "scripted:/none-such", ROOT_ALIAS] {
        client.send_json(json!({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"resource": uri}})).await;
    }
    client.subscribe(S).await.unwrap();
    assert_eq!(client.session(S), speaker.session(S), "and it can come back");
}

#[tokio::test]
async fn subscribing_twice_brings_each_action_once() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.subscribe(S).await.unwrap();
    client.envelopes.clear();
    client.run_script(S, "t", json!([{"say": "once"}])).await;
    client.barrier().await;
    assert_eq!(client.kinds(), ["session/turnStarted", "session/delta", "session/turnComplete"]);
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn a_connection_that_has_not_said_who_it_is_hears_nothing() {
    let host = Host::start();
    let mut silent = host.connect("silent").await;
    let mut client = host.client_with_session("a").await;
    client.get("disposeSession", json!({"session": S})).await;
    silent.settle().await;
    assert_eq!((silent.notifications.len(), silent.envelopes.len()), (0, 0));
}

#[tokio::test]
async fn a_batch_of_notifications_has_no_answer() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let unsubscribe = json!({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"resource": S}});
    client.send_json(json!([unsubscribe, dispatch(1, turn_started(S, "t", &json!([])))])).await;
    client.send_json(request(json!("next"), "ping", json!({}))).await;
    let answer = loop {
        let frame = client.json().await;
        // Lists are notified of the turn.
        if frame.get("id").is_some() {
            break frame;
        }
    };
    assert_eq!(answer["id"], "next");
}

#[tokio::test]
async fn what_a_connection_gets_a_snapshot_of_is_live() {
    let host = Host::start();
    let mut speaker = host.client("speaker").await;
    // With the root, one more than the maximum of subscriptions.
    let uris: Vec<String> = (0..1_024).map(|n| format!("scripted:/s{n}")).collect();
    for uri in &uris {
        speaker.send_json(request(json!(uri), "createSession", json!({"session": uri}))).await;
    }
    let mut answers = 0;
    while answers < uris.len() {
        let frame = speaker.json().await;
        answers += usize::from(frame.get("id").is_some());
        assert_eq!(frame.get("error"), None);
    }
    let mut wanted: Vec<&str> = vec![ROOT];
    wanted.extend(uris.iter().map(String::as_str));
    let mut client = host.connect("a").await;
    let initialized = client.initialize(&wanted).await;
    let given: Vec<&str> = initialized.snapshots.iter().map(|snapshot| snapshot.resource.as_str()).collect();
    assert_eq!(given, wanted[..1_024], "the last one is left out");
    let error = client.refused("subscribe", json!({"resource": uris[1_023]})).await;
    assert_eq!(error.code, -32029);
    assert_eq!(client.run_script(&uris[1_022], "t", json!([])).await.id, "t");
}
