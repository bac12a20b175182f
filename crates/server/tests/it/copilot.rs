//! Connections of Copilot SDKs: authentication, and the limits before it.

use std::sync::Arc;
use std::time::Duration;

use crate::passes::SilentAgent;
use grove_agents::Agent;
use grove_agents::scripted::ScriptedAgent;
use grove_host::{Config, Env, Host, Limits, Rate};
use grove_server::copilot::{EndpointConfig, EndpointSecret};
use grove_server::{HostServer, sdk};
use grove_testkit::host::{ADDRESS, Dialer, TOKEN, pipes};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

const SECRET: &str = "a secret of the port";

/// A host with its own listener, and one for SDKs.
struct SdkHost {
    _serving: HostServer,
    http: Dialer,
    sdks: Dialer,
}

impl SdkHost {
    async fn start(limits: Limits, secret: Option<&str>) -> Self {
        let config = Config { limits, ..Config::default() };
        let host = Host::in_memory(Env::in_memory(), config, vec![Arc::new(ScriptedAgent)]).await.unwrap();
        Self::of(host, secret)
    }

    fn of(host: Host, secret: Option<&str>) -> Self {
        let (http, serving) = grove_testkit::host::serve(&host);
        let (sdks, pipes) = pipes();
        let secret = secret.map(|secret| EndpointSecret::Text(secret.to_owned()));
        let config = EndpointConfig {
            store: "copilot".into(),
            secret,
            keeps_temp_files: false,
            default_folder: None,
            allows_all: false,
        };
        serving.serve_sdks(config, Box::new(pipes));
        Self { _serving: serving, http, sdks }
    }

    fn sdk(&self) -> Sdk {
        Sdk::over(self.sdks.dial(256 << 10).unwrap())
    }

    /// A connection as `grove copilot` opens it, and the status that it was answered with.
    async fn carried(&self, program: &str, headers: &[(&str, &str)]) -> (u16, Sdk) {
        let mut near = self.http.dial(256 << 10).unwrap();
        let mut head = format!(
            "GET /copilot HTTP/1.1\r\nHost: {ADDRESS}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: Upgrade\r\n\
             Upgrade: {}\r\n{}: {program}\r\n",
            sdk::PROTOCOL,
            sdk::PROGRAM
        );
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        near.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(near.read_u8().await.unwrap());
        }
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        (status, Sdk::over(near))
    }
}

pub(crate) struct Sdk {
    pub(crate) stream: DuplexStream,
    buffer: Vec<u8>,
}

impl Sdk {
    pub(crate) fn over(stream: DuplexStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.stream.write_all(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes()).await.unwrap();
    }

    pub(crate) async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let message = self.receive().await.expect("the connection is closed");
            if message["id"] == json!(id) && message["method"].is_null() {
                return message;
            }
        }
    }

    /// The next message; `None` when the connection is closed.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                let length: usize = head.strip_prefix("Content-Length: ").unwrap().parse().unwrap();
                if self.buffer.len() >= end + 4 + length {
                    let message = serde_json::from_slice(&self.buffer[end + 4..end + 4 + length]).unwrap();
                    self.buffer.drain(..end + 4 + length);
                    return Some(message);
                }
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece).await {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.buffer.extend_from_slice(&piece[..length]),
            }
        }
    }

    /// Everything until the connection is closed.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(message) = self.receive().await {
            all.push(message);
        }
        all
    }
}

