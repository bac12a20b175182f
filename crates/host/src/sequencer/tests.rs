//! The sequencer with a journal whose outcomes a test chooses.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use grove_core::*;
use grove_storage::{
    AppendOutcome, Journal, JournalEntry, JournalStart, PendingEntry, Position, RecoveredState, SyncMode,
};
use tokio::sync::oneshot;

use super::{
    JournalScope, JournalWriteError, Publication, PublishedState, Sequencer, SequencerHandle, WriteFailurePolicy,
};
use crate::config::Config;
use crate::env::Env;

/// The outcome of the next entry of a session.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Refused,
    /// Its outcome is unknown, and it is written.
    Lost,
    /// Its outcome is unknown, and it is not written.
    Dropped,
}

/// A journal that answers for some sessions as a test says.
#[derive(Clone, Debug, Default)]
struct ChosenOutcomes(Arc<Mutex<Chosen>>);

#[derive(Debug, Default)]
struct Chosen {
    last: Position,
    fates: HashMap<SessionId, Fate>,
    /// The entries with unknown outcomes.
    pending: HashMap<u64, Option<Position>>,
    /// Nothing can be looked up.
    is_cut_off: bool,
    /// The number of entries in each batch.
    batches: Vec<usize>,
}

#[async_trait]
impl Journal for ChosenOutcomes {
    async fn begin(&mut self, _start: &JournalStart) -> io::Result<Position> {
        let mut chosen = self.0.lock().unwrap();
        chosen.last = Position::default().plus(1);
        Ok(chosen.last)
    }

    async fn append(&mut self, batch: &[JournalEntry<'_>], _sync: SyncMode) -> io::Result<Vec<AppendOutcome>> {
        let mut chosen = self.0.lock().unwrap();
        chosen.batches.push(batch.len());
        let mut outcomes = Vec::new();
        for (index, entry) in batch.iter().enumerate() {
            let JournalEntry::Events(group) = entry else { continue };
            let fate = group.events[0].change.session().and_then(|session| chosen.fates.remove(session));
            let first = chosen.last.plus(1);
            if !matches!(fate, Some(Fate::Refused | Fate::Dropped)) {
                chosen.last = chosen.last.plus(group.events.len());
            }
            let batch = (chosen.batches.len() * 100 + index) as u64;
            let is_written = match fate {
                None => {
                    outcomes.push(AppendOutcome::Written(first));
                    continue;
                }
                Some(Fate::Refused) => {
                    outcomes.push(AppendOutcome::Refused);
                    continue;
                }
                Some(Fate::Lost) => true,
                Some(Fate::Dropped) => false,
            };
            chosen.pending.insert(batch, is_written.then_some(first));
            outcomes.push(AppendOutcome::Unknown(PendingEntry { batch, index }));
        }
        Ok(outcomes)
    }

    async fn look_up(&mut self, entry: PendingEntry) -> io::Result<Option<Position>> {
        let mut chosen = self.0.lock().unwrap();
        match chosen.is_cut_off {
            true => Err(io::ErrorKind::NotConnected.into()),
            false => Ok(chosen.pending.remove(&entry.batch).unwrap()),
        }
    }
}

type Done = oneshot::Receiver<Result<u64, JournalWriteError>>;

fn publication(session: &str) -> Publication {
    let id = SessionId::from(session);
    let new = NewSession {
        id: id.clone(),
        uri: format!("scripted:/{session}").into(),
        agent: "scripted".into(),
        model: None,
        working_directories: Vec::new(),
        config: None,
        store: StoreName::default(),
    };
    let change = Change::Session(id, SessionEvent::Created(Box::new(new)));
    Publication {
        events: vec![Event { at: Timestamp(1), change }],
        origin: None,
        finished: Vec::new(),
        marks: Vec::new(),
        on_write_failure: WriteFailurePolicy::Refuse,
        scope: JournalScope::AllEvents,
        done: None,
    }
}

/// Publishes the creation of three sessions in one batch, with a fate for the second one.
async fn publish_three(journal: &ChosenOutcomes, fate: Fate) -> (SequencerHandle, [Done; 3]) {
    journal.0.lock().unwrap().fates.insert("b".into(), fate);
    let config = Arc::new(Config::default());
    let recovered = RecoveredState::default();
    let (sequencer, handle) = Sequencer::start(config, &Env::in_memory(), Box::new(journal.clone()), recovered).await;
    let mut done = Vec::new();
    for session in ["a", "b", "c"] {
        done.push(handle.publish(publication(session)).await.unwrap());
    }
    tokio::spawn(sequencer.run());
    (handle, done.try_into().unwrap())
}

/// The published sessions, and the number of the last event as a position.
async fn published(handle: &SequencerHandle) -> (Vec<String>, Position) {
    let look = |published: &PublishedState| {
        let mut sessions: Vec<String> = published.state.sessions.keys().map(ToString::to_string).collect();
        sessions.sort();
        (sessions, Position::of(published.seq))
    };
    handle.read_in_order(look).await.unwrap()
}

fn number(position: usize) -> Result<u64, JournalWriteError> {
    Ok(Position::default().plus(position).seq())
}

#[tokio::test(start_paused = true)]
async fn a_refused_entry_refuses_its_publisher_and_nobody_else() {
    let journal = ChosenOutcomes::default();
    let (handle, [a, b, c]) = publish_three(&journal, Fate::Refused).await;
    assert_eq!((a.await.unwrap(), c.await.unwrap()), (number(2), number(3)));
    assert_eq!(b.await.unwrap(), Err(JournalWriteError::NotOwned));
    assert_eq!(published(&handle).await.0, ["a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_looked_up_before_anything_later_is_published() {
    let journal = ChosenOutcomes::default();
    let (handle, done) = publish_three(&journal, Fate::Lost).await;
    for (done, position) in done.into_iter().zip(2..) {
        assert_eq!(done.await.unwrap(), number(position));
    }
    assert_eq!(published(&handle).await.0, ["a", "b", "c"]);
    assert_eq!(journal.0.lock().unwrap().batches, [3], "it is written once");
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_is_found_not_to_be_written_is_written_again() {
    let journal = ChosenOutcomes::default();
    let (handle, [a, b, c]) = publish_three(&journal, Fate::Dropped).await;
    assert_eq!((a.await.unwrap(), c.await.unwrap()), (number(2), number(3)));
    assert_eq!(b.await.unwrap(), number(4));
    assert_eq!(published(&handle).await, (["a", "b", "c"].map(str::to_owned).to_vec(), Position::default().plus(4)));
    assert_eq!(journal.0.lock().unwrap().batches, [3, 1]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_published_behind_an_outcome_that_cannot_be_looked_up_yet() {
    let journal = ChosenOutcomes::default();
    journal.0.lock().unwrap().is_cut_off = true;
    let (handle, mut done) = publish_three(&journal, Fate::Lost).await;
    assert_eq!(published(&handle).await.0, [""; 0]);
    let refused = handle.publish_now(publication("d")).await.unwrap();
    assert!(matches!(refused, Err(JournalWriteError::Failed(_))), "{refused:?}");
    assert!(done.iter_mut().all(|done| done.try_recv().is_err()), "nobody is told anything yet");
    journal.0.lock().unwrap().is_cut_off = false;
    for (done, position) in done.into_iter().zip(2..) {
        assert_eq!(done.await.unwrap(), number(position));
    }
    assert_eq!(published(&handle).await.0, ["a", "b", "c"]);
}
