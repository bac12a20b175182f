//! Actions and their envelope.
//!
//! Each channel has an enum of its own, the input of its reducer; [`Action`] is any of them. An action names no
//! channel: its envelope does.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Uri;
use super::macros::records;
use crate::value_reader;

/// Defines the actions of one channel: name, dispatcher and body of each.
macro_rules! actions {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($text:literal $who:ident => $variant:ident($body:ty)),* $(,)? }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "type")]
        pub enum $name { $(#[serde(rename = $text)] $variant($body)),* }

        impl $name {
            /// The types of this channel's actions with their dispatchers.
            pub const KINDS: &[(&'static str, crate::ahp::action::Dispatcher)] =
                &[$(($text, crate::ahp::action::Dispatcher::$who)),*];

            /// The action's type on the wire.
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $text),* }
            }

            /// Reads the body of an action of type `kind`; `None` if this channel has no such action.
            pub(super) fn read(
                kind: &str,
                body: &serde_json::Value,
            ) -> Option<Result<Self, crate::ahp::action::MalformedAction>> {
                match kind {
                    $($text => Some(crate::ahp::action::body($text, body).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }
    };
}

mod annotations;
mod changeset;
mod chat;
mod resource_watch;
mod root;
mod session;
mod terminal;

pub use annotations::*;
pub use changeset::*;
pub use chat::*;
pub use resource_watch::*;
pub use root::*;
pub use session::*;
pub use terminal::*;

/// The side that may dispatch an action. The host may dispatch everything that a client may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatcher {
    Client,
    Host,
}

/// An action on any channel.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub enum Action {
    Root(RootAction),
    Session(SessionAction),
    Chat(ChatAction),
    Terminal(TerminalAction),
    Changeset(ChangesetAction),
    Annotations(AnnotationsAction),
    ResourceWatch(ResourceWatchAction),
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown(UnknownAction),
}

/// An action of an unknown type, as it came. Receivers ignore it.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownAction {
    pub kind: String,
    /// The complete action, `type` included.
    pub raw: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedAction {
    #[error("an action needs a text under `type`: {0}")]
    ActionHead(String),
    /// The type is known, so the action is not ignored: the body is invalid, and `reason` names the field.
    #[error("{kind}: {reason}")]
    Body { kind: &'static str, reason: String },
}

impl Action {
    /// Reads an action from text.
    pub fn parse(text: &str) -> Result<Self, MalformedAction> {
        #[derive(Deserialize)]
        struct ActionHead {
            #[serde(rename = "type")]
            kind: String,
        }
        let raw: Value = serde_json::from_str(text).map_err(|error| MalformedAction::ActionHead(error.to_string()))?;
        let ActionHead { kind } =
            value_reader::from_value(&raw).map_err(|error| MalformedAction::ActionHead(error.to_string()))?;
        match Self::known(&kind, &raw) {
            Some(action) => action,
            None => Ok(Self::Unknown(UnknownAction { kind, raw })),
        }
    }

    fn known(kind: &str, body: &Value) -> Option<Result<Self, MalformedAction>> {
        fn any<A>(
            read: Option<Result<A, MalformedAction>>,
            of: fn(A) -> Action,
        ) -> Option<Result<Action, MalformedAction>> {
            read.map(|action| action.map(of))
        }
        match kind.split_once('/')?.0 {
            "root" => any(RootAction::read(kind, body), Self::Root),
            "session" => any(SessionAction::read(kind, body), Self::Session),
            "chat" => any(ChatAction::read(kind, body), Self::Chat),
            "terminal" => any(TerminalAction::read(kind, body), Self::Terminal),
            "changeset" => any(ChangesetAction::read(kind, body), Self::Changeset),
            "annotations" => any(AnnotationsAction::read(kind, body), Self::Annotations),
            "resourceWatch" => any(ResourceWatchAction::read(kind, body), Self::ResourceWatch),
            _ => None,
        }
    }

    /// The action's type on the wire.
    pub fn kind(&self) -> &str {
        match self {
            Action::Root(action) => action.kind(),
            Action::Session(action) => action.kind(),
            Action::Chat(action) => action.kind(),
            Action::Terminal(action) => action.kind(),
            Action::Changeset(action) => action.kind(),
            Action::Annotations(action) => action.kind(),
            Action::ResourceWatch(action) => action.kind(),
            Action::Unknown(action) => &action.kind,
        }
    }

    /// Every known type with its dispatcher.
    pub fn kinds() -> impl Iterator<Item = (&'static str, Dispatcher)> {
        let channels = [
            RootAction::KINDS,
            SessionAction::KINDS,
            ChatAction::KINDS,
            TerminalAction::KINDS,
            ChangesetAction::KINDS,
            AnnotationsAction::KINDS,
            ResourceWatchAction::KINDS,
        ];
        channels.into_iter().flatten().copied()
    }
}

/// True if a client may dispatch an action of this type. Unknown types are refused.
pub fn is_client_dispatchable(kind: &str) -> bool {
    Action::kinds().any(|known| known == (kind, Dispatcher::Client))
}

/// Reads the body of an action.
fn body<T: DeserializeOwned>(kind: &'static str, body: &Value) -> Result<T, MalformedAction> {
    value_reader::from_value(body).map_err(|error| MalformedAction::Body { kind, reason: error.to_string() })
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Value::deserialize(deserializer)?;
        let Some(kind) = raw.get("type").and_then(Value::as_str) else {
            return Err(super::macros::no_tag("type"));
        };
        match Self::known(kind, &raw) {
            Some(action) => action.map_err(serde::de::Error::custom),
            None => Ok(Self::Unknown(UnknownAction { kind: kind.to_owned(), raw })),
        }
    }
}

impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Action::Root(action) => action.serialize(serializer),
            Action::Session(action) => action.serialize(serializer),
            Action::Chat(action) => action.serialize(serializer),
            Action::Terminal(action) => action.serialize(serializer),
            Action::Changeset(action) => action.serialize(serializer),
            Action::Annotations(action) => action.serialize(serializer),
            Action::ResourceWatch(action) => action.serialize(serializer),
            Action::Unknown(action) => action.raw.serialize(serializer),
        }
    }
}

records! {
    /// The client that dispatched an action, and the client's own number for it.
    #[derive(Eq)]
    pub struct ActionOrigin {
        pub client_id: String,
        pub client_seq: u64,
    }
}

/// An action with its position in the order; also the params of `action`.
// `A` is the action: typed, or raw if it is passed on unread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionEnvelope<A = Action> {
    pub channel: Uri,
    pub action: A,
    pub server_seq: u64,
    /// Absent if the host itself is the origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<ActionOrigin>,
    /// Set if the action was refused, and so changed nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection_reason: Option<String>,
}
