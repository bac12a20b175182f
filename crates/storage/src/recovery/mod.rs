//! Recovery: the state at the last host's end, from the journal and the sessions' folders.

mod log_replay;
mod partial_turn;
mod replay;
mod restore;
mod verify;

use std::collections::{HashMap, HashSet};

use grove_core::*;
use grove_fs::FsError;
use grove_tree::turns::TurnLimit;

pub use self::replay::{RecoveredReplay, ReplayStep};
pub use self::verify::{verify_all, verify_session};

use self::partial_turn::cut_partial_turn;
use self::restore::restore_logs;
use self::verify::lacks_numbers;
use crate::journal::{ClientProfile, JournalContents, JournalItem, JournalRecord};
use crate::store::session_file::{self, EvictedSession, SessionFile};
use crate::store::store_scan::{StoreScan, store_scan};
use crate::store::stores::Stores;
use crate::store::{copy, paths};

/// The state at the journal's end, and the data needed to continue from there.
#[derive(Debug, Default)]
pub struct RecoveredState {
    /// The state at the journal's end, without evicted sessions.
    pub state: State,
    /// Evicted sessions, which are only in their folders.
    pub evicted: HashMap<SessionId, EvictedSession>,
    /// No sequence number up to here is used again.
    pub seq: u64,
    /// The highest sequence number of an event, or of the state with which a host started.
    pub last_published: u64,
    /// The first event of each session that is only in the journal.
    pub unpersisted: HashMap<SessionId, u64>,
    /// The journal's events, for clients that reconnect.
    pub replay: RecoveredReplay,
    /// The versions that clients spoke, and their tokens.
    pub clients: HashMap<ClientId, ClientProfile>,
    /// Evicted sessions with queued messages.
    waiting: Vec<SessionUri>,
    /// Sessions whose logs were not copied completely.
    uncopied: HashSet<SessionId>,
    /// The frame cursors of chats' agents.
    pub marks: HashMap<(SessionId, ChatId), FrameCursor>,
    /// Descriptions of everything that could not be read.
    pub damage: Vec<String>,
}

/// Combines a journal and the sessions' folders.
///
/// Interrupted moves between two stores are completed or undone.
pub async fn recover(contents: JournalContents, stores: &Stores, limit: TurnLimit) -> Result<RecoveredState, FsError> {
    let moves = contents.moves();
    let mut store_scan = store_scan(stores, &moves).await?;
    store_scan.rebuild_files(&contents.created(), stores, limit).await;
    let files = std::mem::take(&mut store_scan.files);
    let (files, short) = restore_logs(&contents, files, stores, limit).await;
    store_scan.damage.extend(short);
    store_scan.damage.extend(lacks_numbers(&contents, &files));
    let mut recovered = RecoveredState::default();
    // A session that the journal has newer events of is read whole; the others stay evicted.
    let persisted: HashMap<SessionId, u64> = files.iter().map(|file| (file.id().clone(), file.seq)).collect();
    let backends: HashMap<SessionId, StoreName> =
        files.iter().map(|file| (file.id().clone(), file.backend().clone())).collect();
    let is_news_of = |seq: u64, event: &Event| {
        event.change.session().is_some_and(|id| seq > persisted.get(id).copied().unwrap_or(0))
    };
    let is_news = |found: &JournalItem| match found {
        JournalItem::JournalRecord(JournalRecord::Event { seq, event, .. }) => {
            is_news_of(*seq, event).then(|| event.change.session().cloned()).flatten()
        }
        JournalItem::JournalRecord(_) | JournalItem::Damage(_) => None,
    };
    let with_news: HashSet<SessionId> = contents.found.iter().filter_map(is_news).collect();
    for file in files {
        recovered.replay.names.insert(file.id().clone(), file.names());
        recovered.seq = recovered.seq.max(file.seq);
        if let (true, Ok(fs)) = (with_news.contains(file.id()) && !file.disposed, stores.get(file.backend())) {
            for log in file.expected_logs() {
                if let Err(error) = cut_partial_turn(&contents, fs.as_ref(), file.id(), &log.chat).await {
                    recovered.damage.push(format!("session {}: {error}", file.id()));
                }
            }
        }
        recovered.take_file(file, &with_news, stores, limit).await;
    }
    // Released events cannot be replayed.
    let first = contents.found.iter().find_map(|found| match found {
        JournalItem::JournalRecord(JournalRecord::Event { seq, .. }) => Some(seq.saturating_sub(1)),
        JournalItem::JournalRecord(_) | JournalItem::Damage(_) => None,
    });
    recovered.replay.complete_above = first.unwrap_or(0);
    for mut found in contents.found {
        if let JournalItem::JournalRecord(JournalRecord::Event { seq, event, .. }) = &mut found
            && is_news_of(*seq, event)
        {
            if let Change::Session(id, SessionEvent::Created(new)) = &event.change {
                let store = moves.get(id).map_or(&new.store, |moved| &moved.to);
                store_scan.judge(stores, id, store);
            }
            let left_out = recovered.skipped_session(event, &mut store_scan, stores);
            if let Some(id) = left_out {
                recovered.seq = recovered.seq.max(*seq);
                recovered.last_published = recovered.last_published.max(*seq);
                if store_scan.held.contains(&id) {
                    recovered.unpersisted.entry(id).or_insert(*seq);
                }
                continue;
            }
            recovered.read_inherited(event, stores, limit).await;
        }
        match found {
            JournalItem::JournalRecord(record) => recovered.take(record, &persisted),
            JournalItem::Damage(what) => {
                // The rest is used as it is, and nothing earlier is replayed.
                recovered.replay.steps.push(ReplayStep::Gap);
                recovered.damage.push(what);
            }
        }
    }
    recovered.marks.retain(|(session, _), _| !store_scan.is_left_out(session));
    // If a move is undone, the journal's record of it does not count.
    for id in &store_scan.stayed {
        if let (Some(session), Some(store)) = (recovered.state.sessions.get_mut(id), backends.get(id)) {
            session.store = store.clone();
        }
    }
    recovered.settle_removed(&backends, &store_scan.held, stores).await?;
    recovered.find_uncopied(stores).await?;
    recovered.damage.splice(0..0, store_scan.damage);
    recovered.damage.extend(stores.register().damage().iter().cloned());
    if first.is_none() {
        recovered.replay.complete_above = recovered.seq;
    }
    Ok(recovered)
}

