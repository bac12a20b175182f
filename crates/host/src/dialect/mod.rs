//! The dialects in which connections are served. One module each; this one tells them apart.

pub(crate) mod ahp;
mod answer;
mod handover;
mod history;
mod import;
mod peer;
mod removal;
mod sessions;
pub(crate) mod turns;
mod unnumbered;
pub(crate) mod v1;
mod workspace;
pub(crate) mod x_grove;

use std::sync::Arc;

use grove_core::{Session, SessionEvent};
use grove_wire::ahp::Version;
use grove_wire::ahp::uri::Spelling;
use grove_wire::registry::Registry;

pub(crate) use self::peer::ConnectionPeer;
use crate::journal::ClientVersion;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    V1 {
        version: u32,
    },
    /// The Agent Host Protocol, and how its URIs are written.
    Ahp {
        version: Version,
        spelling: Spelling,
    },
}

impl Dialect {
    /// What a client spoke that the journal remembers.
    pub(crate) fn of(journal_version: &ClientVersion) -> Option<Self> {
        match journal_version {
            ClientVersion::V1(version) => Some(Dialect::V1 { version: *version }),
            ClientVersion::Ahp(version) => {
                Some(Dialect::Ahp { version: version.parse().ok()?, spelling: Spelling::Computed })
            }
        }
    }

    /// The version, as the journal remembers it.
    pub(crate) fn journal_version(self) -> ClientVersion {
        match self {
            Dialect::V1 { version } => ClientVersion::V1(version),
            Dialect::Ahp { version, .. } => ClientVersion::Ahp(version.to_string()),
        }
    }

    /// The same with URIs written in this way, where there is a choice.
    pub(crate) fn spelled(self, spelling: Spelling) -> Self {
        match self {
            Dialect::V1 { .. } => self,
            Dialect::Ahp { version, .. } => Dialect::Ahp { version, spelling },
        }
    }

    /// Whether only subscribers of the root hear what is told to everybody.
    pub(crate) fn news_need_root(self) -> bool {
        match self {
            Dialect::V1 { .. } => false,
            Dialect::Ahp { .. } => true,
        }
    }

    /// The frame that tells news to a connection of this dialect, where it and its version have one.
    pub(crate) fn notification(
        self,
        change: &SessionEvent,
        session: &Session,
        registry: &Registry,
    ) -> Option<Arc<str>> {
        match self {
            Dialect::V1 { version } => v1::notification(change, session, version, registry),
            Dialect::Ahp { version, spelling } => ahp::notification(change, session, version, spelling),
        }
    }
}
