//! One chat's agent: started when it is needed, restarted after it died.
//!
//! - [`AcpSession`]: the host's handle. It only passes commands on.
//! - `worker`: the single task that starts, stops and prompts the agent's process, so that none of it depends on
//!   whether a caller still waits.
//! - `reader`, `requests`, `protected`: the task that reads from the process, and the question to a person before a
//!   protected write.
//! - `process`: the state that both share. Cancelling goes there directly, since the others may be waiting.
//! - `start`, `open`, `one_shot`: starting or attaching to a process, and opening a conversation with it.
//! - `hooks`: the calls that the agent's own hooks ask about.
//! - `setup`: the setup of the session, as its program takes it.
//! - `chat`, `choices`, `contents`, `session_record`, `exit_message`: the chat's data, its settings, the content of its
//!   tool calls, the record for the next host, and the exit of an agent.

mod chat;
mod choices;
pub(crate) mod contents;
pub(crate) mod exit_message;
pub(crate) mod hooks;
mod one_shot;
mod open;
pub(crate) mod process;
mod protected;
mod reader;
mod requests;
mod session_record;
mod setup;
mod start;
pub(crate) mod worker;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use grove_core::{Extra, FrameCursor, TurnId};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::chat::{AcpChat, ONE_SHOT_CHAT, hook_support, one_shot_session};
pub(crate) use self::contents::TerminalText;
pub(crate) use self::one_shot::OneShotProcess;
pub(crate) use self::open::AUTH_REQUIRED;
use self::process::AgentProcess;
use self::worker::{SessionWorker, WorkerCommand};
use crate::agent::*;
use crate::sink::TurnSink;

/// The number of commands that may wait for the worker; further senders wait.
pub const COMMANDS: usize = 16;

/// The agent of one chat.
#[derive(Debug)]
pub(crate) struct AcpSession {
    commands: mpsc::Sender<WorkerCommand>,
    shared: Arc<AcpSessionState>,
    /// Dropped with the session, which the worker notices whatever it waits for.
    closing: watch::Sender<bool>,
}

/// The state that is readable without asking the worker.
#[derive(Debug)]
pub(crate) struct AcpSessionState {
    chat: Arc<AcpChat>,
    process: Mutex<Option<Arc<AgentProcess>>>,
    /// The turn that was cancelled last.
    cancelled: watch::Sender<Option<TurnId>>,
    /// Unfinished turns are left to the next host.
    detached: watch::Sender<bool>,
}

impl AcpSession {
    /// Starts nothing yet. Must be called inside a runtime.
    pub(crate) fn new(chat: Arc<AcpChat>, opening: OpenSession) -> Self {
        let (commands, ordered) = mpsc::channel(COMMANDS);
        let (closing, closes) = watch::channel(false);
        let shared = Arc::new(AcpSessionState {
            chat,
            process: Mutex::default(),
            cancelled: watch::Sender::new(None),
            detached: watch::Sender::new(false),
        });
        let worker = SessionWorker::new(Arc::clone(&shared), ordered, closes, opening);
        tokio::spawn(worker.run());
        Self { commands, shared, closing }
    }

    /// Starts the agent, and waits until it is initialised. Dropping the future leaves nothing behind.
    pub(crate) async fn start(&self, within: Duration) -> Result<(), AgentError> {
        self.order(|reply| WorkerCommand::Start(within, reply)).await
    }

    async fn order(&self, order: impl FnOnce(TurnReply) -> WorkerCommand) -> Result<(), AgentError> {
        let (reply, answer) = oneshot::channel();
        // Without a worker, the reply is dropped with the command.
        self.commands.send(order(reply)).await.ok();
        match answer.await {
            Ok(result) => result,
            // The turn goes on, or begins, with the next host.
            Err(_) if *self.shared.detached.borrow() => std::future::pending().await,
            Err(_) => Err(AgentError::TurnOver),
        }
    }
}

/// Gets a turn's end.
type TurnReply = oneshot::Sender<Result<(), AgentError>>;
/// Gets the agent's id of a copy.
type ForkReply = oneshot::Sender<Result<Option<String>, AgentError>>;

#[async_trait]
impl AgentSession for AcpSession {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        self.order(|reply| WorkerCommand::Prompt(Box::new(prompt), turn, reply)).await
    }

    async fn resume(&self, prompt: Prompt, from: Resumption, turn: TurnSink) -> Result<(), AgentError> {
        self.order(|reply| WorkerCommand::Resume(Box::new(prompt), from, turn, reply)).await
    }

    async fn fork(&self) -> Result<Option<String>, AgentError> {
        let (done, forked) = oneshot::channel();
        self.commands.send(WorkerCommand::Fork(done)).await.ok();
        // The copy was given up, or the worker has ended.
        forked.await.unwrap_or(Ok(None))
    }

    async fn configure(&self, values: Extra) {
        // A closed session has nothing to configure.
        self.commands.send(WorkerCommand::Configure(values)).await.ok();
    }

    async fn set_title(&self, title: String) {
        // A closed session has no title to change.
        self.commands.send(WorkerCommand::SetTitle(title)).await.ok();
    }

    fn stored(&self, mark: &FrameCursor) {
        if let Some(process) = self.shared.process() {
            process.stored(mark);
        }
    }

    async fn cancel(&self, turn: &TurnId) {
        self.shared.cancelled.send_replace(Some(turn.clone()));
        if let Some(process) = self.shared.process() {
            process.cancel(turn, self.shared.chat.pool.options().patience).await;
        }
    }

    async fn close(&self, why: CloseReason) {
        if why == CloseReason::Detached {
            // Unfinished work goes on with the next host.
            self.shared.detached.send_replace(true);
        }
        self.closing.send_replace(true);
        let (done, closed) = oneshot::channel();
        if self.commands.send(WorkerCommand::Close(why, done)).await.is_ok() {
            closed.await.ok();
        }
    }
}

impl AcpSessionState {
    // It is replaced as a whole, so a poisoned lock still guards complete data.
    fn process(&self) -> Option<Arc<AgentProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_process(&self, process: Option<Arc<AgentProcess>>) {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = process;
    }
}

/// Removes the folder of a shim that is gone.
async fn remove(folder: &Path) {
    let path = folder.to_owned();
    let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(path)).await;
    match removed {
        Ok(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(folder = %folder.display(), %error, "cannot remove an agent's folder");
        }
        Ok(_) | Err(_) => {}
    }
}
