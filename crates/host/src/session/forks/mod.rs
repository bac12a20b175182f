//! Forks: chats that begin with a copy of another one's log, in the same session or in a new one.
//!
//! Five types make a fork:
//!
//! | type | is |
//! |---|---|
//! | [`ForkPlan`] | the contents of a new session, as its source plans them ([`super::TreeRequest::PlanFork`]) |
//! | [`ForkedChat`] | the contents of one chat: its origin, its newest turns, its agent's copy of the conversation |
//! | [`ChatOrigin`] | the part of a log that a chat began with; it stays with the chat for good |
//! | [`CopyJob`] | the copy of that part, and of the files beside the log |
//! | [`LogCopies`] | the copies that a session's task waits for |
//!
//! A forked session is created with its events at once ([`ForkedChat::changes`]) and is complete when its log is copied.
//! Then its source notes it ([`ToSession::Forked`]). A chat that is forked within its session
//! ([`ToSession::ForkChat`]) needs no plan: its task does the same steps itself.

mod copies;
mod plan;

use std::collections::HashMap;
use std::sync::Arc;

use grove_agents::setup::AgentSetup;
use grove_core::*;
use grove_fs::copy::PastePathRewriter;
use grove_fs::{FsError, SessionFs};
use grove_storage::copies::CopyGuard;
use grove_storage::copy::CopyJob;
use grove_storage::{artifacts, content, info, pastes, paths, session_file};
use grove_tree::LogIndex;
use grove_tree::entries::Stamp;
use grove_tree::navigate::Prefill;
use grove_tree::turns::LoggedTurns;
use tokio::sync::mpsc::WeakSender;
use tokio::sync::oneshot;

pub(super) use self::copies::LogCopies;
use super::tree::TreeError;
use super::{SessionTask, ToSession, scan_workspace};
use crate::env::Task;
use crate::host::Host;
use crate::sequencer::HostStopped;

/// The contents of a new session that is forked.
#[derive(Debug)]
pub struct ForkPlan {
    /// The session as it is, except for its id.
    pub(crate) like: NewSession,
    pub(crate) title: SessionTitle,
    /// Its chats, the main one first. A fork of a part of a chat has no others.
    pub(crate) chats: Vec<ForkedChat>,
    /// Keeps the source where it is.
    pub(crate) _hold: CopyGuard,
    pub(crate) prefill: Option<Prefill>,
    /// The configuration of its agent.
    pub(crate) setup: Arc<AgentSetup>,
}

/// The contents of a forked chat.
#[derive(Debug)]
pub(crate) struct ForkedChat {
    pub(crate) chat: ChatId,
    pub(crate) title: String,
    pub(crate) is_read: bool,
    pub(crate) is_archived: bool,
    /// Its source, and the part of it that is forked.
    pub(crate) origin: Arc<ChatOrigin>,
    /// The source's log, as of now.
    pub(crate) index: Option<Arc<LogIndex>>,
    /// The newest turns that it shows.
    pub(crate) turns: LoggedTurns,
    /// The agent's id of its own copy of the conversation, if all of it is forked.
    pub(crate) agent_copy: Option<oneshot::Receiver<Option<String>>>,
}

impl ForkedChat {
    /// The events with which the chat starts in a new session. `moved` rewrites the paths of its pasted files.
    pub(crate) fn changes(&self, session: &SessionId, at: Timestamp, moved: &PastePathRewriter) -> Vec<Change> {
        let (chat, origin, older) = (&self.chat, self.origin.clone(), self.turns.older);
        let turns: Vec<_> = self.turns.turns.iter().map(|turn| in_another_session(turn, moved)).collect();
        let mut changes = Vec::new();
        if chat.as_str() != Session::MAIN_CHAT {
            let new = Chat {
                uri: Some(format!("ahp-chat:/{chat}")),
                title: self.title.clone(),
                origin: Some(origin.clone()),
                is_read: self.is_read,
                is_archived: self.is_archived,
                ..Chat::new(chat.clone(), at)
            };
            changes.push(Change::Session(session.clone(), SessionEvent::ChatAdded(new.row())));
        }
        let mut add = |event| changes.push(Change::Chat(session.clone(), chat.clone(), event));
        match origin.is_shown() {
            true => add(ChatEvent::TurnsInherited { origin, turns, older }),
            // A side chat does not show the turns that it is about.
            false => {
                add(ChatEvent::TurnsInherited { origin, turns: Vec::new(), older: false });
                if !turns.is_empty() {
                    add(ChatEvent::BranchTurnsLoaded { turns, older });
                }
            }
        }
        changes
    }
}