fn request(id: u64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_web_page_cannot_drive_an_endpoint() {
    let host = SdkHost::start(Limits::default(), Some(SECRET)).await;
    // The request of `fetch(..., {mode: "no-cors", method: "POST", body})`.
    let body = request(1, "connect", json!({"token": SECRET}));
    let mut page = host.sdk();
    let head = "POST / HTTP/1.1\r\nHost: 127.0.0.1:4141\r\nOrigin: http://evil.example\r\nContent-Type: text/plain";
    let bytes = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    page.stream.write_all(bytes.as_bytes()).await.unwrap();
    let answers = page.rest().await;
    assert!(answers.iter().all(|answer| answer["result"].is_null()), "{answers:?}");
    // It ended at the head, not at the time limit.
    assert_eq!((answers.len(), &answers[0]["error"]["code"]), (1, &json!(-32700)), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn every_endpoint_at_an_address_requires_a_secret() {
    for secret in [None, Some("")] {
        let host = SdkHost::start(Limits::default(), secret).await;
        let mut client = host.sdk();
        for (id, params) in [json!({}), json!({"token": ""}), json!({"token": null})].into_iter().enumerate() {
            let answer = client.call(id as u64, "connect", params).await;
            assert_eq!(answer["error"]["code"], -32002, "{answer}");
        }
        assert_eq!(client.call(9, "session.list", json!({})).await["error"]["code"], -32001);
    }
    let host = SdkHost::start(Limits::default(), Some(SECRET)).await;
    let mut client = host.sdk();
    assert_eq!(client.call(1, "connect", json!({"token": "wrong"})).await["error"]["code"], -32002);
    assert!(client.call(2, "connect", json!({"token": SECRET})).await["result"]["ok"].as_bool().unwrap());
    assert!(client.call(3, "session.list", json!({})).await["result"]["sessions"].is_array());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_carries_a_port_must_name_its_secret() {
    let host = SdkHost::start(Limits::default(), None).await;
    assert_eq!(host.carried("p1", &[]).await.0, 400);
    assert_eq!(host.carried("p1", &[(sdk::SECRET, "")]).await.0, 400);
    // Pipes connect two programs: the one that started the other authenticates it.
    let (status, mut pipes) = host.carried("p2", &[(sdk::TRANSPORT, sdk::PIPES)]).await;
    assert_eq!(status, 101);
    assert!(pipes.call(1, "session.list", json!({})).await["result"].is_object());
    assert!(pipes.call(2, "connect", json!({})).await["result"].is_object(), "as the SDK does");
    let (status, mut port) = host.carried("p3", &[(sdk::SECRET, SECRET)]).await;
    assert_eq!(status, 101);
    assert_eq!(port.call(1, "session.list", json!({})).await["error"]["code"], -32001);
    assert!(port.call(2, "connect", json!({"token": SECRET})).await["result"].is_object());
    assert!(port.call(3, "session.list", json!({})).await["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_authenticate_in_five_seconds_is_closed() {
    let host = SdkHost::start(Limits::default(), Some(SECRET)).await;
    let mut authenticated = host.sdk();
    authenticated.call(1, "connect", json!({"token": SECRET})).await;
    for (is_carried, sends) in [(false, ""), (false, "Content-Length: 60000\r\n\r\n{"), (true, ""), (true, "Content")] {
        let since = Instant::now();
        let mut client = match is_carried {
            true => host.carried("p1", &[(sdk::SECRET, SECRET)]).await.1,
            false => host.sdk(),
        };
        client.stream.write_all(sends.as_bytes()).await.unwrap();
        assert_eq!(client.rest().await, Vec::<Value>::new());
        assert_eq!(since.elapsed().as_secs(), 5);
    }
    // Constant requests do not help either.
    let mut busy = host.sdk();
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(60) {
        let text = request(1, "ping", json!({}));
        let bytes = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        if busy.stream.write_all(bytes.as_bytes()).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(since.elapsed() < Duration::from_secs(6), "{:?}", since.elapsed());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(authenticated.call(2, "ping", json!({})).await["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_not_authenticated_may_send_64_kib() {
    let host = SdkHost::start(Limits::default(), Some(SECRET)).await;
    // A single larger frame is refused by its head.
    let mut client = host.sdk();
    client.stream.write_all(b"Content-Length: 65537\r\n\r\n").await.unwrap();
    let answers = client.rest().await;
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("65536"), "{answers:?}");
    // Small ones count together, complete or not.
    let mut client = host.sdk();
    let text = request(1, "ping", json!({"message": "x".repeat(10_000)}));
    let (mut sent, since) = (0, Instant::now());
    for _ in 0..20 {
        let bytes = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        if client.stream.write_all(bytes.as_bytes()).await.is_err() {
            break;
        }
        sent += bytes.len();
        tokio::task::yield_now().await;
    }
    let answered = client.rest().await.len();
    assert!(answered <= 8 && since.elapsed() < Duration::from_secs(1), "{answered} of {sent} bytes were answered");
    // After the secret, in the same piece, the usual bound applies.
    let mut client = host.sdk();
    let connect = request(1, "connect", json!({"token": SECRET}));
    let large = request(2, "ping", json!({"message": "x".repeat(200_000)}));
    let bytes =
        format!("Content-Length: {}\r\n\r\n{connect}Content-Length: {}\r\n\r\n{large}", connect.len(), large.len());
    client.stream.write_all(bytes.as_bytes()).await.unwrap();
    assert!(client.receive().await.unwrap()["result"].is_object());
    let answer = client.receive().await.unwrap();
    assert!(answer["result"]["message"].as_str().unwrap().len() > 200_000, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn clients_of_a_port_that_do_not_authenticate_give_way_to_the_next() {
    let limits = Limits { unauthenticated_connections: 4, ..Limits::default() };
    let host = SdkHost::start(limits, None).await;
    let open = || host.carried("p1", &[(sdk::SECRET, SECRET)]);
    let (_, mut known) = open().await;
    known.call(1, "connect", json!({"token": SECRET})).await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(open().await.1);
    }
    let since = Instant::now();
    for client in &mut silent[..2] {
        assert_eq!(client.rest().await, Vec::<Value>::new());
    }
    assert!(since.elapsed() < Duration::from_secs(1), "they went for the next, not with time");
    assert!(silent[5].call(1, "connect", json!({"token": SECRET})).await["result"].is_object());
    assert!(known.call(2, "ping", json!({})).await["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn sessions_of_an_agent_that_waits_for_hooks_may_have_hooks() {
    let host = SdkHost::start(Limits::default(), Some(SECRET)).await;
    let mut client = host.sdk();
    client.call(1, "connect", json!({"token": SECRET})).await;
    let opened = client.call(2, "session.create", json!({"sessionId": "s1", "model": "scripted", "hooks": true})).await;
    assert_eq!(opened["result"]["sessionId"], "s1", "{opened}");
    let again = client.call(3, "session.resume", json!({"sessionId": "s1", "hooks": false})).await;
    assert_eq!(again["result"]["sessionId"], "s1", "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_created_in_two_passes_through_the_sequencer() {
    let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(SilentAgent { opens: false })];
    let host = Host::in_memory(Env::in_memory(), Config::default(), agents).await.unwrap();
    let sdks = SdkHost::of(host.clone(), Some(SECRET));
    let mut client = sdks.sdk();
    client.call(1, "connect", json!({"token": SECRET})).await;
    client.call(2, "session.list", json!({})).await;
    let before = host.sequencer_passes();
    let tools = json!([{"name": "look", "description": "Looks", "parameters": {"type": "object"}}]);
    let created = json!({"sessionId": "s1", "model": "silent", "streaming": true, "tools": tools});
    let opened = client.call(3, "session.create", created).await;
    assert_eq!(opened["result"]["sessionId"], "s1", "{opened}");
    assert_eq!(host.sequencer_passes() - before, 2, "creation with participation, subscription");
    assert_eq!(host.status().await.unwrap().sessions, 1);
}

#[tokio::test(start_paused = true)]
async fn an_sdk_beyond_its_rate_waits_and_beyond_its_sessions_is_refused() {
    let requests = Rate { per_second: 10, burst: 20 };
    let none = Rate { per_second: 0, burst: 0 };
    let limits = Limits { requests, token_requests: none, subscriptions: 1, ..Limits::default() };
    let clock = Arc::new(grove_testkit::host::PausedClock::new(grove_core::Timestamp(1_000_000)));
    let config = Config { limits, ..Config::default() };
    let host = Host::in_memory(Env { clock, ..Env::in_memory() }, config, vec![Arc::new(ScriptedAgent)]).await.unwrap();
    let host = SdkHost::of(host, Some(SECRET));
    let mut sdk = host.sdk();
    sdk.call(1, "connect", json!({"token": SECRET})).await;
    let start = Instant::now();
    for id in 100..140 {
        sdk.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {}})).await;
    }
    for _ in 100..140 {
        sdk.receive().await.unwrap();
    }
    let time = start.elapsed();
    assert!((Duration::from_millis(1_900)..=Duration::from_millis(2_200)).contains(&time), "{time:?}");

    let create = |id: &str| json!({"sessionId": id, "model": "scripted"});
    let opened = sdk.call(2, "session.create", create("one")).await;
    assert!(opened["result"].is_object(), "{opened}");
    let refused = sdk.call(3, "session.create", create("two")).await["error"].take();
    assert_eq!((&refused["code"], &refused["data"]["limit"]), (&json!(-32029), &json!("subscriptions")));
    let closed = sdk.call(4, "session.destroy", json!({"sessionId": "one"})).await;
    assert!(closed["result"].is_object(), "{closed}");
    let missing = sdk.call(5, "session.resume", json!({"sessionId": "two"})).await;
    assert!(missing["error"].is_object(), "a refused session was not created: {missing}");
    let opened = sdk.call(6, "session.create", create("two")).await;
    assert!(opened["result"].is_object(), "{opened}");
}
