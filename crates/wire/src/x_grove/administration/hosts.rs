//! The other hosts that a host knows by name. No answer has a token.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsResult {
    /// In the order of their names.
    pub hosts: Vec<HostRow>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostState {
    Ready,
    Connecting,
    Away,
    Incompatible,
    /// Its table in the list of hosts is invalid.
    Unusable,
    /// Nobody has asked it.
    #[default]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostRow {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    pub state: HostState,
    /// The reason why it cannot be used, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<usize>,
    /// The time at which its sessions were listed last, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<u64>,
    /// The fingerprint of its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// True if a token is stored for it.
    pub has_token: bool,
}

/// Connects to all hosts, or to one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckHostsParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Adds a host, once it answers.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddHostParams {
    pub name: String,
    /// `ssh://machine`, `wss://machine:port/` or `ws://machine:port/`.
    pub address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The fingerprint of the certificate that a person has compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// True to add a host that does not answer now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
}

// The token is for the list of hosts alone, and for no log.
impl fmt::Debug for AddHostParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, address, token: _, pin, unchecked } = self;
        let mut shown = f.debug_struct("AddHostParams");
        shown.field("name", name).field("address", address).field("pin", pin).field("unchecked", unchecked);
        shown.finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddHostResult {
    /// False if a person has to compare `certificate` first, and send it as `pin`.
    pub added: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostRow>,
    /// A warning for people, such as a connection that others can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Names a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveHostParams {
    pub name: String,
}

/// The result of `x-grove/hosts/remove`: `removed` is false if there was no such host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveHostResult {
    pub removed: bool,
}
