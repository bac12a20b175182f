//! Writes the sessions, runs the servers one after the other, collects the SDK's results.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grove_testkit::model::{FakeModel, ReplyStep, Script, Turn};

use crate::Options;
use crate::disk;
use crate::job::{ANSWER, Contestant, Job, StepTimes, Wire};
use crate::peer::Peers;
use crate::report::{Cell, Huge, Report};
use crate::server::{self, ContestantFolder, Programs, Server};
use crate::session::{self, Length, Stored};

/// How long the SDK may take for a server's job, and for a huge session.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a prompt may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of warm-ups at every server.
const WARMUPS: u32 = 3;

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let report = runtime.block_on(measure(options))?;
    if options.json {
        println!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(options: &Options) -> Result<Report> {
    let grove = server::beside(options.grove.as_deref(), "grove")?;
    let peers = Peers::install(options).await?;
    let home = tempfile::tempdir()?;
    let model = FakeModel::start(Script::new([Turn::always([vec![ReplyStep::say(ANSWER)]])])).await;
    let home_path = home.path().to_owned();
    let bench = Bench {
        options,
        programs: Programs { grove, copilot: peers.copilot(), model: model.url(), home: home_path },
        peers,
    };
    let contestants: &[Contestant] =
        if options.no_peers { &[Contestant::Grove] } else { &[Contestant::Grove, Contestant::Copilot] };
    let mut cells: Vec<Cell> =
        Wire::ALL.iter().flat_map(|wire| contestants.iter().map(|who| Cell::new(*who, *wire))).collect();
    let mut disk = Vec::new();
    for run in 1..=options.runs {
        disk.extend(disk::syncs()?);
        for cell in &mut cells {
            eprintln!("run {run} of {}: {}, {}", options.runs, cell.contestant.name(), cell.wire.name());
            match bench.usual(cell.contestant, cell.wire).await {
                Ok((stored, found)) => {
                    cell.found.add(found);
                    cell.long = Some(stored);
                }
                Err(error) => report_failure(cell.contestant, error)?,
            }
        }
    }
    if options.megabytes > 0 {
        for cell in cells.iter_mut().filter(|cell| cell.wire == Wire::Tcp) {
            eprintln!("{} MB: {}", options.megabytes, cell.contestant.name());
            match bench.huge(cell.contestant).await {
                Ok(huge) => cell.huge = Some(huge),
                Err(error) => report_failure(cell.contestant, error)?,
            }
        }
    }
    let [sdk, copilot] = ["@github/copilot-sdk", "@github/copilot"].map(|package| bench.peers.version(package));
    Ok(Report { sdk: sdk?, copilot: copilot?, runs: options.runs, disk, cells })
}

/// A failing peer loses only its figures; a failure of Grove fails the program.
fn report_failure(contestant: Contestant, error: anyhow::Error) -> Result<()> {
    match contestant {
        Contestant::Grove => Err(error.context("grove")),
        Contestant::Copilot => {
            eprintln!("copilot: failed: {error:#}");
            Ok(())
        }
    }
}

struct Bench<'a> {
    options: &'a Options,
    programs: Programs,
    peers: Peers,
}

impl Bench<'_> {
    /// Pings, created sessions, answered prompts, resumed long sessions.
    async fn usual(&self, contestant: Contestant, wire: Wire) -> Result<(Stored, StepTimes)> {
        let place = ContestantFolder::new(contestant)?;
        let times = self.options.times;
        let length = Length::Events(self.options.events as usize);
        let written = (1..=times).map(|number| session::write(contestant, &place.sessions(), number, length));
        let stored = written.collect::<Result<Vec<_>>>()?;
        let first = stored.first().context("nothing to resume")?.clone();
        let job = Job {
            warmups: WARMUPS,
            pings: self.options.pings,
            creates: times,
            sends: times,
            resumes: stored,
            reads: true,
            // The CLI would first let the model summarize such a long conversation.
            sends_after_resume: contestant == Contestant::Grove,
            ..Job::default()
        };
        let (found, _) = self.run(contestant, wire, place, job, |_| Ok(())).await?;
        let counts = [found.ping.len(), found.create.len(), found.send.len(), found.resume.len(), found.read.len()];
        let [pings, times] = [self.options.pings, times].map(|wanted| wanted as usize);
        ensure!(counts == [pings, times, times, times, times], "the SDK did not do everything: {counts:?}");
        Ok((first, found))
    }

    /// Resumes a session with a huge log at a new server.
    async fn huge(&self, contestant: Contestant) -> Result<Huge> {
        let place = ContestantFolder::new(contestant)?;
        let length = Length::Bytes(self.options.megabytes * 1_000_000);
        let stored = session::write(contestant, &place.sessions(), 1, length)?;
        let sends_after_resume = contestant == Contestant::Grove;
        let job = Job { resumes: vec![stored.clone()], sends_after_resume, ..Job::default() };
        let (found, peak) = self.run(contestant, Wire::Tcp, place, job, Server::peak).await?;
        let milliseconds = *found.resume.first().context("nothing was resumed")?;
        Ok(Huge { bytes: stored.bytes, events: stored.events, milliseconds, peak })
    }

    /// Runs a job at a server in this place; returns the SDK's result, and facts about the server.
    async fn run<T>(
        &self,
        contestant: Contestant,
        wire: Wire,
        place: ContestantFolder,
        job: Job,
        look: impl Fn(&Server) -> Result<T>,
    ) -> Result<(StepTimes, T)> {
        let server = Server::start(place, wire, &self.programs, LIMIT).await?;
        let job = Job {
            server: Some(server.reached.clone()),
            session: server.session.clone(),
            prompt: contestant.prompt(),
            answer: ANSWER,
            patience_ms: PATIENCE.as_millis() as u64,
            ..job
        };
        let found = self.peers.measure(&job, LIMIT, &self.programs.home).await;
        let observation = look(&server);
        let stopped = server.stop().await;
        let found = (found?, observation?);
        stopped?;
        Ok(found)
    }
}
