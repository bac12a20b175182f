//! Invalid input: it is answered, and does no harm.

use std::io::{Read, Write};

use grove_testkit::{Client, ConnectionEnd};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::*;

/// Sends a frame and expects an error without an id.
async fn fails(client: &mut Client, text: &str, code: i64) {
    client.send(text.to_owned()).await;
    let answer = client.json().await;
    let shown: String = text.chars().take(80).collect();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{shown}: {answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|message| message.len() < 500), "{shown}");
}

#[tokio::test]
async fn what_is_not_json_is_32700_with_id_null() {
    let host = Host::start();
    let mut client = host.client("a").await;
    for text in
        ["", " ", "{", "}", "nonsense", r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, "{'a':1}", "[1,", "\u{feff}{}"]
    {
        fails(&mut client, text, -32700).await;
    }
    client.settle().await;
}

#[tokio::test]
async fn what_is_no_message_is_32600() {
    let host = Host::start();
    let mut client = host.client("a").await;
    let odd = [
        "1",
        "null",
        r#""ping""#,
        "{}",
        "[]",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":7}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
    ];
    for text in odd {
        fails(&mut client, text, -32600).await;
    }
    for (text, id) in [
        (r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#, json!(5)),
        (r#"{"id":"x","method":"ping"}"#, json!("x")),
        (r#"{"jsonrpc":"2.0","id":6,"method":"ping","params":7}"#, json!(6)),
        (r#"{"jsonrpc":"2.0","id":7}"#, json!(7)),
    ] {
        client.send(text.to_owned()).await;
        let answer = client.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32600)), "{text}");
    }
    // In a batch each is answered separately.
    client.send(r#"[1,{"jsonrpc":"2.0","id":1,"method":"ping"},[]]"#.to_owned()).await;
    let answers = client.json().await;
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!(answers[1], json!({"jsonrpc": "2.0", "id": 1, "result": null}));
    assert_eq!(answers[2]["error"]["code"], -32600);
    let many = vec![r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#; 1_001];
    fails(&mut client, &format!("[{}]", many.join(",")), -32600).await;
    client.settle().await;
}

#[tokio::test]
async fn params_of_the_wrong_type_are_32602() {
    let host = Host::start();
    let mut client = host.connect("a").await;
    let before = [
        ("initialize", json!({})),
        ("initialize", json!({"protocolVersion": "1", "clientId": "a"})),
        ("initialize", json!({"protocolVersion": 1.5, "clientId": "a"})),
        ("initialize", json!({"protocolVersion": 1})),
        ("initialize", json!({"protocolVersion": 1, "clientId": "a", "initialSubscriptions": "agenthost:root"})),
        ("initialize", json!({"protocolVersion": 1, "clientId": "a", "initialSubscriptions": [1]})),
        ("reconnect", json!({})),
        ("reconnect", json!({"clientId": "a", "lastSeenServerSeq": -1, "subscriptions": []})),
        ("reconnect", json!({"clientId": "a", "lastSeenServerSeq": "0", "subscriptions": []})),
        ("reconnect", json!({"clientId": 1, "lastSeenServerSeq": 0, "subscriptions": []})),
        ("reconnect", json!({"clientId": "a", "lastSeenServerSeq": 0, "subscriptions": {}})),
    ];
    for (method, params) in before {
        let error = client.refused(method, params.clone()).await;
        assert_eq!(error.code, -32602, "{method} {params}: {error}");
    }
    client.initialize(&[]).await;
    client.ready_session(S).await;
    let after = [
        ("subscribe", json!({})),
        ("subscribe", json!({"resource": 1})),
        ("subscribe", json!({"resource": null})),
        ("createSession", json!({})),
        ("createSession", json!({"session": ["scripted:/x"]})),
        ("createSession", json!({"session": "scripted:/x", "provider": 1})),
        ("createSession", json!({"session": "scripted:/x", "model": {}})),
        ("createSession", json!({"session": "scripted:/x", "workingDirectory": 1})),
        ("disposeSession", json!({})),
        ("disposeSession", json!({"session": 1})),
        ("listSessions", json!({"filter": "all"})),
        ("listSessions", json!({"filter": {"modifiedSince": "yesterday"}})),
        ("fetchTurns", json!({})),
        ("fetchTurns", json!({"session": S, "limit": "3"})),
        ("fetchTurns", json!({"session": S, "before": 3})),
        ("fetchContent", json!({})),
        ("fetchContent", json!({"uri": 1})),
        ("browseDirectory", json!({})),
        ("browseDirectory", json!({"uri": null})),
    ];
    for (method, params) in after {
        let error = client.refused(method, params.clone()).await;
        assert_eq!(error.code, -32602, "{method} {params}: {error}");
    }
    // Without params at all.
    for method in ["subscribe", "createSession", "disposeSession", "fetchTurns", "fetchContent", "browseDirectory"] {
        client.send_json(json!({"jsonrpc": "2.0", "id": method, "method": method})).await;
        let answer = client.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(method), &json!(-32602)));
    }
    client.send_json(json!({"jsonrpc": "2.0", "id": "l", "method": "listSessions"})).await;
    assert_eq!(client.json().await["result"]["sessions"][0]["resource"], S, "this one needs none");
}

#[tokio::test]
async fn an_unknown_method_is_32601_and_an_unknown_notification_is_ignored() {
    let host = Host::start();
    let mut client = host.client("a").await;
    for method in ["noSuchMethod", "", "Ping", "action", "dispatchAction", "unsubscribe", &"x".repeat(100_000)] {
        let error = client.refused(method, json!({})).await;
        assert_eq!(error.code, -32601);
        assert!(error.message.len() < 500);
    }
    for method in ["noSuchNotification", "subscribe", "action", "initialize"] {
        client.send_json(json!({"jsonrpc": "2.0", "method": method, "params": {"resource": "agenthost:root"}})).await;
    }
    let (unnumbered, negative) = (json!({"clientSeq": "1", "action": {}}), json!({"clientSeq": -1, "action": {}}));
    for params in [json!({}), json!([]), json!({"clientSeq": "1"}), json!({"clientSeq": 1})] {
        client.send_json(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})).await;
    }
    for params in [&json!({}), &json!([]), &unnumbered, &negative] {
        client.send_json(json!({"jsonrpc": "2.0", "method": "unsubscribe", "params": params})).await;
    }
    // A response without a request.
    client.send_json(json!({"jsonrpc": "2.0", "id": 1, "result": null})).await;
    client.send_json(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}})).await;
    client.settle().await;
    assert_eq!(client.envelopes.len(), 0);
    assert_eq!(client.roots.len(), 0);
    // A client that waits for the echo of an action learns that there is none: under its number, if it has one.
    for params in [unnumbered, json!({"action": {}})] {
        client.send_json(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})).await;
        let answer = client.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32602)), "{params}");
    }
    client.send_json(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": negative})).await;
    let told = client.json().await;
    let envelope = &told["params"]["envelope"];
    assert_eq!((&told["method"], &envelope["action"]), (&json!("action"), &json!({})), "{told}");
    assert_eq!(envelope["origin"], json!({"clientId": "a", "clientSeq": -1}));
    assert!(envelope["rejectionReason"].as_str().unwrap().contains("clientSeq"), "{told}");
    client.settle().await;
}

