//! Overload and slow clients: they affect only the client that causes them.

use futures_util::{SinkExt, StreamExt};
use grove_testkit::{ConnectionEnd, PATIENCE};
use grove_wire::v1::TurnState;
use serde_json::json;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::support::*;

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn a_flood_of_requests_is_answered_and_others_work_meanwhile() {
    const REQUESTS: usize = 20_000;
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let url = format!("{}?tkn={}", host.ws, host.token);
    let (socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let (mut sink, mut stream) = socket.split();
    let asking = async move {
        let initialize = json!({"protocolVersion": 1, "clientId": "flood", "initialSubscriptions": []});
        sink.feed(Message::text(request(json!(0), "initialize", initialize).to_string())).await.unwrap();
        for n in 1..=REQUESTS {
            let (method, params) = match n % 5 {
                0 => ("ping", json!({})),
                1 => ("listSessions", json!({})),
                2 => ("subscribe", json!({"resource": "scripted:/none-such"})),
                3 => ("fetchTurns", json!({"session": S})),
                _ => ("noSuchMethod", json!({})),
            };
            sink.feed(Message::text(request(json!(n), method, params).to_string())).await.unwrap();
        }
        sink.flush().await.unwrap();
        sink
    };
    let counting = async move {
        let mut next = 0;
        while next <= REQUESTS {
            let message = timeout(PATIENCE, stream.next()).await.expect("no answer came").unwrap().unwrap();
            let Message::Text(text) = message else { continue };
            assert!(text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{next},"#)), "{next}: {text}");
            next += 1;
        }
    };
    let (flood, flooded) = (tokio::spawn(asking), tokio::spawn(counting));
    let mut turns = 0;
    while !flooded.is_finished() {
        let turn = client.run_script(S, &format!("t{turns}"), json!([{"say": "abc", "chunks": 3}])).await;
        assert_eq!(turn.state, TurnState::Complete);
        turns += 1;
    }
    flooded.await.unwrap();
    drop(flood.await.unwrap());
    // If a flood delayed other clients, the first turn would end after it.
    assert!(turns > 1, "only {turns} turns went through meanwhile");
    assert!(host.memory("VmHWM") < 200 * MIB);
}

#[tokio::test]
async fn a_client_that_asks_and_never_reads_waits_alone() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.run_script(S, "large", json!([{"say": "x".repeat(1_000_000)}])).await;
    let url = format!("{}?tkn={}", host.ws, host.token);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let initialize = json!({"protocolVersion": 1, "clientId": "greedy", "initialSubscriptions": []});
    socket.send(Message::text(request(json!(0), "initialize", initialize).to_string())).await.unwrap();
    // Each answer has two megabytes, and none is read: together they would be forty gigabytes.
    for n in 1..=20_000 {
        let ask = socket.send(Message::text(request(json!(n), "subscribe", json!({"resource": S})).to_string()));
        // At some point the host silently stops reading from it.
        if timeout(std::time::Duration::from_millis(300), ask).await.is_err() {
            break;
        }
    }
    for n in 0..20 {
        let turn = client.run_script(S, &format!("t{n}"), json!([{"say": "abc", "chunks": 3}])).await;
        assert_eq!(turn.state, TurnState::Complete);
    }
    let peak = host.memory("VmHWM");
    assert!(peak < 200 * MIB, "{} MiB", peak / MIB);
}

#[tokio::test]
async fn a_client_that_stops_reading_is_closed_and_others_see_everything() {
    const SESSIONS: usize = 36;
    const TEXT: usize = 3_000_000;
    let host = Host::start();
    let uri = |n: usize| format!("scripted:/s{n}");
    let uris: Vec<String> = (0..SESSIONS).map(uri).collect();
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    let mut speaker = host.client("speaker").await;
    for uri in &uris {
        speaker.create_session(uri).await.unwrap();
    }
    let mut sleeper = host.connect("sleeper").await;
    sleeper.initialize(&uris).await;
    let mut watcher = host.connect("watcher").await;
    watcher.initialize(&uris).await;

    // More than a hundred megabytes, in deltas of some kilobytes, while one of the two does not read.
    let steps = json!([{"say": "x".repeat(TEXT), "chunks": 1_000}]);
    for uri in &uris {
        speaker.script(uri, "t", steps.clone()).await;
        let mut heard = 0;
        loop {
            let text = watcher.frame().await.expect("the watcher was closed");
            // Compared as text: a hundred thousand actions take long to parse without optimization.
            if let Some((_, content)) = text.split_once(r#""content":""#) {
                heard += content.split('"').next().unwrap().len();
            } else if text.contains("session/turnComplete") {
                break;
            }
        }
        assert_eq!(heard, TEXT, "{uri}");
        // The text itself would fill the host's memory, too: it is deleted with its session.
        speaker.get("disposeSession", json!({"session": uri})).await;
    }
    let peak = host.memory("VmHWM");
    assert!(peak < 200 * MIB, "the host needed {} MiB", peak / MIB);

    let ended = loop {
        match sleeper.frame().await {
            Some(_) => {}
            None => break sleeper.ended().unwrap().clone(),
        }
    };
    assert!(matches!(ended, ConnectionEnd::Closed { code: 4008, .. } | ConnectionEnd::Broken), "{ended:?}");
    watcher.settle().await;
    assert!(host.memory("VmRSS") < 200 * MIB);
}

#[tokio::test]
async fn a_client_that_was_closed_for_being_behind_can_come_back() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    let mut sleeper = host.subscriber("sleeper").await;
    let mut turns = 0;
    // Until the host closes the connection.
    while host.connections() == 2 {
        assert!(turns < 100, "the host goes on keeping what is not read");
        speaker.run_script(S, &format!("t{turns}"), json!([{"say": "x".repeat(1_500_000), "chunks": 50}])).await;
        turns += 1;
    }
    host.reconnect(&mut sleeper).await;
    sleeper.run_script(S, "last", json!([{"say": "back"}])).await;
    speaker.turn_end(S, "last").await;
    let (mine, theirs) = (sleeper.session(S), speaker.session(S));
    assert!(mine.turns.len() > 1 && theirs.turns.ends_with(&mine.turns), "both have the same newest turns");
}

