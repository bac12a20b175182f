//! Carrying out an installation.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grove_agents::catalog;
use grove_work::{Exit, Process, ProcessError, Program};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::plan::{InstallPlan, InstallStep};
use crate::agents::download::{DownloadError, DownloadLimits, check_sha256, download};

/// The time that a step of an installation may take.
pub(crate) const STEP_TIME: Duration = Duration::from_secs(20 * 60);
/// The largest program that is downloaded.
pub(crate) const PROGRAM_BYTES: u64 = 1 << 30;
/// The characters that are shown of a line of an installer.
const LINE_CHARS: usize = 300;
/// The bytes of a line of an installer; the rest of a longer one is left out.
const LINE_BYTES: usize = 16 << 10;
/// The last lines of an installer that an error shows.
const LAST_LINES: usize = 12;
/// The lines that wait to be shown. The installer waits if they are more.
const LINES_AHEAD: usize = 64;
/// The time that an installer may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// The reason why an agent was not installed. Nothing of the new version is left then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error("`{command}` failed ({exit}), and nothing was installed:\n{output}")]
    Failed { command: String, exit: Exit, output: String },
    #[error("`{command}` did not end within {} minutes, and nothing was installed: try again", .limit.as_secs() / 60)]
    Slow { command: String, limit: Duration },
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error("`{command}` cannot be run: {error}")]
    Start { command: String, error: ProcessError },
    #[error("the package has no program {expected}: the catalog and the package do not fit, and nothing was installed")]
    NoProgram { expected: String },
    #[error("{} cannot be written: {error}", .path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error("interrupted, and nothing was installed")]
    Interrupted,
}

/// Carries out a plan, shows each line of output to `progress`, and returns the installed program. After a failure, or if
/// the future is dropped, the new folder is removed.
pub(crate) async fn run(plan: &InstallPlan, mut progress: impl FnMut(&str)) -> Result<PathBuf, InstallError> {
    let io = |error| InstallError::Io { path: plan.folder.clone(), error };
    fs::create_dir_all(&plan.folder).map_err(io)?;
    let mut new_folder = NewFolder { path: &plan.folder, is_complete: false };
    let steps = async {
        for step in &plan.steps {
            progress(&format!("$ {}", step.words()));
            carry_out(step, &plan.folder, &mut progress).await?;
        }
        Ok::<(), InstallError>(())
    };
    tokio::select! {
        done = steps => done?,
        _ = tokio::signal::ctrl_c() => return Err(InstallError::Interrupted),
    }
    let is_program = |path: &&PathBuf| catalog::look_up(&path.display().to_string(), "".as_ref()).is_some();
    let Some(program) = plan.programs.iter().find(is_program) else {
        let expected = plan.programs.first().map(|program| program.display().to_string()).unwrap_or_default();
        return Err(InstallError::NoProgram { expected });
    };
    new_folder.is_complete = true;
    Ok(program.clone())
}

/// The folder of an unfinished installation, which is removed when this is dropped.
struct NewFolder<'a> {
    path: &'a Path,
    is_complete: bool,
}

impl Drop for NewFolder<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            // A rest is removed by the next installation.
            fs::remove_dir_all(self.path).ok();
        }
    }
}

async fn carry_out(step: &InstallStep, folder: &Path, progress: &mut impl FnMut(&str)) -> Result<(), InstallError> {
    match step {
        InstallStep::Run { program, args, name: _ } => {
            let command = step.words();
            let ran = run_program(program, args, folder, progress);
            let (exit, output) = match timeout(STEP_TIME, ran).await {
                Ok(ran) => ran.map_err(|error| InstallError::Start { command: command.clone(), error })?,
                Err(_) => return Err(InstallError::Slow { command, limit: STEP_TIME }),
            };
            if exit.success() { Ok(()) } else { Err(InstallError::Failed { command, exit, output }) }
        }
        InstallStep::Download { url, sha256, to } => {
            let io = |error| InstallError::Io { path: to.clone(), error };
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).map_err(io)?;
            }
            let mut file = File::create(to).map_err(io)?;
            let limits = DownloadLimits { bytes: PROGRAM_BYTES, time: STEP_TIME };
            let found = download(url, limits, &mut file).await?;
            check_sha256(url, sha256, &found)?;
            file.sync_all().map_err(io)
        }
        InstallStep::MakeExecutable { path } => {
            let io = |error| InstallError::Io { path: path.clone(), error };
            let mode = fs::metadata(path).map_err(io)?.permissions().mode();
            fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o755)).map_err(io)
        }
    }
}

/// The user's variables that configure installers: registries, certificates, caches.
const INSTALLER_VARIABLES: &[&str] =
    &["NPM_CONFIG_*", "npm_config_*", "PIP_*", "UV_*", "BUN_*", "NODE_OPTIONS", "NVM_*", "PYENV_*", "VIRTUAL_ENV"];

async fn run_program(
    program: &Path,
    args: &[String],
    folder: &Path,
    progress: &mut impl FnMut(&str),
) -> Result<(Exit, String), ProcessError> {
    let mut command = Program::new(program.display().to_string(), folder).args(args.iter().cloned());
    command.env.extend(catalog::passed(INSTALLER_VARIABLES, &crate::settings::environment()));
    let mut process = Process::start(&command)?;
    drop(process.stdin.take());
    let (lines, mut shown) = mpsc::channel::<String>(LINES_AHEAD);
    let readers = [
        process.stdout.take().map(|pipe| tokio::spawn(read_lines(pipe, lines.clone()))),
        process.stderr.take().map(|pipe| tokio::spawn(read_lines(pipe, lines.clone()))),
    ];
    drop(lines);
    let mut last = Vec::new();
    let exit = {
        let mut exited = std::pin::pin!(process.wait());
        loop {
            tokio::select! {
                line = shown.recv() => match line {
                    Some(line) => note(line, &mut last, progress),
                    None => break exited.await,
                },
                exit = &mut exited => {
                    while let Ok(line) = shown.try_recv() {
                        note(line, &mut last, progress);
                    }
                    break exit;
                }
            }
        }
    };
    readers.into_iter().flatten().for_each(|reader| reader.abort());
    process.end(GRACE).await?;
    Ok((exit, last.join("\n")))
}

fn note(line: String, last: &mut Vec<String>, progress: &mut impl FnMut(&str)) {
    progress(&line);
    if last.len() == LAST_LINES {
        last.remove(0);
    }
    last.push(line);
}

async fn read_lines(pipe: impl AsyncRead + Unpin, lines: mpsc::Sender<String>) {
    let mut reader = BufReader::new(pipe);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        // The rest of a very long line is read as the next one.
        let mut limited = tokio::io::AsyncReadExt::take(&mut reader, LINE_BYTES as u64);
        match limited.read_until(b'\n', &mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&bytes);
        let line: String = text.trim_end().chars().take(LINE_CHARS).collect();
        if !line.is_empty() && lines.send(line).await.is_err() {
            return;
        }
    }
}