impl RecoveredState {
    /// The sessions with unfinished work.
    pub fn unfinished(&self) -> Vec<SessionUri> {
        let busy = |chat: &Chat| chat.active.is_some() || chat.steering.is_some() || !chat.queued.is_empty();
        let is_busy = |session: &&Session| {
            session.lifecycle == Lifecycle::Creating
                || session.chats.iter().any(busy)
                || self.uncopied.contains(&session.id)
        };
        let loaded = self.state.sessions.values().filter(is_busy).map(|session| session.uri.clone());
        loaded.chain(self.waiting.iter().cloned()).collect()
    }

    async fn take_file(
        &mut self,
        file: SessionFile,
        with_news: &HashSet<SessionId>,
        stores: &Stores,
        limit: TurnLimit,
    ) {
        let id = file.id().clone();
        if file.disposed {
            return;
        }
        if !with_news.contains(&id) {
            if file.has_waiting() {
                self.waiting.push(file.uri().clone());
            }
            self.evicted.insert(id, file.into_evicted());
            return;
        }
        let loaded = match stores.get(file.backend()) {
            Ok(fs) => session_file::load_turns(file, fs.as_ref(), limit).await,
            Err(error) => Err(error.into()),
        };
        match loaded {
            Ok(session) => {
                self.state.sessions.insert(id, session);
            }
            Err(error) => self.damage.push(format!("session {id}: {error}")),
        }
    }

    /// The session of an event that is skipped: it ended with the host, or its store is missing.
    ///
    /// An unknown session may be in a store that cannot be reached.
    fn skipped_session(&self, event: &Event, store_scan: &mut StoreScan, stores: &Stores) -> Option<SessionId> {
        let id = event.change.session()?;
        if !self.state.sessions.contains_key(id)
            && !matches!(event.change, Change::Session(_, SessionEvent::Created(_)))
            && stores.names().any(|name| stores.is_lost(name))
        {
            store_scan.held.insert(id.clone());
        }
        store_scan.is_left_out(id).then(|| id.clone())
    }

