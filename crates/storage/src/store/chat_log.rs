//! A chat's log: written after the journal, one whole turn at a time.
//!
//! The journal makes an event durable; other programs and a later host find the conversation in the log. So a log that
//! cannot be written fails nothing: the next turn catches up.

mod extent;
pub(crate) mod info_entries;
mod snapshot;
mod verdict;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grove_core::*;
use grove_fs::{Backend, FsError, SessionFs};
use grove_tree::settings::{BranchSettings, settings_at};
use grove_tree::turns::{TurnAttribution, header_line, name_line, parse_turn_end, settings_lines, turn_lines};
use grove_tree::{AppendError, Ending, EntryNo, Indexer, LogError, LogIndex, Owner, Role, store};

use sha2::{Digest, Sha256};

use self::extent::Checksum;
use self::info_entries::InfoEntries;
pub use self::info_entries::InfoEntry;
pub use self::snapshot::{LogBytes, LogReaderCrash, LogSnapshot, raw_line};
pub use self::verdict::LoggedVerdict;
use super::{log_lock, paths, settings};

/// The log of a chat.
#[derive(Debug)]
pub struct ChatLog {
    fs: Arc<dyn SessionFs>,
    session: SessionId,
    chat: ChatId,
    path: String,
    side_path: String,
    /// The length of the log that its side index covers.
    indexed: u64,
    /// The log as it is on disk, once it was read.
    written: Option<LogState>,
    /// The checksum of its beginning, once it was computed.
    checksum: Option<Checksum>,
    /// It was replaced as a whole, so that facts about its bytes are outdated.
    is_replaced: AtomicBool,
}

/// The growth of a log after which its side index is rebuilt. The rest is read when the log is opened next.
const INDEX_EVERY: u64 = 1 << 20;

#[derive(Clone, Debug)]
struct LogState {
    /// Shared with concurrent readers of the tree.
    index: Arc<LogIndex>,
    turns: HashSet<TurnId>,
    /// Each with its start: on another branch a turn may have the same id.
    begun: HashSet<(TurnId, Timestamp)>,
    /// The header of a log that does not exist yet.
    /// It is written with the first append: each append may be a call to another program.
    header: Option<Vec<u8>>,
    /// Model, thinking level and mode on the branch of the leaf, once they were read.
    settings: Option<BranchSettings>,
    /// The newest entries outside turns that tell of the session, once they were read.
    infos: Option<InfoEntries>,
    /// Says whether these are all turns of the log, not only its newest.
    is_complete: bool,
}

impl LogState {
    /// Says whether a turn is in the log, and not just one of the same id on another branch.
    fn has(&self, turn: &Turn) -> bool {
        self.begun.contains(&(turn.id.clone(), turn.started_at)) || self.has_foreign(turn)
    }

    /// Says whether another program wrote this turn, which has no end record then.
    fn has_foreign(&self, turn: &Turn) -> bool {
        let time = |first| self.index.time(first).and_then(|time| u64::try_from(time).ok());
        self.foreign(&turn.id).and_then(time) == Some(turn.started_at.0)
    }

    /// The first entry of a turn that another program wrote. It has no end record and is named by that entry.
    fn foreign(&self, turn: &TurnId) -> Option<EntryNo> {
        self.index.find(turn.as_str()).filter(|first| self.index.role(*first) == Some(Role::User))
    }
}

