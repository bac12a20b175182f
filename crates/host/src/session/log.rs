//! A chat's log: written behind the journal, one whole turn at a time.
//!
//! The journal is what makes an event durable; the log is how other programs, and a later host, find the conversation.
//! So a log that cannot be written fails nothing: it is caught up with at the next turn.

use std::collections::HashSet;
use std::sync::Arc;

use grove_core::*;
use grove_fs::{FsError, SessionFs};
use grove_tree::turns::{Origin, ended_turn, header_line, name_line, turn_lines};
use grove_tree::{AppendError, Ending, EntryNo, Index, LogError, Owner, Role, store};

use sha2::{Digest, Sha256};

use crate::store::artifacts::moment;
use crate::store::{locking, paths};

/// The log of a chat.
#[derive(Debug)]
pub(super) struct ChatLog {
    fs: Arc<dyn SessionFs>,
    chat: ChatId,
    path: String,
    side_path: String,
    /// How much of the log its side index covers.
    indexed: u64,
    /// The log as it is on disk, once it was looked at.
    written: Option<Written>,
}

/// How much a log grows before its side index is made anew. What is behind it is read at the next opening.
const INDEX_EVERY: u64 = 1 << 20;

#[derive(Clone, Debug)]
struct Written {
    /// Shared with whoever looks at the tree meanwhile.
    index: Arc<Index>,
    turns: HashSet<TurnId>,
    /// Each with when it began: on another branch a turn may have the same id.
    begun: HashSet<(TurnId, Timestamp)>,
    /// Whether these are all turns of the log, and not its newest alone.
    is_complete: bool,
}

impl Written {
    /// Whether a turn is in the log, and not just one of the same id on another branch.
    fn has(&self, turn: &Turn) -> bool {
        let time = |first| self.index.time(first).and_then(|time| u64::try_from(time).ok());
        self.begun.contains(&(turn.id.clone(), turn.started_at))
            || self.foreign(&turn.id).and_then(time) == Some(turn.started_at.0)
    }

    /// The first entry of a turn that another program wrote. It has no end of its own and is called by that entry.
    fn foreign(&self, turn: &TurnId) -> Option<EntryNo> {
        self.index.find(turn.as_str()).filter(|first| self.index.role(*first) == Some(Role::User))
    }
}

/// A log at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) fs: Arc<dyn SessionFs>,
    pub(crate) path: String,
    pub(crate) index: Arc<Index>,
}

/// A verdict on what an agent asked, as a log keeps it where the agent must not learn of it before.
#[derive(Clone, Debug)]
pub(super) struct Permission {
    pub(super) turn: TurnId,
    pub(super) call: ToolCallId,
    pub(super) request: RequestId,
    pub(super) tool: String,
    pub(super) decision: Decision,
    pub(super) at: Timestamp,
}

impl Permission {
    /// It follows from what was asked, so that what is written again after a failure is there once.
    fn id(&self) -> String {
        let Self { turn, call, request, .. } = self;
        hex::encode(&Sha256::digest(format!("permission {turn} {call} {request}"))[..4])
    }

    fn line(&self, parent: Option<&str>) -> Vec<u8> {
        let mut line = serde_json::json!({
            "type": "custom",
            "customType": PERMISSION,
            "data": {
                "turn": self.turn,
                "call": self.call,
                "tool": self.tool,
                "decision": self.decision,
                "at": self.at,
            },
            "id": self.id(),
            "parentId": parent,
            "timestamp": format!("{:.3}", moment(self.at)),
        })
        .to_string();
        line.push('\n');
        line.into_bytes()
    }
}

/// The type of such an entry.
const PERMISSION: &str = "grove.permission";