/// A turn as another session has it.
///
/// It is shared, unless its text or its attached bytes name files that are stored with the first.
fn in_another_session(turn: &Arc<Turn>, moved: &PastePathRewriter) -> Arc<Turn> {
    if let Some(turn) = pastes::in_turn(moved, turn) {
        return turn;
    }
    match turn.parts.iter().any(|part| !content::named_in(part).is_empty()) {
        true => Arc::new(Turn { derived: DerivedCache::default(), ..Turn::clone(turn) }),
        false => turn.clone(),
    }
}

impl SessionTask {
    /// Adopts the contents of other sessions' chats.
    pub(super) async fn inherit(&mut self, forked: Vec<ForkedChat>) {
        let mut indexes = HashMap::new();
        for ForkedChat { chat, index, agent_copy, .. } in forked {
            if let Some(copy) = agent_copy {
                self.agents.inherit(&chat, copy);
            }
            indexes.extend(index.map(|index| (chat, index)));
        }
        self.begin_copies(indexes).await;
    }

    /// Creates a chat as a fork of another one, up to one of its turns.
    pub(super) async fn fork_chat(
        &mut self,
        source: &ChatId,
        turn: TurnId,
        chat: ChatId,
        uri: String,
        kind: OriginKind,
    ) -> Result<Result<(), TreeError>, HostStopped> {
        let prepared = async {
            let seen = self.look(source).await?;
            let (seen, place) = self.find_turn(source, seen, &turn).await?;
            let window = match self.shown_until(source, &turn) {
                Some(window) => window,
                None => self.turns_at(source, Some(&seen), Some(place.last)).await?,
            };
            self.make_room_for(&chat).await?;
            Ok::<_, TreeError>((seen, place, window))
        };
        let (seen, place, window) = match prepared.await {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Err(error)),
        };
        let log = LogPart {
            boundary: seen.index.log_length(),
            extent: LogScope::Branch,
            leaf: Some(seen.index.id(place.last).into_owned()),
            until: None,
        };
        let origin = Arc::new(self.origin_in(source, Some(turn), kind, log));
        let LoggedTurns { turns, older } = window;
        let command = HostCommand::ForkChat { chat: chat.clone(), uri, origin, turns, older };
        Ok(match self.attempt(command, None).await? {
            Ok(_) => {
                self.begin_copy(&chat, Some(seen.index)).await;
                Ok(())
            }
            Err(refused) => Err(TreeError::Refused(refused)),
        })
    }

    /// The origin of a fork of one of this session's chats.
    fn origin_in(&self, chat: &ChatId, turn: Option<TurnId>, kind: OriginKind, log: LogPart) -> ChatOrigin {
        ChatOrigin {
            session: self.tip.id.clone(),
            store: self.tip.store.clone(),
            chat: chat.clone(),
            uri: self.tip.chat(chat).and_then(|chat| chat.uri.clone()),
            turn,
            kind,
            log,
        }
    }

    /// Notes in the log that a session was forked from this one. Nobody waits for that, and it fails nothing.
    pub(super) async fn note_fork(
        &mut self,
        fork: SessionId,
        title: &str,
        origin: &ChatOrigin,
    ) -> Result<(), HostStopped> {
        let chat = &origin.chat;
        let planned = async {
            let Some(seen) = self.look(chat).await? else { return Ok(None) };
            let id = info::id_of("into", &fork);
            if seen.index.find(&id).is_some() {
                // A killed host has copied it before.
                return Ok(None);
            }
            let leaf = seen.index.leaf().map(|leaf| seen.index.id(leaf));
            let stamp = Stamp { id: &id, parent: leaf.as_deref(), at: self.session_context.env.clock.now() };
            let line = info::forked_into(stamp, &fork, title, origin);
            let after = self.tip.chat(chat).and_then(|chat| chat.turns.last()).map(|turn| turn.id.clone());
            Ok::<_, TreeError>(Some(LogEntry { line: String::from_utf8_lossy(&line).into(), after }))
        };
        let noted = match planned.await {
            Ok(None) => return Ok(()),
            Ok(Some(entry)) => {
                let command = HostCommand::AddEntries { chat: chat.clone(), entries: vec![entry], resets_agent: false };
                self.attempt(command, None).await?.map(|_| ()).map_err(|refusal| refusal.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        match noted {
            Ok(()) => self.workspace.count_fork(),
            Err(error) => {
                tracing::warn!(session = %self.tip.id, %fork, %error, "a fork is not noted at its source");
            }
        }
        Ok(())
    }

    /// Copies the logs that are missing.
    ///
    /// `indexes` are those of their sources' logs, if they are known.
    pub(super) async fn begin_copies(&mut self, mut indexes: HashMap<ChatId, Arc<LogIndex>>) {
        for chat in self.copies.chats() {
            let is_there = self.logs.store().exists(&paths::log(&self.tip.id, &chat)).await;
            // If that is unknown, the copy will report why.
            if is_there.unwrap_or(false) {
                self.copies.remove(&chat);
                self.settle_artifacts(&chat);
            } else {
                let index = indexes.remove(&chat);
                self.begin_copy(&chat, index).await;
            }
        }
    }

    /// Copies the log of a new chat.
    async fn begin_copy(&mut self, chat: &ChatId, index: Option<Arc<LogIndex>>) {
        let Some(origin) = self.tip.chat(chat).and_then(|chat| chat.origin.clone()) else { return };
        let hold = self.session_context.copies.hold(&origin.session, Some(&self.tip.id));
        // A new chat has its inherited turns and nothing else.
        let turns = self.tip.chat(chat).filter(|_| index.is_some()).map(|chat| chat.turns.clone());
        let is_main = chat.as_str() == Session::MAIN_CHAT;
        let source = paths::log(&origin.session, &origin.chat);
        let to = self.logs.store();
        let env = &self.session_context.env;
        let from = match origin.session == self.tip.id {
            true => to.clone(),
            // If its store is gone, the copy will report that its source is missing.
            false => env.stores.find_holder(&origin.store, &source).await.unwrap_or_else(|_| to.clone()),
        };
        let after = (is_main && origin.session != self.tip.id).then(|| self.announce_fork(&origin));
        let job = CopyJob {
            from,
            to,
            origin,
            index,
            session: self.tip.id.clone(),
            chat: chat.clone(),
            title: self.tip.title.clone(),
            at: if is_main { self.tip.created_at } else { env.clock.now() },
            cwd: self.tip.working_directories.first().map_or("/", String::as_str).to_owned(),
        };
        self.copies.begin(job, turns, after, hold, env);
    }

    /// Tells this session which files came with its log, and its source that it was forked.
    fn announce_fork(&self, origin: &Arc<ChatOrigin>) -> Task {
        let (store, session) = (self.logs.store(), self.tip.id.clone());
        let (inbox, host) = (self.inbox_sender.clone(), self.session_context.host.clone());
        let source = origin.session.clone();
        let title = self.tip.title.clone();
        let forked = ToSession::Forked { fork: session.clone(), title, origin: origin.clone() };
        Box::pin(async move {
            send_workspace_scan(store.as_ref(), &session, &inbox).await;
            // A source that is not open is not opened for this.
            if let Some(source) = host.upgrade().and_then(|host| Host(host).open_session(&source)) {
                source.inbox.send(forked).await.ok();
            }
        })
    }

    /// Completes the steps after a copy that a killed host did not get to.
    fn settle_artifacts(&self, chat: &ChatId) {
        let origin = self.tip.chat(chat).and_then(|chat| chat.origin.as_ref());
        // The files beside the logs come with the main chat's.
        if chat.as_str() != Session::MAIN_CHAT || origin.is_none_or(|origin| origin.session == self.tip.id) {
            return;
        }
        let (store, session, inbox) = (self.logs.store(), self.tip.id.clone(), self.inbox_sender.clone());
        let is_known = self.tip.details.workspace.is_some();
        self.session_context.env.spawn.spawn(Box::pin(async move {
            if let Err(error) = artifacts::settle(store.as_ref(), &paths::folder(&session)).await {
                tracing::debug!(%session, %error, "the note about a copy could not be removed");
            }
            if !is_known {
                send_workspace_scan(store.as_ref(), &session, &inbox).await;
            }
        }));
    }

    /// Waits until a chat's log is complete. The error gives the reason if it is not; it will be retried.
    pub(super) async fn copied(&mut self, chat: &ChatId) -> Result<(), TreeError> {
        let log = self.copies.wait(chat).await.map_err(TreeError::NotCopied)?;
        self.logs.adopt(chat, log);
        Ok(())
    }

    /// Removes the log of a deleted chat whose name is used again.
    pub(super) async fn make_room_for(&mut self, chat: &ChatId) -> Result<(), FsError> {
        if self.tip.chat(chat).is_some() || chat.as_str().is_empty() {
            return Ok(());
        }
        session_file::make_room_for_chat(self.logs.store().as_ref(), &self.tip.id, chat).await
    }
}

/// Tells a session's task about the files in its folder beside the log.
async fn send_workspace_scan(store: &dyn SessionFs, session: &SessionId, inbox: &WeakSender<ToSession>) {
    match scan_workspace(store, &paths::folder(session)).await {
        Ok(found) => {
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(ToSession::WorkspaceScanned(found)).await.ok();
            }
        }
        Err(error) => tracing::warn!(%session, %error, "a fork's artifacts could not be read"),
    }
}