#[tokio::test]
async fn deep_nesting_is_refused_and_harmless() {
    let host = Host::start();
    let mut client = host.client("a").await;
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        for depth in [65, 1_000, 100_000] {
            fails(&mut client, &format!("{}1{}", open.repeat(depth), close.repeat(depth)), -32600).await;
            fails(&mut client, &open.repeat(depth), -32600).await;
        }
    }
    let script = format!("script:{}", "[".repeat(100_000));
    client.ready_session(S).await;
    client.start_turn(S, "t", &script).await;
    assert!(client.turn_end(S, "t").await.error.is_some(), "also inside a prompt");
}

#[tokio::test]
async fn odd_text_comes_through_whole() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let text = "null \0, bell \u{7}, quote \", backslash \\, line\u{2028}separator, \u{10ffff}, \u{1f333}, \u{fffd}";
    let turn = client.run_script(S, "t", json!([{"say": text}])).await;
    assert_eq!(serde_json::to_value(&turn.response_parts).unwrap(), json!([{"kind": "markdown", "content": text}]));
    // An invalid character cannot be text: its frame is refused with an error.
    fails(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"\ud83c"}"#, -32700).await;
    let half = turn_started(S, "u", &json!([])).to_string().replace("script:[]", r"\ud83c");
    let dispatch = r#"{"jsonrpc":"2.0","method":"dispatchAction","params":{"clientSeq":1000,"action":ACTION}}"#;
    client.send(dispatch.replace("ACTION", &half)).await;
    let answer = client.answer_to(1_000).await;
    assert_eq!((answer.action.get(), answer.rejection_reason.is_some()), (half.as_str(), true));
}

