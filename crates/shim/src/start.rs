//! Starting a shim.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use grove_work::{inherit_nothing, inherited_environment};
use rustix::process::{Pid, Signal};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::folder::{self, SHIM_LOG};
use crate::{ShimError, ShimOptions, ShimStream};

/// The time that a shim may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval at which that is checked.
const PAUSE: Duration = Duration::from_millis(5);

/// The program that runs a shim: it calls [`run`](crate::run) with the options on its stdin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShimProgram {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

/// A shim that is not ours yet. Dropping it asks the shim to end, since nobody would know of it.
#[derive(Debug)]
struct StartingShim(Option<Child>);

pub(crate) async fn start(program: &ShimProgram, options: &ShimOptions) -> Result<ShimStream, ShimError> {
    let options = &absolute(options)?;
    let folder = &options.folder;
    folder::make_private(folder)?;
    // An existing shim must not be mistaken for the one that is started here.
    drop(folder::lock(folder)?);
    let log = folder.join(SHIM_LOG);
    let failed = |error| ShimError::Folder { path: log.clone(), error };
    let errors = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&log).map_err(failed)?;
    let json = serde_json::to_vec(options).map_err(|error| ShimError::Options(error.to_string()))?;

    let mut command = Command::new(&program.program);
    command.args(&program.args).env_clear().envs(inherited_environment()).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(errors);
    inherit_nothing();
    let not_run = |error| ShimError::Start(format!("{} cannot be run: {error}", program.program.display()));
    let mut child = command.spawn().map_err(not_run)?;
    let stdin = child.stdin.take();
    let mut starting = StartingShim(Some(child));
    if let Some(mut stdin) = stdin {
        // A shim that ends at once gives a better error than a broken pipe.
        stdin.write_all(&json).await.ok();
    }

    let deadline = Instant::now() + PATIENCE;
    loop {
        if starting.has_ended()? {
            let message = fs::read_to_string(&log).unwrap_or_default();
            return Err(ShimError::Start(match message.trim() {
                "" => format!("{} ended at once without an error message", program.program.display()),
                message => message.to_owned(),
            }));
        }
        match ShimStream::attach(folder, 1).await {
            Ok(stream) if stream.shim().is_some() && stream.shim() != starting.id() => {
                return Err(ShimError::InUse { folder: folder.clone() });
            }
            Ok(stream) => {
                // The runtime waits for the process when it ends; it is not killed with us.
                starting.0 = None;
                return Ok(stream);
            }
            Err(ShimError::Gone { .. }) if Instant::now() < deadline => sleep(PAUSE).await,
            Err(ShimError::Gone { .. }) => {
                return Err(ShimError::Start(format!("it did not listen within {} s", PATIENCE.as_secs())));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Makes paths absolute: the shim works in its own folder, where a relative path leads elsewhere.
fn absolute(options: &ShimOptions) -> Result<ShimOptions, ShimError> {
    let mut options = options.clone();
    for path in [&mut options.folder, &mut options.agent.cwd] {
        *path = std::path::absolute(&path).map_err(|error| ShimError::Folder { path: path.clone(), error })?;
    }
    Ok(options)
}

impl StartingShim {
    fn id(&self) -> Option<u32> {
        self.0.as_ref().and_then(Child::id)
    }

    fn has_ended(&mut self) -> Result<bool, ShimError> {
        match &mut self.0 {
            Some(child) => child.try_wait().map(|status| status.is_some()).map_err(ShimError::Io),
            None => Ok(true),
        }
    }
}

impl Drop for StartingShim {
    fn drop(&mut self) {
        if let Some(id) = self.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            rustix::process::kill_process(id, Signal::TERM).ok();
        }
    }
}
