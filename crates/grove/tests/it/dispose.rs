//! Disposing of sessions.

use grove_testkit::Client;
use grove_wire::v1::{Lifecycle, Notification, TurnState};
use serde_json::json;

use crate::support::*;

fn removed(client: &Client) -> Vec<&str> {
    let removed = client.notifications.iter().filter_map(|notification| match notification {
        Notification::SessionRemoved { session } => Some(session.as_str()),
        Notification::SessionAdded { .. } => None,
    });
    removed.collect()
}

#[tokio::test]
async fn disposing_cancels_the_running_turn_and_tells_every_connection_once() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut subscriber = host.subscriber("b").await;
    let mut bystander = host.client("c").await;
    client.script(S, "t", json!([{"say": "so far"}, {"tool": {"name": "rm", "permission": "shell"}}])).await;
    subscriber.asked(S).await;

    bystander.get("disposeSession", json!({"session": S})).await;
    for witness in [&mut client, &mut subscriber] {
        let turn = witness.turn_end(S, "t").await;
        assert_eq!(turn.state, TurnState::Cancelled);
        assert_eq!((turn.tool_calls[0].success, turn.response_parts.len()), (false, 1));
    }
    for witness in [&mut client, &mut subscriber, &mut bystander] {
        witness.until(|witness| !removed(witness).is_empty()).await;
        witness.barrier().await;
        assert_eq!(removed(witness), [S]);
    }
}

#[tokio::test]
async fn a_disposed_session_is_gone() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    client.run_script(S, "t", json!([])).await;
    client.get("disposeSession", json!({"session": S})).await;
    assert_eq!(client.get("listSessions", json!({})).await, json!({"sessions": []}));
    assert_eq!(client.refused("subscribe", json!({"resource": S})).await.code, -32001);
    assert_eq!(client.refused("fetchTurns", json!({"session": S})).await.code, -32001);
    assert_eq!(client.refused("disposeSession", json!({"session": S})).await.code, -32001);
    let told = (client.envelopes.len(), other.envelopes.len());
    client.script(S, "u", json!([{"say": "nobody hears this"}])).await;
    client.cancel(S, "t").await;
    client.barrier().await;
    other.until(|other| !removed(other).is_empty()).await;
    other.barrier().await;
    assert_eq!(client.envelopes.len(), told.0, "later actions are ignored");
    assert_eq!(other.kinds(), ["session/turnStarted", "session/turnComplete"]);
}

#[tokio::test]
async fn its_uri_can_be_used_again_for_a_new_session() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    let title = client.session(S).summary.title.clone();
    client.run_script(S, "t", json!([{"title": "Old"}])).await;
    client.get("disposeSession", json!({"session": S})).await;
    client.sessions.remove(S);
    client.ready_session(S).await;
    assert_eq!((client.session(S).turns.len(), client.session(S).summary.title.as_str()), (0, title.as_str()));
    let turn = client.run_script(S, "t", json!([{"say": "an id of the old one is free"}])).await;
    assert_eq!(turn.state, TurnState::Complete);
    other.until(|other| !removed(other).is_empty()).await;
    other.envelopes.clear();
    other.barrier().await;
    assert_eq!(other.envelopes.len(), 0, "a subscription to the old one is none to the new");
}

#[tokio::test]
async fn disposing_what_is_not_there_is_32001() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    for uri in ["scripted:/none-such", "elsewhere:/s", "agenthost:root", "", "nonsense"] {
        assert_eq!(client.refused("disposeSession", json!({"session": uri})).await.code, -32001, "{uri}");
    }
    client.barrier().await;
    assert_eq!(removed(&client), [""; 0]);
}

#[tokio::test]
async fn a_session_can_be_disposed_while_it_is_creating_or_has_failed() {
    let host = Host::start();
    let mut client = host.client("a").await;
    client.get("createSession", json!({"session": S, "model": "scripted/slow-start"})).await;
    client.subscribe(S).await.unwrap();
    client.script(S, "t", json!([{"say": "never"}])).await;
    client.get("disposeSession", json!({"session": S})).await;
    assert_eq!(client.turn_end(S, "t").await.state, TurnState::Cancelled);
    assert_eq!(removed(&client), [S]);

    client.get("createSession", json!({"session": "scripted:/f", "model": "scripted/fails-to-start"})).await;
    client.subscribe("scripted:/f").await.unwrap();
    client.until(|client| client.session("scripted:/f").lifecycle == Lifecycle::CreationFailed).await;
    client.get("disposeSession", json!({"session": "scripted:/f"})).await;
    assert_eq!(client.get("listSessions", json!({})).await, json!({"sessions": []}));
}

#[tokio::test]
async fn a_uri_that_is_created_while_it_is_being_disposed_is_either_taken_or_new() {
    let host = Host::start();
    let mut disposer = host.client("a").await;
    let mut creator = host.client("b").await;
    disposer.get("createSession", json!({"session": S})).await;
    for round in 0..300 {
        // Work for the old session before it is disposed.
        for n in 0..20 {
            disposer.dispatch(json!({"type": "session/turnCancelled", "session": S, "turnId": n.to_string()})).await;
        }
        disposer.send_json(request(json!("dispose"), "disposeSession", json!({"session": S}))).await;
        creator.send_json(request(json!("create"), "createSession", json!({"session": S}))).await;
        let mut answers = Vec::new();
        for client in [&mut disposer, &mut creator] {
            answers.push(loop {
                let frame = client.json().await;
                if frame.get("id").is_some() {
                    break frame["error"]["code"].as_i64();
                }
            });
        }
        assert_eq!(answers[0], None, "round {round}: there was something to dispose");
        match answers[1] {
            None => {
                creator.subscribe(S).await.unwrap_or_else(|error| panic!("round {round}: it was created, but {error}"));
            }
            Some(code) => {
                assert_eq!(code, -32003, "round {round}");
                creator
                    .create_session(S)
                    .await
                    .unwrap_or_else(|error| panic!("round {round}: it is gone, but {error}"));
            }
        }
    }
}
