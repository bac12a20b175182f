//! Creating sessions.

use grove_testkit::Client;
use grove_wire::v1::{Lifecycle, Notification, SessionStatus, TurnState};
use serde_json::{Value, json};

use crate::support::*;

const SLOW: &str = "scripted/slow-start";
const FAILING: &str = "scripted/fails-to-start";

async fn create(client: &mut Client, uri: &str, model: &str) {
    client.get("createSession", json!({"session": uri, "model": model})).await;
}

fn added(client: &Client) -> Vec<&str> {
    let added = client.notifications.iter().filter_map(|notification| match notification {
        Notification::SessionAdded { summary } => Some(summary.resource.as_str()),
        Notification::SessionRemoved { .. } => None,
    });
    added.collect()
}

#[tokio::test]
async fn creation_goes_creating_ready_and_one_session_added_to_every_connection() {
    let host = Host::start();
    let mut bystander = host.client("bystander").await;
    let mut creator = host.client("creator").await;
    creator.send_json(request(json!(1), "createSession", json!({"session": S, "model": SLOW}))).await;
    assert_eq!(creator.json().await, json!({"jsonrpc": "2.0", "id": 1, "result": null}));

    creator.send_json(request(json!(2), "subscribe", json!({"resource": S}))).await;
    let subscribed = creator.json().await;
    assert_eq!(subscribed["id"], 2);
    let snapshot = &subscribed["result"];
    assert_eq!(snapshot["resource"], S);
    let state = &snapshot["state"];
    assert_eq!(state["lifecycle"], "creating");
    assert_eq!((&state["turns"], state.get("activeTurn"), state.get("creationError")), (&json!([]), None, None));
    let summary = &state["summary"];
    assert_eq!(
        (&summary["resource"], &summary["provider"], &summary["status"], &summary["model"]),
        (&json!(S), &json!("scripted"), &json!("idle"), &json!(SLOW))
    );

    let ready = creator.json().await;
    assert_eq!(ready["method"], "action");
    let envelope = &ready["params"]["envelope"];
    assert_eq!(envelope["action"]["type"], "session/ready");
    assert_eq!(envelope["action"]["session"], S);
    assert!(envelope["serverSeq"].as_u64() > snapshot["fromSeq"].as_u64());
    assert_eq!((envelope.get("origin"), envelope.get("rejectionReason")), (None, None));

    let announced = creator.json().await;
    assert_eq!(announced["method"], "notification");
    let notification = &announced["params"]["notification"];
    assert_eq!((&notification["type"], &notification["summary"]), (&json!("notify/sessionAdded"), summary));

    for client in [&mut creator, &mut bystander] {
        client.barrier().await;
    }
    assert_eq!(added(&creator), [S; 0], "it was told once");
    assert_eq!(added(&bystander), [S], "and to the others once");
    assert_eq!(bystander.envelopes.len(), 0, "who is not subscribed sees no action");
}

#[tokio::test]
async fn a_session_is_listed_and_can_be_subscribed_to_while_it_is_creating() {
    let host = Host::start();
    let mut client = host.client("a").await;
    create(&mut client, S, SLOW).await;
    let listed = client.get("listSessions", json!({})).await;
    assert_eq!(listed["sessions"][0]["resource"], S);
    client.subscribe(S).await.unwrap();
    assert_eq!(client.session(S).lifecycle, Lifecycle::Creating);
}

#[tokio::test]
async fn a_turn_started_while_creating_waits_for_ready() {
    let host = Host::start();
    let mut client = host.client("a").await;
    create(&mut client, S, SLOW).await;
    client.subscribe(S).await.unwrap();
    assert_eq!(client.session(S).lifecycle, Lifecycle::Creating);
    let turn = client.run_script(S, "t", json!([{"say": "there"}])).await;
    assert_eq!(turn.state, TurnState::Complete);
    let order = ["session/turnStarted", "session/ready", "session/delta", "session/turnComplete"];
    assert_eq!(client.kinds(), order);
}

