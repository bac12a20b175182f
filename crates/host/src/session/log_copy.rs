//! The copy of a forked chat's log, made outside the session's task, which continues meanwhile.
//!
//! The journal has the events until then: the session's folder is not written before its logs are complete, and readers
//! of a log wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::{AbortHandle, abortable};
use grove_core::*;
use grove_fs::SessionFs;
use grove_tree::LogIndex;
use tokio::sync::mpsc::WeakSender;
use tokio::sync::watch;

use super::log::ChatLog;
use super::tree::TreeError;
use super::{ForkNotice, SessionContext, SessionTask, ToSession, scan_workspace};
use crate::host::{Host, HostInner};
use crate::store::copies::CopyGuard;
use crate::store::copy::CopyJob;
use crate::store::{artifacts, paths};

/// The delay before a failed copy is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A chat whose log may be incomplete.
pub(super) struct LogCopy {
    /// Keeps the source's folder where it is.
    _hold: CopyGuard,
    /// `None` while it is unknown whether the log is complete.
    under_way: Option<LogCopyTask>,
}

struct LogCopyTask {
    progress: watch::Receiver<LogCopyProgress>,
    abort: AbortHandle,
}

#[derive(Clone, Debug)]
enum LogCopyProgress {
    Started,
    /// It will be retried.
    Failed(String),
    /// The log, as far as it is known already.
    Done(Arc<Mutex<Option<ChatLog>>>),
}

/// Notifications after a session was forked.
struct ForkFollowUp {
    session: SessionId,
    inbox: WeakSender<ToSession>,
    host: Weak<HostInner>,
    source: SessionId,
    fork: ForkNotice,
}

impl ForkFollowUp {
    async fn tell(self, fs: &dyn SessionFs) {
        send_workspace_scan(fs, &self.session, &self.inbox).await;
        // A source that is not open is not opened for this.
        let source = self.host.upgrade().and_then(|host| Host(host).open_session(&self.source));
        if let Some(source) = source {
            source.inbox.send(ToSession::ForkNotice(Box::new(self.fork))).await.ok();
        }
    }
}

/// Tells a session's task about the files in its folder beside the log.
async fn send_workspace_scan(fs: &dyn SessionFs, session: &SessionId, inbox: &WeakSender<ToSession>) {
    match scan_workspace(fs, &paths::folder(session)).await {
        Ok(found) => {
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(ToSession::WorkspaceScanned(found)).await.ok();
            }
        }
        Err(error) => tracing::warn!(%session, %error, "a fork's artifacts could not be read"),
    }
}

impl LogCopy {
    /// The forked chats of a session, before their logs are looked up.
    pub(super) fn expected(session_context: &SessionContext, session: &Session) -> Vec<(ChatId, Self)> {
        let origins = session.chats.iter().filter_map(|chat| Some((chat.id.clone(), chat.origin.clone()?)));
        let hold = |origin: &ChatOrigin| session_context.copies.hold(&origin.session, Some(&session.id));
        origins.map(|(chat, origin)| (chat, Self { _hold: hold(&origin), under_way: None })).collect()
    }
}

impl SessionTask {
    /// Copies the logs that are missing.
    ///
    /// `indexes` are those of their sources' logs, if they are known.
    pub(super) async fn begin_copies(&mut self, mut indexes: HashMap<ChatId, Arc<LogIndex>>) {
        let chats: Vec<ChatId> = self.log_copy.keys().cloned().collect();
        for chat in chats {
            let is_there = self.logs.store().exists(&paths::log(&self.tip.id, &chat)).await;
            // If that is unknown, the copy will report why.
            if is_there.unwrap_or(false) {
                self.log_copy.remove(&chat);
                self.settle_artifacts(&chat);
            } else {
                let index = indexes.remove(&chat);
                self.begin_copy(&chat, index).await;
            }
        }
    }

    fn after_fork(&self, origin: &ChatOrigin) -> ForkFollowUp {
        let until = origin.log.leaf.clone().filter(|_| origin.log.extent == LogScope::Branch);
        ForkFollowUp {
            session: self.tip.id.clone(),
            inbox: self.inbox_sender.clone(),
            host: self.session_context.host.clone(),
            source: origin.session.clone(),
            fork: ForkNotice {
                session: self.tip.id.clone(),
                title: self.tip.title.clone(),
                chat: origin.chat.clone(),
                until,
            },
        }
    }

    /// Completes the steps after a copy that a killed host did not get to.
    fn settle_artifacts(&self, chat: &ChatId) {
        let origin = self.tip.chat(chat).and_then(|chat| chat.origin.as_ref());
        // The files beside the logs come with the main chat's.
        if chat.as_str() != Session::MAIN_CHAT || origin.is_none_or(|origin| origin.session == self.tip.id) {
            return;
        }
        let (fs, session, inbox) = (self.logs.store(), self.tip.id.clone(), self.inbox_sender.clone());
        let is_known = self.tip.details.workspace.is_some();
        self.session_context.env.spawn.spawn(Box::pin(async move {
            if let Err(error) = artifacts::settle(fs.as_ref(), &paths::folder(&session)).await {
                tracing::debug!(%session, %error, "the note about a copy could not be removed");
            }
            if !is_known {
                send_workspace_scan(fs.as_ref(), &session, &inbox).await;
            }
        }));
    }

