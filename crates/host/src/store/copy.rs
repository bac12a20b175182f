//! The log that a chat begins with, made from another one's.
//!
//! It is written under another name and then given its own, so it is there whole or not at all: a host that was killed
//! on the way begins anew. Bodies that are kept by reference come first, each whole or not at all.

use std::sync::Arc;

use grove_core::*;
use grove_fs::{FsError, Removal, SessionFs};
use grove_tree::turns::{self, Limit, Window};
use grove_tree::{Index, LogError, NewHeader, NewLog, Piece, begun, branched, forked, forked_index, store};

use super::session_file::LoadError;
use super::{content, paths};
use crate::session::{Seen, TreeError};

/// How much is written at once.
const CHUNK: usize = 256 << 10;

/// A log that is to be made.
#[derive(Debug)]
pub(crate) struct CopyJob {
    pub(crate) fs: Arc<dyn SessionFs>,
    pub(crate) origin: Arc<ChatOrigin>,
    /// The log that it comes from, where it was looked at when it was cut. It is let go with the first try, since the log
    /// that it is of may want to go on.
    pub(crate) index: Option<Arc<Index>>,
    pub(crate) session: SessionId,
    pub(crate) chat: ChatId,
    pub(crate) at: Timestamp,
    pub(crate) cwd: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Tree(#[from] TreeError),
}

impl CopyJob {
    /// Makes the log, where it is not there. Gives its index where that is known without reading it.
    pub(crate) async fn run(&mut self) -> Result<Option<Index>, CopyError> {
        let fs = self.fs.clone();
        let fs = fs.as_ref();
        let path = paths::log(&self.session, &self.chat);
        if fs.exists(&path).await? {
            return Ok(None);
        }
        if self.origin.session != self.session {
            content::copy_all(fs, &self.origin.session, &self.session).await?;
        }
        let unfinished = format!("{path}.copy");
        match fs.rm(&unfinished, Removal::One).await {
            Ok(()) | Err(FsError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let index = self.write(&unfinished).await?;
        fs.sync(&unfinished).await?;
        fs.rename(&unfinished, &path).await?;
        Ok(index)
    }

    /// What is in the part of the log that is meant.
    async fn index(&mut self) -> Result<Arc<Index>, LogError> {
        match self.index.take() {
            Some(index) if index.log_length() == self.origin.log.boundary => Ok(index),
            Some(_) | None => Ok(Arc::new(index_of(self.fs.as_ref(), &self.origin).await?)),
        }
    }

    async fn write(&mut self, to: &str) -> Result<Option<Index>, CopyError> {
        let parent = match self.chat.as_str() {
            Session::MAIN_CHAT => self.origin.session.to_string(),
            _ => paths::log(&self.origin.session, &self.origin.chat),
        };
        let (id, at, cwd) = (self.session.to_string(), self.at, self.cwd.clone());
        let header = NewHeader { id: &id, at, cwd: &cwd, parent_session: Some(&parent), title: None };
        let Some(leaf) = self.origin.log.leaf.clone() else {
            self.write_pieces(&begun(&header), None, to).await?;
            return Ok(None);
        };
        let index = self.index().await?;
        if self.origin.log.extent == Extent::All {
            // What is copied line by line needs no index, and the one that is changed elsewhere need not be kept twice.
            let (log, new) = (forked(&index, &header), forked_index(&index, &header));
            drop(index);
            self.write_pieces(&log, None, to).await?;
            return Ok(new);
        }
        let seen = Seen {
            fs: self.fs.clone(),
            path: paths::log(&self.origin.session, &self.origin.chat),
            index: index.clone(),
        };
        let log = seen.with(move |index, source| {
            let header = NewHeader { id: &id, at, cwd: &cwd, parent_session: Some(&parent), title: None };
            let mut made = 0u32;
            let mut new_id = || {
                made += 1;
                format!("{:08x}", made.wrapping_mul(0x9e37_79b9) ^ u32::try_from(index.len()).unwrap_or(0))
            };
            Ok(branched(index, source, &leaf, &header, &mut new_id)?)
        });
        self.write_pieces(&log.await?, Some(&index), to).await?;
        Ok(None)
    }

    async fn write_pieces(&self, log: &NewLog, index: Option<&Index>, to: &str) -> Result<(), CopyError> {
        let fs = self.fs.as_ref();
        let from = paths::log(&self.origin.session, &self.origin.chat);
        let mut ready = Vec::new();
        for piece in &log.pieces {
            match piece {
                Piece::Lines(lines) => ready.extend_from_slice(lines),
                Piece::Changed { entry, change } => {
                    // Only what is planned on an index changes anything.
                    let Some(index) = index else { continue };
                    let lines = store::read_lines(fs, &from, index, &[*entry]).await?;
                    lines.iter().for_each(|line| ready.extend(change.apply(index, line)));
                }
                Piece::Copy { offset, length } => {
                    let mut done = 0;
                    while done < *length {
                        let most = usize::try_from(*length - done).unwrap_or(CHUNK).min(CHUNK);
                        let part = fs.read_range(&from, offset + done, most).await?;
                        if part.is_empty() {
                            let reason = "it is shorter than it was when it was cut".to_owned();
                            return Err(FsError::Other { path: from, reason }.into());
                        }
                        done += part.len() as u64;
                        ready.extend(part);
                        put(fs, to, &mut ready, CHUNK).await?;
                    }
                }
            }
            put(fs, to, &mut ready, CHUNK).await?;
        }
        Ok(put(fs, to, &mut ready, 1).await?)
    }
}

/// Writes what is ready, where it is worth it.
async fn put(fs: &dyn SessionFs, to: &str, ready: &mut Vec<u8>, least: usize) -> Result<(), FsError> {
    if ready.len() >= least {
        fs.append_file(to, ready).await?;
        ready.clear();
    }
    Ok(())
}

/// The part of a log that a chat began with.
async fn index_of(fs: &dyn SessionFs, origin: &ChatOrigin) -> Result<Index, LogError> {
    store::index_below(fs, &paths::log(&origin.session, &origin.chat), origin.log.boundary).await
}

/// The newest turns that a chat began with: from its own log, where that is made, else from the one that it comes from.
pub(crate) async fn inherited(
    fs: &dyn SessionFs,
    session: &SessionId,
    chat: &ChatId,
    origin: &ChatOrigin,
    limit: Limit,
) -> Result<Window, LoadError> {
    let Some(leaf) = &origin.log.leaf else { return Ok(Window { turns: Vec::new(), older: false }) };
    let own = paths::log(session, chat);
    if fs.exists(&own).await? {
        let side_path = paths::side_index(session, chat);
        let index = store::open_log_with_side_index(fs, &own, &side_path, &mut String::new).await?.index;
        // A label is made anew, under another id.
        if let Some(leaf) = index.find(leaf) {
            return Ok(turns::newest_at(fs, &own, &index, Some(leaf), limit).await?);
        }
    }
    let index = index_of(fs, origin).await?;
    let source = paths::log(&origin.session, &origin.chat);
    Ok(turns::newest_at(fs, &source, &index, index.find(leaf), limit).await?)
}