#[tokio::test]
async fn a_binary_frame_is_32700_and_the_connection_goes_on() {
    let host = Host::start();
    let mut client = host.client("a").await;
    for bytes in [&b""[..], b"\xff\xfe", br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#] {
        assert!(client.send_raw(Message::binary(bytes.to_vec())).await);
        let answer = client.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    }
    client.settle().await;
}

#[tokio::test]
async fn a_message_that_is_too_large_closes_its_own_connection_with_1009() {
    let host = Host::start();
    let mut other = host.client_with_session("other").await;
    for size in [(4 << 20) + 1, 5 << 20, 64 << 20] {
        let mut client = host.client("a").await;
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        // The host may close before all of it was written.
        client.send_raw(Message::text(format!("{ping}{}", " ".repeat(size - ping.len())))).await;
        let ended = client.until_end().await;
        assert!(matches!(ended, ConnectionEnd::Closed { code: 1009, .. }), "{size}: {ended:?}");
        let turn = format!("t{size}");
        other.run_script(S, &turn, json!([{"say": "unharmed"}])).await;
    }
    let mut client = host.client("a").await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    client.send(format!("{ping}{}", " ".repeat((4 << 20) - ping.len()))).await;
    assert_eq!(client.json().await["id"], 1, "one that just fits is answered");
}

#[tokio::test]
async fn a_connection_that_never_says_anything_is_dropped_and_harms_nobody() {
    let host = Host::start();
    let silent: Vec<_> = (0..100).map(|_| host.tcp()).collect();
    let half_said = (0..100).map(|n| {
        let mut stream = host.tcp();
        let head = format!("GET /ws?tkn={} HTTP/1.1\r\nHost: {}\r\nX-Number: {n}\r\n", host.token, host.address);
        stream.write_all(head.as_bytes()).unwrap();
        stream
    });
    let half_said: Vec<_> = half_said.collect();
    let mut client = host.client_with_session("a").await;
    let turn = client.run_script(S, "t", json!([{"say": "meanwhile"}])).await;
    assert_eq!(turn.response_parts.len(), 1);
    // Other connections did not wait for them: connections with an incomplete request are still open.
    for stream in &half_said {
        stream.set_nonblocking(true).unwrap();
        let mut stream = stream;
        let open = stream.read(&mut [0; 1]);
        assert_eq!(open.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        stream.set_nonblocking(false).unwrap();
    }
    for mut stream in silent.into_iter().chain(half_said) {
        let mut rest = Vec::new();
        // A connection may get the reason for its close, or be reset.
        match stream.read_to_end(&mut rest) {
            Ok(_) => assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{rest:?}"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    client.settle().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_or_no_http_is_refused() {
    let host = Host::start();
    let answer = host.http(&format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nX: {}", host.address, "x".repeat(100_000)));
    assert!(matches!(answer.status, 400 | 431), "{}", answer.status);
    assert_eq!(host.http("nonsense").status, 400);
    let mut tls = host.tcp();
    tls.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").unwrap();
    tls.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    tls.read_to_end(&mut rest).ok();
    assert!(!rest.starts_with(b"HTTP/1.1 2"));
    host.client("a").await.settle().await;
}

#[tokio::test]
async fn a_websocket_that_breaks_its_rules_is_closed_and_harms_nobody() {
    let host = Host::start();
    let mut other = host.client("other").await;
    // An unmasked frame, a reserved opcode, text that is not UTF-8, an endless frame.
    for frame in [&b"\x81\x02hi"[..], b"\x83\x80\0\0\0\0", b"\x81\x82\0\0\0\0\xff\xff", b"\x01\x82\0\0\0\0hi"] {
        let mut stream = host.tcp();
        let head = format!(
            "GET /ws?tkn={} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            host.token, host.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(frame).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).ok();
        assert!(rest.starts_with(b"HTTP/1.1 101"));
        other.settle().await;
    }
}
