//! The load client: many subscribers in one thread, as cheap as possible.

mod decode;
mod grove;
mod measure;
mod protocol;
mod socket;
mod tally;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use tokio::task::LocalSet;

use crate::job::Job;

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
    let limit = Duration::from_secs(job.limit_seconds);
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        eprintln!("gave up after {} s", limit.as_secs());
        std::process::exit(2);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let finding = LocalSet::new().block_on(&runtime, measure::run(&job))?;
    Ok(serde_json::to_string(&finding)?)
}
