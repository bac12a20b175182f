//! A host over time: clients connect and leave, sessions are created, prompted, evicted and deleted.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use grove_bench_report::{Bound, Goal, Goals, is_any_missed, json as goals_json};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::host::{self, Host};
use crate::socket::Socket;
use crate::{Options, session};

/// The highest growth of memory over the last two thirds of the time, in MB a minute.
const MOST_GROWTH: f64 = 0.1;
/// The time between two readings.
const INTERVAL: Duration = Duration::from_secs(2);
/// The seconds after which an unused session is evicted.
const IDLE: &str = "20";
/// Workers that create, prompt and delete sessions.
const MAKERS: usize = 2;
/// The sessions that clients follow, and the turns after which each is replaced by a new one.
const STREAMS: usize = 5;
const TURNS: u64 = 50;

/// The shared state of the workers.
struct Work {
    ws: String,
    token: String,
    is_over: AtomicBool,
    connections: AtomicU64,
    sessions: AtomicU64,
}

pub(crate) async fn run(options: &Options, time: Duration, clients: usize, pause: Duration) -> Result<ExitCode> {
    let grove = host::program(options.grove.as_deref())?;
    let host = Host::start(&grove, time + Duration::from_secs(120), &["--session-idle", IDLE]).await?;
    let mut first = Socket::client(&host.ws, &host.token, "first", &[]).await?;
    for stream in 0..STREAMS {
        first.create(&session(stream)).await?;
    }
    drop(first);
    let (ws, token) = (host.ws.clone(), host.token.clone());
    let (connections, sessions) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = Arc::new(Work { ws, token, is_over: AtomicBool::new(false), connections, sessions });
    let before = settled_descriptors(&host).await?;
    let mut workers = JoinSet::new();
    for number in 0..clients {
        workers.spawn(visit(work.clone(), number, pause));
    }
    for number in 0..MAKERS {
        workers.spawn(make(work.clone(), number));
    }
    let (start, mut readings) = (Instant::now(), Vec::new());
    while start.elapsed() < time {
        sleep(INTERVAL).await;
        readings.push((start.elapsed().as_secs_f64() / 60.0, host.memory()?.0));
        if readings.len() % 15 == 0 {
            report_progress(&work, &host, start)?;
        }
    }
    work.is_over.store(true, Ordering::SeqCst);
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    let after = settled_descriptors(&host).await?;
    host.stop().await?;
    let counted: Vec<_> = readings.iter().copied().filter(|(at, _)| *at * 60.0 > time.as_secs_f64() / 3.0).collect();
    let growth = slope(&counted) * 1.048_576;
    let goals = [
        Goal { what: "growth of memory, MB a minute".into(), bound: Bound::AtMost(MOST_GROWTH), figure: Some(growth) },
        Goal {
            what: "descriptors more than at the start, without clients".into(),
            bound: Bound::AtMost(0.0),
            figure: Some(after as f64 - before as f64),
        },
    ];
    let (connections, sessions) = (work.connections.load(Ordering::SeqCst), work.sessions.load(Ordering::SeqCst));
    if options.json {
        let readings: Vec<_> = readings.iter().map(|(at, mib)| json!([at, mib])).collect();
        let goals = goals_json(&goals);
        println!("{:#}", json!({"connections": connections, "sessions": sessions, "memory": readings, "goals": goals}));
    } else {
        println!("\n{connections} connections and {sessions} sessions in {:.0} s", time.as_secs_f64());
        print!("{}", Goals(&goals));
    }
    Ok(if is_any_missed(&goals) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn report_progress(work: &Work, host: &Host, start: Instant) -> Result<()> {
    let (connections, sessions) = (work.connections.load(Ordering::SeqCst), work.sessions.load(Ordering::SeqCst));
    let (memory, descriptors) = (host.memory()?.0, host.descriptors()?);
    let seconds = start.elapsed().as_secs();
    eprintln!(
        "{seconds} s: {memory:.1} MiB, {descriptors} descriptors, {connections} connections, {sessions} sessions"
    );
    Ok(())
}

/// A client that connects under the same name, follows a session, prompts now and then, and leaves.
async fn visit(work: Arc<Work>, number: usize, pause: Duration) -> Result<()> {
    let uri = session(number % STREAMS);
    let mut visits = 0;
    // They do not come all at once.
    sleep(pause * u32::try_from(number % 50)? / 50).await;
    while !work.is_over.load(Ordering::SeqCst) {
        visits += 1;
        let name = format!("visitor-{number}");
        let mut socket = Socket::client(&work.ws, &work.token, &name, std::slice::from_ref(&uri)).await?;
        // One client of each session prompts, since a session has one turn at a time.
        if number < STREAMS {
            socket.prompt(&uri, visits, "A short answer.").await?;
            socket.turn_end().await.context("a prompt of a visitor")?;
            // A session that gets longer makes each snapshot larger, which is no growth of the host.
            if visits % TURNS == 0 {
                socket.call("disposeSession", json!({"session": uri})).await?;
                socket.create(&uri).await?;
            }
        } else {
            socket.call("ping", json!({})).await?;
        }
        work.connections.fetch_add(1, Ordering::SeqCst);
        drop(socket);
        sleep(pause).await;
    }
    Ok(())
}

/// Creates sessions and prompts in them. Most are deleted at once, the others after they were evicted.
async fn make(work: Arc<Work>, worker: usize) -> Result<()> {
    let mut resting = std::collections::VecDeque::new();
    for number in 0_u64.. {
        if work.is_over.load(Ordering::SeqCst) {
            return Ok(());
        }
        let uri = format!("scripted:/made-{worker}-{number}");
        let mut socket = Socket::client(&work.ws, &work.token, &format!("maker-{worker}"), &[]).await?;
        socket.create(&uri).await?;
        socket.prompt(&uri, 1, "Another short answer.").await?;
        socket.turn_end().await.context("a prompt of a maker")?;
        if number % 10 == 0 {
            resting.push_back((Instant::now(), uri));
        } else {
            socket.call("disposeSession", json!({"session": uri})).await?;
        }
        while let Some((_, uri)) = resting.pop_front_if(|(made, _)| made.elapsed() > Duration::from_secs(60)) {
            socket.call("disposeSession", json!({"session": uri})).await?;
        }
        work.sessions.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The lowest number of descriptors within a while: connections that have just ended are still open.
async fn settled_descriptors(host: &Host) -> Result<usize> {
    let mut fewest = host.descriptors()?;
    for _ in 0..50 {
        sleep(Duration::from_millis(100)).await;
        fewest = fewest.min(host.descriptors()?);
    }
    Ok(fewest)
}

/// The slope of the line that fits the points best.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len().max(1) as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if squares == 0.0 { 0.0 } else { products / squares }
}