#[tokio::test]
async fn many_clients_of_one_session_all_see_everything() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    let mut clients = Vec::new();
    for n in 0..100 {
        clients.push(host.subscriber(&format!("client-{n}")).await);
    }
    speaker.run_script(S, "t", json!([{"say": "x".repeat(100), "chunks": 100}])).await;
    for client in &mut clients {
        client.turn_end(S, "t").await;
        assert_eq!(client.session(S), speaker.session(S));
    }
    assert!(host.memory("VmHWM") < 100 * MIB);
}

#[tokio::test]
async fn silent_connections_use_up_no_files_and_keep_nobody_out() {
    let place = TestHome::new();
    // The hard limit of open files, so it cannot be raised.
    let mut serve = std::process::Command::new("sh");
    let asked = place.serve_command(&[]);
    serve.args(["-c", "ulimit -n 256; exec \"$@\"", "sh"]).arg(asked.get_program()).args(asked.get_args());
    serve.env_clear().env("HOME", place.home()).current_dir(place.path("home"));
    let host = place.start(serve);
    let silent: Vec<_> = (0..300).map(|_| host.tcp()).collect();
    let mut client = host.client_with_session("a").await;
    client.run_script(S, "t", json!([{"say": "x"}])).await;
    // The program's own commands use the socket.
    let status = place.run(&["status"]);
    assert_eq!(status.code, Some(0), "{}", status.stderr);
    let log = std::fs::read_to_string(place.path("stderr")).unwrap();
    assert!(!log.contains("could not be accepted"), "{log}");
    drop(silent);
}
