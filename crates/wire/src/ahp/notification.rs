//! News that are not state: each is sent once, to the subscribers of its channel, and never replayed.

use serde::Serialize;

use super::Uri;
use super::macros::{names, records, words};
use super::state::{PartialSessionSummary, ProtectedResourceMetadata, SessionSummary};

names! {
    /// The notifications that a host sends, beside `action`.
    pub enum NotificationMethod {
        SessionAdded = "root/sessionAdded",
        SessionRemoved = "root/sessionRemoved",
        SessionSummaryChanged = "root/sessionSummaryChanged",
        Progress = "root/progress",
        AuthRequired = "auth/required",
    }
}

records! {
    pub struct SessionAddedParams {
        pub channel: Uri,
        pub summary: SessionSummary,
    }

    pub struct SessionRemovedParams {
        pub channel: Uri,
        pub session: Uri,
    }

    /// The changed fields of a row; `chats` is always the complete list.
    pub struct SessionSummaryChangedParams {
        pub channel: Uri,
        pub session: Uri,
        pub changes: PartialSessionSummary,
    }

    /// The progress of the request with this token. It is done when `progress` reaches `total`.
    pub struct ProgressParams {
        pub channel: Uri,
        pub progress_token: String,
        pub progress: u64,
        pub total: Option<u64>,
        pub message: Option<String>,
    }

    pub struct AuthRequiredParams {
        pub channel: Uri,
        pub resource: ProtectedResourceMetadata,
        pub reason: Option<AuthRequiredReason>,
    }
}

words! {
    pub enum AuthRequiredReason {
        Required = "required",
        Expired = "expired",
    }
}

/// A notification of the host. It is serialized as its params; the method is separate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Notification {
    SessionAdded(SessionAddedParams),
    SessionRemoved(SessionRemovedParams),
    SessionSummaryChanged(SessionSummaryChangedParams),
    Progress(ProgressParams),
    AuthRequired(AuthRequiredParams),
}

impl Notification {
    pub const fn method(&self) -> NotificationMethod {
        match self {
            Notification::SessionAdded(_) => NotificationMethod::SessionAdded,
            Notification::SessionRemoved(_) => NotificationMethod::SessionRemoved,
            Notification::SessionSummaryChanged(_) => NotificationMethod::SessionSummaryChanged,
            Notification::Progress(_) => NotificationMethod::Progress,
            Notification::AuthRequired(_) => NotificationMethod::AuthRequired,
        }
    }

    /// Reads the params of a notification.
    pub fn parse(method: NotificationMethod, params: &str) -> Result<Self, serde_json::Error> {
        Ok(match method {
            NotificationMethod::SessionAdded => Notification::SessionAdded(serde_json::from_str(params)?),
            NotificationMethod::SessionRemoved => Notification::SessionRemoved(serde_json::from_str(params)?),
            NotificationMethod::SessionSummaryChanged => {
                Notification::SessionSummaryChanged(serde_json::from_str(params)?)
            }
            NotificationMethod::Progress => Notification::Progress(serde_json::from_str(params)?),
            NotificationMethod::AuthRequired => Notification::AuthRequired(serde_json::from_str(params)?),
        })
    }
}
