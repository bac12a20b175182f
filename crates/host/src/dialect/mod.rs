//! The dialects in which connections are served. One module each; this one tells them apart.

pub(crate) mod v1;

use std::sync::Arc;

use grove_core::{Session, SessionEvent};
use grove_wire::registry::Registry;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    V1 { version: u32 },
}

impl Dialect {
    /// The frame that tells news to a connection of this dialect, where it and its version have one.
    pub(crate) fn notification(
        self,
        change: &SessionEvent,
        session: &Session,
        registry: &Registry,
    ) -> Option<Arc<str>> {
        match self {
            Dialect::V1 { version } => v1::notification(change, session, version, registry),
        }
    }
}
