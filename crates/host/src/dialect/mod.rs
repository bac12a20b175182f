//! The dialects in which connections are served: one module each, chosen here.

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
use grove_storage::ClientVersion;
use grove_wire::ahp::Version;
use grove_wire::ahp::uri::Spelling;
use grove_wire::registry::Registry;

pub(crate) use self::peer::ConnectionPeer;

/// The dialect of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    V1 {
        version: u32,
    },
    /// The Agent Host Protocol, and the spelling of its URIs.
    Ahp {
        version: Version,
        spelling: Spelling,
    },
}

impl Dialect {
    /// The dialect of a client that the journal remembers.
    pub(crate) fn of(journal_version: &ClientVersion) -> Option<Self> {
        match journal_version {
            ClientVersion::V1(version) => Some(Dialect::V1 { version: *version }),
            ClientVersion::Ahp(version) => {
                Some(Dialect::Ahp { version: version.parse().ok()?, spelling: Spelling::Computed })
            }
        }
    }

    /// The version, as the journal stores it.
    pub(crate) fn journal_version(self) -> ClientVersion {
        match self {
            Dialect::V1 { version } => ClientVersion::V1(version),
            Dialect::Ahp { version, .. } => ClientVersion::Ahp(version.to_string()),
        }
    }

    /// The same dialect with URIs in this spelling, if there is a choice.
    pub(crate) fn spelled(self, spelling: Spelling) -> Self {
        match self {
            Dialect::V1 { .. } => self,
            Dialect::Ahp { version, .. } => Dialect::Ahp { version, spelling },
        }
    }

    /// Says whether only subscribers of the root receive news.
    pub(crate) fn news_need_root(self) -> bool {
        match self {
            Dialect::V1 { .. } => false,
            Dialect::Ahp { .. } => true,
        }
    }

    /// The frame of a notification for a connection of this dialect, if it and its version have one.
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
