//! The server beside the protocol: a page, tickets, idle detection and limits.

use std::sync::Arc;
use std::time::Duration;

use grove_agents::scripted::ScriptedAgent;
use grove_host::{Config, Env, Folders, Host, Limits, Token};
use grove_server::copilot::{EndpointConfig, EndpointSecret};
use grove_server::{AccessPolicy, Asset, Caching, FrameLog, HostServer, WebPage};
use grove_testkit::Client;
use grove_testkit::host::{ADDRESS, Dialer, PIPE_BYTES, TOKEN, pipes};
use grove_work::{Roots, file_uri};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

pub(crate) struct Served {
    serving: HostServer,
    dialer: Dialer,
}

pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl HttpResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

async fn host(config: Config) -> Host {
    Host::in_memory(Env::in_memory(), config, vec![Arc::new(ScriptedAgent)]).await.unwrap()
}

impl Served {
    pub(crate) async fn start(config: Config, page: Option<WebPage>) -> Self {
        let serving = HostServer::new(host(config).await);
        Self::serve(if let Some(page) = page { serving.with_page(page) } else { serving })
    }

    fn serve(serving: HostServer) -> Self {
        let (dialer, pipes) = pipes();
        let access = AccessPolicy::loopback(Token::parse(TOKEN).unwrap(), ADDRESS.parse().unwrap());
        serving.listen(access, Box::new(pipes));
        Self { serving, dialer }
    }

    pub(crate) fn dial(&self) -> DuplexStream {
        self.dialer.dial(PIPE_BYTES).unwrap()
    }

    pub(crate) async fn http(&self, line: &str, headers: &[&str]) -> HttpResponse {
        let mut stream = self.dial();
        let mut head = format!("{line} HTTP/1.1\r\nHost: {ADDRESS}\r\nConnection: close\r\n");
        headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
        if line.starts_with("POST") && !head.contains("Content-Type") {
            head.push_str("Content-Type: application/json\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        HttpResponse { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) async fn client(&self, client_id: &str) -> Client {
        let mut client =
            Client::over(Box::new(self.dial()), &format!("ws://{ADDRESS}/ws?tkn={TOKEN}"), client_id).await;
        client.initialize(&[]).await;
        client
    }

    /// Waits until no connection is left.
    pub(crate) async fn until_empty(&self) {
        self.serving.drained().await;
    }

    /// The time until the host is idle.
    async fn idle(&self, patience: Duration) -> Duration {
        let since = Instant::now();
        self.serving.idle(patience).await.unwrap();
        since.elapsed()
    }
}

fn page() -> WebPage {
    let asset = |content: &'static str, content_type, tag: &'static str, caching| Asset {
        content: content.into(),
        content_type,
        tag: tag.into(),
        caching,
    };
    WebPage::new([
        ("index.html".into(), asset("<p>é", "text/html; charset=utf-8", "i1", Caching::Revalidated)),
        ("assets/index-abc.js".into(), asset("go()", "text/javascript; charset=utf-8", "j1", Caching::Immutable)),
    ])
}

#[tokio::test]
async fn a_page_is_served_with_its_type_its_tag_and_its_time() {
    let host = Served::start(Config::default(), Some(page())).await;
    for path in ["/", "/index.html", "/?a=b"] {
        let answer = host.http(&format!("GET {path}"), &[]).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "<p>é"), "{path}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
        assert_eq!(answer.header("etag"), Some("\"i1\""));
    }
    let answer = host.http("GET /assets/index-abc.js", &[]).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "go()"));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"));

    for path in ["/", "/assets/index-abc.js"] {
        let whole = host.http(&format!("GET {path}"), &[]).await;
        let head = host.http(&format!("HEAD {path}"), &[]).await;
        assert_eq!((head.status, head.body.as_str()), (200, ""));
        for name in ["content-length", "content-type", "etag", "cache-control"] {
            assert_eq!(head.header(name), whole.header(name), "{name}");
        }
        let tag = format!("If-None-Match: {}", whole.header("etag").unwrap());
        let same = host.http(&format!("GET {path}"), &[&tag]).await;
        assert_eq!((same.status, same.body.as_str()), (304, ""));
        assert_eq!(same.header("etag"), whole.header("etag"));
        assert_eq!(same.header("cache-control"), whole.header("cache-control"));
    }

    for path in ["/assets/index-abd.js", "/assets", "/assets/", "/assets/../index.html", "/%69ndex.html", "//"] {
        assert_eq!(host.http(&format!("GET {path}"), &[]).await.status, 404, "{path}");
    }
    assert_eq!(host.http("POST /assets/index-abc.js", &[]).await.status, 404);
    assert_eq!(host.http("POST /", &[]).await.status, 405);
    assert_eq!(host.http("GET /", &["Origin: http://evil.example"]).await.status, 403);
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_are_answered_ever_later_and_right_ones_at_once() {
    let host = Served::start(Config::default(), None).await;
    let took = async |line: &str, headers: &[&str], expected: u16| {
        let start = tokio::time::Instant::now();
        assert_eq!(host.http(line, headers).await.status, expected, "{line}");
        start.elapsed()
    };
    let wrong = ["Authorization: Bearer 00112233445566778899aabbccddeeff"];
    assert!(took("POST /ticket", &wrong, 403).await >= Duration::from_millis(50));
    assert!(took("GET /ws?tkn=wrong", &[], 403).await >= Duration::from_millis(100));
    // It is no way to try tokens either.
    assert!(took("GET /healthz?tkn=wrong", &[], 200).await >= Duration::from_millis(200));
    assert!(took("GET /ws?ticket=wrong", &[], 426).await < Duration::from_millis(50), "nothing was refused");
    let right = [format!("Authorization: Bearer {TOKEN}")];
    assert!(took("POST /ticket", &right.each_ref().map(String::as_str), 200).await < Duration::from_millis(50));
    assert!(took("GET /healthz", &[], 200).await < Duration::from_millis(50), "no token was given");
}