    /// Reads the turns that a forked chat starts with: the journal only has their location.
    async fn read_inherited(&mut self, event: &mut Event, stores: &Stores, limit: TurnLimit) {
        let Change::Chat(session, chat, ChatEvent::TurnsInherited { origin, turns, older }) = &mut event.change else {
            return;
        };
        let store = self.state.sessions.get(session).map(|session| session.store.clone()).unwrap_or_default();
        let window = match stores.get(&store) {
            Ok(fs) => copy::inherited(stores, fs.as_ref(), session, chat, origin, limit).await,
            Err(error) => Err(error.into()),
        };
        match window {
            Ok(window) => (*turns, *older) = (window.turns, window.older),
            Err(error) => self.damage.push(format!("session {session}: its inherited turns are missing: {error}")),
        }
    }

    async fn find_uncopied(&mut self, stores: &Stores) -> Result<(), FsError> {
        for session in self.state.sessions.values() {
            let Ok(fs) = stores.get(&session.store) else { continue };
            for chat in session.chats.iter().filter(|chat| chat.origin.is_some()) {
                if !fs.exists(&paths::log(&session.id, &chat.id)).await? {
                    self.uncopied.insert(session.id.clone());
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, record: JournalRecord, persisted: &HashMap<SessionId, u64>) {
        match record {
            JournalRecord::Event { seq, origin, event, .. } => {
                let session = event.change.session().cloned();
                let known = session.as_ref().and_then(|id| persisted.get(id)).copied().unwrap_or(0);
                if seq > known {
                    if self.is_in_log(&event.change) {
                        self.touch(&event);
                    } else {
                        apply(&mut self.state, &event);
                    }
                    if let Some(id) = &session {
                        self.unpersisted.entry(id.clone()).or_insert(seq);
                    }
                }
                self.seq = self.seq.max(seq);
                self.last_published = self.last_published.max(seq);
                self.replay.steps.push(ReplayStep::Event { seq, event, origin });
            }
            JournalRecord::FrameCursor { session, chat, mark, .. } => {
                self.marks.insert((session, chat), mark);
            }
            JournalRecord::Reserved(upto) => self.seq = self.seq.max(upto),
            JournalRecord::Jump { from, to } => {
                self.seq = self.seq.max(to);
                self.last_published = self.last_published.max(to);
                self.replay.steps.push(ReplayStep::Skipped { from, to });
            }
            // Checked when the segments were read.
            JournalRecord::Segment { .. } => {}
            JournalRecord::Client { id, profile } => {
                self.clients.insert(id, profile);
            }
        }
    }

    /// Says whether this concerns a turn that the log has completely.
    ///
    /// A host that was killed between writing the log and the files beside it leaves such turns.
    fn is_in_log(&self, change: &Change) -> bool {
        let Change::Chat(session, chat, event) = change else { return false };
        let chat = self.state.sessions.get(session).and_then(|session| session.chat(chat));
        let (Some(chat), Some(turn)) = (chat, event.turn()) else { return false };
        chat.active_turn(turn).is_none() && chat.position(turn).is_some()
    }

    /// Applies the time of an event whose turn the log has: the log lacks the session's last change.
    fn touch(&mut self, event: &Event) {
        let Change::Chat(session, chat, change) = &event.change else { return };
        if !change.ends_turn() && !matches!(change, ChatEvent::TurnStarted { .. }) {
            return;
        }
        if let Some(session) = self.state.sessions.get_mut(session) {
            if chat.as_str() == Session::MAIN_CHAT {
                session.modified_at = event.at;
            }
            if let Some(chat) = session.chat_mut(chat) {
                chat.is_read = false;
                chat.touched_at = event.at;
                chat.has_failed = matches!(change, ChatEvent::TurnFailed { .. });
                chat.modified_at = chat.turns.last().map_or(chat.modified_at, |turn| turn.ended_at);
            }
        }
    }

    /// Marks disposed sessions in their folders, if the host ended before their tasks could.
    async fn settle_removed(
        &mut self,
        backends: &HashMap<SessionId, StoreName>,
        held: &HashSet<SessionId>,
        stores: &Stores,
    ) -> Result<(), FsError> {
        let state = &self.state;
        let is_removed = |id: &&SessionId| !state.sessions.contains_key(*id) && !held.contains(*id);
        let removed: Vec<SessionId> = self.unpersisted.keys().filter(is_removed).cloned().collect();
        for id in removed {
            if let Some(Ok(fs)) = backends.get(&id).map(|store| stores.get(store)) {
                session_file::mark_disposed(fs.as_ref(), &id, self.seq).await?;
            }
            self.unpersisted.remove(&id);
        }
        Ok(())
    }
}
