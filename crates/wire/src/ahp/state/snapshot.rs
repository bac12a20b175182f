//! A channel's state as a subscriber gets it.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{AnnotationsState, ChangesetState, ChatState, ResourceWatchState, RootState, SessionState, TerminalState};
use crate::ahp::Uri;
use crate::ahp::macros::{body, records};

records! {
    /// The state of a channel. Actions with a number above `from_seq` come after it.
    pub struct Snapshot {
        pub resource: Uri,
        pub state: SnapshotState,
        pub from_seq: u64,
    }
}

/// The state of any channel. It has no tag on the wire, so it is recognised by the keys that only one state requires.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum SnapshotState {
    Root(Box<RootState>),
    Session(Box<SessionState>),
    Chat(Box<ChatState>),
    Terminal(Box<TerminalState>),
    Changeset(Box<ChangesetState>),
    Annotations(Box<AnnotationsState>),
    ResourceWatch(Box<ResourceWatchState>),
    /// The state of an unsupported channel.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown(Value),
}

impl SnapshotState {
    pub fn root(&self) -> Option<&RootState> {
        if let Self::Root(state) = self { Some(state) } else { None }
    }

    pub fn session(&self) -> Option<&SessionState> {
        if let Self::Session(state) = self { Some(state) } else { None }
    }

    pub fn chat(&self) -> Option<&ChatState> {
        if let Self::Chat(state) = self { Some(state) } else { None }
    }
}

impl<'de> Deserialize<'de> for SnapshotState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let Value::Object(keys) = &value else {
            return Err(D::Error::custom("a state must be an object"));
        };
        // A session may have `annotations` too, and a terminal no `agents`: the most specific ones come first.
        let has = |key: &str| keys.contains_key(key);
        if has("activeClients") || has("chats") {
            body("session", &value).map(Self::Session)
        } else if has("turns") {
            body("chat", &value).map(Self::Chat)
        } else if has("claim") {
            body("terminal", &value).map(Self::Terminal)
        } else if has("files") {
            body("changeset", &value).map(Self::Changeset)
        } else if has("annotations") {
            body("annotations", &value).map(Self::Annotations)
        } else if has("recursive") {
            body("resourceWatch", &value).map(Self::ResourceWatch)
        } else if has("agents") {
            body("root", &value).map(Self::Root)
        } else {
            Ok(Self::Unknown(value))
        }
    }
}
