//! The log of a forked chat, copied from another one.
//!
//! It is written under another name and then renamed, so it is there whole or not at all: after a kill the copy starts
//! again. Bodies that are stored by reference come first, each whole or not at all, and for a forked session its
//! artifacts.

use std::ops::Range;
use std::sync::Arc;

use grove_core::*;
use grove_fs::copy::{CopyReport, PastePathRewriter, PathRewrite};
use grove_fs::{FsError, Removal, SessionFs};
use grove_tree::entries::Stamp;
use grove_tree::turns::{self, LoggedTurns, TurnLimit};
use grove_tree::{
    EntryNo, LogChunk, LogError, LogIndex, NewHeader, NewLog, NewLogError, Role, branch_log, empty_log, fork_index,
    fork_log, store,
};

use super::chat_log::{LogReaderCrash, LogSnapshot};
use super::checkpoints::{self, LoggedCheckpoints};
use super::session_file::LoadError;
use super::stores::Stores;
use super::{artifacts, content, info, pastes, paths, remove_if_present};

/// The size of one write.
const CHUNK: usize = 256 << 10;

/// A log to be copied.
#[derive(Debug)]
pub struct CopyJob {
    /// The store of the source.
    pub from: Arc<dyn SessionFs>,
    /// The store of the copy.
    pub to: Arc<dyn SessionFs>,
    pub origin: Arc<ChatOrigin>,
    /// The index of the source's log, if it was read when the fork was planned.
    /// It is dropped with the first attempt, since the log that it belongs to may need to continue.
    pub index: Option<Arc<LogIndex>>,
    pub session: SessionId,
    pub chat: ChatId,
    /// The title of the new session.
    pub title: String,
    pub at: Timestamp,
    pub cwd: String,
}

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    NewLog(#[from] NewLogError),
    #[error(transparent)]
    ReaderCrash(#[from] LogReaderCrash),
}

/// A log as it will be.
struct LogCopyPlan {
    log: NewLog,
    /// Its index, if that is known without reading it.
    index: Option<LogIndex>,
    /// The index of the source's log, if some of its lines must be changed.
    cut_from: Option<Arc<LogIndex>>,
    /// The checkpoints that are copied.
    named: LoggedCheckpoints,
    /// The references to files in the source's folder.
    references: FileReferences,
}

/// The references of a log to files in its session's folder: the entries that name them, in order, and the new paths.
struct FileReferences {
    /// Compactions name their checkpoints.
    compactions: Vec<(u64, usize)>,
    checkpoints: PathRewrite,
    /// User messages name pasted files.
    messages: Vec<(u64, usize)>,
    pastes: PastePathRewriter,
}

impl FileReferences {
    /// Without an index no entry names any.
    fn of(job: &CopyJob, index: Option<&LogIndex>) -> Self {
        let (source, fork) = (&job.origin.session, &job.session);
        let mut references = Self {
            compactions: Vec::new(),
            checkpoints: PathRewrite { from: paths::folder(source), to: paths::folder(fork), separator: '/' },
            messages: Vec::new(),
            pastes: pastes::moved((job.from.as_ref(), source), (job.to.as_ref(), fork)),
        };
        if let Some(index) = index {
            let place = |entry| (index.offset(entry), index.length(entry));
            let is_said = |entry: &EntryNo| index.role(*entry) == Some(Role::User);
            references.compactions = checkpoints::compactions(index).map(place).collect();
            references.messages = index.entries().filter(is_said).map(place).collect();
        }
        references
    }

    /// Says whether a position in the log is in a user message.
    fn is_said(&self, at: u64) -> bool {
        let behind = self.messages.partition_point(|(line, _)| *line <= at);
        let last = behind.checked_sub(1).and_then(|before| self.messages.get(before));
        last.is_some_and(|(line, size)| at < line + *size as u64)
    }
}

impl CopyJob {
    /// Copies the log, unless it is there, and before it the artifacts of a session.
    ///
    /// Returns the log's index if that is known without reading it.
    pub async fn run(&mut self) -> Result<Option<LogIndex>, CopyError> {
        let to = self.to.clone();
        let fs = to.as_ref();
        let path = paths::log(&self.session, &self.chat);
        if fs.exists(&path).await? {
            return Ok(None);
        }
        let planned = self.plan().await?;
        let mut info = None;
        let is_session = self.is_session();
        if is_session {
            content::copy_all((self.from.as_ref(), &self.origin.session), (fs, &self.session)).await?;
            let copied = self.copy_artifacts(&planned.named).await?;
            info = Some(self.fork_note(&planned.log, &copied));
        }
        let unfinished = format!("{path}.copy");
        remove_if_present(fs, &unfinished, Removal::One).await?;
        let index = self.write(planned, info, &unfinished).await?;
        fs.sync(&unfinished).await?;
        fs.rename(&unfinished, &path).await?;
        if is_session && let Err(error) = artifacts::settle(fs, &paths::folder(&self.session)).await {
            // It is retried when the session is opened.
            tracing::debug!(session = %self.session, %error, "the note about a copy could not be removed");
        }
        Ok(index)
    }

    /// Copies the log alone, without the artifacts beside it, to restore a damaged one.
    ///
    /// `with_note` adds the entry that says where a forked session comes from.
    pub(crate) async fn log_again(&mut self, with_note: bool) -> Result<Vec<u8>, CopyError> {
        let to = self.to.clone();
        let planned = self.plan().await?;
        let info = (self.is_session() && with_note).then(|| self.fork_note(&planned.log, &Ok(CopyReport::default())));
        let unfinished = format!("{}.copy", paths::log(&self.session, &self.chat));
        remove_if_present(to.as_ref(), &unfinished, Removal::One).await?;
        self.write(planned, info, &unfinished).await?;
        let bytes = to.read_file(&unfinished).await?;
        remove_if_present(to.as_ref(), &unfinished, Removal::One).await?;
        Ok(bytes)
    }

    /// Returns true for the main chat of a new session: the files beside the logs come with it.
    fn is_session(&self) -> bool {
        self.origin.session != self.session && self.chat.as_str() == Session::MAIN_CHAT
    }

    /// The entry that names the origin of a fork.
    fn fork_note(&self, log: &NewLog, copied: &Result<CopyReport, String>) -> Vec<u8> {
        let stamp = Stamp { id: &info::id_of("from", &self.session), parent: log.leaf.as_deref(), at: self.at };
        info::forked_from(stamp, &self.origin, copied)
    }

    /// Files that cannot be copied stay behind: a file that is written all the time does not hold up a fork.
    async fn copy_artifacts(&self, named: &LoggedCheckpoints) -> Result<Result<CopyReport, String>, FsError> {
        match artifacts::copy(self, named).await {
            Ok(copied) => Ok(Ok(copied)),
            Err(grove_fs::copy::CopyError::Fs(error)) => Err(error),
            Err(error) => {
                let session = &self.session;
                tracing::warn!(%session, %error, "not all artifacts were copied to a fork");
                Ok(Err(error.to_string()))
            }
        }
    }

    /// The index of the part of the log that is forked.
    async fn index(&mut self) -> Result<Arc<LogIndex>, LogError> {
        match self.index.take() {
            Some(index) if index.log_length() == self.origin.log.boundary => Ok(index),
            Some(_) | None => Ok(Arc::new(index_of(self.from.as_ref(), &self.origin).await?)),
        }
    }

    async fn plan(&mut self) -> Result<LogCopyPlan, CopyError> {
        let parent = match self.chat.as_str() {
            Session::MAIN_CHAT => self.origin.session.to_string(),
            _ => paths::log(&self.origin.session, &self.origin.chat),
        };
        let (id, at, cwd) = (self.session.to_string(), self.at, self.cwd.clone());
        let header = NewHeader { id: &id, at, cwd: &cwd, parent_session: Some(&parent), title: None };
        let LogPart { boundary, extent, leaf, .. } = self.origin.log.clone();
        // A leaf before the first entry leaves nothing of a branch, and all branches of a whole log.
        if boundary == 0 || (extent == LogScope::Branch && leaf.is_none()) {
            let (named, references) = (LoggedCheckpoints::default(), FileReferences::of(self, None));
            return Ok(LogCopyPlan { log: empty_log(&header), index: None, cut_from: None, named, references });
        }
        let index = self.index().await?;
        let path = paths::log(&self.origin.session, &self.origin.chat);
        let (mut named, mut references) = (LoggedCheckpoints::default(), FileReferences::of(self, None));
        if self.origin.session != self.session {
            let leaf = leaf.as_deref().and_then(|leaf| index.find(leaf));
            named = checkpoints::named(self.from.as_ref(), &path, &index, leaf).await?;
            references = FileReferences::of(self, Some(&index));
        }
        let Some(leaf) = leaf.filter(|_| extent == LogScope::Branch) else {
            // Lines that are copied unchanged need no index, and one that is changed elsewhere need not be kept twice.
            let (log, new) = (fork_log(&index, &header), fork_index(&index, &header));
            return Ok(LogCopyPlan { log, index: new, cut_from: None, named, references });
        };
        let seen = LogSnapshot { fs: self.from.clone(), path, index: index.clone() };
        let log = seen.with(move |index, source| {
            let header = NewHeader { id: &id, at, cwd: &cwd, parent_session: Some(&parent), title: None };
            let mut made = 0u32;
            let mut new_id = || {
                made += 1;
                format!("{:08x}", made.wrapping_mul(0x9e37_79b9) ^ u32::try_from(index.len()).unwrap_or(0))
            };
            branch_log(index, source, &leaf, &header, &mut new_id)
        });
        Ok(LogCopyPlan { log: log.await??, index: None, cut_from: Some(index), named, references })
    }

    /// Writes the log, followed by the entries about the fork.
    async fn write(
        &self,
        planned: LogCopyPlan,
        info: Option<Vec<u8>>,
        to: &str,
    ) -> Result<Option<LogIndex>, CopyError> {
        let mut index = planned.index;
        let resized = self.write_pieces(&planned.log, planned.cut_from.as_deref(), &planned.references, to).await?;
        // Lines of another length have moved the later ones.
        index.take_if(|_| resized);
        if let Some(mut line) = info {
            // A line that the index refuses is not written: the fork is complete without it.
            if let Some(Err(refused)) = index.as_mut().map(|index| index.append(&line)) {
                tracing::warn!(session = %self.session, %refused, "a fork's log lacks the entry about its origin");
                return Ok(index);
            }
            line.push(b'\n');
            self.to.append_file(to, &line).await?;
        }
        Ok(index)
    }

    /// Returns whether any line has another length than in the source.
    async fn write_pieces(
        &self,
        log: &NewLog,
        cut_from: Option<&LogIndex>,
        references: &FileReferences,
        to: &str,
    ) -> Result<bool, CopyError> {
        let (source, target) = (self.from.as_ref(), self.to.as_ref());
        let from = paths::log(&self.origin.session, &self.origin.chat);
        let mut resized = false;
        let mut ready = Vec::new();
        for piece in &log.pieces {
            match piece {
                LogChunk::Lines(lines) => ready.extend_from_slice(lines),
                LogChunk::Changed { entry, change } => {
                    // Only changes that are planned on an index apply.
                    let Some(index) = cut_from else { continue };
                    for line in store::read_lines(source, &from, index, &[*entry]).await? {
                        let line = change.apply(index, &line);
                        let line = references.checkpoints.rewrite(&line).unwrap_or(line);
                        let is_said = index.role(*entry) == Some(Role::User);
                        let rewritten = is_said.then(|| references.pastes.rewrite(&line)).flatten();
                        ready.extend(rewritten.unwrap_or(line));
                    }
                }
                LogChunk::Copy { offset, length } => {
                    let (mut at, end) = (*offset, offset + length);
                    let first = references.compactions.partition_point(|(line, _)| line < offset);
                    for (line, size) in references.compactions[first..].iter().take_while(|(line, _)| *line < end) {
                        resized |= self.copy_range(at..*line, to, references, &mut ready).await?;
                        let old = source.read_range(&from, *line, *size).await?;
                        if old.len() < *size {
                            return Err(shorter(&from).into());
                        }
                        let new = references.checkpoints.rewrite(&old).unwrap_or(old);
                        resized |= new.len() != *size;
                        ready.extend(new);
                        at = line + *size as u64;
                    }
                    resized |= self.copy_range(at..end, to, references, &mut ready).await?;
                }
            }
            put(target, to, &mut ready, CHUNK).await?;
        }
        put(target, to, &mut ready, 1).await?;
        Ok(resized)
    }

    /// Copies whole lines of the source unchanged, except for the paths of pasted files.
    ///
    /// Returns whether they have another length now.
    async fn copy_range(
        &self,
        lines: Range<u64>,
        to: &str,
        references: &FileReferences,
        ready: &mut Vec<u8>,
    ) -> Result<bool, CopyError> {
        let (source, target) = (self.from.as_ref(), self.to.as_ref());
        let from = paths::log(&self.origin.session, &self.origin.chat);
        let mut passing = references.pastes.begin(lines.start);
        let mut resized = false;
        let mut at = lines.start;
        while at < lines.end {
            let most = usize::try_from(lines.end - at).unwrap_or(CHUNK).min(CHUNK);
            let part = source.read_range(&from, at, most).await?;
            if part.is_empty() {
                return Err(shorter(&from).into());
            }
            at += part.len() as u64;
            resized |= passing.pass(&part, at >= lines.end, |place| references.is_said(place), ready);
            put(target, to, ready, CHUNK).await?;
        }
        Ok(resized)
    }
}

fn shorter(path: &str) -> FsError {
    let reason = "it is shorter than when the fork was planned".to_owned();
    FsError::Other { path: path.to_owned(), reason }
}

/// Writes buffered bytes, if there are enough.
async fn put(fs: &dyn SessionFs, to: &str, ready: &mut Vec<u8>, least: usize) -> Result<(), FsError> {
    if ready.len() >= least {
        fs.append_file(to, ready).await?;
        ready.clear();
    }
    Ok(())
}

/// The part of a log that a chat was forked from.
async fn index_of(fs: &dyn SessionFs, origin: &ChatOrigin) -> Result<LogIndex, LogError> {
    store::index_below(fs, &paths::log(&origin.session, &origin.chat), origin.log.boundary).await
}

/// The newest inherited turns of a chat: from its own log if that is copied, else from its source's.
pub(crate) async fn inherited(
    stores: &Stores,
    fs: &dyn SessionFs,
    session: &SessionId,
    chat: &ChatId,
    origin: &ChatOrigin,
    limit: TurnLimit,
) -> Result<LoggedTurns, LoadError> {
    let Some(leaf) = &origin.log.leaf else { return Ok(LoggedTurns { turns: Vec::new(), older: false }) };
    let own = paths::log(session, chat);
    if fs.exists(&own).await? {
        let side_path = paths::side_index(session, chat);
        let index = store::open_log_with_side_index(fs, &own, &side_path, &mut String::new).await?.index;
        // A label is copied under a new id.
        if let Some(leaf) = index.find(leaf) {
            return Ok(turns::newest_turns_at(fs, &own, &index, Some(leaf), limit).await?);
        }
    }
    let source = paths::log(&origin.session, &origin.chat);
    let from = stores.find_holder(&origin.store, &source).await?;
    let index = index_of(from.as_ref(), origin).await?;
    let mut window = turns::newest_turns_at(from.as_ref(), &source, &index, index.find(leaf), limit).await?;
    let moved = pastes::moved((from.as_ref(), &origin.session), (fs, session));
    for turn in &mut window.turns {
        if let Some(renamed) = pastes::in_turn(&moved, turn) {
            *turn = renamed;
        }
    }
    Ok(window)
}
