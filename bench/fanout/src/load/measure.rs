//! The four measurements.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::net::TcpStream;

use super::protocol::{self, Control, Stream};
use super::socket::Socket;
use super::tally::{Tally, Totals};
use crate::job::{Finding, Job, Measure, Paced, Program, Target, Throughput};
use crate::process;
use crate::shape;

/// How long a server is left alone until its background work is done.
const SETTLE: Duration = Duration::from_millis(500);
/// The number of connections before idle ones are counted.
const WARM: usize = 10;

pub(super) async fn run(job: &Job) -> Result<Finding> {
    process::raise_open_files();
    match job.measure {
        Measure::Throughput { deltas, rounds } => {
            let mut audience = Audience::gather(&job.target, job.subscribers).await?;
            throughput(&mut audience, deltas, rounds).await.map(Finding::Throughput)
        }
        Measure::Paced { deltas, delay_ms } => {
            let mut audience = Audience::gather(&job.target, job.subscribers).await?;
            paced(&mut audience, deltas, delay_ms).await.map(Finding::Paced)
        }
        Measure::Last { events } => {
            let mut audience = Audience::gather(&job.target, job.subscribers).await?;
            let milliseconds = last(&mut audience, events).await?;
            Ok(Finding::Last { milliseconds })
        }
        Measure::Idle => idle(job).await,
    }
}

/// The subscribers, and the connection that causes events.
struct Audience {
    target: Target,
    tally: Rc<Tally>,
    control: Control,
    /// Kept open, but no longer read.
    _prepared: Option<Socket>,
}

impl Audience {
    async fn gather(target: &Target, subscribers: usize) -> Result<Self> {
        let mut prepared = Control::prepare(target).await.context("preparing the session")?;
        let tally = Rc::new(Tally::new(target.contestant));
        let mut first = None;
        for _ in 0..subscribers {
            let stream = join(target, &tally).await?;
            first.get_or_insert(stream);
        }
        let first = first.context("there are no subscribers")?;
        let control = Control::new(target, prepared.as_mut(), first).await?;
        tokio::time::sleep(SETTLE).await;
        Ok(Self { target: target.clone(), tally, control, _prepared: prepared })
    }

