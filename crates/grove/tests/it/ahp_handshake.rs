//! Connecting and subscribing in the Agent Host Protocol.

use grove_testkit::ConnectionEnd;
use grove_wire::ahp::{ChatState, Method, ROOT};
use serde_json::{Value, json};

use crate::ahp_support::*;
use crate::support::*;

#[tokio::test]
async fn the_highest_offered_version_inside_a_supported_range_is_spoken_as_it_was_offered() {
    let host = Host::start();
    let offers: [(&[&str], &str); 6] = [
        (&["1.0.0"], "1.0.0"),
        (&["0.9.0"], "0.9.0"),
        (&["1.4.0"], "1.4.0"),
        (&["0.9.0", "1.0.0"], "1.0.0"),
        (&["2.0.0", "0.9.3", "0.8.0"], "0.9.3"),
        (&["1.0.0", "1.4.0", "0.9.9"], "1.4.0"),
    ];
    for (offered, spoken) in offers {
        let mut client = host.ahp_connect("a").await;
        let begun = client.initialize_with(offered, &[ROOT]).await.unwrap();
        assert_eq!(begun.protocol_version, spoken);
        assert_eq!(client.root().agents[0].provider, "scripted");
    }
}

#[tokio::test]
async fn no_supported_version_is_32005_with_the_supported_ones_and_the_end_of_the_connection() {
    let host = Host::start();
    for offered in [&["2.0.0"][..], &["0.8.0", "0.10.0"], &[]] {
        let mut client = host.ahp_connect("a").await;
        let error = client.initialize_with(offered, &[]).await.unwrap_err();
        assert_eq!(error.code, -32005, "{error}");
        assert_eq!(error.data, Some(json!({"supportedVersions": ["^1.0.0", "^0.9.0"]})));
        assert!(matches!(client.until_end().await, ConnectionEnd::Closed { code: 4005, .. }));
    }
}

#[tokio::test]
async fn a_malformed_version_is_32602_and_may_be_mended() {
    let host = Host::start();
    let mut client = host.ahp_connect("a").await;
    for offered in [&["one"][..], &["1.0"], &["1.0.0", ""], &["1.0.0.0"], &["-1.0.0"]] {
        let error = client.initialize_with(offered, &[]).await.unwrap_err();
        assert_eq!(error.code, -32602, "{offered:?}: {error}");
    }
    client.initialize(&[ROOT]).await;
}

#[tokio::test]
async fn params_that_cannot_be_read_are_32602() {
    let host = Host::start();
    let mut client = host.ahp_connect("a").await;
    for params in [
        json!({"channel": ROOT, "protocolVersions": "1.0.0", "clientId": "a"}),
        json!({"channel": ROOT, "protocolVersions": ["1.0.0"]}),
        json!({"channel": ROOT, "protocolVersions": ["1.0.0"], "clientId": ""}),
        json!({"channel": ROOT, "protocolVersions": ["1.0.0"], "clientId": "x".repeat(10_000)}),
    ] {
        let error = client.refused(Method::Initialize, params).await;
        assert_eq!(error.code, -32602, "{error}");
    }
    client.initialize(&[]).await;
    for method in [Method::Subscribe, Method::CreateSession, Method::FetchTurns, Method::ResourceRead] {
        assert_eq!(client.refused(method, json!({})).await.code, -32602, "{}", method.as_str());
    }
}

#[tokio::test]
async fn ping_is_answered_at_any_time() {
    let host = Host::start();
    let mut client = host.ahp_connect("a").await;
    assert_eq!(client.get(Method::Ping, json!({"channel": ROOT})).await, Value::Null);
    client.initialize(&[]).await;
    assert_eq!(client.get(Method::Ping, json!({"channel": ROOT})).await, Value::Null);
    assert_eq!(client.get(Method::Ping, json!({})).await, Value::Null);
}

#[tokio::test]
async fn ids_are_given_back_as_they_came() {
    let host = Host::start();
    let mut client = host.ahp("a").await;
    for id in ["0", "-7", "1.50", "9007199254740993", r#""""#, r#""a \" b""#, r#""null""#, "null"] {
        client.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{"channel":"{ROOT}"}}}}"#)).await;
        assert_eq!(client.frame().await.unwrap(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#));
        client.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"noSuchMethod"}}"#)).await;
        let answer = client.frame().await.unwrap();
        assert!(answer.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#)), "{answer}");
    }
}

#[tokio::test]
async fn any_request_before_initialize_is_32600_and_notifications_have_no_effect() {
    let host = Host::start();
    host.ahp_with_session("first").await;
    let mut client = host.ahp_connect("a").await;
    for method in Method::ALL {
        if !matches!(method, Method::Initialize | Method::Reconnect | Method::Ping) {
            let error = client.refused(*method, json!({"channel": S})).await;
            assert_eq!(error.code, -32600, "{}", method.as_str());
        }
    }
    client.dispatch(S, json!({"type": "session/titleChanged", "title": "too early"})).await;
    client.initialize(&[S]).await;
    assert_eq!(client.session(S).title, "New session");
    assert_eq!(client.envelopes, []);
}

