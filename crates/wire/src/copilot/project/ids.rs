//! Ids of events. They are not stored: each is derived from its subject, so that every reader finds the same.

use grove_core as core;
use sha2::{Digest, Sha256};

use super::steps::{ProjectedTurn, TurnStep};
use crate::copilot::EventId;

/// The id of a session's first event.
pub fn start_id(session: &core::SessionId) -> EventId {
    uuid(&[session.as_str(), "session.start"])
}

/// The id of a step's event.
pub(super) fn step(session: &core::SessionId, turn: ProjectedTurn<'_>, step: TurnStep) -> EventId {
    in_turn(session, turn, step.what.name(), step.place(), "")
}

/// The id of an answer's message, by the part that has its text.
pub(super) fn message(session: &core::SessionId, turn: ProjectedTurn<'_>, part: usize) -> EventId {
    in_turn(session, turn, "message", part, "")
}

/// The id of a delta event that begins at `offset`.
pub(super) fn piece(
    session: &core::SessionId,
    turn: ProjectedTurn<'_>,
    kind: &str,
    part: usize,
    offset: usize,
) -> EventId {
    in_turn(session, turn, kind, part, &offset.to_string())
}

/// The id of the event of a log's entry outside of turns.
pub(super) fn entry(session: &core::SessionId, entry: &str) -> EventId {
    uuid(&[session.as_str(), "entry", entry])
}

/// The id of an ephemeral event of the session, by its number at its time.
pub(super) fn aside(session: &core::SessionId, kind: &str, at: core::Timestamp, number: u64) -> EventId {
    uuid(&[session.as_str(), "aside", kind, &at.0.to_string(), &number.to_string()])
}

/// An id in a turn. The turn's start is included, since its id alone might be used again after the leaf has moved.
fn in_turn(session: &core::SessionId, turn: ProjectedTurn<'_>, kind: &str, place: usize, more: &str) -> EventId {
    let start = turn.started_at.0.to_string();
    uuid(&[session.as_str(), "turn", turn.id.as_str(), &start, kind, &place.to_string(), more])
}

/// A UUID of version 8 (custom), from a hash of these words.
fn uuid(words: &[&str]) -> EventId {
    let mut hash = Sha256::new();
    for word in words {
        // With their lengths, so that different lists never have the same hash input.
        hash.update((word.len() as u64).to_be_bytes());
        hash.update(word.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_that_follows_from_what_it_names() {
        let id = start_id(&"s1".into());
        assert_eq!(id, start_id(&"s1".into()));
        assert_ne!(id, start_id(&"s2".into()));
        let groups: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
        assert_eq!(id.as_bytes()[14], b'8');
        assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{id}");
        assert_ne!(uuid(&["ab", "c"]), uuid(&["a", "bc"]));
    }
}
