//! The copies of forked chats' logs, made outside the session's task, which continues meanwhile.
//!
//! The journal has the events until then: the session's folder is not written before its logs are complete, and readers
//! of a log wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{AbortHandle, abortable};
use grove_core::*;
use grove_storage::chat_log::ChatLog;
use grove_storage::copies::{ActiveCopies, CopyGuard};
use grove_storage::copy::CopyJob;
use tokio::sync::watch;

use crate::env::{Env, Task};

/// The delay before a failed copy is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The chats whose logs may be incomplete.
#[derive(Default)]
pub(in crate::session) struct LogCopies {
    copies: HashMap<ChatId, LogCopy>,
}

/// The copy of one log.
struct LogCopy {
    /// Keeps the source's folder where it is.
    _hold: CopyGuard,
    /// `None` while it is unknown whether the log is complete.
    running: Option<(watch::Receiver<CopyProgress>, AbortHandle)>,
}

#[derive(Clone, Debug)]
enum CopyProgress {
    Started,
    /// It will be retried.
    Failed(String),
    /// The log, as far as it is known already.
    Done(Arc<Mutex<Option<ChatLog>>>),
}

impl LogCopies {
    /// The forked chats of a session, before their logs are looked up.
    pub(in crate::session) fn expected(session: &Session, active: &ActiveCopies) -> Self {
        let origins = session.chats.iter().filter_map(|chat| Some((chat.id.clone(), chat.origin.as_deref()?)));
        let hold = |origin: &ChatOrigin| active.hold(&origin.session, Some(&session.id));
        Self { copies: origins.map(|(chat, origin)| (chat, LogCopy { _hold: hold(origin), running: None })).collect() }
    }

    pub(in crate::session) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Says whether a chat's log may be incomplete.
    pub(in crate::session) fn contains(&self, chat: &ChatId) -> bool {
        self.copies.contains_key(chat)
    }

    /// The chats whose logs may be incomplete.
    pub(in crate::session) fn chats(&self) -> Vec<ChatId> {
        self.copies.keys().cloned().collect()
    }

    /// Starts a copy, which is retried until it succeeds, then `after`.
    ///
    /// `turns` are those that the copied log has, if they are known.
    pub(super) fn begin(
        &mut self,
        mut job: CopyJob,
        turns: Option<Vec<Arc<Turn>>>,
        after: Option<Task>,
        hold: CopyGuard,
        env: &Env,
    ) {
        let (chat, clock) = (job.chat.clone(), env.clock.clone());
        let (sender, progress) = watch::channel(CopyProgress::Started);
        let (copied, abort) = abortable(async move {
            let index = loop {
                match job.run().await {
                    Ok(index) => break index,
                    Err(error) => {
                        let session = &job.session;
                        tracing::warn!(%session, %error, "a session's log could not be copied; it will be tried again");
                        sender.send_replace(CopyProgress::Failed(error.to_string()));
                        clock.sleep(RETRY_DELAY).await;
                        sender.send_replace(CopyProgress::Started);
                    }
                }
            };
            let known = match index.zip(turns) {
                Some((index, turns)) => Some(ChatLog::made(job.to, &job.session, job.chat, index, &turns)),
                // Reading it takes a while: nobody should wait for that.
                None => ChatLog::opened(job.to, &job.session, job.chat).await.ok(),
            };
            sender.send_replace(CopyProgress::Done(Arc::new(Mutex::new(known))));
            if let Some(after) = after {
                after.await;
            }
        });
        self.copies.insert(chat, LogCopy { _hold: hold, running: Some((progress, abort)) });
        env.spawn.spawn(Box::pin(async move {
            // The receiver is gone if the copy was cancelled.
            copied.await.ok();
        }));
    }

    /// Waits until a running copy is done, and returns the log that it made.
    ///
    /// The error gives the reason if it failed; it will be retried.
    pub(in crate::session) async fn wait(&mut self, chat: &ChatId) -> Result<Option<ChatLog>, String> {
        let Some(LogCopy { running: Some((progress, _)), .. }) = self.copies.get_mut(chat) else { return Ok(None) };
        let ended = progress.wait_for(|progress| !matches!(progress, CopyProgress::Started)).await;
        let failed = match ended.as_deref() {
            Ok(CopyProgress::Failed(reason)) => Some(reason.clone()),
            Ok(CopyProgress::Started | CopyProgress::Done(_)) | Err(_) => None,
        };
        drop(ended);
        match failed {
            Some(reason) => Err(reason),
            None => Ok(self.take(chat)),
        }
    }

