//! Starts everything, and drives the measuring process.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use tokio::process::Command;

use crate::host::Process;
use crate::measure::Figures;
use crate::report::Report;
use crate::{Options, histories};

/// The number of hosts: this one and others.
const HOSTS: usize = 3;

pub(crate) async fn run(options: &Options) -> Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let catalog = histories::make(folder.path(), options.sessions)?;
    let mut hosts = Vec::new();
    for _ in 0..HOSTS {
        hosts.push(Process::start(options.sessions).await?);
    }
    let program = std::env::current_exe()?;
    let mut runs = Vec::new();
    for _ in 0..options.runs.max(1) {
        let mut command = Command::new(&program);
        command.arg("measure").arg(&catalog).args(hosts.iter().map(|host| &host.way));
        let output = command.output().await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        runs.push(serde_json::from_slice::<Figures>(&output.stdout)?);
    }
    let report = Report { runs };
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&report.json())?),
        false => print!("{report}"),
    }
    Ok(if report.misses_a_goal() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
