//! Finding the host of a data folder, and starting one in the background if there is none.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::Instant;

use crate::commands::IN_USE;
use crate::data_folder;
use crate::endpoint::{Health, HostEndpoint};
use crate::settings::{SettingSource, Settings};

/// How long a starting host may take until it answers.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between attempts to reach a starting host.
const PAUSE: Duration = Duration::from_millis(20);
/// The size above which a log is replaced by a new one when a host starts.
pub(crate) const LOG_BYTES: u64 = 8 << 20;
/// The part of a log that an error shows: bytes and lines.
const LOG_END: (u64, usize) = (4 << 10, 10);

/// A host that answers.
pub(crate) struct LiveHost {
    pub(crate) endpoint: HostEndpoint,
    pub(crate) health: Health,
    /// This call started it.
    pub(crate) started: bool,
}

/// Finds the running host of a data folder. An error means that there is one which does not answer.
pub(crate) async fn find_host(data_dir: &Path) -> Result<Option<LiveHost>> {
    let Some(endpoint) = data_folder::read_endpoint(data_dir)?.filter(|endpoint| may_send_token(endpoint, data_dir))
    else {
        return Ok(None);
    };
    match endpoint.health().await {
        Ok(health) => Ok(Some(LiveHost { endpoint, health, started: false })),
        // A killed host leaves its file behind, but not its lock.
        Err(_) if !data_folder::is_taken(data_dir) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Decides whether the token may be sent to the address in a data folder.
///
/// Without a socket the address is a loopback port, which another program may have taken since the host died.
fn may_send_token(endpoint: &HostEndpoint, data_dir: &Path) -> bool {
    endpoint.unix.is_some() || data_folder::is_taken(data_dir)
}

/// Finds the host of the data folder, or starts one in the background.
///
/// If several processes do that at once, one starts the host and the others find it.
pub(crate) async fn find_or_start_host(settings: &Settings) -> Result<LiveHost> {
    let data_dir = &settings.data_dir.value;
    if let Ok(Some(found)) = find_host(data_dir).await {
        return Ok(found);
    }
    data_folder::make(data_dir)?;
    let deadline = Instant::now() + TIMEOUT;
    let turn = data_folder::start_lock(data_dir)?;
    while turn.try_lock().is_err() {
        if Instant::now() > deadline {
            bail!("another process has been starting a host for {} s: try again", TIMEOUT.as_secs());
        }
        tokio::time::sleep(PAUSE).await;
    }

    let mut starting: Option<HostLaunch> = None;
    loop {
        let stale = starting.as_ref().and_then(|starting| starting.stale.as_ref());
        let endpoint = data_folder::read_endpoint(data_dir)?.filter(|endpoint| Some(endpoint) != stale);
        if let Some(endpoint) = endpoint
            && may_send_token(&endpoint, data_dir)
            && let Ok(health) = endpoint.health().await
        {
            let started = starting.is_some_and(|starting| starting.process.id() == health.pid);
            return Ok(LiveHost { endpoint, health, started });
        }
        match &mut starting {
            None if !data_folder::is_taken(data_dir) => starting = Some(HostLaunch::begin(settings)?),
            // Another host is just starting or stopping.
            None => {}
            Some(mine) => match mine.process.try_wait().context("the host cannot be watched")? {
                None => {}
                // Another process was faster: use its host.
                Some(status) if status.code() == Some(IN_USE.into()) => starting = None,
                Some(status) => bail!("the host could not be started ({status}); {}", mine.log_end()),
            },
        }
        if Instant::now() > deadline {
            match &starting {
                Some(mine) => bail!(
                    "process {} was started and is not ready after {} s: it may need longer (see `grove status`), or be \
                     ended with `kill`; {}",
                    mine.process.id(),
                    TIMEOUT.as_secs(),
                    mine.log_end()
                ),
                None => bail!(
                    "another host uses {} and has not answered for {} s: wait for it, or end it with `grove stop`",
                    data_dir.display(),
                    TIMEOUT.as_secs()
                ),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// A host process that was started.
struct HostLaunch {
    process: Child,
    /// The endpoint of an earlier host, which is no longer valid.
    stale: Option<HostEndpoint>,
    log: PathBuf,
    /// The length of the log before this host started.
    log_start: u64,
}

impl HostLaunch {
    fn begin(settings: &Settings) -> Result<Self> {
        let data_dir = absolute(&settings.data_dir.value)?;
        let stale = data_folder::read_endpoint(&data_dir)?;
        let log = data_folder::log_path(&data_dir);
        let (output, log_start) = open_log(&log).with_context(|| format!("{} cannot be opened", log.display()))?;
        let errors = output.try_clone().context("the log cannot be opened twice")?;
        let program = std::env::current_exe().context("cannot find this program's file, to start a host with")?;

        let mut command = Command::new(&program);
        command.args(["serve", "--detached", "--data-dir"]).arg(&data_dir);
        // Without the flag the host looks in the default place itself, where the file may appear later.
        if settings.config_is_named {
            command.arg("--config").arg(absolute(&settings.config_file)?);
        }
        if let SettingSource::Flag(_) = settings.idle_exit.source {
            command.arg("--idle-exit").arg(settings.idle_exit.value.to_string());
        }
        // The host must not depend on the folder in which it was started.
        command.current_dir(&data_dir).stdin(Stdio::null()).stdout(output).stderr(errors);
        // A process that reads one of our pipes would wait for the host's end, too.
        close_fds::set_fds_cloexec_threadsafe(3, &[]);
        let process = command.spawn().with_context(|| format!("{} cannot be run", program.display()))?;
        Ok(Self { process, stale, log, log_start })
    }

    /// The last lines of the host's log.
    fn log_end(&self) -> String {
        let (most_bytes, most_lines) = LOG_END;
        let read = || {
            let mut file = File::open(&self.log)?;
            let from = self.log_start.max(file.metadata()?.len().saturating_sub(most_bytes));
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(most_bytes).read_to_end(&mut bytes).map(|_| bytes)
        };
        let bytes = match read() {
            Ok(bytes) => bytes,
            Err(error) => return format!("its log {} cannot be read: {error}", self.log.display()),
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        match &lines[lines.len().saturating_sub(most_lines)..] {
            [] => format!("its log {} is empty", self.log.display()),
            lines => format!("its log {} ends with:\n{}", self.log.display(), lines.join("\n")),
        }
    }
}

/// Opens the log for appending, and returns its length. A large log first replaces the older copy.
fn open_log(path: &Path) -> std::io::Result<(File, u64)> {
    if fs::metadata(path).is_ok_and(|log| log.len() > LOG_BYTES) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is not a valid path", path.display()))
}