#[tokio::test]
async fn a_creation_that_fails_keeps_its_error_and_is_announced_all_the_same() {
    let host = Host::start();
    let mut bystander = host.client("bystander").await;
    let mut client = host.client("a").await;
    create(&mut client, S, FAILING).await;
    client.subscribe(S).await.unwrap();
    client.until(|client| client.session(S).lifecycle == Lifecycle::CreationFailed).await;
    client.until(|client| !added(client).is_empty()).await;
    assert_eq!(client.kinds().last().map(String::as_str), Some("session/creationFailed"));
    let error = client.session(S).creation_error.clone().unwrap();
    assert_eq!(error.error_type, "agentStart");
    assert!(error.message.contains(FAILING), "{}", error.message);

    bystander.until(|client| !added(client).is_empty()).await;
    bystander.barrier().await;
    assert_eq!(added(&bystander), [S]);
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn a_turn_started_before_creation_failed_ends_in_error() {
    let host = Host::start();
    let mut client = host.client("a").await;
    create(&mut client, S, FAILING).await;
    client.subscribe(S).await.unwrap();
    let turn = client.run_script(S, "t", json!([{"say": "never"}])).await;
    assert_eq!(turn.state, TurnState::Error);
    let session = client.session(S);
    assert_eq!(turn.error, session.creation_error, "the turn says why");
    assert_eq!((session.lifecycle, session.summary.status), (Lifecycle::CreationFailed, SessionStatus::Error));
    assert_eq!(client.kinds(), ["session/turnStarted", "session/creationFailed", "session/error"]);
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn a_turn_or_a_model_for_a_failed_session_is_rejected_with_a_reason() {
    let host = Host::start();
    let mut client = host.client("a").await;
    create(&mut client, S, FAILING).await;
    client.subscribe(S).await.unwrap();
    client.until(|client| client.session(S).lifecycle == Lifecycle::CreationFailed).await;
    let before = client.session(S).clone();
    let reason = client.rejected(turn_started(S, "t", &json!([]))).await;
    assert!(reason.contains("could not be created"), "{reason}");
    let change = json!({"type": "session/modelChanged", "session": S, "model": "scripted"});
    let reason = client.rejected(change).await;
    assert!(reason.contains("could not be created"), "{reason}");
    assert_eq!(host.snapshot(S).await, before);
    client.get("disposeSession", json!({"session": S})).await;
    client.ready_session(S).await;
}

#[tokio::test]
async fn without_a_provider_the_uri_scheme_names_it() {
    let host = Host::start();
    let mut client = host.client("a").await;
    client.get("createSession", json!({"session": "scripted:/by-scheme"})).await;
    client.get("createSession", json!({"session": "elsewhere:/named", "provider": "scripted"})).await;
    for uri in ["scripted:/by-scheme", "elsewhere:/named"] {
        client.subscribe(uri).await.unwrap();
        assert_eq!(client.session(uri).summary.provider, "scripted");
        assert_eq!(client.session(uri).summary.resource, uri);
    }
}

#[tokio::test]
async fn an_unknown_provider_is_32002_whether_named_or_by_scheme() {
    let host = Host::start();
    let mut client = host.client("a").await;
    for params in [json!({"session": "copilot:/s"}), json!({"session": S, "provider": "copilot"})] {
        let error = client.refused("createSession", params).await;
        assert_eq!(error.code, -32002);
        assert!(error.message.contains("copilot"), "{}", error.message);
    }
    assert_eq!(client.get("listSessions", json!({})).await, json!({"sessions": []}));
}

#[tokio::test]
async fn a_uri_already_in_use_is_32003() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let error = client.refused("createSession", json!({"session": S})).await;
    assert_eq!(error.code, -32003);
    assert!(error.message.contains(S), "{}", error.message);
    client.settle().await;
    assert_eq!(added(&client), [S], "nothing more was announced");
}

#[tokio::test]
async fn of_many_creations_of_one_uri_exactly_one_succeeds() {
    let host = Host::start();
    let mut clients = Vec::new();
    for n in 0..8 {
        clients.push(host.client(&format!("client-{n}")).await);
    }
    for client in &mut clients {
        client.send_json(request(json!(1), "createSession", json!({"session": S}))).await;
    }
    let mut outcomes = Vec::new();
    for client in &mut clients {
        let answer = loop {
            let frame = client.json().await;
            if frame.get("id").is_some() {
                break frame;
            }
        };
        outcomes.push(answer["error"]["code"].as_i64());
    }
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_none()).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Some(-32003)).count(), 7, "{outcomes:?}");
}

#[tokio::test]
async fn a_bad_uri_model_or_folder_is_32602() {
    let host = Host::start();
    let mut client = host.client("a").await;
    let bad = [
        json!({"session": ""}),
        json!({"session": "scripted"}),
        json!({"session": "scripted:/"}),
        json!({"session": "scripted:/../up"}),
        json!({"session": "scripted:/a/b"}),
        json!({"session": "scripted:/.hidden"}),
        json!({"session": "scripted:/a b"}),
        json!({"session": format!("scripted:/{}", "x".repeat(1_000))}),
        json!({"session": "agenthost:root", "provider": "scripted"}),
        json!({"session": S, "model": "scripted/none-such"}),
        json!({"session": S, "model": ""}),
        json!({"session": S, "workingDirectory": "relative/folder"}),
        json!({"session": S, "workingDirectory": "https://elsewhere.example/"}),
    ];
    for params in bad {
        let error = client.refused("createSession", params.clone()).await;
        assert_eq!(error.code, -32602, "{params}: {error}");
    }
    assert_eq!(client.get("listSessions", json!({})).await, json!({"sessions": []}));
}

