//! The events of a journal, for clients that reconnect after a restart.

use std::collections::HashMap;

use grove_core::{Event, SessionId};

use crate::journal::ActionOrigin;
use crate::store::session_file::SessionNames;

/// The events of a journal in order, with everything that their encoding needs.
///
/// A host keeps as many of the newest ones as its limits allow.
#[derive(Debug, Default)]
pub struct RecoveredReplay {
    /// Everything above this sequence number is in `steps`, up to a [`ReplayStep::Gap`].
    pub complete_above: u64,
    pub steps: Vec<ReplayStep>,
    /// The names of sessions as their folders have them. The events in `steps` add others.
    pub names: HashMap<SessionId, SessionNames>,
}

/// A step of a replay.
#[expect(clippy::large_enum_variant, reason = "nearly every step is an event")]
#[derive(Debug)]
pub enum ReplayStep {
    Event {
        seq: u64,
        event: Event,
        origin: Option<ActionOrigin>,
    },
    /// No sequence number above `from` and below `to` was ever used.
    Skipped {
        from: u64,
        to: u64,
    },
    /// Events are missing here, since the journal is damaged.
    Gap,
}
