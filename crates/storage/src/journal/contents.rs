//! The contents of a journal, as they are read.

use std::collections::{HashMap, HashSet};

use grove_core::*;

use super::files;
use super::record::JournalRecord;

/// The last move of a session in the journal.
#[derive(Clone, Debug)]
pub(crate) struct JournaledMove {
    pub(crate) seq: u64,
    pub(crate) to: StoreName,
}

/// The contents of a journal, in order.
#[derive(Debug, Default)]
pub struct JournalContents {
    pub(crate) found: Vec<JournalItem>,
}

#[expect(clippy::large_enum_variant, reason = "nearly all that is found is records")]
#[derive(Debug)]
pub(crate) enum JournalItem {
    JournalRecord(JournalRecord),
    /// A description of something that cannot be read.
    Damage(String),
}

impl JournalContents {
    /// The contents of one segment, however its bytes end.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut contents = Self::default();
        // Reading from memory cannot fail.
        files::read_lines(bytes, "journal", files::SegmentTail::MayBeTorn, &mut contents).ok();
        contents.replace_times();
        contents
    }

    /// Gives events whose times no clock shows the time of the event before, and says so.
    pub(crate) fn replace_times(&mut self) {
        let mut last = Timestamp(0);
        let (mut first, mut count) = (None, 0u64);
        for (at, found) in self.found.iter_mut().enumerate() {
            let JournalItem::JournalRecord(JournalRecord::Event { event, .. }) = found else { continue };
            if event.at.is_plausible() {
                last = event.at;
            } else {
                event.at = last;
                first = first.or(Some(at));
                count += 1;
            }
        }
        if let Some(first) = first {
            let words = format!(
                "the journal has {count} events with times that no clock shows: each is taken for as old as the one before it"
            );
            self.found.insert(first, JournalItem::Damage(words));
        }
    }

    /// The last move of each session since it was created.
    pub(crate) fn moves(&self) -> HashMap<SessionId, JournaledMove> {
        let mut moves = HashMap::new();
        for found in &self.found {
            let JournalItem::JournalRecord(JournalRecord::Event { seq, event, .. }) = found else { continue };
            match &event.change {
                Change::Session(id, SessionEvent::Created(_)) => drop(moves.remove(id)),
                Change::Session(id, SessionEvent::Moved(to)) => {
                    moves.insert(id.clone(), JournaledMove { seq: *seq, to: to.clone() });
                }
                _ => {}
            }
        }
        moves
    }

    /// The highest sequence number of an event.
    pub(crate) fn last_seq(&self) -> u64 {
        let events = self.found.iter().rev().filter_map(|found| match found {
            JournalItem::JournalRecord(JournalRecord::Event { seq, .. }) => Some(*seq),
            JournalItem::JournalRecord(_) | JournalItem::Damage(_) => None,
        });
        events.max().unwrap_or(0)
    }

    /// Descriptions of everything that cannot be read.
    pub(crate) fn damage(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(|found| match found {
            JournalItem::Damage(what) => Some(what.as_str()),
            JournalItem::JournalRecord(_) => None,
        })
    }

    /// The events of a session, with their sequence numbers.
    pub(crate) fn events_of(&self, session: &SessionId) -> impl Iterator<Item = (u64, &Event)> {
        self.found.iter().filter_map(move |found| match found {
            JournalItem::JournalRecord(JournalRecord::Event { seq, event, .. }) => {
                (event.change.session() == Some(session)).then_some((*seq, event))
            }
            JournalItem::JournalRecord(_) | JournalItem::Damage(_) => None,
        })
    }

    /// The chats of which the journal has something.
    pub(crate) fn chats(&self) -> HashSet<(&SessionId, &ChatId)> {
        let chats = self.found.iter().filter_map(|found| match found {
            JournalItem::JournalRecord(JournalRecord::Event { event, .. }) => match &event.change {
                Change::Chat(session, chat, _) => Some((session, chat)),
                Change::Session(..) | Change::Root(_) => None,
            },
            JournalItem::JournalRecord(_) | JournalItem::Damage(_) => None,
        });
        chats.collect()
    }

    /// When each session was created, of those whose creation the journal tells of.
    pub(crate) fn created(&self) -> HashMap<SessionId, Timestamp> {
        let created = self.found.iter().filter_map(|found| match found {
            JournalItem::JournalRecord(JournalRecord::Event { event, .. }) => match &event.change {
                Change::Session(id, SessionEvent::Created(_)) => Some((id.clone(), event.at)),
                _ => None,
            },
            JournalItem::JournalRecord(_) | JournalItem::Damage(_) => None,
        });
        created.collect()
    }

    /// The highest sequence number that is in use.
    pub(crate) fn last_used(&self) -> u64 {
        let numbers = self.found.iter().map(|found| match found {
            JournalItem::JournalRecord(JournalRecord::Event { seq, .. }) => *seq,
            JournalItem::JournalRecord(JournalRecord::Reserved(upto)) => *upto,
            JournalItem::JournalRecord(JournalRecord::Jump { to, .. }) => *to,
            JournalItem::JournalRecord(
                JournalRecord::FrameCursor { .. } | JournalRecord::Client { .. } | JournalRecord::Segment { .. },
            )
            | JournalItem::Damage(_) => 0,
        });
        numbers.max().unwrap_or(0)
    }
}