#[tokio::test]
async fn a_connection_is_initialized_once() {
    let host = Host::start();
    let mut client = host.ahp("a").await;
    let again = json!({"channel": ROOT, "protocolVersions": ["1.0.0"], "clientId": "b"});
    assert_eq!(client.refused(Method::Initialize, again).await.code, -32600);
    let back = json!({"channel": ROOT, "clientId": "a", "lastSeenServerSeq": 0, "subscriptions": []});
    assert_eq!(client.refused(Method::Reconnect, back).await.code, -32600);
    client.ready_session(S).await;
    let seq = client.script(CHAT, "t", json!([])).await;
    assert_eq!(client.answer_to(seq).await.origin.unwrap().client_id, "a", "it is still who it was");
}

#[tokio::test]
async fn what_is_not_served_is_32601() {
    let host = Host::start();
    let mut client = host.ahp("a").await;
    for method in [
        "moveChat",
        "invokeChangesetOperation",
        "listAutomationTriggerDefinitions",
        "runAutomation",
        "fetchAutomationRuns",
        "x-anything",
        "dispatchAction",
        "unsubscribe",
        "fetchContent",
        "browseDirectory",
    ] {
        let error = client.ask(method, on_root(json!({}))).await.unwrap_err();
        assert_eq!(error.code, -32601, "{method}: {error}");
    }
}

#[tokio::test]
async fn initialize_gives_the_state_of_every_channel_that_is_there() {
    let host = Host::start();
    host.ahp_with_session("first").await;
    let mut client = host.ahp_connect("a").await;
    let wanted = [ROOT, "scripted:/none-such", S, CHAT, "nonsense", PLAIN, PLAIN_CHAT, "ahp-chat:/none"];
    let begun = client.initialize(&wanted).await;
    let given: Vec<&str> = begun.snapshots.iter().map(|snapshot| snapshot.resource.as_str()).collect();
    assert_eq!(given, [ROOT, S, CHAT, PLAIN, PLAIN_CHAT]);
    assert_eq!(begun.server_info.unwrap().name, "grove");
    assert_eq!(begun.default_directory, Some(file_uri(&host.place.home())));
    assert_eq!(begun.completion_trigger_characters, Some(vec!["@".to_owned()]));
    assert_eq!((client.session(S).default_chat.as_deref(), client.chat(CHAT).resource.as_str()), (Some(CHAT), CHAT));
    let plain = client.session(PLAIN);
    assert_eq!(
        (plain.default_chat.as_deref(), client.chat(PLAIN_CHAT).resource.as_str()),
        (Some(PLAIN_CHAT), PLAIN_CHAT)
    );
    assert_eq!(client.root().active_sessions, Some(1));
    let chats = client.root().agents[0].capabilities.as_ref().unwrap().multiple_chats.clone();
    assert!(chats.is_some(), "a session may have several chats");
}

#[tokio::test]
async fn a_subscription_to_what_is_not_there_is_32001_for_a_session_and_32008_for_anything_else() {
    let host = Host::start();
    let mut client = host.ahp_with_session("a").await;
    for (uri, code) in [
        ("scripted:/none-such", -32001),
        ("elsewhere:/s", -32001),
        ("ahp-session:/none-such", -32001),
        ("ahp-chat:/none-such", -32008),
        ("ahp-chat://default/bm9uZTovc3VjaA", -32008),
        ("ahp-chat://other/c2NyaXB0ZWQ6L3M", -32008),
        ("ahp-resource-watch:/1-1", -32008),
        ("ahp-terminal:/s", -32008),
        ("ahp-changeset:/s", -32008),
        ("ahp-automations://", -32008),
        ("scripted:/s/annotations", -32008),
        ("", -32008),
        ("nonsense", -32008),
    ] {
        let error = client.refused(Method::Subscribe, json!({"channel": uri})).await;
        assert_eq!(error.code, code, "{uri}: {error}");
    }
}

#[tokio::test]
async fn after_unsubscribing_no_action_comes_and_subscribing_twice_brings_each_once() {
    let host = Host::start();
    let mut speaker = host.ahp_with_session("speaker").await;
    let mut client = host.ahp_subscriber("a").await;
    client.must_agree(CHAT).await;
    speaker.run_script(CHAT, "t", json!([{"say": "once"}])).await;
    client.turn_end(CHAT, "t").await;
    let kinds = ["chat/turnStarted", "chat/responsePart", "chat/delta", "chat/turnComplete"];
    assert_eq!(client.kinds(CHAT), kinds);
    client.unsubscribe(CHAT).await;
    client.barrier().await;
    speaker.run_script(CHAT, "u", json!([{"say": "unheard"}])).await;
    client.barrier().await;
    assert_eq!(client.kinds(CHAT), kinds);
    client.subscribe(CHAT).await.unwrap();
    // A chat's title is sent on the session's channel.
    let title = speaker.session(S).chats[0].title.clone();
    assert_eq!(title, r#"script:[{"say":"once"}]"#);
    assert_eq!(*client.chat(CHAT), ChatState { title, ..speaker.chat(CHAT).clone() }, "and it can come back");
}