#[derive(Debug, thiserror::Error)]
pub(crate) enum ChatLogError {
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl ChatLog {
    pub(super) fn new(fs: Arc<dyn SessionFs>, session: &SessionId, chat: ChatId) -> Self {
        let (path, side_path) = (paths::log(session, &chat), paths::side_index(session, &chat));
        Self { fs, chat, path, side_path, indexed: 0, written: None }
    }

    /// A log that was just made, of which it is known what is in it: these turns, and older ones.
    pub(super) fn made(
        fs: Arc<dyn SessionFs>,
        session: &SessionId,
        chat: ChatId,
        index: Index,
        turns: &[Arc<Turn>],
    ) -> Self {
        let written =
            Written { index: Arc::new(index), turns: HashSet::new(), begun: HashSet::new(), is_complete: false };
        let mut log = Self { written: Some(written), ..Self::new(fs, session, chat) };
        log.note(turns);
        log
    }

    /// A log that is there, read.
    pub(super) async fn opened(
        fs: Arc<dyn SessionFs>,
        session: &SessionId,
        chat: ChatId,
    ) -> Result<Self, ChatLogError> {
        let mut log = Self::new(fs, session, chat);
        let _held = locking::hold(log.fs.as_ref(), &log.path).await?;
        log.written = Some(log.read_written().await?);
        Ok(log)
    }

    /// Takes turns that are shown from the log for written.
    pub(super) fn note(&mut self, turns: &[Arc<Turn>]) {
        if let Some(written) = &mut self.written {
            written.turns.extend(turns.iter().map(|turn| turn.id.clone()));
            written.begun.extend(turns.iter().map(|turn| (turn.id.clone(), turn.started_at)));
        }
    }

    /// Whether the log has a turn of this id, on whatever branch. A log that is not there has none.
    pub(super) async fn has_turn(&mut self, turn: &TurnId) -> Result<bool, ChatLogError> {
        if !self.written.as_ref().is_some_and(|written| written.is_complete) {
            let _held = locking::hold(self.fs.as_ref(), &self.path).await?;
            if !self.fs.exists(&self.path).await? {
                return Ok(false);
            }
            self.written = Some(self.read_written().await?);
        }
        let has = |written: &Written| written.turns.contains(turn) || written.foreign(turn).is_some();
        Ok(self.written.as_ref().is_some_and(has))
    }

    /// Writes what the log does not have yet: the chat's name, and turns that are over.
    pub(super) async fn catch_up(&mut self, session: &Session) -> Result<(), ChatLogError> {
        let _held = locking::hold(self.fs.as_ref(), &self.path).await?;
        self.catch_up_held(session).await
    }

    /// Writes verdicts that the log does not have yet.
    pub(super) async fn record(
        &mut self,
        session: &Session,
        permissions: impl Iterator<Item = &Permission>,
    ) -> Result<(), ChatLogError> {
        let permissions: Vec<&Permission> = permissions.collect();
        if permissions.is_empty() {
            return Ok(());
        }
        let _held = locking::hold(self.fs.as_ref(), &self.path).await?;
        let mut written = match self.written.take() {
            Some(written) => written,
            None => self.open(session).await?,
        };
        for permission in permissions {
            if written.index.find(&permission.id()).is_none() {
                let leaf = written.index.leaf().map(|leaf| written.index.id(leaf).into_owned());
                self.append(&mut written.index, &permission.line(leaf.as_deref())).await?;
            }
        }
        // What fails half-way is looked at anew next time.
        self.written = Some(written);
        Ok(())
    }

    /// The same by whoever holds the log's lock.
    async fn catch_up_held(&mut self, session: &Session) -> Result<(), ChatLogError> {
        let Some(chat) = session.chat(&self.chat) else { return Ok(()) };
        if chat.turns.is_empty() && chat.unlogged.is_empty() {
            return Ok(());
        }
        let written = match self.written.take() {
            Some(written) => written,
            None => self.open(session).await?,
        };
        // What fails half-way is looked at anew next time.
        let (written, appended) = self.append_missing(written, session, chat).await?;
        if appended {
            // The journal lets go of what is here, so it must be on the disk.
            self.fs.sync(&self.path).await?;
            if written.index.log_length() >= self.indexed + INDEX_EVERY {
                let (fs, index) = (self.fs.as_ref(), &written.index);
                if store::write_side_index(fs, &self.path, &self.side_path, index).await.is_err() {
                    // The log can be read without it, and not every store takes bytes.
                    tracing::debug!("the index beside a log could not be written");
                }
                self.indexed = written.index.log_length();
            }
        }
        self.written = Some(written);
        Ok(())
    }

    async fn append_missing(
        &self,
        mut written: Written,
        session: &Session,
        chat: &Chat,
    ) -> Result<(Written, bool), ChatLogError> {
        let turns = chat.turns.as_slice();
        let before = written.index.len();
        let leaf = |index: &Index| index.leaf().map(|leaf| index.id(leaf).into_owned());
        self.append_entries(&mut written, chat).await?;
        // The newest are the ones that are missing.
        let missing = turns.iter().rev().take_while(|turn| !written.has(turn)).count();
        let ends = seen_ends(&turns[turns.len() - missing..], chat.touched_at);
        for ((at, turn), seen_end) in turns.iter().enumerate().skip(turns.len() - missing).zip(ends) {
            let origin = Origin {
                session: &session.id,
                provider: &session.provider,
                model: session.model.as_ref(),
                spent: turns[..at].iter().rev().find_map(|turn| turn.usage.as_ref()?.cost.as_ref()),
                seen_end: Some(seen_end),
            };
            let parent = leaf(&written.index);
            let lines = turn_lines(turn, origin, parent.as_deref(), &|id| written.index.find(id).is_some());
            self.append(&mut written.index, &lines.bytes).await?;
            written.turns.insert(turn.id.clone());
            written.begun.insert((turn.id.clone(), turn.started_at));
            self.append_entries(&mut written, chat).await?;
        }
        // The main chat bears the session's name.
        let (name, unnamed, at) = match self.chat.as_str() {
            Session::MAIN_CHAT => (session.title.as_str(), Session::UNTITLED, session.modified_at),
            _ => (chat.title.as_str(), "", chat.touched_at),
        };
        if name != unnamed && written.index.name().as_deref() != Some(name) {
            let parent = leaf(&written.index);
            let is_taken = |id: &str| written.index.find(id).is_some();
            let lines = name_line(&session.id, name, at, parent.as_deref(), &is_taken);
            self.append(&mut written.index, &lines.bytes).await?;
        }
        let appended = written.index.len() > before;
        Ok((written, appended))
    }

    /// Writes entries that belong to no turn, as far as what they stand behind is written.
    async fn append_entries(&self, written: &mut Written, chat: &Chat) -> Result<(), ChatLogError> {
        for entry in &chat.unlogged {
            let has = |turn: &TurnId| written.turns.contains(turn) || written.foreign(turn).is_some();
            if entry.after.as_ref().is_some_and(|after| !has(after)) {
                break;
            }
            // It was written before a crash, perhaps.
            if entry_id(&entry.line).is_some_and(|id| written.index.find(&id).is_none()) {
                self.append(&mut written.index, format!("{}\n", entry.line).as_bytes()).await?;
            }
        }
        Ok(())
    }

    async fn append(&self, index: &mut Arc<Index>, lines: &[u8]) -> Result<(), ChatLogError> {
        self.fs.append_file(&self.path, lines).await?;
        let index = Arc::make_mut(index);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            index.append(line)?;
        }
        Ok(())
    }

