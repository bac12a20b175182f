//! The encodings of a finished turn, cached with the turn: each is made once, for all snapshots.

use std::sync::{Arc, OnceLock};

use grove_core::Turn;

/// One encoding for each dialect with snapshots.
#[derive(Default)]
struct TurnEncodings {
    v1: OnceLock<Arc<str>>,
    ahp: OnceLock<Arc<str>>,
}

/// The turn in version 1, made by `encode` at the first call.
pub(crate) fn v1(turn: &Turn, encode: impl FnOnce() -> String) -> Arc<str> {
    cached(turn, |encodings| &encodings.v1, encode)
}

/// The turn in AHP, made by `encode` at the first call.
pub(crate) fn ahp(turn: &Turn, encode: impl FnOnce() -> String) -> Arc<str> {
    cached(turn, |encodings| &encodings.ahp, encode)
}

fn cached(
    turn: &Turn,
    dialect: fn(&TurnEncodings) -> &OnceLock<Arc<str>>,
    encode: impl FnOnce() -> String,
) -> Arc<str> {
    match turn.derived.get_or_default().map(dialect) {
        Some(encoding) => encoding.get_or_init(|| encode().into()).clone(),
        // The cache holds something else: nothing of this crate puts it there.
        None => encode().into(),
    }
}

#[cfg(test)]
mod tests {
    use grove_core::{DerivedCache, Message, Outcome, Timestamp};

    use super::*;

    fn turn() -> Turn {
        Turn {
            id: "t".into(),
            message: Message::user("go"),
            parts: Vec::new(),
            usage: None,
            outcome: Outcome::Complete,
            started_at: Timestamp(1),
            ended_at: Timestamp(2),
            derived: DerivedCache::default(),
        }
    }

    #[test]
    fn an_encoding_is_made_once_for_each_dialect_and_kept_with_the_turn() {
        let turn = turn();
        assert_eq!(&*v1(&turn, || "first".into()), "first");
        assert_eq!(&*v1(&turn, || "second".into()), "first");
        assert_eq!(&*ahp(&turn, || "other".into()), "other");
        assert_eq!(&*ahp(&turn, || "again".into()), "other");
        assert_eq!(&*v1(&turn.clone(), || "of a clone".into()), "of a clone");
    }

    #[test]
    fn a_cache_with_something_else_keeps_no_encoding() {
        let turn = turn();
        assert!(turn.derived.get_or_default::<u8>().is_some());
        assert_eq!(&*v1(&turn, || "first".into()), "first");
        assert_eq!(&*v1(&turn, || "second".into()), "second");
    }
}
