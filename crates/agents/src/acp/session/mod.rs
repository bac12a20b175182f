//! One chat's agent: started when it is needed, brought back when it died.
//!
//! - [`AcpSession`]: what the host has. It only passes on what is wanted.
//! - `worker`: the one task that starts, stops and prompts the agent's process, so that none of it depends on whether
//!   somebody still waits for it.
//! - `reader`, `requests`, `guarded`: the task that hears the process, and what it asks a person before a write.
//! - `process`: what both know of it. Cancelling goes there directly, since the others may be waiting.
//! - `start`, `open`, `short`: the ways to a process and to a conversation with it.
//! - `chat`, `choices`, `contents`, `kept`, `last_words`: what holds for the chat, what is chosen, what its tool calls
//!   have shown, what the next host has to know, and how an agent ended.

mod chat;
mod choices;
mod contents;
mod guarded;
mod kept;
mod last_words;
mod open;
mod process;
mod reader;
mod requests;
mod short;
mod start;
mod worker;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use grove_core::{Extra, TurnId};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::chat::{BRIEF, Chat, brief_session};
pub(crate) use self::contents::TerminalText;
use self::process::Process;
pub(crate) use self::short::Short;
use self::worker::{Order, Worker};
use crate::agent::*;

/// How many orders may wait for the worker; whoever gives more waits.
const ORDERS: usize = 16;

/// The agent of one chat.
#[derive(Debug)]
pub(crate) struct AcpSession {
    orders: mpsc::Sender<Order>,
    shared: Arc<Shared>,
    /// Dropped with the session, which the worker notices whatever it waits for.
    closing: watch::Sender<bool>,
}

/// What is known without asking the worker.
#[derive(Debug)]
pub(crate) struct Shared {
    chat: Arc<Chat>,
    process: Mutex<Option<Arc<Process>>>,
    /// The turn that was cancelled last.
    cancelled: watch::Sender<Option<TurnId>>,
    /// What is not over is left to the next host.
    detached: watch::Sender<bool>,
}

impl AcpSession {
    /// Nothing is started yet. It must be called inside a runtime.
    pub(crate) fn new(chat: Arc<Chat>, opening: OpenSession) -> Self {
        let (orders, ordered) = mpsc::channel(ORDERS);
        let (closing, closes) = watch::channel(false);
        let shared = Arc::new(Shared {
            chat,
            process: Mutex::default(),
            cancelled: watch::Sender::new(None),
            detached: watch::Sender::new(false),
        });
        let worker = Worker::new(Arc::clone(&shared), ordered, closes, opening);
        tokio::spawn(worker.run());
        Self { orders, shared, closing }
    }

    /// Starts the agent, and waits until it is initialised. A start that is given up leaves nothing behind.
    pub(crate) async fn start(&self, within: Duration) -> Result<(), AgentError> {
        self.order(|reply| Order::Start(within, reply)).await
    }

    async fn order(&self, order: impl FnOnce(Reply) -> Order) -> Result<(), AgentError> {
        let (reply, answer) = oneshot::channel();
        // Where there is no worker any more, the reply goes with the order.
        self.orders.send(order(reply)).await.ok();
        match answer.await {
            Ok(result) => result,
            // The turn goes on, or begins, with the next host.
            Err(_) if *self.shared.detached.borrow() => std::future::pending().await,
            Err(_) => Err(AgentError::TurnOver),
        }
    }
}

/// Where a turn's end is told.
type Reply = oneshot::Sender<Result<(), AgentError>>;
/// Where it is told how the agent calls a copy.
type Copied = oneshot::Sender<Result<Option<String>, AgentError>>;

#[async_trait]
impl AgentSession for AcpSession {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        self.order(|reply| Order::Prompt(Box::new(prompt), turn, reply)).await
    }

    async fn resume(&self, prompt: Prompt, from: Resumption, turn: TurnSink) -> Result<(), AgentError> {
        self.order(|reply| Order::Resume(Box::new(prompt), from, turn, reply)).await
    }

    async fn fork(&self) -> Result<Option<String>, AgentError> {
        let (done, forked) = oneshot::channel();
        self.orders.send(Order::Fork(done)).await.ok();
        // It was given up, or there is no worker any more.
        forked.await.unwrap_or(Ok(None))
    }

    async fn configure(&self, values: Extra) {
        // A session that is closed has nothing to configure.
        self.orders.send(Order::Configure(values)).await.ok();
    }

    fn stored(&self, mark: &Mark) {
        if let Some(process) = self.shared.process() {
            process.stored(mark);
        }
    }

    async fn cancel(&self, turn: &TurnId) {
        self.shared.cancelled.send_replace(Some(turn.clone()));
        if let Some(process) = self.shared.process() {
            process.cancel(turn, self.shared.chat.fleet.options().patience).await;
        }
    }

    async fn close(&self, why: Closing) {
        if why == Closing::LetGo {
            // Whatever does not end goes on with the next host.
            self.shared.detached.send_replace(true);
        }
        self.closing.send_replace(true);
        let (done, closed) = oneshot::channel();
        if self.orders.send(Order::Close(why, done)).await.is_ok() {
            closed.await.ok();
        }
    }
}

impl Shared {
    // It is replaced as a whole, so a poisoned lock still guards whole data.
    fn process(&self) -> Option<Arc<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_process(&self, process: Option<Arc<Process>>) {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = process;
    }
}

/// Removes the folder of a shim that is gone.
async fn remove(folder: &Path) {
    let path = folder.to_owned();
    let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(path)).await;
    match removed {
        Ok(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(folder = %folder.display(), %error, "an agent's folder cannot be removed");
        }
        Ok(_) | Err(_) => {}
    }
}
