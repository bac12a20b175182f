//! Writing to the journal: nothing happens before it is written.

use grove_core::SessionId;

use super::{
    AttachMode, JournalScope, JournalWriteError, Jump, Publication, RESERVE, Sequencer, ToSequencer, WriteFailurePolicy,
};
use crate::config::Durability;
use crate::journal::{JournalRecordRef, SyncMode};

/// The bytes to write for a batch.
pub(super) struct JournalBatch {
    bytes: Vec<u8>,
    sync: SyncMode,
    /// The end of the reserved sequence numbers once it is written.
    reserved: u64,
    last_seq: u64,
}

impl Sequencer {
    /// Writes the events of a batch of messages, then applies them.
    pub(super) async fn step(&mut self, batch: &mut Vec<ToSequencer>) {
        let written = match self.lines(batch) {
            Ok(lines) if lines.bytes.is_empty() => Ok(lines.reserved),
            Ok(lines) => {
                let sync = if self.config.durability == Durability::Power { lines.sync } else { SyncMode::Later };
                match self.journal.append(lines.bytes, sync, lines.last_seq).await {
                    Ok(()) => {
                        self.jump = None;
                        self.storage.works();
                        Ok(lines.reserved)
                    }
                    Err(error) => Err(JournalWriteError::from(error)),
                }
            }
            Err(error) => Err(JournalWriteError(error.to_string())),
        };
        match written {
            Ok(reserved) => {
                self.reserved = reserved;
                if !self.held.is_empty() {
                    tracing::info!("the journal can be written again");
                }
                for publication in std::mem::take(&mut self.held) {
                    self.publish(publication);
                }
            }
            Err(error) => {
                if self.storage.fails(&error) {
                    tracing::error!(%error, "requests are refused");
                }
                for message in batch.iter_mut() {
                    self.withhold(message, &error);
                }
            }
        }
        for message in batch.drain(..) {
            self.handle(message);
        }
        self.deliver();
        if std::mem::take(&mut self.release_due) {
            let needed = self.unpersisted.values().min().map_or(u64::MAX, |first| first - 1);
            self.journal.release(needed.min(self.replay.complete_above())).await;
        }
    }

    /// Notes that a session's folder has everything up to a sequence number.
    pub(super) fn persisted(&mut self, session: &SessionId, upto: u64) {
        match self.last_of.get(session) {
            Some(last) if *last > upto => {
                self.unpersisted.insert(session.clone(), upto + 1);
            }
            Some(_) | None => {
                self.unpersisted.remove(session);
                self.last_of.remove(session);
                // The logs have these.
                let chats = self.published.state.sessions.get_mut(session).map(|session| &mut session.chats);
                chats.into_iter().flatten().for_each(|chat| chat.unlogged.clear());
            }
        }
        self.release_due = true;
    }

    /// The lines that a batch adds to the journal.
    ///
    /// Sequence numbers are assigned here in the same order as in [`Self::handle`].
    pub(super) fn lines(&self, batch: &[ToSequencer]) -> serde_json::Result<JournalBatch> {
        let mut lines = Vec::new();
        let mut sync = SyncMode::Later;
        let mut seq = self.published.seq;
        let held = self.held.iter();
        let mut publish = |publication: &Publication, seq: &mut u64, lines: &mut Vec<u8>| {
            if publication.trace == JournalScope::NumbersOnly {
                *seq += publication.events.len() as u64;
                return Ok(());
            }
            let mut origin = publication.origin.as_ref();
            let mut left = publication.events.len() + publication.marks.len();
            let mut more = || {
                left -= 1;
                left > 0
            };
            for event in &publication.events {
                *seq += 1;
                JournalRecordRef::Event { seq: *seq, origin: origin.take(), event, more: more() }.write(lines)?;
                if event.change.class().is_durable {
                    sync = SyncMode::Now;
                }
            }
            for (session, chat, mark) in &publication.marks {
                JournalRecordRef::FrameCursor { session, chat, mark, more: more() }.write(lines)?;
            }
            Ok::<_, serde_json::Error>(())
        };
        for publication in held {
            publish(publication, &mut seq, &mut lines)?;
        }
        for message in batch {
            match message {
                ToSequencer::Publish(publication) => publish(publication, &mut seq, &mut lines)?,
                ToSequencer::SendDirect(_) => seq += 1,
                ToSequencer::Attach(attach) => {
                    if let AttachMode::New(dialect) = attach.how {
                        let version = &dialect.journal_version();
                        JournalRecordRef::Client { id: &attach.client, version }.write(&mut lines)?;
                    }
                }
                ToSequencer::Nothing
                | ToSequencer::Subscribe(_)
                | ToSequencer::Unsubscribe(..)
                | ToSequencer::Detach(_)
                | ToSequencer::Load(_)
                | ToSequencer::AddLoaded(_)
                | ToSequencer::AddEvicted(_)
                | ToSequencer::Persisted(..)
                | ToSequencer::ListIdle(_)
                | ToSequencer::Evict(_)
                | ToSequencer::Read(_)
                | ToSequencer::Listen(_)
                | ToSequencer::FindClient(..)
                | ToSequencer::CloseAll(_) => {}
            }
        }
        if let Some(Jump { from, to }) = self.jump {
            // Before everything that has a later number. Sessions' folders contain such numbers, too.
            let mut jump = Vec::new();
            JournalRecordRef::Jump { from, to }.write(&mut jump)?;
            lines.splice(..0, jump);
            sync = SyncMode::Now;
        }
        let mut reserved = self.reserved;
        let begins_segment = !lines.is_empty() && self.journal.begins_segment();
        if seq > reserved || begins_segment {
            reserved = reserved.max(seq + RESERVE);
            JournalRecordRef::Reserved(reserved).write(&mut lines)?;
        }
        if begins_segment {
            for (id, client) in &self.clients {
                JournalRecordRef::Client { id, version: &client.dialect.journal_version() }.write(&mut lines)?;
            }
        }
        Ok(JournalBatch { bytes: lines, sync, reserved, last_seq: seq })
    }

    /// Takes a publication out of a message that cannot be written: it is refused, or held for the next attempt.
    pub(super) fn withhold(&mut self, message: &mut ToSequencer, error: &JournalWriteError) {
        if !matches!(message, ToSequencer::Publish(_)) {
            return;
        }
        let ToSequencer::Publish(publication) = std::mem::replace(message, ToSequencer::Nothing) else { return };
        match (publication.on_write_failure, publication.done) {
            (WriteFailurePolicy::Refuse, Some(done)) => {
                // The caller may have stopped waiting.
                done.send(Err(error.clone())).ok();
            }
            (WriteFailurePolicy::Refuse, None) => {}
            (WriteFailurePolicy::Hold, done) => self.held.push(Publication { done, ..publication }),
        }
    }
}
