//! Runs good and hostile clients: in turn against one host, and against two.

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::{Child, Command};

use crate::host::{self, Host};
use crate::load::Finding;
use crate::report::{Report, Run};
use crate::socket::Socket;
use crate::{Job, Options, session};

/// The time that a run takes beyond its own: connecting, and waiting for the last answers.
const AROUND: Duration = Duration::from_secs(120);

pub(crate) async fn run(options: &Options) -> Result<ExitCode> {
    let mut options = options.clone();
    if options.short {
        (options.connections, options.hostile, options.runs, options.run_seconds) = (200, 70, 1, 5);
    }
    ensure!(options.hostile < options.connections, "there must be good clients too");
    let grove = host::program(options.grove.as_deref())?;
    let run_time = Duration::from_secs(options.run_seconds);
    let mut report = Report { options: options.clone(), hostile: Vec::new(), control: Vec::new() };
    for number in 0..options.runs {
        // The first of a pair has a colder machine: so they take turns.
        for is_control in [number % 2 == 1, number % 2 == 0] {
            let host = Host::start(&grove, run_time + AROUND, &[]).await?;
            let decoy = Host::start(&grove, run_time + AROUND, &[]).await?;
            let found = measure(&options, &host, if is_control { &decoy } else { &host }, &decoy).await;
            let run = found.and_then(|found| Ok(Run { found, peak_mib: host.memory()?.1 }));
            host.stop().await?;
            decoy.stop().await?;
            let run = run?;
            let name = if is_control { "control" } else { "hostile" };
            let Finding { prompts, p50_ms, p99_ms, .. } = run.found;
            eprintln!(
                "{name}: {prompts} prompts, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms, at most {:.0} MiB",
                run.peak_mib
            );
            if is_control { report.control.push(run) } else { report.hostile.push(run) }
        }
    }
    if options.json {
        println!("{:#}", report.to_json())
    } else {
        print!("{report}")
    }
    Ok(if report.misses_a_goal() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Measures good clients of a host while hostile ones work against a target.
async fn measure(options: &Options, host: &Host, target: &Host, decoy: &Host) -> Result<Finding> {
    for host in [host, decoy] {
        let mut maker = Socket::client(&host.ws, &host.token, "maker", &[]).await?;
        for stream in 0..options.streams {
            maker.create(&session(stream)).await?;
        }
    }
    let job = |host: &Host, clients: usize| Job {
        ws: host.ws.clone(),
        token: host.token.clone(),
        clients,
        streams: options.streams,
        seconds: options.run_seconds,
    };
    let mut attack = child("attack", &job(target, options.hostile))?;
    let load = child("load", &job(host, options.connections - options.hostile))?;
    let limit = Duration::from_secs(options.run_seconds) + AROUND;
    let output =
        tokio::time::timeout(limit, load.wait_with_output()).await.context("the good clients do not end")??;
    // It ends with its stdin.
    drop(attack.stdin.take());
    attack.wait().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn child(name: &str, job: &Job) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(name).arg(serde_json::to_string(job)?).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command.spawn()?)
}
