//! The lower bound: a server that broadcasts frames of the same bytes and does nothing else.
//!
//! Each frame is created once; a connection writes all waiting frames before it flushes. Buffers are as small as
//! Grove's.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::any;
use axum::serve::ListenerExt;
use futures_util::SinkExt;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

use crate::shape::{self, Ask};

/// The same as in Grove's connections.
const SOCKET_BUFFER: usize = 8 << 10;
/// More than the deltas of one stream, so that no connection misses any.
const QUEUE: usize = 1 << 13;

struct Channel {
    frames: broadcast::Sender<Utf8Bytes>,
    server_seq: AtomicU64,
}

/// Serves until stdin ends.
pub(crate) fn run() -> Result<()> {
    std::thread::spawn(|| {
        let ended = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(if ended.is_ok() { 0 } else { 1 });
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve())
}

async fn serve() -> Result<()> {
    let channel = Arc::new(Channel { frames: broadcast::channel(QUEUE).0, server_seq: AtomicU64::new(0) });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", json!({ "ws": format!("ws://{}/", listener.local_addr()?), "pid": std::process::id() }));
    let app = Router::new().route("/", any(upgrade)).with_state(channel);
    let listener = listener.tap_io(|socket| {
        if let Err(error) = socket.set_nodelay(true) {
            eprintln!("bare: {error}");
        }
    });
    axum::serve(listener, app).await.context("serving")
}

async fn upgrade(upgrade: WebSocketUpgrade, State(channel): State<Arc<Channel>>) -> Response {
    upgrade.read_buffer_size(SOCKET_BUFFER).write_buffer_size(SOCKET_BUFFER).on_upgrade(|socket| async move {
        if let Err(error) = connection(socket, channel).await {
            eprintln!("bare: {error:#}");
        }
    })
}

async fn connection(mut socket: WebSocket, channel: Arc<Channel>) -> Result<()> {
    let mut frames = channel.frames.subscribe();
    loop {
        tokio::select! {
            frame = frames.recv() => match frame {
                Ok(frame) => send_all(&mut socket, frame, &mut frames).await?,
                Err(RecvError::Lagged(missed)) => anyhow::bail!("a connection missed {missed} frames"),
                Err(RecvError::Closed) => return Ok(()),
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    tokio::spawn(answer(serde_json::from_str(&text)?, channel.clone()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Ok(()),
            },
        }
    }
}

async fn send_all(socket: &mut WebSocket, first: Utf8Bytes, frames: &mut broadcast::Receiver<Utf8Bytes>) -> Result<()> {
    socket.feed(Message::Text(first)).await?;
    loop {
        match frames.try_recv() {
            Ok(frame) => socket.feed(Message::Text(frame)).await?,
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            Err(TryRecvError::Lagged(missed)) => anyhow::bail!("a connection missed {missed} frames"),
        }
    }
    Ok(socket.flush().await?)
}

async fn answer(ask: Ask, channel: Arc<Channel>) {
    let next = || channel.server_seq.fetch_add(1, Ordering::Relaxed) + 1;
    // Sending fails only without receivers.
    let send = |frame: String| drop(channel.frames.send(frame.into()));
    match ask {
        Ask::Stream { dialect, session, turn_id, content, deltas, delay_ms } => {
            let began = Instant::now();
            for sent in 1..=deltas as u64 {
                send(shape::delta(dialect, &session, &turn_id, &content, next()));
                if delay_ms > 0 {
                    tokio::time::sleep_until(began + Duration::from_millis(sent * delay_ms)).await;
                }
            }
        }
        Ask::Event { session, model } => send(shape::model_changed(&session, &model, next())),
    }
}
