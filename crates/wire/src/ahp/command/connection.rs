//! Commands that open a connection, reconnect, and subscribe.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ahp::action::{Action, ActionEnvelope, MalformedAction};
use crate::ahp::macros::{body, records};
use crate::ahp::state::Snapshot;
use crate::ahp::{Object, Uri};

records! {
    #[derive(Default)]
    pub struct InitializeParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        /// The preferred one first.
        pub protocol_versions: Vec<String>,
        pub client_id: String,
        pub client_info: Option<Implementation>,
        pub initial_subscriptions: Option<Vec<Uri>>,
        /// BCP 47.
        pub locale: Option<String>,
        pub capabilities: Option<ClientCapabilities>,
    }

    #[derive(Default)]
    pub struct InitializeResult {
        /// One of the offered versions, as it was offered.
        pub protocol_version: String,
        pub server_seq: u64,
        pub server_info: Option<Implementation>,
        pub meta: Option<Object>,
        pub snapshots: Vec<Snapshot>,
        pub default_directory: Option<Uri>,
        pub completion_trigger_characters: Option<Vec<String>>,
        /// The prefix that makes a message a terminal command.
        pub terminal_command_prefix: Option<String>,
        pub telemetry: Option<TelemetryCapabilities>,
        /// Automations are not supported: this host never sets it.
        pub automations: Option<Object>,
    }

    /// A program's name, for people. Nothing depends on it.
    #[derive(Default, Eq)]
    pub struct Implementation {
        pub name: String,
        pub version: Option<String>,
        pub title: Option<String>,
    }

    /// The capabilities of a client: each is present or absent.
    #[derive(Default)]
    pub struct ClientCapabilities {
        pub mcp_apps: Option<Object>,
    }

    /// The channels of a host's telemetry.
    #[derive(Default, Eq)]
    pub struct TelemetryCapabilities {
        pub logs: Option<Uri>,
        pub traces: Option<Uri>,
        pub metrics: Option<Uri>,
    }

    /// `reconnect` of 1.0: one number for all channels.
    #[derive(Default)]
    pub struct ReconnectWithWatermark {
        /// Required by the protocol, but VS Code omits it.
        pub channel: Option<Uri>,
        pub meta: Option<Object>,
        pub client_id: String,
        pub last_seen_server_seq: u64,
        pub subscriptions: Vec<Uri>,
    }

    /// `reconnect` after 1.0: a number for each channel, so that a fast channel cannot hide the gap of a slow one.
    #[derive(Default)]
    pub struct ReconnectWithCursors {
        pub channel: Option<Uri>,
        pub meta: Option<Object>,
        pub client_id: String,
        pub subscriptions: Vec<ChannelReplayCursor>,
    }

    #[derive(Default, Eq)]
    pub struct ChannelReplayCursor {
        pub channel: Uri,
        /// Zero if the client has no state of the channel.
        pub last_seen_server_seq: u64,
    }

    pub struct ReconnectReplay {
        pub actions: Vec<ActionEnvelope>,
        /// Channels that do not exist any more.
        pub missing: Vec<Uri>,
    }

    pub struct ReconnectSnapshots {
        pub snapshots: Vec<Snapshot>,
    }

    /// One outcome for each requested channel.
    pub struct ReconnectChannelsResult {
        pub channels: Vec<ChannelRecovery>,
    }

    #[derive(Default)]
    pub struct SubscribeParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub delivery: Option<SubscriptionDelivery>,
        pub view: Option<SubscribeView>,
    }

    #[derive(Default, Eq)]
    pub struct SubscriptionDelivery {
        /// The maximum delay of actions, in order to send fewer of them. Zero means none.
        pub max_latency_ms: Option<u64>,
    }

    #[derive(Default, Eq)]
    pub struct SubscribeView {
        /// The number of newest turns to send. Absent means all loaded ones.
        pub turns: Option<u64>,
    }

    #[derive(Default)]
    pub struct SubscribeResult {
        /// Absent for a channel without state.
        pub snapshot: Option<Snapshot>,
    }

    #[derive(Default, Eq)]
    pub struct UnsubscribeParams {
        pub channel: Uri,
    }
}

/// Params of `reconnect`, in either form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ReconnectParams {
    Watermark(ReconnectWithWatermark),
    Cursors(ReconnectWithCursors),
}

impl ReconnectParams {
    pub fn client_id(&self) -> &str {
        match self {
            ReconnectParams::Watermark(params) => &params.client_id,
            ReconnectParams::Cursors(params) => &params.client_id,
        }
    }

    pub fn meta(&self) -> Option<&Object> {
        match self {
            ReconnectParams::Watermark(params) => params.meta.as_ref(),
            ReconnectParams::Cursors(params) => params.meta.as_ref(),
        }
    }

    /// Each channel with the last number that the client has seen.
    pub fn cursors(&self) -> Vec<ChannelReplayCursor> {
        match self {
            ReconnectParams::Watermark(params) => params
                .subscriptions
                .iter()
                .map(|channel| ChannelReplayCursor {
                    channel: channel.clone(),
                    last_seen_server_seq: params.last_seen_server_seq,
                })
                .collect(),
            ReconnectParams::Cursors(params) => params.subscriptions.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for ReconnectParams {
    /// The top-level number exists only in 1.0, where it is required.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if !value.is_object() {
            return Err(D::Error::custom("params must be an object"));
        }
        match value.get("lastSeenServerSeq") {
            Some(_) => body("reconnect", &value).map(Self::Watermark),
            None => body("reconnect", &value).map(Self::Cursors),
        }
    }
}

/// Result of `reconnect` in the form of 1.0: everything is replayed, or nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ReconnectResult {
    Replay(ReconnectReplay),
    Snapshot(ReconnectSnapshots),
}

/// The recovery of one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum ChannelRecovery {
    Replay { channel: Uri, actions: Vec<ActionEnvelope> },
    Snapshot { channel: Uri, snapshot: Box<Snapshot> },
    Missing { channel: Uri },
}

/// Params of `dispatchAction`. The action is kept raw, so that other clients get the fields that this build does not
/// know.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DispatchActionParams {
    pub channel: Uri,
    pub client_seq: u64,
    #[cfg_attr(feature = "schema", schemars(with = "Action"))]
    pub action: Box<RawValue>,
}

impl DispatchActionParams {
    pub fn action(&self) -> Result<Action, MalformedAction> {
        Action::parse(self.action.get())
    }
}
