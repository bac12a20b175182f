//! `grove stop`

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rustix::process::{Pid, Signal, kill_process};

use super::{Failure, errand, say};
use crate::background::find_host;
use crate::cli::{Common, OutputArgs, ServeArgs};
use crate::data_folder;
use crate::settings::Settings;

/// How long a host may take: its turns' grace, and some.
const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) fn run(common: &Common, args: &OutputArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let data_dir = &settings.data_dir.value;
    let none = || Failure::NoHost(format!("no host is running for {}", data_dir.display()));
    // Process numbers are used again: only the one that answers with our token is ended.
    let health = errand()?.block_on(find_host(data_dir))?.ok_or_else(none)?.health;
    let pid = i32::try_from(health.pid).ok().and_then(Pid::from_raw).context("the host's process number is odd")?;
    kill_process(pid, Signal::TERM).with_context(|| format!("process {} cannot be told to stop", health.pid))?;

    let since = Instant::now();
    while data_folder::is_taken(data_dir) {
        if since.elapsed() > PATIENCE {
            return Err(anyhow!("process {} has not stopped after {} s", health.pid, PATIENCE.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if args.json {
        say(serde_json::json!({"stopped": true, "pid": health.pid}))?;
    } else {
        say(format!("stopped process {}", health.pid))?;
    }
    Ok(())
}