/// The reason why the log of a chat could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ChatLogError {
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl ChatLog {
    pub fn new(fs: Arc<dyn SessionFs>, session: &SessionId, chat: ChatId) -> Self {
        let (path, side_path) = (paths::log(session, &chat), paths::side_index(session, &chat));
        let (session, is_replaced) = (session.clone(), AtomicBool::new(false));
        Self { fs, session, chat, path, side_path, indexed: 0, written: None, checksum: None, is_replaced }
    }

    /// A log that was just made with known contents: these turns, and older ones.
    pub fn made(
        fs: Arc<dyn SessionFs>,
        session: &SessionId,
        chat: ChatId,
        index: LogIndex,
        turns: &[Arc<Turn>],
    ) -> Self {
        let written = LogState {
            index: Arc::new(index),
            turns: HashSet::new(),
            begun: HashSet::new(),
            header: None,
            settings: None,
            infos: None,
            is_complete: false,
        };
        let mut log = Self { written: Some(written), ..Self::new(fs, session, chat) };
        log.note(turns);
        log
    }

    /// An existing log, read.
    pub async fn opened(fs: Arc<dyn SessionFs>, session: &SessionId, chat: ChatId) -> Result<Self, ChatLogError> {
        let mut log = Self::new(fs, session, chat);
        let _held = log_lock::hold(log.fs.as_ref(), &log.path).await?;
        log.written = Some(log.read_written().await?);
        Ok(log)
    }

    /// Marks turns as written that were read from the log.
    pub fn note(&mut self, turns: &[Arc<Turn>]) {
        if let Some(written) = &mut self.written {
            written.turns.extend(turns.iter().map(|turn| turn.id.clone()));
            // Turns of other programs are found in the index: counting them here would promise end records that the log
            // lacks.
            let ended: Vec<_> = turns.iter().filter(|turn| !written.has_foreign(turn)).collect();
            written.begun.extend(ended.into_iter().map(|turn| (turn.id.clone(), turn.started_at)));
        }
    }

    /// Says whether the log has a turn of this id, on any branch. A missing log has none.
    pub async fn has_turn(&mut self, turn: &TurnId) -> Result<bool, ChatLogError> {
        if !self.written.as_ref().is_some_and(|written| written.is_complete) {
            let _held = log_lock::hold(self.fs.as_ref(), &self.path).await?;
            if !self.fs.exists(&self.path).await? {
                return Ok(false);
            }
            self.written = Some(self.read_written().await?);
        }
        let has = |written: &LogState| written.turns.contains(turn) || written.foreign(turn).is_some();
        Ok(self.written.as_ref().is_some_and(has))
    }

    /// Writes everything that the log lacks: the chat's name, and finished turns.
    pub async fn catch_up(&mut self, session: &Session) -> Result<(), ChatLogError> {
        let _held = log_lock::hold(self.fs.as_ref(), &self.path).await?;
        self.catch_up_held(session).await
    }

    /// Writes decisions that the log does not have yet.
    pub async fn record(
        &mut self,
        session: &Session,
        permissions: impl Iterator<Item = &LoggedVerdict>,
    ) -> Result<(), ChatLogError> {
        let permissions: Vec<&LoggedVerdict> = permissions.collect();
        if permissions.is_empty() {
            return Ok(());
        }
        let _held = log_lock::hold(self.fs.as_ref(), &self.path).await?;
        let mut written = match self.written.take() {
            Some(written) => written,
            None => self.open(session).await?,
        };
        for permission in permissions {
            if written.index.find(&permission.id()).is_none() {
                let leaf = written.index.leaf().map(|leaf| written.index.id(leaf).into_owned());
                self.append(&mut written, &permission.line(leaf.as_deref())).await?;
            }
        }
        // After a failure half-way the log is read again next time.
        self.written = Some(written);
        Ok(())
    }

    /// Catches up while the caller holds the log's lock.
    async fn catch_up_held(&mut self, session: &Session) -> Result<(), ChatLogError> {
        let Some(chat) = session.chat(&self.chat) else { return Ok(()) };
        if chat.turns.is_empty() && chat.unlogged.is_empty() {
            return Ok(());
        }
        let written = match self.written.take() {
            Some(written) => written,
            None => self.open(session).await?,
        };
        // After a failure half-way the log is read again next time.
        let (mut written, appended) = self.append_missing(written, session, chat).await?;
        if written.header.is_some() {
            self.append(&mut written, b"").await?;
        }
        if appended {
            // The journal releases what is here, so it must be on the disk. A storage client is responsible for its own
            // disk.
            if self.fs.backend() != Backend::Rpc {
                self.fs.sync(&self.path).await?;
            }
            if written.index.log_length() >= self.indexed + INDEX_EVERY {
                let (fs, index) = (self.fs.as_ref(), &written.index);
                if store::write_side_index(fs, &self.path, &self.side_path, index).await.is_err() {
                    // The log can be read without it, and not every store accepts bytes.
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
        mut written: LogState,
        session: &Session,
        chat: &Chat,
    ) -> Result<(LogState, bool), ChatLogError> {
        let turns = chat.turns.as_slice();
        let before = written.index.len();
        let leaf = |index: &LogIndex| index.leaf().map(|leaf| index.id(leaf).into_owned());
        self.append_entries(&mut written, chat).await?;
        // The newest are the ones that are missing.
        let missing = turns.iter().rev().take_while(|turn| !written.has(turn)).count();
        let ends = seen_ends(&turns[turns.len() - missing..], chat.touched_at);
        for ((at, turn), seen_end) in turns.iter().enumerate().skip(turns.len() - missing).zip(ends) {
            self.append_settings(&mut written, session, turn.started_at).await?;
            let origin = TurnAttribution {
                session: &session.id,
                agent: &session.agent,
                model: session.model.as_ref(),
                spent: turns[..at].iter().rev().find_map(|turn| turn.usage.as_ref()?.cost.as_ref()),
                seen_end: Some(seen_end),
            };
            let parent = leaf(&written.index);
            let lines = turn_lines(turn, origin, parent.as_deref(), &|id| written.index.find(id).is_some());
            self.append(&mut written, &lines.bytes).await?;
            written.turns.insert(turn.id.clone());
            written.begun.insert((turn.id.clone(), turn.started_at));
            self.append_entries(&mut written, chat).await?;
        }
        self.append_settings(&mut written, session, chat.touched_at.max(session.modified_at)).await?;
        // The main chat has the session's name. A title made from the first prompt is not written: readers of the log
        // have that prompt.
        let is_given = session.title_source > TitleSource::Prompt;
        let (name, at) = match self.chat.as_str() {
            Session::MAIN_CHAT if is_given => (session.title.as_str(), session.modified_at),
            Session::MAIN_CHAT => ("", session.modified_at),
            _ => (chat.title.as_str(), chat.touched_at),
        };
        // Other programs do not normalize names: names that only differ in that are the same.
        let known = written.index.name().and_then(|name| normalized_title(&name)).unwrap_or_default();
        if name != known {
            let parent = leaf(&written.index);
            let is_taken = |id: &str| written.index.find(id).is_some();
            let lines = name_line(&session.id, name, at, parent.as_deref(), &is_taken);
            self.append(&mut written, &lines.bytes).await?;
        }
        let appended = written.index.len() > before;
        Ok((written, appended))
    }

    /// Writes model, thinking level and mode at the leaf, if its branch has others.
    async fn append_settings(
        &self,
        written: &mut LogState,
        session: &Session,
        at: Timestamp,
    ) -> Result<(), ChatLogError> {
        let current = settings::current(session);
        let known = match written.settings.take() {
            Some(known) => known,
            None => settings_at(self.fs.as_ref(), &self.path, &written.index, written.index.leaf()).await?,
        };
        let parent = written.index.leaf().map(|leaf| written.index.id(leaf).into_owned());
        let is_taken = |id: &str| written.index.find(id).is_some();
        let lines = settings_lines(&session.id, &known, &current, at, parent.as_deref(), &is_taken);
        if !lines.bytes.is_empty() {
            self.append(written, &lines.bytes).await?;
        }
        written.settings = Some(BranchSettings {
            model: current.model.or(known.model),
            thinking_level: current.thinking_level.or(known.thinking_level),
            mode: current.mode.or(known.mode),
        });
        Ok(())
    }

    /// Writes entries outside turns, if the entries before them are written.
    async fn append_entries(&self, written: &mut LogState, chat: &Chat) -> Result<(), ChatLogError> {
        for entry in &chat.unlogged {
            let has = |turn: &TurnId| written.turns.contains(turn) || written.foreign(turn).is_some();
            if entry.after.as_ref().is_some_and(|after| !has(after)) {
                break;
            }
            // It may have been written before a crash.
            if entry_id(&entry.line).is_some_and(|id| written.index.find(&id).is_none()) {
                // It may put the leaf on another branch.
                written.settings = None;
                self.append_entry(written, &entry.line).await?;
            }
        }
        Ok(())
    }

    /// Writes an entry outside turns.
    ///
    /// If its parent is missing, because somebody deleted lines of the log, the leaf is its parent. An entry that does
    /// not fit then either is left out, so that it holds up nothing else.
    async fn append_entry(&self, written: &mut LogState, line: &str) -> Result<(), ChatLogError> {
        let refused = match self.append(written, format!("{line}\n").as_bytes()).await {
            Err(ChatLogError::Append(refused)) => refused,
            done => return done,
        };
        let leaf = written.index.leaf().map(|leaf| written.index.id(leaf).into_owned());
        let moved = with_parent(line, leaf.as_deref()).filter(|_| matches!(refused, AppendError::UnknownParent { .. }));
        let refused = match moved {
            None => refused,
            Some(line) => match self.append(written, &line).await {
                Err(ChatLogError::Append(refused)) => refused,
                done => return done,
            },
        };
        tracing::warn!(log = %self.path, %refused, "an entry does not fit its log and is left out");
        Ok(())
    }

    /// Appends lines. The index checks them first: a line that it refuses is never written.
    ///
    /// After an error the index may have lines that the log lacks, and must be read again, unless the first line was
    /// refused.
    async fn append(&self, written: &mut LogState, lines: &[u8]) -> Result<(), ChatLogError> {
        let next = Arc::make_mut(&mut written.index);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            next.append(line)?;
            if let (Some(infos), Some(entry)) = (&mut written.infos, next.entries().next_back()) {
                infos.note(next, entry, line);
            }
        }
        match &written.header {
            Some(header) => self.fs.append_file(&self.path, &[header.as_slice(), lines].concat()).await?,
            None => self.fs.append_file(&self.path, lines).await?,
        }
        written.header = None;
        Ok(())
    }

    /// Opens the existing log and repairs its end as a crash leaves it, or creates a log.
    async fn open(&self, session: &Session) -> Result<LogState, ChatLogError> {
        let fs = self.fs.as_ref();
        if !fs.exists(&self.path).await? {
            let header = header_line(session);
            let mut indexer = Indexer::new();
            indexer.feed(&header);
            let index = Arc::new(indexer.finish()?);
            return Ok(LogState {
                index,
                turns: HashSet::new(),
                begun: HashSet::new(),
                header: Some(header),
                settings: None,
                infos: Some(InfoEntries::default()),
                is_complete: true,
            });
        }
        let written = self.read_written().await?;
        if written.index.header().is_none() {
            fs.append_file(&self.path, &header_line(session)).await?;
            return self.read_written().await;
        }
        Ok(written)
    }

    /// Reads an existing log and repairs its end.
    async fn read_written(&self) -> Result<LogState, ChatLogError> {
        let fs = self.fs.as_ref();
        let mut index = self.read().await?;
        match index.ending() {
            Ending::Whole => {}
            Ending::NoNewline => {
                fs.append_file(&self.path, b"\n").await?;
                index = self.read().await?;
            }
            Ending::Torn { offset } => {
                // To the end, wherever it is: a storage client's sizes need not be bytes.
                let torn = fs.read_range(&self.path, offset, usize::MAX).await?;
                tracing::warn!(
                    session = %self.session, chat = %self.chat, bytes = torn.len(),
                    "the last line of a log is cut off: it is kept beside the log, in a file that ends with .torn"
                );
                fs.append_file(&format!("{}.torn", self.path), &torn).await?;
                fs.truncate(&self.path, offset).await?;
                index = self.read().await?;
            }
        }
        let own: Vec<_> = index.entries().filter(|entry| index.owner(*entry) == Owner::Grove).collect();
        let lines = store::read_lines(fs, &self.path, &index, &own).await?;
        let begun: HashSet<_> = lines.iter().filter_map(|line| parse_turn_end(line)).collect();
        let turns = begun.iter().map(|(turn, _)| turn.clone()).collect();
        Ok(LogState {
            index: Arc::new(index),
            turns,
            begun,
            header: None,
            settings: None,
            infos: None,
            is_complete: true,
        })
    }

    /// The log as it is on the disk, with all finished turns; `None` if there is none yet.
    pub async fn look(&mut self, session: &Session) -> Result<Option<LogSnapshot>, ChatLogError> {
        let _held = log_lock::hold(self.fs.as_ref(), &self.path).await?;
        self.catch_up_held(session).await?;
        if self.written.is_none() && self.fs.exists(&self.path).await? {
            self.written = Some(self.open(session).await?);
        }
        let seen = self.written.as_ref().map(|written| LogSnapshot {
            fs: self.fs.clone(),
            path: self.path.clone(),
            index: written.index.clone(),
        });
        Ok(seen)
    }

    /// The newest entries outside turns that tell of the session: compactions, and Grove's own notes. Those on other
    /// branches are among them.
    pub async fn info_entries(&mut self, session: &Session) -> Result<Vec<InfoEntry>, ChatLogError> {
        let _held = log_lock::hold(self.fs.as_ref(), &self.path).await?;
        self.catch_up_held(session).await?;
        let Some(mut written) = self.written.take() else { return Ok(Vec::new()) };
        if written.infos.is_none() {
            written.infos = Some(InfoEntries::read(self.fs.as_ref(), &self.path, &written.index).await?);
        }
        let found = written.infos.iter().flat_map(InfoEntries::all).cloned().collect();
        self.written = Some(written);
        Ok(found)
    }

    /// Reads the log. One of an older version is replaced by its migrated form, since an append follows.
    async fn read(&self) -> Result<LogIndex, ChatLogError> {
        let mut count = 0;
        let mut new_id = || {
            count += 1;
            hex::encode(&Sha256::digest(format!("{}\n{count}", self.path))[..4])
        };
        let opened =
            store::open_log_with_side_index(self.fs.as_ref(), &self.path, &self.side_path, &mut new_id).await?;
        if let Some(migrated) = opened.migrated {
            self.fs.write_file(&self.path, &migrated.bytes).await?;
            self.is_replaced.store(true, Ordering::Relaxed);
        }
        Ok(opened.index)
    }
}

/// The end times of turns by the host's clock, the newest of which has just ended.
///
/// Earlier ones ended at the latest when the next one started.
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

/// An entry's line with another parent.
fn with_parent(line: &str, parent: Option<&str>) -> Option<Vec<u8>> {
    let mut entry: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).ok()?;
    entry.insert("parentId".to_owned(), parent.into());
    let mut line = serde_json::to_vec(&entry).ok()?;
    line.push(b'\n');
    Some(line)
}

/// The id of an entry.
pub(crate) fn entry_id(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct EntryHead {
        id: String,
    }
    serde_json::from_str::<EntryHead>(line).ok().map(|named| named.id)
}