#[tokio::test]
async fn every_answer_tells_a_browser_to_be_strict() {
    let host = Served::start(Config::default(), Some(page())).await;
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
                  connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
                  frame-ancestors 'none'; require-trusted-types-for 'script'; \
                  trusted-types dompurify grove-worker svelte-trusted-html";
    for (line, status) in [
        ("GET /", 200),
        ("HEAD /", 200),
        ("GET /assets/index-abc.js", 200),
        ("GET /nothing", 404),
        ("GET /healthz", 200),
        ("POST /ticket", 403),
        ("POST /proof", 400),
        ("GET /ws", 403),
    ] {
        let answer = host.http(line, &[]).await;
        assert_eq!(answer.status, status, "{line}");
        assert_eq!(answer.header("content-security-policy"), Some(policy), "{line}");
        assert_eq!(answer.header("set-cookie"), None, "a cookie of 127.0.0.1 reaches every port");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cross-origin-opener-policy"), Some("same-origin"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
        assert!(answer.header("permissions-policy").unwrap().contains("camera=()"));
    }
}

#[tokio::test]
async fn a_host_without_a_page_speaks_websocket_only() {
    let host = Served::start(Config::default(), None).await;
    assert_eq!(host.http("GET /", &[]).await.status, 403);
    assert_eq!(host.http("GET /", &[&format!("Authorization: Bearer {TOKEN}")]).await.status, 426);
    assert_eq!(host.http("GET /index.html", &[]).await.status, 404);
    let url = format!("ws://{ADDRESS}/?tkn={TOKEN}");
    Client::over(Box::new(host.dial()), &url, "a").await.initialize(&[]).await;
    let with_page = Served::start(Config::default(), Some(page())).await;
    Client::over(Box::new(with_page.dial()), &url, "a").await.initialize(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_is_idle_when_nobody_used_it_for_a_while() {
    let minute = Duration::from_secs(60);
    let host = Served::start(Config::default(), None).await;
    assert_eq!(host.idle(minute).await, minute, "nobody ever came");

    let mut client = host.client("a").await;
    client.ready_session("scripted:/s").await;
    let within = async |time| tokio::time::timeout(time, host.serving.idle(minute)).await;
    // A client that answers no ping is disconnected after 90 s.
    assert!(within(Duration::from_secs(85)).await.is_err(), "somebody is connected");
    client.settle().await;

    // A turn continues without subscribers.
    client.script("scripted:/s", "t", json!([{"say": "x"}, {"sleepMs": 300_000}, {"say": "y"}])).await;
    client.until(|client| client.session("scripted:/s").active_turn.is_some()).await;
    drop(client);
    let took = host.idle(minute).await;
    assert!(took >= minute * 6 && took < minute * 6 + Duration::from_secs(15), "{took:?}");

    // A turn that waits for the user counts as well.
    let mut client = host.client("a").await;
    client.subscribe("scripted:/s").await.unwrap();
    client.script("scripted:/s", "u", json!([{"tool": {"name": "rm", "permission": "shell"}}])).await;
    client.settle().await;
    drop(client);
    assert!(within(minute * 10).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn whoever_came_and_went_between_two_looks_was_there() {
    let minute = Duration::from_secs(60);
    let host = Served::start(Config::default(), None).await;
    let visits = async {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            drop(host.client("a").await);
        }
    };
    let (took, ()) = tokio::join!(host.idle(minute), visits);
    assert!(took >= minute * 6 && took < minute * 7, "{took:?}");
    // Asking for its status does not count as use.
    let asked = async {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            host.http("GET /healthz", &[&format!("Authorization: Bearer {TOKEN}")]).await;
        }
    };
    let (took, ()) = tokio::join!(host.idle(minute), asked);
    assert_eq!(took, minute);
}

#[tokio::test]
async fn frames_of_both_directions_are_logged_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.jsonl");
    let log = FrameLog::append_to(&path).unwrap();
    let host = host(Config::default()).await;
    let host = Served::serve(HostServer::new(host).with_frame_log(log.clone()));
    let mut client = host.client("a").await;
    client.ready_session("scripted:/s").await;
    client.run_script("scripted:/s", "t", json!([{"say": "hello", "chunks": 5}])).await;
    let _other = host.client("b").await;
    log.written().await;
    let lines: Vec<Value> =
        std::fs::read_to_string(&path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |connection: &str, direction: &str| -> Vec<&Value> {
        let about = |line: &&Value| {
            let about = &line["_ahpLog"];
            assert!(about["ts"].as_str().unwrap().ends_with('Z') && about["transport"] == "ws");
            about["connectionId"] == connection && about["dir"] == direction
        };
        lines.iter().filter(about).collect()
    };
    let methods: Vec<&str> = of("1", "c2s").iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["initialize", "createSession", "subscribe", "dispatchAction"]);
    let sent = of("1", "s2c");
    assert_eq!(sent[0]["id"], of("1", "c2s")[0]["id"], "the answer");
    let deltas: String =
        sent.iter().filter_map(|line| line["params"]["envelope"]["action"]["content"].as_str()).collect();
    assert_eq!(deltas, "hello");
    let seqs: Vec<u64> = sent.iter().filter_map(|line| line["params"]["envelope"]["serverSeq"].as_u64()).collect();
    assert_eq!(seqs, client.envelopes.iter().map(|envelope| envelope.server_seq).collect::<Vec<_>>());
    assert_eq!(of("2", "c2s").len(), 1);
}

/// Says whether the other side has closed a silent pipe.
async fn is_closed(stream: &mut DuplexStream) -> bool {
    let read = tokio::time::timeout(Duration::from_millis(100), stream.read(&mut [0; 1])).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

#[tokio::test(start_paused = true)]
async fn strangers_who_say_nothing_keep_nobody_out_and_give_way_to_the_next() {
    let limits = Limits { unauthenticated_connections: 4, connections: 2, ..Limits::default() };
    let host = Served::start(Config { limits, ..Config::default() }, None).await;
    let mut silent: Vec<_> = (0..50).map(|_| host.dial()).collect();
    let mut client = host.client("a").await;
    client.ready_session("scripted:/s").await;
    assert!(is_closed(&mut silent[0]).await && !is_closed(&mut silent[49]).await);
    // Authenticated connections stay, however many others come; and one that wastes a slot is told so.
    silent.extend((0..50).map(|_| host.dial()));
    client.run_script("scripted:/s", "t", json!([{"say": "hello"}])).await;
    let _second = host.client("b").await;
    let upgrade = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let third = host.http(&format!("GET /ws?tkn={TOKEN}"), &upgrade).await;
    assert_eq!((third.status, third.body.contains("2 connections are open")), (503, true), "{}", third.body);
    assert_eq!(host.http("GET /healthz", &[]).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_its_token_at_once_is_not_closed_for_those_that_come_after_it() {
    let limits = Limits { unauthenticated_connections: 4, ..Limits::default() };
    let host = Served::start(Config { limits, ..Config::default() }, None).await;
    // They connect before the host reads anything: its processors are busy.
    let head = |token: &str| {
        format!(
            "GET /ws?tkn={token} HTTP/1.1\r\nHost: {ADDRESS}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
    };
    let mut client = host.dial();
    client.write_all(head(TOKEN).as_bytes()).await.unwrap();
    let mut guessers: Vec<_> = (0..4).map(|_| host.dial()).collect();
    for guesser in &mut guessers {
        guesser.write_all(head("ffffffffffffffffffffffffffffffff").as_bytes()).await.unwrap();
    }
    let mut silent: Vec<_> = (0..50).map(|_| host.dial()).collect();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
    // Guessers go before those that say nothing, though they came before them and wait for the host.
    for guesser in &mut guessers {
        assert!(is_closed(guesser).await);
    }
    assert!(is_closed(&mut silent[0]).await && !is_closed(&mut silent[49]).await);
    // One that keeps the host busy holds up nobody either.
    let ping = format!("GET /healthz HTTP/1.1\r\nHost: {ADDRESS}\r\n\r\n").repeat(8_000);
    let busy: Vec<_> = (0..8)
        .map(|_| {
            let (mut reading, mut writing) = tokio::io::split(host.dial());
            let ping = ping.clone();
            let asking = tokio::spawn(async move { writing.write_all(ping.as_bytes()).await });
            let hearing = tokio::spawn(async move { reading.read_to_end(&mut Vec::new()).await });
            (asking, hearing)
        })
        .collect();
    let _second = host.client("b").await;
    for (asking, hearing) in busy {
        asking.abort();
        hearing.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_at_the_door_for_sdks_give_way_to_the_next_as_well() {
    let limits = Limits { unauthenticated_connections: 4, ..Limits::default() };
    let host = Host::in_memory(Env::in_memory(), Config { limits, ..Config::default() }, vec![Arc::new(ScriptedAgent)]);
    let host = host.await.unwrap();
    let (_main, serving) = grove_testkit::host::serve(&host);
    let (dialer, pipes) = pipes();
    let config = EndpointConfig {
        store: "copilot".into(),
        secret: Some(EndpointSecret::Text(TOKEN.to_owned())),
        keeps_temp_files: false,
        default_folder: None,
        allows_all: false,
    };
    serving.serve_sdks(config, Box::new(pipes));
    let open = || dialer.dial(PIPE_BYTES).unwrap();
    let mut known = open();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "connect", "params": {"token": TOKEN}}).to_string();
    known.write_all(format!("Content-Length: {}\r\n\r\n{hello}", hello.len()).as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let length = known.read(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer[..length]).contains("result"));
    let mut silent: Vec<_> = (0..20).map(|_| open()).collect();
    assert!(is_closed(&mut silent[0]).await && !is_closed(&mut silent[19]).await);
    assert!(!is_closed(&mut known).await);
}

#[tokio::test]
async fn a_request_whose_end_is_not_certain_is_refused_and_its_connection_closed() {
    let host = Served::start(Config::default(), None).await;
    let smuggled = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:7000\r\n\r\n";
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5\r\n Transfer-Encoding: chunked\r\n",
        &format!("{upgrade}Content-Length: 5\r\n"),
    ] {
        for line in ["GET /healthz", "POST /ticket", "POST /x-grove", "GET /nothing"] {
            let mut stream = host.dial();
            let head = format!("{line} HTTP/1.1\r\nHost: {ADDRESS}\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n");
            stream.write_all(format!("{head}0\r\n\r\n{smuggled}").as_bytes()).await.unwrap();
            let mut answer = String::new();
            let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_string(&mut answer)).await;
            read.unwrap_or_else(|_| panic!("{line} {headers:?}: the connection stays open")).unwrap();
            assert!(answer.starts_with("HTTP/1.1 400"), "{line} {headers:?}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{line} {headers:?}: {answer}");
        }
    }
    // An ordinary body is accepted.
    let answer = host.http("POST /ticket", &[&format!("Authorization: Bearer {TOKEN}"), "Content-Length: 0"]).await;
    assert_eq!(answer.status, 200);
}

/// A WebSocket, upgraded by hand, whose frames the test writes itself.
async fn raw_socket(host: &Served, buffer: usize) -> DuplexStream {
    let mut near = host.dialer.dial(buffer).unwrap();
    let head = format!(
        "GET /ws?tkn={TOKEN} HTTP/1.1\r\nHost: {ADDRESS}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    near.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(near.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"));
    near
}

/// A client's frame, masked with zeros.
fn client_frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match payload.len() {
        short @ 0..=125 => frame.push(0x80 | short as u8),
        long => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(long as u16).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_dropped_however_much_it_says() {
    let host = Served::start(Config::default(), None).await;
    for opcode in [0x9, 0x1] {
        let mut client = raw_socket(&host, 16 << 10).await;
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": 1, "clientId": "x"}})
        .to_string();
        client.write_all(&client_frame(0x1, hello.as_bytes())).await.unwrap();
        // Pings are answered with pongs, requests with answers; both are signs of life, and neither is read.
        let says = match opcode {
            0x9 => client_frame(0x9, &[b'p'; 100]),
            _ => client_frame(0x1, br#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#),
        };
        let since = Instant::now();
        let gone = async {
            loop {
                if client.write_all(&says).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let gone = tokio::time::timeout(Duration::from_secs(300), gone).await;
        assert!(gone.is_ok(), "opcode {opcode}: it is still there after {:?}", since.elapsed());
        assert!(since.elapsed() < Duration::from_secs(120), "{:?}", since.elapsed());
    }
    // No authenticated connection is left.
    tokio::time::timeout(Duration::from_secs(10), host.serving.drained()).await.unwrap();
}

#[tokio::test]
async fn answers_under_way_are_bounded_in_bytes_and_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
    let limits = Limits { answer_bytes: 4 << 20, ..Limits::default() };
    let folders =
        Folders { roots: Roots { read: vec![folder.path().to_owned()], ..Roots::default() }, ..Folders::default() };
    let host = Served::start(Config { limits, folders, ..Config::default() }, None).await;
    let mut client = host.client("a").await;
    let read =
        |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "fetchContent", "params": {"uri": file_uri(&path)}});
    // Beyond the bound a request of a batch is refused by itself.
    client.send(json!((0..20).map(read).collect::<Vec<_>>()).to_string()).await;
    let answers: Vec<Value> = serde_json::from_str(&client.frame().await.unwrap()).unwrap();
    let refused =
        answers.iter().filter(|answer| answer["error"]["message"].as_str().is_some_and(|m| m.contains("batch")));
    assert_eq!(answers.len(), 20);
    assert!(
        (15..=18).contains(&refused.count()),
        "{:?}",
        answers.iter().map(|a| a["error"].clone()).collect::<Vec<_>>()
    );
    // One by one they wait for each other.
    for id in 0..20 {
        client.send(read(id).to_string()).await;
    }
    for id in 0..20 {
        let answer: Value = serde_json::from_str(&client.frame().await.unwrap()).unwrap();
        assert_eq!((&answer["id"], answer["result"].is_object()), (&json!(id), true));
    }
}
