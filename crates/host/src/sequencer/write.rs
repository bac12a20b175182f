//! Writing to the journal: nothing happens before it is written.

use std::io;
use std::time::{Duration, Instant};

use grove_core::SessionId;
use grove_metrics::{Metrics, SlowLabel, SyncLabel};
use grove_storage::{AppendOutcome, ClientProfile, EventGroup, JournalEntry, KnownClient, SyncMode};

use super::{AttachMode, JournalScope, JournalWriteError, Publication, Sequencer, ToSequencer, WriteFailurePolicy};
use crate::config::Durability;

/// The entries that a batch of messages adds to the journal.
struct Plan<'a> {
    entries: Vec<JournalEntry<'a>>,
    /// The origin of each entry.
    sources: Vec<EntrySource>,
    sync: SyncMode,
}

/// The origin of an entry.
#[derive(Clone, Copy)]
enum EntrySource {
    /// The held publication with this index.
    Held(usize),
    /// The message with this index.
    Message(usize),
}

/// The outcome of a publication; `None` if it is not written and has to be written again.
type PublicationOutcome = Option<AppendOutcome>;

impl<'a> Plan<'a> {
    fn of(held: &'a [Publication], batch: &'a [ToSequencer]) -> Self {
        let mut plan = Self { entries: Vec::new(), sources: Vec::new(), sync: SyncMode::Later };
        for (index, publication) in held.iter().enumerate() {
            plan.add(EntrySource::Held(index), publication);
        }
        for (index, message) in batch.iter().enumerate() {
            match message {
                ToSequencer::Publish(publication) => plan.add(EntrySource::Message(index), publication),
                ToSequencer::Attach(attach) => {
                    if let AttachMode::New(dialect) = attach.how {
                        let token = attach.token.map(|token| token.to_string());
                        let profile = ClientProfile { version: dialect.journal_version(), token };
                        let client = KnownClient { id: &attach.client, profile };
                        plan.entries.push(JournalEntry::Client(client));
                        plan.sources.push(EntrySource::Message(index));
                    }
                }
                ToSequencer::Nothing
                | ToSequencer::PublishBoth(_)
                | ToSequencer::SendDirect(_)
                | ToSequencer::SetTerminals(_)
                | ToSequencer::Subscribe(_)
                | ToSequencer::Unsubscribe(..)
                | ToSequencer::Detach(..)
                | ToSequencer::Load(..)
                | ToSequencer::AddLoaded(_)
                | ToSequencer::AddEvicted(..)
                | ToSequencer::Persisted(..)
                | ToSequencer::ListIdle(_)
                | ToSequencer::Evict(..)
                | ToSequencer::Read(_)
                | ToSequencer::Listen(_)
                | ToSequencer::CloseAll(_) => {}
            }
        }
        plan
    }

    fn add(&mut self, source: EntrySource, publication: &'a Publication) {
        let events = &publication.events;
        let entry = match publication.scope {
            JournalScope::AllEvents => {
                if events.iter().any(|event| event.change.class().is_durable) {
                    self.sync = SyncMode::Now;
                }
                let (origin, cursors) = (publication.origin.as_ref(), &publication.marks);
                JournalEntry::Events(EventGroup { events, origin, cursors })
            }
            JournalScope::NumbersOnly => {
                let session = events.first().and_then(|event| event.change.session());
                JournalEntry::Positions { session, count: events.len() }
            }
        };
        self.entries.push(entry);
        self.sources.push(source);
    }
}

impl Sequencer {
    /// Writes the events of a batch of messages, then applies them with the positions that the journal gave them.
    /// Says how they were written.
    pub(super) async fn step(&mut self, batch: &mut Vec<ToSequencer>) -> SyncMode {
        separate(batch);
        let mut outcomes = vec![None; batch.len()];
        let written = self.write(batch, &mut outcomes).await;
        let sync = written.as_ref().map_or(SyncMode::Later, |sync| *sync);
        if let Err(error) = written {
            let error = JournalWriteError::from(error);
            self.note_failure(&error);
            for publication in std::mem::take(&mut self.held) {
                self.withhold(publication, &error);
            }
            for message in batch.iter_mut() {
                if let Some(publication) = take_publication(message) {
                    self.withhold(publication, &error);
                }
            }
        }
        for (message, outcome) in batch.drain(..).zip(outcomes) {
            self.handle(message, outcome);
        }
        self.deliver();
        if !self.exhausted.is_empty() {
            self.take_position().await;
        }
        if std::mem::take(&mut self.release_due) {
            let needed = self.unpersisted.values().min().map_or(u64::MAX, |first| first - 1);
            self.journal.release(needed.min(self.replay.complete_above())).await;
        }
        sync
    }

    /// Takes the position of the state with which this host starts.
    pub(super) async fn begin(&mut self) -> io::Result<()> {
        if let Some(start) = &self.start {
            let seq = self.journal.begin(start).await?.seq();
            self.replay.skip(start.last_published, seq);
            self.shared.published_mut().seq = seq;
            self.start = None;
            self.storage.works();
        }
        Ok(())
    }

