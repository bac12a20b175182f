//! Hostile clients. Each repeats one kind of attack, and connects again when it is cut off.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::socket::Socket;
use crate::{Job, session};

/// The pause after each step of an attack. So the work is the same against the host and against the decoy.
const PACE: Duration = Duration::from_millis(20);
/// The pause before a client that was cut off connects again.
const RETURN: Duration = Duration::from_millis(100);
/// Larger than the host accepts.
const HUGE: usize = 5 << 20;

#[derive(Clone, Copy, Debug)]
enum Attack {
    /// Begins a request and does not finish it.
    HalfOpen,
    /// Subscribes to everything and reads nothing.
    NeverReads,
    InvalidJson,
    HugeFrames,
    WrongTokens,
    Subscriptions,
    Batches,
}

const ALL: [Attack; 7] = [
    Attack::HalfOpen,
    Attack::NeverReads,
    Attack::InvalidJson,
    Attack::HugeFrames,
    Attack::WrongTokens,
    Attack::Subscriptions,
    Attack::Batches,
];

/// Attacks until stdin ends.
pub(crate) async fn run(job: &Job) -> Result<()> {
    for number in 0..job.clients {
        let (job, attack) = (job.clone(), ALL[number % ALL.len()]);
        tokio::spawn(async move {
            loop {
                // Being cut off is what a host is expected to do.
                attack.once(&job, number).await.ok();
                sleep(RETURN).await;
            }
        });
    }
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    // The tasks end with the process.
    std::process::exit(0)
}

impl Attack {
    async fn once(self, job: &Job, number: usize) -> Result<()> {
        let address = job.ws.trim_start_matches("ws://").split('/').next().context("no address")?;
        let name = format!("hostile-{number}");
        let client = async |subscriptions: &[String]| Socket::client(&job.ws, &job.token, &name, subscriptions).await;
        match self {
            Attack::HalfOpen => {
                let mut stream = TcpStream::connect(address).await?;
                stream.write_all(b"GET /ws HTTP/1.1\r\nHost: ").await?;
                drop(stream.read(&mut [0; 64]).await);
            }
            Attack::NeverReads => {
                let all: Vec<String> = (0..job.streams).map(session).collect();
                let socket = client(&all).await?;
                sleep(Duration::from_secs(3_600)).await;
                drop(socket);
            }
            Attack::InvalidJson => flood(client(&[]).await?, |_| "{\"jsonrpc\":\"2.0\",".repeat(20)).await?,
            Attack::HugeFrames => {
                let mut socket = client(&[]).await?;
                socket.send(" ".repeat(HUGE)).await?;
                socket.next().await?;
            }
            Attack::WrongTokens => {
                let mut stream = TcpStream::connect(address).await?;
                let head = format!("GET /ws?tkn=0123456789abcdef0123456789abcdef HTTP/1.1\r\nHost: {address}\r\n\r\n");
                stream.write_all(head.as_bytes()).await?;
                drop(stream.read(&mut [0; 512]).await);
            }
            Attack::Subscriptions => {
                let streams = job.streams as u64;
                let message = |n: u64| {
                    let resource = if n.is_multiple_of(3) {
                        format!("scripted:/none-{n}")
                    } else {
                        session((n % streams) as usize)
                    };
                    match n % 2 {
                        0 => {
                            json!({"jsonrpc": "2.0", "id": n, "method": "subscribe", "params": {"resource": resource}})
                        }
                        _ => json!({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"resource": resource}}),
                    }
                    .to_string()
                };
                flood(client(&[]).await?, message).await?;
            }
            Attack::Batches => {
                let one = |n: u64| json!({"jsonrpc": "2.0", "id": n, "method": "ping"});
                let batch = |n: u64| json!((0..50).map(|at| one(n * 50 + at)).collect::<Vec<_>>()).to_string();
                flood(client(&[]).await?, batch).await?;
            }
        }
        Ok(())
    }
}

/// Sends messages and reads what comes, until the host ends it.
async fn flood(socket: Socket, message: impl Fn(u64) -> String) -> Result<()> {
    let (mut sink, mut stream) = socket.stream.split();
    for number in 1.. {
        sink.send(Message::text(message(number))).await?;
        // What has arrived is read and thrown away.
        while let Ok(Some(read)) = timeout(Duration::ZERO, stream.next()).await {
            read?;
        }
        sleep(PACE).await;
    }
    Ok(())
}