    /// Looks at the log that is there, mends its end as a crash leaves it, or begins one.
    async fn open(&self, session: &Session) -> Result<Written, ChatLogError> {
        let fs = self.fs.as_ref();
        if !fs.exists(&self.path).await? {
            fs.append_file(&self.path, &header_line(session)).await?;
        }
        let written = self.read_written().await?;
        if written.index.header().is_none() {
            fs.append_file(&self.path, &header_line(session)).await?;
            return self.read_written().await;
        }
        Ok(written)
    }

    /// What is in a log that is there. Its end is mended.
    async fn read_written(&self) -> Result<Written, ChatLogError> {
        let fs = self.fs.as_ref();
        let mut index = self.read().await?;
        match index.ending() {
            Ending::Whole => {}
            Ending::NoNewline => {
                fs.append_file(&self.path, b"\n").await?;
                index = self.read().await?;
            }
            Ending::Torn { offset } => {
                let size = usize::try_from(fs.stat(&self.path).await?.size).unwrap_or(usize::MAX);
                let torn = fs.read_range(&self.path, offset, size).await?;
                fs.append_file(&format!("{}.torn", self.path), &torn).await?;
                fs.truncate(&self.path, offset).await?;
                index = self.read().await?;
            }
        }
        let own: Vec<_> = index.entries().filter(|entry| index.owner(*entry) == Owner::Grove).collect();
        let lines = store::read_lines(fs, &self.path, &index, &own).await?;
        let begun: HashSet<_> = lines.iter().filter_map(|line| ended_turn(line)).collect();
        let turns = begun.iter().map(|(turn, _)| turn.clone()).collect();
        Ok(Written { index: Arc::new(index), turns, begun, is_complete: true })
    }

    /// The log as it is on the disk, with everything that is over; `None` where there is none yet.
    pub(super) async fn look(&mut self, session: &Session) -> Result<Option<Seen>, ChatLogError> {
        let _held = locking::hold(self.fs.as_ref(), &self.path).await?;
        self.catch_up_held(session).await?;
        if self.written.is_none() && self.fs.exists(&self.path).await? {
            self.written = Some(self.open(session).await?);
        }
        let seen = self.written.as_ref().map(|written| Seen {
            fs: self.fs.clone(),
            path: self.path.clone(),
            index: written.index.clone(),
        });
        Ok(seen)
    }

    /// Reads the log. One of an older version is replaced by its migrated form, since something is about to be appended.
    async fn read(&self) -> Result<Index, ChatLogError> {
        let mut count = 0;
        let mut new_id = || {
            count += 1;
            hex::encode(&Sha256::digest(format!("{}\n{count}", self.path))[..4])
        };
        let opened =
            store::open_log_with_side_index(self.fs.as_ref(), &self.path, &self.side_path, &mut new_id).await?;
        if let Some(migrated) = opened.migrated {
            self.fs.write_file(&self.path, &migrated.bytes).await?;
        }
        Ok(opened.index)
    }
}

/// When turns had ended by the host's clock, the newest of which has just ended. Those before it ended at the latest when
/// the next one began.
fn seen_ends(turns: &[Arc<Turn>], last: Timestamp) -> Vec<Timestamp> {
    let mut end = last;
    let mut ends: Vec<Timestamp> = turns
        .iter()
        .rev()
        .map(|turn| {
            let lasted = turn.ended_at.0.saturating_sub(turn.started_at.0);
            let begun = Timestamp(end.0.saturating_sub(lasted));
            std::mem::replace(&mut end, begun)
        })
        .collect();
    ends.reverse();
    ends
}

/// The id of an entry.
fn entry_id(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        id: String,
    }
    serde_json::from_str::<Named>(line).ok().map(|named| named.id)
}
