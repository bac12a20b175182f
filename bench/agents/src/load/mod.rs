//! The load client: a few clients in one thread, each of which follows every session and checks every chunk.

mod grove;
mod relay;
mod tally;

use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use self::tally::Tally;
use crate::job::{Cpu, Finding, Job, Target};
use crate::process::{self, Family};

/// A working client: it ends after the last chunk of every session.
type Follower = Pin<Box<dyn Future<Output = Result<Tally>> + Send>>;

/// Connected clients that wait for the streams. The first of them starts the agents.
struct Crowd {
    followers: Vec<Follower>,
    start_seconds: Option<f64>,
}

/// Runs a job and prints its result as one line of JSON, or the error.
pub(crate) fn run(job: &str) -> ExitCode {
    match find(job) {
        Ok(finding) => {
            println!("{finding}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn find(job: &str) -> Result<String> {
    let job: Job = serde_json::from_str(job)?;
    let limit = job.shape.limit();
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        eprintln!("gave up after {} s", limit.as_secs());
        std::process::exit(2);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let finding = runtime.block_on(measure(&job))?;
    Ok(serde_json::to_string(&finding)?)
}

async fn measure(job: &Job) -> Result<Finding> {
    let crowd = match &job.target {
        Target::Grove { ws, token, folder } => grove::gather(ws, token, folder, &job.shape).await?,
        Target::Relay { address } => relay::gather(*address, &job.shape).await?,
    };
    let family = Family::of(job.pid)?;
    let before = used(job.pid, &family)?;
    let began = Instant::now();
    let followers: Vec<_> = crowd.followers.into_iter().map(tokio::spawn).collect();
    let pid = job.pid;
    let settled = settled(pid, job.shape.settled());
    let settled = tokio::spawn(settled);
    let mut tally = Tally::default();
    for follower in followers {
        tally.add(follower.await.context("a client gave up")??);
    }
    let wall_seconds = began.elapsed().as_secs_f64();
    let after = used(job.pid, &family)?;
    let memory = process::memory(job.pid)?;
    let shim_bytes =
        family.shims.iter().filter_map(|pid| process::memory(*pid).ok()).map(|memory| memory.own_bytes).sum();
    if let Target::Grove { ws, token, .. } = &job.target {
        grove::leave(ws, token, &job.shape).await?;
    }
    let (p50_ms, p99_ms, max_ms) = tally.latencies();
    Ok(Finding {
        start_seconds: crowd.start_seconds,
        wall_seconds,
        messages: tally.messages,
        faults: tally.faults,
        described: tally.described,
        p50_ms,
        p99_ms,
        max_ms,
        cpu: Cpu {
            server: after.server - before.server,
            shims: after.shims - before.shims,
            agents: after.agents - before.agents,
            load: after.load - before.load,
        },
        settled_bytes: settled.await??,
        end_bytes: memory.resident_bytes,
        peak_bytes: memory.peak_bytes,
        shim_bytes,
    })
}

async fn settled(pid: u32, after: Duration) -> Result<u64> {
    tokio::time::sleep(after).await;
    Ok(process::memory(pid)?.resident_bytes)
}

/// Processor seconds so far.
fn used(server: u32, family: &Family) -> Result<Cpu> {
    Ok(Cpu {
        server: process::cpu_seconds(server)?,
        shims: process::cpu_of_all(&family.shims),
        agents: process::cpu_of_all(&family.agents),
        load: process::cpu_seconds(std::process::id())?,
    })
}
