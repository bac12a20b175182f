//! Presence: the clients that are attached to a session.
//!
//! A client is attached to a session while it is subscribed to it or to one of its chats. A subscriber may ask to be told
//! of changes ([`PRESENCE_CHANGED`]). Names come from tokens and clients; a list has no secrets.

use serde::{Deserialize, Serialize};

/// The most clients of one session in a list.
pub const MAX_ATTACHED_CLIENTS: usize = 50;
/// The notification of a changed list, for clients that asked for it.
pub const PRESENCE_CHANGED: &str = "x-grove/presenceChanged";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PresenceParams {
    #[serde(alias = "session")]
    pub channel: String,
    /// True to be told of changes, false to be told no longer; absent changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<bool>,
}

/// The attached clients of a session, those that came first at the front.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PresenceResult {
    pub clients: Vec<AttachedClient>,
    /// The number of further ones.
    pub more: usize,
}

/// A client that is attached to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachedClient {
    pub client_id: String,
    /// The client's own name, if it has sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of its token.
    pub token: String,
    /// `ahp`, `v1` or `copilot`.
    pub dialect: String,
    /// The time of its attachment, in milliseconds since 1970.
    pub since: u64,
    pub kind: AttachedKind,
}

/// The kind of an attached client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AttachedKind {
    /// A program of a person, as far as the host knows.
    Client,
    /// A process of an agent.
    Agent,
    /// A part of the host itself: its session hub.
    Hub,
}

/// The params of [`PRESENCE_CHANGED`].
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PresenceChangedParams<'a> {
    /// The session, by the name in the client's request.
    pub channel: &'a str,
    #[serde(flatten)]
    pub presence: &'a PresenceResult,
}

/// The params of [`PRESENCE_CHANGED`], as a client reads them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PresenceNotice {
    pub channel: String,
    #[serde(flatten)]
    pub presence: PresenceResult,
}

/// A session with attached clients, in a host's report about itself (`/healthz`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttendedSession {
    /// Its URI.
    pub session: String,
    #[serde(flatten)]
    pub presence: PresenceResult,
}