#[tokio::test]
async fn a_working_directory_is_an_absolute_path_or_a_file_uri() {
    let host = Host::start();
    let mut client = host.client("a").await;
    for (uri, folder) in [("scripted:/path", "/somewhere/far"), ("scripted:/uri", "file:///some%20where/far")] {
        client.get("createSession", json!({"session": uri, "workingDirectory": folder})).await;
        client.subscribe(uri).await.unwrap();
        assert_eq!(client.session(uri).summary.working_directory.as_deref(), Some(folder));
    }
}

/// Checks what follows a `createSession`, `subscribe` and turn that were sent without waiting.
async fn ends_well(host: &Host, client: &mut Client, snapshot: &Value) {
    assert_eq!(snapshot["resource"], S);
    let mut last = snapshot["fromSeq"].as_u64().unwrap();
    let mut kinds = Vec::new();
    while kinds.last().map(String::as_str) != Some("session/turnComplete") {
        let frame = client.json().await;
        if frame["method"] == "action" {
            let envelope = &frame["params"]["envelope"];
            let seq = envelope["serverSeq"].as_u64().unwrap();
            assert!(seq > last, "only what the snapshot does not have follows it, in order");
            last = seq;
            kinds.push(envelope["action"]["type"].as_str().unwrap().to_owned());
        }
    }
    // The agent may be faster than the subscription or not.
    kinds.retain(|kind| kind != "session/ready");
    assert_eq!(kinds, ["session/turnStarted", "session/titleChanged", "session/delta", "session/turnComplete"]);
    let state = host.snapshot(S).await;
    assert_eq!((state.lifecycle, state.turns.len()), (Lifecycle::Ready, 1));
}

#[tokio::test]
async fn create_subscribe_and_dispatch_in_one_breath_work_as_frames() {
    let host = Host::start();
    let mut client = host.client("a").await;
    client.send_json(request(json!(1), "createSession", json!({"session": S}))).await;
    client.send_json(request(json!(2), "subscribe", json!({"resource": S}))).await;
    client.send_json(dispatch(1, turn_started(S, "t", &json!([{"say": "at once"}])))).await;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let frame = client.json().await;
        if frame.get("id").is_some() {
            answers.push(frame);
        }
    }
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": 1, "result": null}));
    assert_eq!(answers[1]["id"], 2);
    ends_well(&host, &mut client, &answers[1]["result"]).await;
}

#[tokio::test]
async fn create_subscribe_and_dispatch_in_one_breath_work_as_a_batch() {
    let host = Host::start();
    let mut client = host.client("a").await;
    client
        .send_json(json!([
            request(json!("c"), "createSession", json!({"session": S})),
            request(json!("s"), "subscribe", json!({"resource": S})),
            dispatch(1, turn_started(S, "t", &json!([{"say": "at once"}]))),
            request(json!("x"), "noSuchMethod", json!({})),
        ]))
        .await;
    let answers = client.json().await;
    let answers = answers.as_array().expect("a batch is answered by a batch, before what it caused");
    assert_eq!(answers.len(), 3, "a notification has no answer");
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": "c", "result": null}));
    assert_eq!(answers[1]["id"], "s");
    assert_eq!((&answers[2]["id"], &answers[2]["error"]["code"]), (&json!("x"), &json!(-32601)));
    ends_well(&host, &mut client, &answers[1]["result"]).await;
}

#[tokio::test]
async fn even_the_handshake_can_be_part_of_the_breath() {
    let host = Host::start();
    let mut client = host.connect("a").await;
    let initialize = json!({"protocolVersion": 1, "clientId": "a", "initialSubscriptions": ["agenthost:root"]});
    client
        .send_json(json!([
            request(json!(1), "initialize", initialize),
            request(json!(2), "createSession", json!({"session": S})),
            request(json!(3), "subscribe", json!({"resource": S})),
            dispatch(1, turn_started(S, "t", &json!([{"say": "at once"}]))),
        ]))
        .await;
    let answers = client.json().await;
    assert_eq!(answers[0]["result"]["snapshots"][0]["resource"], "agenthost:root");
    ends_well(&host, &mut client, &answers[2]["result"]).await;
}