    /// Writes a batch. Gives the outcome of each message, and publishes what was held.
    async fn write(&mut self, batch: &mut [ToSequencer], outcomes: &mut [PublicationOutcome]) -> io::Result<SyncMode> {
        self.begin().await?;
        self.settle().await?;
        let Plan { entries, sources, sync } = Plan::of(&self.held, batch);
        if entries.is_empty() {
            return Ok(SyncMode::Later);
        }
        let sync = if self.config.durability == Durability::Power { sync } else { SyncMode::Later };
        let started = Instant::now();
        let appended = self.journal.append(&entries, sync).await;
        let events = entries.iter().map(|entry| entry.positions() as u64).sum();
        note_write(&self.metrics, events, sync, started.elapsed(), appended.is_ok());
        let appended = appended?;
        self.storage.works();
        if !self.held.is_empty() {
            tracing::info!("the journal can be written again");
        }
        // A publication for which the journal has no answer is written again.
        let mut of_held = vec![None; self.held.len()];
        for (source, outcome) in sources.into_iter().zip(appended) {
            let place = match source {
                EntrySource::Held(index) => of_held.get_mut(index),
                EntrySource::Message(index) => outcomes.get_mut(index),
            };
            if let Some(place) = place {
                *place = Some(outcome);
            }
        }
        let is_unknown = |outcome: &AppendOutcome| matches!(outcome, AppendOutcome::Unknown(_));
        let has_unknown = of_held.iter().chain(outcomes.iter()).flatten().any(is_unknown);
        let held = std::mem::take(&mut self.held).into_iter().zip(of_held);
        if has_unknown {
            self.unsettled.extend(held);
            for (message, outcome) in batch.iter_mut().zip(outcomes) {
                self.unsettled.extend(take_publication(message).map(|publication| (publication, outcome.take())));
            }
            // Until the next step, if the journal does not know yet.
            if let Err(error) = self.settle().await {
                self.note_failure(&error.into());
            }
        } else {
            held.for_each(|(publication, outcome)| self.conclude(publication, outcome));
        }
        Ok(sync)
    }

    /// Looks up the outcomes that are unknown, then publishes in order. Nothing later is published before.
    async fn settle(&mut self) -> io::Result<()> {
        for (_, outcome) in &mut self.unsettled {
            if let Some(AppendOutcome::Unknown(entry)) = outcome {
                *outcome = self.journal.look_up(*entry).await?.map(AppendOutcome::Written);
            }
        }
        for (publication, outcome) in std::mem::take(&mut self.unsettled) {
            self.conclude(publication, outcome);
        }
        Ok(())
    }

    /// Publishes what is written, refuses what is refused, and holds what has to be written again.
    pub(super) fn conclude(&mut self, publication: Publication, outcome: PublicationOutcome) {
        match outcome {
            Some(AppendOutcome::Written(first)) => self.publish(publication, first),
            Some(AppendOutcome::Refused) => publication.refuse(JournalWriteError::NotOwned),
            Some(AppendOutcome::Unknown(_)) => self.unsettled.push((publication, outcome)),
            None => self.held.push(publication),
        }
    }

    /// Takes a new position for connections that have used up the numbers of the current one.
    ///
    /// Without one, their messages are dropped: a number that is not written might be used again after a crash.
    async fn take_position(&mut self) {
        // Publications with lower positions may still come.
        if self.start.is_none() && self.unsettled.is_empty() {
            let entry = JournalEntry::Positions { session: None, count: 1 };
            match self.journal.append(&[entry], SyncMode::Later).await.as_deref() {
                Ok([AppendOutcome::Written(position)]) => self.shared.published_mut().seq = position.seq(),
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "messages to single connections are dropped"),
            }
        }
        for direct_reply in std::mem::take(&mut self.exhausted) {
            if let Some(dropped) = self.try_direct_reply(direct_reply) {
                dropped.send_answer();
            }
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
                let mut published = self.shared.published_mut();
                let chats = published.state.sessions.get_mut(session).map(|session| &mut session.chats);
                chats.into_iter().flatten().for_each(|chat| chat.unlogged.clear());
            }
        }
        self.release_due = true;
    }

    /// The sequence number of the published state.
    pub(super) fn seq(&self) -> u64 {
        self.shared.published().seq
    }

    fn note_failure(&self, error: &JournalWriteError) {
        if self.storage.fails(error) {
            tracing::error!(%error, "requests are refused");
        }
    }

    /// Handles a publication that cannot be written: it is refused, or held for the next attempt.
    fn withhold(&mut self, publication: Publication, error: &JournalWriteError) {
        match publication.on_write_failure {
            WriteFailurePolicy::Refuse => publication.refuse(error.clone()),
            WriteFailurePolicy::Hold => self.held.push(publication),
        }
    }
}

/// Counts a batch, and logs it if it was slow.
fn note_write(metrics: &Metrics, events: u64, sync: SyncMode, took: Duration, is_written: bool) {
    if is_written {
        let label = match sync {
            SyncMode::Now => SyncLabel::Now,
            SyncMode::Later => SyncLabel::Later,
        };
        metrics.journal_batches.of(label).increment();
        metrics.journal_events.add(events);
    } else {
        metrics.journal_errors.increment();
    }
    if metrics.is_slow(SlowLabel::JournalWrite, took) {
        tracing::warn!(ms = took.as_millis() as u64, events, ?sync, "slow: a write to the journal");
    }
}

/// Makes a message of each publication.
fn separate(batch: &mut Vec<ToSequencer>) {
    if batch.iter().any(|message| matches!(message, ToSequencer::PublishBoth(_))) {
        for message in std::mem::take(batch) {
            match message {
                ToSequencer::PublishBoth(both) => batch.extend(both.map(ToSequencer::Publish)),
                message => batch.push(message),
            }
        }
    }
}

/// Takes the publication out of a message.
fn take_publication(message: &mut ToSequencer) -> Option<Publication> {
    if !matches!(message, ToSequencer::Publish(_)) {
        return None;
    }
    match std::mem::replace(message, ToSequencer::Nothing) {
        ToSequencer::Publish(publication) => Some(publication),
        _ => None,
    }
}