    /// Waits until the count is sufficient, or a subscriber was cut off.
    async fn until(&self, enough: impl Fn(&Tally) -> bool) -> Result<()> {
        loop {
            if let Some(failure) = self.tally.failure() {
                anyhow::bail!("{failure}; seen so far: {:?}", self.tally.totals());
            }
            if enough(&self.tally) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Runs one stream to its end at every subscriber, and returns the server's processor time for it.
    async fn stream(&mut self, turn: usize, deltas: usize, delay_ms: u64) -> Result<f64> {
        let everybody = self.tally.subscribers();
        // The prompt is sent to all subscribers first. It is as long as the whole stream, and not measured.
        let pause_ms = 50 + 2 * everybody as u64;
        let quiet = process::cpu_seconds(self.target.pid)?;
        self.control.stream(turn, Stream { deltas, delay_ms, pause_ms }).await?;
        let before = match self.target.contestant.program() {
            Program::Grove => {
                self.until(|tally| tally.totals().turns_started == everybody).await?;
                ensure!(self.tally.totals().early == 0, "the stream began before every subscriber had the prompt");
                process::cpu_seconds(self.target.pid)?
            }
            Program::Bare | Program::Node | Program::Opencode | Program::Codex => quiet,
        };
        let expected = (deltas * everybody) as u64;
        match self.target.contestant.program() {
            // A slow subscriber may get several deltas as one; the end of the turn is unaffected.
            Program::Grove => self.until(|tally| tally.totals().turns_complete == everybody).await?,
            Program::Bare | Program::Node | Program::Opencode | Program::Codex => {
                self.until(|tally| tally.totals().deltas == expected).await?;
            }
        }
        let after = process::cpu_seconds(self.target.pid)?;
        let Totals { deltas: arrived_deltas, text_bytes, .. } = self.tally.totals();
        ensure!(arrived_deltas == expected, "{arrived_deltas} deltas came instead of {expected}: some were merged");
        let text = expected * shape::CONTENT.len() as u64;
        ensure!(text_bytes == text, "{text_bytes} bytes of text came instead of {text}");
        Ok(after - before)
    }
}

/// Adds a subscriber, which listens from now on.
async fn join(target: &Target, tally: &Rc<Tally>) -> Result<Rc<TcpStream>> {
    let number = tally.join();
    let socket = protocol::subscribe(target, number).await.with_context(|| format!("subscriber {number}"))?;
    let (stream, tally) = (socket.stream.clone(), tally.clone());
    tokio::task::spawn_local(async move {
        let ended = socket.listen(|message, now| tally.count(number, message, now)).await;
        tally.fail(match ended {
            Ok(()) => format!("the server closed subscriber {number}"),
            Err(error) => format!("subscriber {number}: {error}"),
        });
    });
    Ok(stream)
}

async fn throughput(audience: &mut Audience, deltas: usize, rounds: usize) -> Result<Throughput> {
    let (mut messages, mut bytes, mut wall_seconds, mut cpu_seconds) = (0, 0, 0.0, 0.0);
    for round in 0..rounds {
        audience.tally.reset(0);
        cpu_seconds += audience.stream(round, deltas, 0).await?;
        wall_seconds += audience.tally.stream_seconds();
        messages += audience.tally.totals().deltas;
        bytes += audience.tally.totals().delta_bytes;
    }
    let bytes_per_message = bytes as f64 / messages as f64;
    let memory = process::memory(audience.target.pid)?;
    Ok(Throughput { messages, bytes_per_message, wall_seconds, cpu_seconds, memory })
}

async fn paced(audience: &mut Audience, deltas: usize, delay_ms: u64) -> Result<Paced> {
    audience.tally.reset(deltas);
    let cpu_seconds = audience.stream(0, deltas, delay_ms).await?;
    let mut delays = audience.tally.delays();
    delays.sort_unstable();
    let at = |share: f64| -> Result<f64> {
        let index = ((delays.len() as f64 - 1.0) * share).round() as usize;
        Ok(*delays.get(index).context("no arrivals were noted")? as f64 / 1e6)
    };
    Ok(Paced {
        deltas_per_second: (deltas as f64 - 1.0) / audience.tally.stream_seconds(),
        p50_ms: at(0.50)?,
        p99_ms: at(0.99)?,
        max_ms: at(1.0)?,
        cpu_seconds,
        messages: audience.tally.totals().deltas,
    })
}

async fn last(audience: &mut Audience, events: usize) -> Result<Vec<f64>> {
    let everybody = audience.tally.subscribers() as u64;
    let mut milliseconds = Vec::with_capacity(events);
    for number in 0..=events {
        audience.tally.reset(0);
        let began = Instant::now();
        audience.control.event(number).await?;
        audience.until(|tally| tally.totals().events >= everybody).await?;
        let last = audience.tally.last_event().context("no subscriber got the event")?;
        // The first one is a warm-up.
        if number > 0 {
            milliseconds.push((last - began).as_secs_f64() * 1e3);
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    Ok(milliseconds)
}

async fn idle(job: &Job) -> Result<Finding> {
    let audience = Audience::gather(&job.target, WARM).await?;
    tokio::time::sleep(SETTLE).await;
    let before = process::memory(job.target.pid)?;
    for _ in 0..job.subscribers {
        join(&job.target, &audience.tally).await?;
    }
    tokio::time::sleep(2 * SETTLE).await;
    let after = process::memory(job.target.pid)?;
    if let Some(failure) = audience.tally.failure() {
        anyhow::bail!(failure);
    }
    let grown = after.resident_bytes as f64 - before.resident_bytes as f64;
    Ok(Finding::Idle { bytes_per_connection: grown / job.subscribers as f64 })
}
