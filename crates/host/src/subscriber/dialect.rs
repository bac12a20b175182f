//! The dialect of a subscriber: the protocol, its version, and the spelling of URIs in it.

use std::sync::Arc;

use grove_core::{Session, SessionEvent};
use grove_metrics::ProtocolLabel;
use grove_storage::ClientVersion;
use grove_wire::ahp::Version;
use grove_wire::ahp::uri::{SessionUris, Spelling};
use grove_wire::registry::Registry;
use grove_wire::{ahp, jsonrpc, v1};

/// The dialect of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
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

    /// The dialect's name in lists of clients.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dialect::V1 { .. } => "v1",
            Dialect::Ahp { .. } => "ahp",
        }
    }

    /// The dialect's label in metrics.
    pub(crate) fn label(self) -> ProtocolLabel {
        match self {
            Dialect::V1 { .. } => ProtocolLabel::V1,
            Dialect::Ahp { .. } => ProtocolLabel::Ahp,
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
            Dialect::V1 { version } => v1_notification(change, session, version, registry),
            Dialect::Ahp { version, spelling } => ahp_notification(change, session, version, spelling),
        }
    }
}

/// The frame of a notification, if version 1 and the client's version have one for it.
fn v1_notification(change: &SessionEvent, session: &Session, version: u32, registry: &Registry) -> Option<Arc<str>> {
    let notification = v1::encode::notification(change, session)?;
    if !registry.knows_notification(notification.kind(), version) {
        return None;
    }
    let params = v1::NotificationParams { notification };
    jsonrpc::notification(v1::notify::NOTIFICATION, &params).ok().map(Arc::from)
}

/// The frame of a notification, if this protocol and the client's version have one for it.
fn ahp_notification(
    change: &SessionEvent,
    session: &Session,
    version: Version,
    spelling: Spelling,
) -> Option<Arc<str>> {
    let notification = ahp::encode::notification(change, session, &SessionUris::of(session), spelling)?;
    let method = notification.method().as_str();
    if !ahp::version::knows(version, method) {
        return None;
    }
    jsonrpc::notification(method, &notification).ok().map(Arc::from)
}
