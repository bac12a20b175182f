//! Clients in the host's own process.

use grove_host::Config;
use grove_server::{InProcessConnection, InProcessHost, InProcessMessage};
use serde_json::{Value, json};

use crate::harness::TestHost;

const URI: &str = "scripted:/s";
const CHAT: &str = "ahp-chat://default/c2NyaXB0ZWQ6L3M";

/// The next frame that fits.
async fn frame(connection: &mut InProcessConnection, fits: impl Fn(&Value) -> bool) -> Value {
    loop {
        match connection.from_host.recv().await {
            Some(InProcessMessage::Frame(text)) => {
                let frame: Value = serde_json::from_str(&text).unwrap();
                if fits(&frame) {
                    return frame;
                }
            }
            other => panic!("no frame: {other:?}"),
        }
    }
}

async fn call(connection: &mut InProcessConnection, id: u64, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    connection.to_host.send(request.to_string()).await.unwrap();
    let mut answer = frame(connection, |frame| frame["id"] == id).await;
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].take()
}

async fn initialized(host: &TestHost) -> InProcessConnection {
    let mut connection = InProcessHost::new(&host.host).connect().unwrap();
    let params = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "inside",
        "initialSubscriptions": ["ahp-root://"]});
    call(&mut connection, 1, "initialize", params).await;
    connection
}

#[tokio::test(start_paused = true)]
async fn a_client_in_the_process_sees_what_others_do_and_they_see_what_it_does() {
    let host = TestHost::start(Config::default()).await;
    let mut outside = host.ahp("outside").await;
    let mut inside = initialized(&host).await;
    call(&mut inside, 2, "createSession", json!({"channel": URI})).await;
    call(&mut inside, 3, "subscribe", json!({"channel": CHAT})).await;
    outside.subscribe(URI).await.unwrap();
    outside.subscribe(CHAT).await.unwrap();
    outside.until(|client| client.session(URI).lifecycle == grove_wire::ahp::SessionLifecycle::Ready).await;
    outside.script(CHAT, "t", json!([{"say": "hello"}])).await;
    let ends = |frame: &Value| frame["params"]["action"]["type"] == "chat/turnComplete";
    frame(&mut inside, ends).await;
    let title = json!({"channel": URI, "clientSeq": 1, "action": {"type": "session/titleChanged", "title": "Inside"}});
    let dispatch = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": title});
    inside.to_host.send(dispatch.to_string()).await.unwrap();
    outside.until(|client| client.session(URI).title == "Inside").await;
}

#[tokio::test(start_paused = true)]
async fn it_learns_why_its_connection_ends_and_its_own_end_is_noticed() {
    let host = TestHost::start(Config::default()).await;
    let one = initialized(&host).await;
    assert_eq!(host.host.status().await.unwrap().connections, 1);
    drop(one);
    crate::harness::until("the connection is gone", async || host.host.status().await.unwrap().connections == 0).await;

    let mut other = initialized(&host).await;
    host.host.stop().await;
    let mut last = None;
    while let Some(message) = other.from_host.recv().await {
        last = Some(message);
    }
    let Some(InProcessMessage::Closed { code, .. }) = last else { panic!("no reason: {last:?}") };
    assert_eq!(code, grove_wire::v1::close_code::GOING_AWAY);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_receives_nothing_is_closed_like_any_other() {
    let mut config = Config::default();
    config.limits.queue_messages = 8;
    let host = TestHost::start(config).await;
    let mut inside = initialized(&host).await;
    call(&mut inside, 2, "createSession", json!({"channel": URI})).await;
    call(&mut inside, 3, "subscribe", json!({"channel": CHAT})).await;
    let mut outside = host.ahp("outside").await;
    outside.subscribe(CHAT).await.unwrap();
    for turn in 0..50 {
        let turn = format!("t{turn}");
        outside.script(CHAT, &turn, json!([{"say": "hello"}])).await;
        outside.turn_end(CHAT, &turn).await;
    }
    crate::harness::until("it is closed", async || host.host.status().await.unwrap().connections == 1).await;
}
