//! A test folder with a shim in it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grove_shim::{AgentEnd, FromAgent, ShimError, ShimLimits, ShimOptions, ShimProgram, ShimStream};
use grove_work::Program;
use tempfile::TempDir;
use tokio::time::timeout;

pub(crate) const DEADLINE: Duration = Duration::from_secs(30);
/// The timeout for operations that are expected to hang.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) struct ShimFixture {
    _folder: TempDir,
    pub(crate) work: PathBuf,
    pub(crate) shim: PathBuf,
    pub(crate) limits: ShimLimits,
}

impl ShimFixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        // A failed test leaves nothing behind for long.
        let limits = ShimLimits { alone: DEADLINE, linger: DEADLINE, grace: SHORT, ..ShimLimits::default() };
        Self { _folder: folder, shim: work.join("shim"), work, limits }
    }

    pub(crate) fn options(&self, script: &str) -> ShimOptions {
        let agent = Program::new("sh", &self.work).args(["-c", script]);
        ShimOptions { folder: self.shim.clone(), agent, limits: self.limits }
    }

    pub(crate) async fn start(&self, script: &str) -> ShimStream {
        within("start", ShimStream::start(&program(), &self.options(script))).await.unwrap()
    }

    pub(crate) async fn attach(&self, from: u64) -> Result<ShimStream, ShimError> {
        within("attach", ShimStream::attach(&self.shim, from)).await
    }

    pub(crate) fn read(&self, file: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.work.join(file)).unwrap_or_default()
    }
}

pub(crate) fn program() -> ShimProgram {
    ShimProgram { program: env!("CARGO_BIN_EXE_grove-shim").into(), args: Vec::new() }
}

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what} takes too long"))
}

pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < DEADLINE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn line(stream: &mut ShimStream) -> (u64, String) {
    match within("a line", stream.read()).await.unwrap() {
        FromAgent::Line { number, line } => (number, String::from_utf8(line.to_vec()).unwrap()),
        FromAgent::Ended { number, end } => panic!("the end {end:?} with number {number}, and no line"),
    }
}

pub(crate) async fn end(stream: &mut ShimStream) -> (u64, AgentEnd) {
    match within("the end", stream.read()).await.unwrap() {
        FromAgent::Ended { number, end } => (number, end),
        FromAgent::Line { number, line } => panic!("line {number}, and no end: {line:?}"),
    }
}

/// Returns whether a process is running.
pub(crate) fn is_alive(id: impl ToString) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", id.to_string().trim()))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

/// The peak memory of a process, in KiB.
pub(crate) fn peak_memory(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}
