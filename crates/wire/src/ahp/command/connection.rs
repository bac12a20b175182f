//! Beginning a connection, taking it up again, and subscribing.

use schemars::JsonSchema;
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
        /// What a message begins with that is a command for a terminal.
        pub terminal_command_prefix: Option<String>,
        pub telemetry: Option<TelemetryCapabilities>,
        /// Automations are not spoken: a host of this build never sets it.
        pub automations: Option<Object>,
    }

    /// A program by its name. It is for people: nobody decides anything by it.
    #[derive(Default, Eq)]
    pub struct Implementation {
        pub name: String,
        pub version: Option<String>,
        pub title: Option<String>,
    }

    /// What a client can do: a capability is there, or it is absent.
    #[derive(Default)]
    pub struct ClientCapabilities {
        pub mcp_apps: Option<Object>,
    }

    /// The channels on which a host tells of itself.
    #[derive(Default, Eq)]
    pub struct TelemetryCapabilities {
        pub logs: Option<Uri>,
        pub traces: Option<Uri>,
        pub metrics: Option<Uri>,
    }

    /// `reconnect` of 1.0: one number for everything.
    #[derive(Default)]
    pub struct ReconnectWithWatermark {
        /// Should be there; VS Code leaves it out.
        pub channel: Option<Uri>,
        pub meta: Option<Object>,
        pub client_id: String,
        pub last_seen_server_seq: u64,
        pub subscriptions: Vec<Uri>,
    }

    /// `reconnect` after 1.0: a number for each channel, so that a fast channel cannot hide what a slow one missed.
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
        /// Zero where the client has nothing to go on from.
        pub last_seen_server_seq: u64,
    }

    pub struct ReconnectReplay {
        pub actions: Vec<ActionEnvelope>,
        /// Channels that are gone.
        pub missing: Vec<Uri>,
    }

    pub struct ReconnectSnapshots {
        pub snapshots: Vec<Snapshot>,
    }

    /// One outcome for each channel that was asked for.
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
        /// How long actions may be held back in order to send fewer of them. Zero is not at all.
        pub max_latency_ms: Option<u64>,
    }

    #[derive(Default, Eq)]
    pub struct SubscribeView {
        /// How many of the newest turns are wanted. Absent means all that the host keeps.
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

/// Params of `reconnect`, in either shape.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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

    /// Each channel with the last number that the client saw of it.
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
    /// The number at the top is what only 1.0 has, and must have.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if !value.is_object() {
            return Err(D::Error::custom("params must be an object"));
        }
        match value.get("lastSeenServerSeq") {
            Some(_) => body("reconnect", value).map(Self::Watermark),
            None => body("reconnect", value).map(Self::Cursors),
        }
    }
}

/// Result of `reconnect` in the shape of 1.0: everything is replayed, or nothing is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ReconnectResult {
    Replay(ReconnectReplay),
    Snapshot(ReconnectSnapshots),
}

/// What becomes of one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum ChannelRecovery {
    Replay { channel: Uri, actions: Vec<ActionEnvelope> },
    Snapshot { channel: Uri, snapshot: Box<Snapshot> },
    Missing { channel: Uri },
}

/// Params of `dispatchAction`. The action is kept as it came: what a client wrote is what the others get, even where
/// this build would not have known a field of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DispatchActionParams {
    pub channel: Uri,
    pub client_seq: u64,
    #[schemars(with = "Action")]
    pub action: Box<RawValue>,
}

impl DispatchActionParams {
    pub fn action(&self) -> Result<Action, MalformedAction> {
        Action::parse(self.action.get())
    }
}
