//! A test-only version 2: the behaviour of a host whose newest version is not the only one.
//!
//! In this world version 2 introduced `session/reasoning`, `notify/sessionRemoved` and the capability `reasoning`.

use grove_host::Config;
use grove_wire::registry::{self, Registry, VersionCapabilities};
use grove_wire::v1::{ActionType, NotificationType};
use serde_json::json;

use crate::harness::TestHost;

const URI: &str = "scripted:/s";

fn two_versions() -> Registry {
    fn action(action: ActionType) -> u32 {
        match action {
            ActionType::Reasoning => 2,
            other => registry::action_introduced_in(other),
        }
    }
    fn notification(notification: NotificationType) -> u32 {
        match notification {
            NotificationType::SessionRemoved => 2,
            other => registry::notification_introduced_in(other),
        }
    }
    Registry { current: 2, minimum: 1, action_introduced_in: action, notification_introduced_in: notification }
}

#[tokio::test(start_paused = true)]
async fn a_client_hears_only_what_its_version_knows_live_and_in_a_replay() {
    let host = TestHost::start(Config { registry: two_versions(), ..Config::default() }).await;
    let mut clients = Vec::new();
    for (version, expected) in [(1, 1), (2, 2), (99, 2)] {
        let mut client = host.connect(&format!("v{version}")).await;
        let answer = client.initialize_with(version, &[]).await.unwrap();
        assert_eq!(answer.protocol_version, expected, "a newer client is answered with our version");
        assert_eq!(VersionCapabilities::of(answer.protocol_version).reasoning, expected == 2);
        clients.push((expected, client));
    }
    clients[0].1.create_session(URI).await.unwrap();
    for (_, client) in &mut clients {
        client.subscribe(URI).await.unwrap();
    }

    // Live.
    clients[0].1.script(URI, "t1", json!([{"reason": "hm"}, {"say": "one"}])).await;
    for (version, client) in &mut clients {
        let turn = client.turn_end(URI, "t1").await;
        assert_eq!(turn.tool_calls.len(), 0);
        let heard = client.envelopes.iter().any(|envelope| envelope.action.get().contains("session/reasoning"));
        assert_eq!(heard, *version == 2, "{client:?}");
    }

    // In a replay, for which the host remembers each client's version.
    for (_, client) in &mut clients[1..] {
        client.cut().await;
    }
    let mut first = clients.remove(0).1;
    first.run_script(URI, "t2", json!([{"reason": "hm"}, {"say": "two"}])).await;
    let before = first.seen;
    first.cut().await;
    first.seen = before - 3;
    let mut back = [(1, first), clients.remove(0), clients.remove(0)];
    for (version, client) in &mut back {
        client.envelopes.clear();
        assert!(host.bring_back(client).await);
        let heard = client.envelopes.iter().any(|envelope| envelope.action.get().contains("session/reasoning"));
        assert_eq!(heard, *version == 2, "{client:?}");
    }

    // Notifications are filtered in the same way.
    let [(_, mut first), (_, mut second), _] = back;
    second.call::<()>("disposeSession", json!({"session": URI})).await.unwrap();
    first.settle().await;
    let removed = |client: &grove_testkit::Client| {
        client.notifications.iter().filter(|n| n.kind() == NotificationType::SessionRemoved).count()
    };
    assert_eq!((removed(&first), removed(&second)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_version_below_the_minimum_is_refused_with_32005() {
    let registry = Registry { minimum: 2, ..two_versions() };
    let host = TestHost::start(Config { registry, ..Config::default() }).await;
    let mut client = host.connect("old").await;
    let error = client.initialize_with(1, &[]).await.unwrap_err();
    assert_eq!(error.code, -32005);
    assert!(error.message.contains("update the client"), "{}", error.message);
    client.initialize_with(2, &[]).await.unwrap();
}