    /// Copies the log of a new chat.
    pub(super) async fn begin_copy(&mut self, chat: &ChatId, index: Option<Arc<LogIndex>>) {
        let Some(origin) = self.tip.chat(chat).and_then(|chat| chat.origin.clone()) else { return };
        let hold = self.session_context.copies.hold(&origin.session, Some(&self.tip.id));
        // A new chat has its inherited turns and nothing else.
        let turns = self.tip.chat(chat).filter(|_| index.is_some()).map(|chat| chat.turns.clone());
        let clock = self.session_context.env.clock.clone();
        let is_main = chat.as_str() == Session::MAIN_CHAT;
        let source = paths::log(&origin.session, &origin.chat);
        let from = match origin.session == self.tip.id {
            true => self.logs.store(),
            // If its store is gone, the copy will report that its source is missing.
            false => self
                .session_context
                .env
                .stores
                .find_holder(&origin.store, &source)
                .await
                .unwrap_or_else(|_| self.logs.store()),
        };
        let job = CopyJob {
            from,
            to: self.logs.store(),
            origin: origin.clone(),
            index,
            session: self.tip.id.clone(),
            chat: chat.clone(),
            title: self.tip.title.clone(),
            at: if is_main { self.tip.created_at } else { clock.now() },
            cwd: self.tip.working_directories.first().map_or("/", String::as_str).to_owned(),
        };
        let after = (is_main && origin.session != self.tip.id).then(|| self.after_fork(&origin));
        let fs = self.logs.store();
        let (told, progress) = watch::channel(LogCopyProgress::Started);
        let (copied, abort) = abortable(async move {
            let mut job = job;
            let index = loop {
                match job.run().await {
                    Ok(index) => break index,
                    Err(error) => {
                        let session = &job.session;
                        tracing::warn!(%session, %error, "a session's log could not be copied; it will be tried again");
                        told.send_replace(LogCopyProgress::Failed(error.to_string()));
                        clock.sleep(RETRY_DELAY).await;
                        told.send_replace(LogCopyProgress::Started);
                    }
                }
            };
            let known = match index.zip(turns) {
                Some((index, turns)) => Some(ChatLog::made(job.to, &job.session, job.chat, index, &turns)),
                // Reading it takes a while: nobody should wait for that.
                None => ChatLog::opened(job.to, &job.session, job.chat).await.ok(),
            };
            told.send_replace(LogCopyProgress::Done(Arc::new(Mutex::new(known))));
            if let Some(after) = after {
                after.tell(fs.as_ref()).await;
            }
        });
        let under_way = Some(LogCopyTask { progress, abort });
        self.log_copy.insert(chat.clone(), LogCopy { _hold: hold, under_way });
        self.session_context.env.spawn.spawn(Box::pin(async move {
            // The receiver is gone if the copy was cancelled.
            copied.await.ok();
        }));
    }

    /// Waits until a chat's log is complete. The error gives the reason if it is not; it will be retried.
    pub(super) async fn copied(&mut self, chat: &ChatId) -> Result<(), TreeError> {
        let Some(log_copy) = self.log_copy.get_mut(chat) else { return Ok(()) };
        let Some(under_way) = &mut log_copy.under_way else { return Ok(()) };
        let progress = under_way.progress.wait_for(|progress| !matches!(progress, LogCopyProgress::Started)).await;
        match progress.map(|progress| progress.clone()) {
            Ok(LogCopyProgress::Failed(reason)) => Err(TreeError::NotCopied(reason)),
            Ok(LogCopyProgress::Started | LogCopyProgress::Done(_)) | Err(_) => {
                self.take_copy(chat);
                Ok(())
            }
        }
    }

    /// Takes over the log that was made.
    pub(super) fn take_copy(&mut self, chat: &ChatId) {
        let Some(LogCopy { under_way: Some(under_way), .. }) = self.log_copy.remove(chat) else { return };
        if let LogCopyProgress::Done(made) = &*under_way.progress.borrow() {
            // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
            let made = made.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(log) = made {
                self.logs.adopt(chat.clone(), log);
            }
        }
    }

    /// Waits until nothing is being written any more, and gives up incomplete copies.
    pub(super) async fn settle_copy(&mut self, chat: &ChatId) {
        if self.copied(chat).await.is_err()
            && let Some(LogCopy { under_way: Some(under_way), .. }) = self.log_copy.get(chat)
        {
            under_way.abort.abort();
        }
    }
}

/// Waits until one of the copies is complete, and returns its chat.
pub(super) async fn next_done(log_copy: &mut HashMap<ChatId, LogCopy>) -> ChatId {
    let waits = log_copy.iter_mut().filter_map(|(chat, log_copy)| {
        let progress = &mut log_copy.under_way.as_mut()?.progress;
        let done = async move {
            // A cancelled one reports nothing.
            if progress.wait_for(|progress| matches!(progress, LogCopyProgress::Done(_))).await.is_err() {
                std::future::pending::<()>().await;
            }
            chat.clone()
        };
        Some(Box::pin(done))
    });
    let waits: Vec<_> = waits.collect();
    if waits.is_empty() {
        return std::future::pending().await;
    }
    futures_util::future::select_all(waits).await.0
}
