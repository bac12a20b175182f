//! The agent's process inside the shim.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use grove_work::{Exit, Process, ProcessError, Program};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The time that an agent's leftover processes may take to end when asked to.
const LEFTOVERS: Duration = Duration::from_millis(500);

/// The agent and its stdio. Its process is in its own task, so that ending it, which takes time, blocks nothing else.
#[derive(Debug, Default)]
pub(super) struct AgentProcess {
    /// `None` if it could not be started.
    pub(super) id: Option<u32>,
    pub(super) stdin: StdinQueue,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
    end: Option<oneshot::Sender<Duration>>,
    /// Set until nothing is left of its group.
    pub(super) exit_task: Option<ExitTask>,
}

pub(super) type ExitTask = JoinHandle<Result<Exit, ProcessError>>;

/// Lines on their way to the agent.
#[derive(Debug, Default)]
pub(super) struct StdinQueue {
    pipe: Option<ChildStdin>,
    lines: VecDeque<Bytes>,
    waiting: usize,
    /// Stdin closes after the last line.
    closing: bool,
}

impl AgentProcess {
    pub(super) fn start(program: &Program) -> Result<Self, ProcessError> {
        let mut process = Process::start(program)?;
        let (end, end_request) = oneshot::channel();
        Ok(Self {
            id: Some(process.id()),
            stdin: StdinQueue { pipe: process.stdin.take(), ..StdinQueue::default() },
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            end: Some(end),
            exit_task: Some(tokio::spawn(wait_for_exit(process, end_request))),
        })
    }

    /// Ends it: its stdin closes, and it has `grace` twice before it is killed. Only the first call counts.
    pub(super) fn end(&mut self, grace: Duration) {
        self.stdin.close();
        if let Some(end) = self.end.take() {
            end.send(grace).ok();
        }
    }
}

/// Waits until nothing is left of the agent's group, or forever if that was reported already. Dropping the call loses
/// nothing.
pub(super) async fn ended(exit_task: &mut Option<ExitTask>) -> Result<Exit, ProcessError> {
    let Some(running) = exit_task else { return std::future::pending().await };
    // The task neither panics nor is aborted.
    let exit = running.await.unwrap_or_else(|_| Ok(Exit::default()));
    *exit_task = None;
    exit
}

async fn wait_for_exit(mut process: Process, end_request: oneshot::Receiver<Duration>) -> Result<Exit, ProcessError> {
    let grace = tokio::select! {
        _ = process.wait() => LEFTOVERS,
        grace = end_request => grace.unwrap_or_default(),
    };
    process.end(grace).await
}

impl StdinQueue {
    /// The bytes that wait for the agent.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Queues a line. If the agent no longer reads, it is lost, like any write to such a process.
    pub(super) fn push(&mut self, line: Bytes) {
        if self.pipe.is_none() || self.closing {
            return;
        }
        self.waiting += line.len() + 1;
        self.lines.push_back(line);
        self.lines.push_back(Bytes::from_static(b"\n"));
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
        if self.lines.is_empty() {
            self.pipe = None;
        }
    }

    /// Writes a part of the queue, or waits for a line. Dropping the call loses nothing.
    pub(super) async fn write(&mut self) {
        let (Some(pipe), Some(line)) = (&mut self.pipe, self.lines.front_mut()) else {
            return std::future::pending().await;
        };
        match pipe.write(line).await {
            Ok(bytes) => {
                line.advance(bytes);
                self.waiting -= bytes;
                while self.lines.front().is_some_and(Bytes::is_empty) {
                    self.lines.pop_front();
                }
                if self.closing && self.lines.is_empty() {
                    self.pipe = None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The agent no longer reads.
            Err(_) => {
                self.pipe = None;
                self.lines.clear();
                self.waiting = 0;
            }
        }
    }
}

/// Reads a part of an agent's output, or waits forever at its end. Dropping the call loses nothing.
pub(super) async fn read(
    pipe: &mut Option<impl AsyncReadExt + Unpin>,
    buffer: &mut BytesMut,
    most: usize,
) -> ReadOutcome {
    let Some(open) = pipe else { return std::future::pending().await };
    buffer.reserve(most);
    match open.read_buf(buffer).await {
        Ok(bytes) if bytes > 0 => ReadOutcome::Data,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => ReadOutcome::Data,
        _ => {
            *pipe = None;
            ReadOutcome::End
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    Data,
    End,
}
