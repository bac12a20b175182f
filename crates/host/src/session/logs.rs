//! The logs of a session's chats.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::*;
use grove_fs::SessionFs;
use grove_storage::chat_log::{ChatLog, ChatLogError};
use grove_storage::session_file::LogExtents;

/// The logs of a session's chats, in the session's store. One is opened when it is first needed.
#[derive(Debug)]
pub(super) struct ChatLogs {
    store: Arc<dyn SessionFs>,
    session: SessionId,
    open: HashMap<ChatId, ChatLog>,
}

impl ChatLogs {
    pub(super) fn new(store: Arc<dyn SessionFs>, session: SessionId) -> Self {
        Self { store, session, open: HashMap::new() }
    }

    /// The session's store.
    pub(super) fn store(&self) -> Arc<dyn SessionFs> {
        self.store.clone()
    }

    /// The log of a chat.
    pub(super) fn log(&mut self, chat: &ChatId) -> &mut ChatLog {
        let Self { store, session, open } = self;
        open.entry(chat.clone()).or_insert_with(|| ChatLog::new(store.clone(), session, chat.clone()))
    }

    /// Marks turns as written that were read from a log.
    pub(super) fn note(&mut self, chat: &ChatId, turns: &[Arc<Turn>]) {
        if let Some(log) = self.open.get_mut(chat) {
            log.note(turns);
        }
    }

    /// Takes over a log that was made outside, if there is one.
    pub(super) fn adopt(&mut self, chat: &ChatId, log: Option<ChatLog>) {
        self.open.extend(log.map(|log| (chat.clone(), log)));
    }

    /// Forgets the log of a removed chat.
    pub(super) fn remove(&mut self, chat: &ChatId) {
        self.open.remove(chat);
    }

    /// Continues in another store, which has the same files. Returns the former one.
    pub(super) fn move_to(&mut self, store: Arc<dyn SessionFs>) -> Arc<dyn SessionFs> {
        self.open.clear();
        std::mem::replace(&mut self.store, store)
    }

    /// Lends the logs to a writer outside the task. Nobody opens one before [`Self::give_back`].
    pub(super) fn lend(&mut self) -> Self {
        Self { store: self.store(), session: self.session.clone(), open: std::mem::take(&mut self.open) }
    }

    /// Takes lent logs back, without those of chats that were removed meanwhile.
    pub(super) fn give_back(&mut self, lent: Self, session: &Session) {
        self.open.extend(lent.open.into_iter().filter(|(chat, _)| session.chat(chat).is_some()));
    }

    /// Writes everything that the logs lack, except those of chats that have none yet, and returns their extents.
    pub(super) async fn catch_up(
        &mut self,
        session: &Session,
        has_log: impl Fn(&ChatId) -> bool,
    ) -> Result<LogExtents, ChatLogError> {
        let mut extents = LogExtents::new();
        for chat in session.chats.iter().filter(|chat| has_log(&chat.id)) {
            let log = self.log(&chat.id);
            log.catch_up(session).await?;
            extents.extend(log.extent(session).await?.map(|extent| (chat.id.clone(), extent)));
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use grove_fs::MemoryFs;
    use grove_storage::paths;

    use super::*;
    use crate::session::reports::tests::{TURN, session_with};

    fn store() -> Arc<dyn SessionFs> {
        Arc::new(MemoryFs::default())
    }

    fn ended() -> Session {
        session_with(vec![ChatEvent::TurnCompleted { turn: TURN.into(), duration: None }])
    }

    fn main() -> ChatId {
        Session::MAIN_CHAT.into()
    }

    #[tokio::test]
    async fn a_finished_turn_is_written_once_and_a_log_under_way_is_left_alone() {
        let (store, session) = (store(), ended());
        let mut logs = ChatLogs::new(store.clone(), session.id.clone());
        let path = paths::log(&session.id, &main());
        assert!(logs.catch_up(&session, |_| false).await.unwrap().is_empty());
        assert!(!store.exists(&path).await.unwrap());
        let extents = logs.catch_up(&session, |_| true).await.unwrap();
        let written = store.read_file(&path).await.unwrap();
        assert_eq!((extents[&main()].turns, extents[&main()].bytes), (1, written.len() as u64));
        logs.catch_up(&session, |_| true).await.unwrap();
        assert_eq!(store.read_file(&path).await.unwrap(), written);
    }

    #[tokio::test]
    async fn lent_logs_come_back_unless_their_chat_is_gone() {
        let (store, session) = (store(), ended());
        let mut logs = ChatLogs::new(store, session.id.clone());
        logs.log(&main());
        logs.log(&"removed".into());
        let lent = logs.lend();
        assert!(logs.open.is_empty());
        logs.give_back(lent, &session);
        assert_eq!(logs.open.keys().collect::<Vec<_>>(), [&main()]);
    }

    #[tokio::test]
    async fn a_move_forgets_the_logs_of_the_former_store() {
        let (from, to) = (store(), store());
        let mut logs = ChatLogs::new(from.clone(), "s".into());
        logs.log(&main());
        let former = logs.move_to(to.clone());
        assert!(Arc::ptr_eq(&former, &from) && Arc::ptr_eq(&logs.store(), &to) && logs.open.is_empty());
    }
}
