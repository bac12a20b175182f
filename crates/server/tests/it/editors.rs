//! WebSockets of editors (`/acp`): who may open one, with which rights, and what a slow editor costs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use grove_core::Scope;
use grove_server::{AccessPolicy, EditorConnection, EditorService, HostServer, InProcessConnection, InProcessMessage};
use grove_testkit::ahp::Client;
use grove_testkit::host::{ADDRESS, PIPE_BYTES, TOKEN, pipes};
use grove_testkit::{ConnectionEnd, PATIENCE};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::TestHost;
use crate::tokens::TokenHost;

/// Passes an editor's messages to its connection to the host, and back: the editor speaks the host's protocol.
#[derive(Debug)]
struct Relay;

impl EditorService for Relay {
    fn serve(&self, editor: EditorConnection) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let EditorConnection { mut from_editor, to_editor, host, .. } = editor;
            let InProcessConnection { to_host, mut from_host } = host.connect().unwrap();
            loop {
                tokio::select! {
                    text = from_editor.recv() => match text {
                        Some(text) => to_host.send(text).await.unwrap(),
                        None => return,
                    },
                    frame = from_host.recv() => match frame {
                        Some(InProcessMessage::Frame(frame)) => to_editor.send(frame.to_string()).await.unwrap(),
                        Some(InProcessMessage::Closed { .. }) | None => return,
                    },
                }
            }
        })
    }
}

/// Sends far more than a connection's queue holds.
#[derive(Debug)]
struct Flood;

const FLOOD: usize = 64;
const FLOOD_BYTES: usize = 1 << 20;

impl EditorService for Flood {
    fn serve(&self, editor: EditorConnection) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let EditorConnection { mut from_editor, to_editor, .. } = editor;
            for number in 0..FLOOD {
                to_editor.send(format!("{}{number:04}", " ".repeat(FLOOD_BYTES - 4))).await.unwrap();
            }
            // The connection ends with the service.
            from_editor.recv().await;
        })
    }
}

/// The status of the answer to an upgrade.
async fn upgrade(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, path: &str, headers: &str) -> u16 {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {ADDRESS}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = vec![0; 12];
    stream.read_exact(&mut status).await.unwrap();
    String::from_utf8_lossy(&status)[9..].parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_socket_for_an_editor_needs_the_token_and_no_page_of_another_site_opens_one() {
    let host = TokenHost::start().await.with_editors(Arc::new(Relay));
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let wrong = format!("/acp?tkn={}", "x".repeat(43));
    let right = format!("/acp?tkn={TOKEN}");
    let ours = format!("{bearer}Origin: http://{ADDRESS}\r\n");
    let foreign = format!("{bearer}Origin: http://evil.example\r\n");
    let cross_site = format!("{bearer}Sec-Fetch-Site: cross-site\r\n");
    for (path, headers, status) in [
        ("/acp", "", 403),
        (wrong.as_str(), "", 403),
        ("/acp?ticket=none", "", 401),
        ("/acp", foreign.as_str(), 403),
        ("/acp", cross_site.as_str(), 403),
        ("/acp", ours.as_str(), 101),
        ("/acp", bearer.as_str(), 101),
        (right.as_str(), "", 101),
    ] {
        assert_eq!(upgrade(host.dial(), path, headers).await, status, "{path} {headers}");
    }
    // A browser's program opens one with a ticket, once.
    let (_, ticket) = host.http("POST /ticket", &[("Authorization", &format!("Bearer {TOKEN}"))], "").await;
    let ticket: serde_json::Value = serde_json::from_str(&ticket).unwrap();
    let path = format!("/acp?ticket={}", ticket["ticket"].as_str().unwrap());
    assert_eq!(upgrade(host.dial(), &path, "").await, 101);
    assert_eq!(upgrade(host.dial(), &path, "").await, 401);
    let none = TokenHost::start().await;
    assert_eq!(upgrade(none.dial(), "/acp", &bearer).await, 404, "this host serves no editors");
}

#[tokio::test(start_paused = true)]
async fn an_editor_has_the_scopes_of_its_token_and_is_disconnected_when_it_ends() {
    let host = TokenHost::start().await.with_editors(Arc::new(Relay));
    let token = host.add("reader", &[Scope::Read], Some(Duration::from_secs(10)));
    let url = format!("ws://{ADDRESS}/acp?tkn={token}");
    let mut editor = Client::over(Box::new(host.dial()), &url, "editor").await;
    editor.initialize(&[]).await;
    editor.ask("listSessions", json!({"channel": "ahp-root://"})).await.unwrap();
    let refused = editor.ask("createSession", json!({"channel": "scripted:/s"})).await.unwrap_err();
    assert!(
        refused.message.contains("needs the scope `prompt`") && refused.message.contains("`reader`"),
        "{refused:?}"
    );
    match editor.until_end().await {
        ConnectionEnd::Closed { code, .. } => assert_eq!(code, 4011),
        ConnectionEnd::Broken => panic!("no close code"),
    }
}

#[tokio::test]
async fn an_editor_that_reads_slowly_gets_everything_and_its_service_waits() {
    let host = TestHost::start(grove_host::Config::default()).await;
    let serving = HostServer::new(host.host.clone()).with_editors(Arc::new(Flood));
    let (dialer, pipes) = pipes();
    let access = AccessPolicy::loopback(grove_host::Token::parse(TOKEN).unwrap(), ADDRESS.parse().unwrap());
    serving.listen(access, Box::new(pipes));
    let url = format!("ws://{ADDRESS}/acp?tkn={TOKEN}");
    let stream = Box::new(dialer.dial(PIPE_BYTES).unwrap());
    let mut editor = Client::over(stream, &url, "editor").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    for number in 0..FLOOD {
        let frame = tokio::time::timeout(PATIENCE, editor.frame()).await.unwrap();
        let frame = frame.unwrap_or_else(|| panic!("message {number}: {:?}", editor.ended()));
        assert_eq!((frame.len(), frame.trim()), (FLOOD_BYTES, format!("{number:04}").as_str()));
    }
}
