//! The good clients: writers that prompt in the sessions, and readers that follow them.
//!
//! Each answer of the scripted agent is its number in the session and the time at which its prompt was sent. A reader
//! checks that each number comes once and in order, and takes the time until it came.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::socket::Socket;
use crate::{Job, session};

/// The pause between two prompts of a session.
const PAUSE: Duration = Duration::from_millis(400);
/// The time at the start that is not counted.
const WARM_UP: Duration = Duration::from_secs(2);
/// The time in which the next answer must come.
const PATIENCE: Duration = Duration::from_secs(30);
/// The marks around an answer.
const OPEN: &str = "<<";
const CLOSE: &str = ">>";

/// The observations of good clients.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) clients: usize,
    /// Answers that were prompted, in all sessions.
    pub(crate) prompts: u64,
    /// Answers that readers received, and should have.
    pub(crate) received: u64,
    pub(crate) expected: u64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

/// Connects everybody, works for the time of the job, and prints the finding.
pub(crate) async fn run(job: &Job) -> Result<()> {
    let began = Instant::now();
    // The number of the last answer of each session, once it is known.
    let last: Vec<watch::Sender<Option<u64>>> = (0..job.streams).map(|_| watch::Sender::new(None)).collect();
    let mut readers = JoinSet::new();
    for number in 0..job.clients.saturating_sub(job.streams) {
        let stream = number % job.streams;
        let socket = Socket::client(&job.ws, &job.token, &format!("reader-{number}"), &[session(stream)]).await?;
        let last = last[stream].subscribe();
        readers.spawn(async move { read(socket, began, last).await.with_context(|| format!("reader {number}")) });
    }
    let mut writers = JoinSet::new();
    for stream in 0..job.streams {
        let socket = Socket::client(&job.ws, &job.token, &format!("writer-{stream}"), &[session(stream)]).await?;
        let (last, time) = (last[stream].clone(), job.time());
        writers.spawn(async move {
            let written = write(socket, stream, began, time).await?;
            last.send_replace(Some(written));
            anyhow::Ok(written)
        });
    }
    drop(last);
    let mut written = Vec::new();
    while let Some(one) = writers.join_next().await {
        written.push(one??);
    }
    let (mut latencies, mut received, mut expected) = (Vec::new(), 0, 0);
    while let Some(one) = readers.join_next().await {
        let (theirs, count, last) = one??;
        latencies.extend(theirs);
        received += count;
        expected += last;
    }
    ensure!(!latencies.is_empty(), "nothing was measured: the run is too short");
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize] as f64 / 1e6;
    let (p50_ms, p99_ms, max_ms) = (at(0.5), at(0.99), at(1.0));
    let prompts = written.iter().sum();
    let found = Finding { clients: job.clients, prompts, received, expected, p50_ms, p99_ms, max_ms };
    println!("{}", serde_json::to_string(&found)?);
    Ok(())
}

/// Prompts until the time is over. Returns the number of the last prompt.
async fn write(mut socket: Socket, stream: usize, began: Instant, time: Duration) -> Result<u64> {
    let uri = session(stream);
    // The sessions do not work in step.
    sleep(PAUSE * u32::try_from(stream % 20)? / 20).await;
    let start = Instant::now();
    let mut number = 0;
    while start.elapsed() < time {
        number += 1;
        let text = format!("{OPEN}{number} {}{CLOSE}", began.elapsed().as_nanos());
        // Turn ids are not reused by the next run.
        let id = number + std::process::id() as u64 * 1_000_000;
        socket.prompt(&uri, id, &text).await?;
        socket.turn_end().await?;
        sleep(PAUSE).await;
    }
    Ok(number)
}

/// Reads until the last answer has come. Returns the latencies in nanoseconds, the answers, and their expected number.
async fn read(
    mut socket: Socket,
    began: Instant,
    mut last: watch::Receiver<Option<u64>>,
) -> Result<(Vec<u64>, u64, u64)> {
    let (mut latencies, mut count) = (Vec::new(), 0);
    loop {
        let expected = *last.borrow_and_update();
        if let Some(expected) = expected.filter(|expected| count >= *expected) {
            return Ok((latencies, count, expected));
        }
        let text = tokio::select! {
            text = tokio::time::timeout(PATIENCE, socket.next()) => text,
            changed = last.changed(), if expected.is_none() => {
                changed.context("a writer has failed")?;
                continue;
            }
        };
        let text = text.with_context(|| format!("no answer after {count}, of {expected:?}"))??;
        let now = began.elapsed();
        // The prompt has the same words.
        if !text.contains("\"session/delta\"") {
            continue;
        }
        let mut rest = text.as_str();
        while let Some((_, after)) = rest.split_once(OPEN) {
            let (answer, after) = after.split_once(CLOSE).context("an answer without its end")?;
            let (number, sent) = answer.split_once(' ').context("an answer without its time")?;
            count += 1;
            ensure!(number.parse() == Ok(count), "answer {number} came after {}", count - 1);
            let sent = Duration::from_nanos(sent.parse()?);
            if sent > WARM_UP {
                latencies.push(u64::try_from(now.saturating_sub(sent).as_nanos())?);
            }
            rest = after;
        }
    }
}