    /// Ends a copy, and returns the log that it made. One that was cancelled has made none.
    pub(in crate::session) fn take(&mut self, chat: &ChatId) -> Option<ChatLog> {
        let (progress, _) = self.copies.remove(chat)?.running?;
        let CopyProgress::Done(made) = &*progress.borrow() else { return None };
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        made.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until nothing is being written any more, and gives up a copy that failed.
    ///
    /// Returns the log that it made.
    pub(in crate::session) async fn settle(&mut self, chat: &ChatId) -> Option<ChatLog> {
        let settled = self.wait(chat).await;
        if settled.is_err()
            && let Some(LogCopy { running: Some((_, abort)), .. }) = self.copies.get(chat)
        {
            abort.abort();
        }
        settled.ok().flatten()
    }

    /// Forgets a copy: the log is complete, or its chat is gone.
    pub(in crate::session) fn remove(&mut self, chat: &ChatId) {
        self.copies.remove(chat);
    }

    /// Waits until one of the copies is complete, and returns its chat.
    pub(in crate::session) async fn next_done(&mut self) -> ChatId {
        let waits = self.copies.iter_mut().filter_map(|(chat, copy)| {
            let (progress, _) = copy.running.as_mut()?;
            let done = async move {
                // A cancelled one reports nothing.
                if progress.wait_for(|progress| matches!(progress, CopyProgress::Done(_))).await.is_err() {
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
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use grove_fs::{MemoryFs, SessionFs};
    use grove_storage::paths;

    use super::*;

    const CHAT: &str = "copy";

    fn origin(boundary: u64) -> Arc<ChatOrigin> {
        Arc::new(ChatOrigin {
            session: "s".into(),
            store: StoreName::default(),
            chat: Session::MAIN_CHAT.into(),
            uri: None,
            turn: None,
            kind: OriginKind::Fork,
            log: LogPart { boundary, extent: LogScope::All, leaf: None, until: None },
        })
    }

    fn copying(store: &Arc<dyn SessionFs>, boundary: u64) -> (LogCopies, Env, ActiveCopies) {
        let (mut copies, env, active) = (LogCopies::default(), Env::in_memory(), ActiveCopies::default());
        let job = CopyJob {
            from: store.clone(),
            to: store.clone(),
            origin: origin(boundary),
            index: None,
            session: "s".into(),
            chat: CHAT.into(),
            title: "t".to_owned(),
            at: Timestamp(1),
            cwd: "/".to_owned(),
        };
        copies.begin(job, None, None, active.hold(&"s".into(), Some(&"s".into())), &env);
        (copies, env, active)
    }

    #[tokio::test]
    async fn a_copy_is_waited_for_and_gives_its_log_once() {
        let store: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
        let (mut copies, _env, active) = copying(&store, 0);
        assert!(copies.contains(&CHAT.into()));
        assert!(active.none_from(&"s".into()).now_or_never().is_none(), "the source stays where it is");
        assert_eq!(copies.next_done().await, ChatId::from(CHAT));
        assert!(copies.wait(&CHAT.into()).await.unwrap().is_some());
        assert!(store.exists(&paths::log(&"s".into(), &CHAT.into())).await.unwrap());
        assert!(copies.is_empty() && active.none_from(&"s".into()).now_or_never().is_some());
        assert!(copies.wait(&CHAT.into()).await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_copy_says_why_and_is_given_up_when_nobody_waits_for_it() {
        let store: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
        let (mut copies, ..) = copying(&store, 10);
        copies.wait(&CHAT.into()).await.expect_err("the source is missing");
        assert!(copies.contains(&CHAT.into()), "it is retried");
        assert!(copies.settle(&CHAT.into()).await.is_none());
        tokio::time::sleep(3 * RETRY_DELAY).await;
        let (progress, _) = copies.copies[&ChatId::from(CHAT)].running.as_ref().unwrap();
        assert!(progress.has_changed().is_err(), "nothing runs any more");
    }

    #[tokio::test]
    async fn a_chat_that_may_have_its_log_is_not_waited_for() {
        let mut session = crate::session::reports::tests::session_with(vec![]);
        session.chats[0].origin = Some(origin(10));
        let active = ActiveCopies::default();
        let mut copies = LogCopies::expected(&session, &active);
        let main = ChatId::from(Session::MAIN_CHAT);
        assert!(copies.wait(&main).await.unwrap().is_none());
        assert!(copies.contains(&main));
        assert!(copies.next_done().now_or_never().is_none());
        copies.remove(&main);
        assert!(copies.is_empty());
    }
}
