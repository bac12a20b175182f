//! The extent of a log: its length, turns and checksum, for `session.json`.

use std::sync::atomic::Ordering;

use grove_core::*;

use super::{ChatLog, ChatLogError};
use crate::store::log_lock;
use crate::store::session_file::{self, LogExtent};

/// The checksum of a log's first bytes.
#[derive(Clone, Debug)]
pub(super) struct Checksum {
    length: u64,
    hasher: crc32fast::Hasher,
}

/// The part of a log that is read at a time for its checksum.
const CHECKSUM_BYTES: u64 = 1 << 20;

impl ChatLog {
    /// The log's current extent; `None` if there is no log. Only bytes appended since the last call are read.
    pub async fn extent(&mut self, session: &Session) -> Result<Option<LogExtent>, ChatLogError> {
        let _held = log_lock::hold(self.fs.as_ref(), &self.path).await?;
        if self.written.is_none() {
            if !self.fs.exists(&self.path).await? {
                return Ok(None);
            }
            self.written = Some(self.open(session).await?);
        }
        let Some(written) = &self.written else { return Ok(None) };
        let (bytes, turns) = (written.index.log_length(), written.begun.len() as u64);
        let leaf = written.index.leaf().map(|leaf| written.index.id(leaf).into_owned()).unwrap_or_default();
        let known = match self.checksum.take() {
            Some(known) => Some(known),
            None => self.known_checksum().await,
        };
        let fits = |known: &Checksum| known.length <= bytes && !self.is_replaced.load(Ordering::Relaxed);
        let mut checksum =
            known.filter(fits).unwrap_or_else(|| Checksum { length: 0, hasher: crc32fast::Hasher::new() });
        self.is_replaced.store(false, Ordering::Relaxed);
        while checksum.length < bytes {
            let most = (bytes - checksum.length).min(CHECKSUM_BYTES);
            let piece = self.fs.read_range(&self.path, checksum.length, usize::try_from(most).unwrap_or(0)).await?;
            if piece.is_empty() {
                // The file has become shorter; the next check reports it.
                break;
            }
            checksum.hasher.update(&piece);
            checksum.length += piece.len() as u64;
        }
        let crc32 = checksum.hasher.clone().finalize();
        let extent = LogExtent { bytes: checksum.length, turns, crc32, leaf: Some(leaf) };
        self.checksum = Some(checksum);
        Ok(Some(extent))
    }

    /// The checksum in the session's file, so that the log need not be read from its beginning.
    async fn known_checksum(&self) -> Option<Checksum> {
        let file = session_file::read(self.fs.as_ref(), &self.session).await.ok()?;
        let expected = file.expected_logs().into_iter().find(|log| log.chat == self.chat)?;
        let LogExtent { bytes, crc32, .. } = expected.extent?;
        Some(Checksum { length: bytes, hasher: crc32fast::Hasher::new_with_initial_len(crc32, bytes) })
    }
}
