//! The versions of the protocol, the version that introduced each name, and the capabilities of each version.
//!
//! The maps are exhaustive matches: a new action or notification does not compile until its version is set.

use crate::v1::{self, ActionType, NotificationType};

/// The newest version.
pub const PROTOCOL_VERSION: u32 = v1::VERSION;
/// The oldest supported version.
pub const MIN_PROTOCOL_VERSION: u32 = v1::VERSION;

/// The version that introduced an action.
pub const fn action_introduced_in(action: ActionType) -> u32 {
    match action {
        ActionType::AgentsChanged
        | ActionType::Ready
        | ActionType::CreationFailed
        | ActionType::TurnStarted
        | ActionType::Delta
        | ActionType::ResponsePart
        | ActionType::ToolStart
        | ActionType::ToolComplete
        | ActionType::PermissionRequest
        | ActionType::PermissionResolved
        | ActionType::TurnComplete
        | ActionType::TurnCancelled
        | ActionType::Error
        | ActionType::TitleChanged
        | ActionType::Usage
        | ActionType::Reasoning
        | ActionType::ModelChanged => 1,
    }
}

/// The version that introduced a notification.
pub const fn notification_introduced_in(notification: NotificationType) -> u32 {
    match notification {
        NotificationType::SessionAdded | NotificationType::SessionRemoved => 1,
    }
}

/// The capabilities of a version. A client derives them from the host's version and checks them before it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionCapabilities {
    pub sessions: bool,
    pub tools: bool,
    pub permissions: bool,
    /// Reasoning as a separate feature, from version 2 on.
    pub reasoning: bool,
}

impl VersionCapabilities {
    pub const fn of(version: u32) -> Self {
        Self { sessions: version >= 1, tools: version >= 1, permissions: version >= 1, reasoning: version >= 2 }
    }
}

/// A range of versions with its maps. Production has one, [`Registry::RELEASED`]; tests make others with several
/// versions.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    pub current: u32,
    pub minimum: u32,
    pub action_introduced_in: fn(ActionType) -> u32,
    pub notification_introduced_in: fn(NotificationType) -> u32,
}

/// The client's version is older than the oldest supported one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "protocol version {offered} is not supported any more; the oldest is {minimum}, the newest {current}: update the client"
)]
pub struct UnsupportedVersion {
    pub offered: i64,
    pub minimum: u32,
    pub current: u32,
}

impl Registry {
    pub const RELEASED: Self = Self {
        current: PROTOCOL_VERSION,
        minimum: MIN_PROTOCOL_VERSION,
        action_introduced_in,
        notification_introduced_in,
    };

    /// The version for a client: its own, or ours if the client's is newer.
    pub fn negotiate(&self, offered: i64) -> Result<u32, UnsupportedVersion> {
        let too_old = UnsupportedVersion { offered, minimum: self.minimum, current: self.current };
        let version = u32::try_from(offered.min(i64::from(self.current))).map_err(|_| too_old)?;
        if version < self.minimum { Err(too_old) } else { Ok(version) }
    }

    pub fn knows_action(&self, action: ActionType, version: u32) -> bool {
        (self.action_introduced_in)(action) <= version
    }

    pub fn knows_notification(&self, notification: NotificationType, version: u32) -> bool {
        (self.notification_introduced_in)(notification) <= version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_client_is_answered_with_our_version_and_an_older_one_refused() {
        let registry = Registry { current: 3, minimum: 2, ..Registry::RELEASED };
        assert_eq!(registry.negotiate(99), Ok(3));
        assert_eq!(registry.negotiate(2), Ok(2));
        assert_eq!(registry.negotiate(1), Err(UnsupportedVersion { offered: 1, minimum: 2, current: 3 }));
        assert!(registry.negotiate(-5).is_err());
        assert_eq!(registry.negotiate(i64::MAX), Ok(3));
    }

    #[test]
    fn capabilities_follow_from_the_version() {
        assert!(!VersionCapabilities::of(1).reasoning && VersionCapabilities::of(1).permissions);
        assert!(VersionCapabilities::of(2).reasoning);
    }
}
