//! Requests and client notifications: names, params, results, errors.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::state::*;

/// The requests of version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Initialize,
    Reconnect,
    Ping,
    Subscribe,
    CreateSession,
    DisposeSession,
    ListSessions,
    FetchTurns,
    FetchContent,
    BrowseDirectory,
}

impl Method {
    pub const ALL: &[Self] = &[
        Method::Initialize,
        Method::Reconnect,
        Method::Ping,
        Method::Subscribe,
        Method::CreateSession,
        Method::DisposeSession,
        Method::ListSessions,
        Method::FetchTurns,
        Method::FetchContent,
        Method::BrowseDirectory,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Initialize => "initialize",
            Method::Reconnect => "reconnect",
            Method::Ping => "ping",
            Method::Subscribe => "subscribe",
            Method::CreateSession => "createSession",
            Method::DisposeSession => "disposeSession",
            Method::ListSessions => "listSessions",
            Method::FetchTurns => "fetchTurns",
            Method::FetchContent => "fetchContent",
            Method::BrowseDirectory => "browseDirectory",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|method| method.as_str() == name)
    }

    /// The errors of this request, beside those of JSON-RPC itself.
    pub const fn errors(self) -> &'static [i64] {
        match self {
            Method::Initialize => &[error_code::UNSUPPORTED_VERSION],
            Method::Reconnect | Method::Ping | Method::ListSessions => &[],
            Method::Subscribe | Method::DisposeSession | Method::FetchTurns => &[error_code::SESSION_NOT_FOUND],
            Method::CreateSession => &[error_code::PROVIDER_NOT_FOUND, error_code::SESSION_EXISTS],
            Method::FetchContent | Method::BrowseDirectory => &[error_code::CONTENT_NOT_FOUND],
        }
    }
}

/// The names of notifications, of both sides.
pub mod notify {
    pub const UNSUBSCRIBE: &str = "unsubscribe";
    pub const DISPATCH_ACTION: &str = "dispatchAction";
    pub const ACTION: &str = "action";
    pub const NOTIFICATION: &str = "notification";
}

/// The error codes that version 1 adds to JSON-RPC's.
pub mod error_code {
    pub const SESSION_NOT_FOUND: i64 = -32001;
    pub const PROVIDER_NOT_FOUND: i64 = -32002;
    pub const SESSION_EXISTS: i64 = -32003;
    pub const TURN_IN_PROGRESS: i64 = -32004;
    pub const UNSUPPORTED_VERSION: i64 = -32005;
    pub const CONTENT_NOT_FOUND: i64 = -32006;
}

/// The codes with which a host closes a connection.
pub mod close_code {
    /// The host stops.
    pub const GOING_AWAY: u16 = 1001;
    /// A message was larger than the host accepts.
    pub const TOO_BIG: u16 = 1009;
    /// There is no common version.
    pub const NO_COMMON_VERSION: u16 = 4005;
    /// The client fell too far behind: `reconnect` decides between replay and snapshots.
    pub const TOO_FAR_BEHIND: u16 = 4008;
    /// The state changed in a way that actions cannot express: `reconnect` returns snapshots.
    pub const RESYNCHRONIZE: u16 = 4009;
    /// A newer connection of the same client took over.
    pub const TAKEN_OVER: u16 = 4010;
    /// The connection's token was revoked or rotated, or has expired.
    pub const TOKEN_ENDED: u16 = 4011;
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    pub protocol_version: i64,
    pub client_id: String,
    /// The program, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<ClientInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_subscriptions: Option<Vec<String>>,
}

/// A client's program, for people. Nothing depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The name to show in place of `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult<S> {
    pub protocol_version: u32,
    pub server_seq: u64,
    pub snapshots: Vec<Snapshot<S>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_directory: Option<String>,
    /// The host's additions to the protocol: see [`announced`](crate::x_grove::announcement).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A resource's state at a sequence number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Snapshot<S> {
    pub resource: String,
    pub state: S,
    pub from_seq: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReconnectParams {
    pub client_id: String,
    pub last_seen_server_seq: u64,
    #[serde(default)]
    pub subscriptions: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum ReconnectResult<E, S> {
    Replay { actions: Vec<E> },
    Snapshot { snapshots: Vec<Snapshot<S>> },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscribeParams {
    pub resource: String,
}

/// Params of `unsubscribe`.
pub type UnsubscribeParams = SubscribeParams;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CreateSessionParams {
    pub session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DisposeSessionParams {
    pub session: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListSessionsParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<SessionFilter>,
}

/// The filter of a list. Unknown keys are ignored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SessionFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SessionStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_since: Option<u64>,
    /// True to include other tools' sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<bool>,
}

impl SessionFilter {
    pub fn takes(&self, summary: &SessionSummary) -> bool {
        self.provider.as_ref().is_none_or(|provider| summary.provider == *provider)
            && self.working_directory.as_ref().is_none_or(|wanted| summary.working_directory.as_ref() == Some(wanted))
            && self.status.is_none_or(|status| summary.status == status)
            && self.modified_since.is_none_or(|since| summary.modified_at >= since)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListSessionsResult {
    pub sessions: Vec<SessionSummary>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FetchTurnsParams {
    pub session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FetchTurnsResult {
    pub turns: Vec<Turn>,
    pub has_more: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FetchContentParams {
    pub uri: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FetchContentResult {
    pub data: String,
    pub encoding: Encoding,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Encoding {
    #[serde(rename = "base64")]
    Base64,
    #[serde(rename = "utf-8")]
    Utf8,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrowseDirectoryParams {
    pub uri: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrowseDirectoryResult {
    pub entries: Vec<DirectoryEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectoryEntry {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum EntryKind {
    File,
    Directory,
}

/// Params of `dispatchAction`. The action is kept raw, so that a rejection can return it unchanged.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DispatchActionParams {
    pub client_seq: u64,
    #[cfg_attr(feature = "schema", schemars(with = "super::action::Action"))]
    pub action: Box<RawValue>,
}
