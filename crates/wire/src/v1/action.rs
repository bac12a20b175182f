//! Actions, their envelope, and notifications.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::state::*;

/// An action on the root or on a session.
#[expect(clippy::large_enum_variant, reason = "nearly every action is a session's, and none is kept for long")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Action {
    Root(RootAction),
    Session(SessionAction),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum RootAction {
    #[serde(rename = "root/agentsChanged")]
    AgentsChanged { agents: Vec<AgentInfo> },
}

/// An action on one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionAction {
    pub session: String,
    #[serde(flatten)]
    pub change: SessionChange,
    /// The time of the action in the host's order; `summary.modifiedAt` follows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum SessionChange {
    #[serde(rename = "session/ready")]
    Ready,
    #[serde(rename = "session/creationFailed")]
    CreationFailed { error: ErrorInfo },
    #[serde(rename = "session/turnStarted")]
    TurnStarted { turn_id: String, user_message: UserMessage },
    #[serde(rename = "session/delta")]
    Delta { turn_id: String, content: String },
    #[serde(rename = "session/responsePart")]
    ResponsePart { turn_id: String, part: ResponsePart },
    #[serde(rename = "session/toolStart")]
    ToolStart { turn_id: String, tool_call: ToolCallState },
    #[serde(rename = "session/toolComplete")]
    ToolComplete { turn_id: String, tool_call_id: String, result: ToolCallResult },
    #[serde(rename = "session/permissionRequest")]
    PermissionRequest { turn_id: String, request: PermissionRequest },
    #[serde(rename = "session/permissionResolved")]
    PermissionResolved {
        turn_id: String,
        request_id: String,
        approved: bool,
        /// The rule that answered, if no person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy_rule: Option<String>,
    },
    #[serde(rename = "session/turnComplete")]
    TurnComplete { turn_id: String },
    #[serde(rename = "session/turnCancelled")]
    TurnCancelled { turn_id: String },
    #[serde(rename = "session/error")]
    Error { turn_id: String, error: ErrorInfo },
    #[serde(rename = "session/titleChanged")]
    TitleChanged { title: String },
    #[serde(rename = "session/usage")]
    Usage { turn_id: String, usage: UsageInfo },
    #[serde(rename = "session/reasoning")]
    Reasoning { turn_id: String, content: String },
    #[serde(rename = "session/modelChanged")]
    ModelChanged { model: String },
}

/// Maps each type of a union to its name on the wire, in both directions.
macro_rules! types {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($variant),* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The type on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The type of a name on the wire.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

types! {
    /// The types of actions.
    ActionType {
        AgentsChanged = "root/agentsChanged",
        Ready = "session/ready",
        CreationFailed = "session/creationFailed",
        TurnStarted = "session/turnStarted",
        Delta = "session/delta",
        ResponsePart = "session/responsePart",
        ToolStart = "session/toolStart",
        ToolComplete = "session/toolComplete",
        PermissionRequest = "session/permissionRequest",
        PermissionResolved = "session/permissionResolved",
        TurnComplete = "session/turnComplete",
        TurnCancelled = "session/turnCancelled",
        Error = "session/error",
        TitleChanged = "session/titleChanged",
        Usage = "session/usage",
        Reasoning = "session/reasoning",
        ModelChanged = "session/modelChanged",
    }
}

types! {
    /// The types of notifications.
    NotificationType {
        SessionAdded = "notify/sessionAdded",
        SessionRemoved = "notify/sessionRemoved",
    }
}

impl ActionType {
    /// True if a client may dispatch it.
    pub const fn client_may_dispatch(self) -> bool {
        match self {
            ActionType::TurnStarted
            | ActionType::PermissionResolved
            | ActionType::TurnCancelled
            | ActionType::ModelChanged => true,
            ActionType::AgentsChanged
            | ActionType::Ready
            | ActionType::CreationFailed
            | ActionType::Delta
            | ActionType::ResponsePart
            | ActionType::ToolStart
            | ActionType::ToolComplete
            | ActionType::PermissionRequest
            | ActionType::TurnComplete
            | ActionType::Error
            | ActionType::TitleChanged
            | ActionType::Usage
            | ActionType::Reasoning => false,
        }
    }
}

impl Action {
    pub fn kind(&self) -> ActionType {
        match self {
            Action::Root(RootAction::AgentsChanged { .. }) => ActionType::AgentsChanged,
            Action::Session(action) => match action.change {
                SessionChange::Ready => ActionType::Ready,
                SessionChange::CreationFailed { .. } => ActionType::CreationFailed,
                SessionChange::TurnStarted { .. } => ActionType::TurnStarted,
                SessionChange::Delta { .. } => ActionType::Delta,
                SessionChange::ResponsePart { .. } => ActionType::ResponsePart,
                SessionChange::ToolStart { .. } => ActionType::ToolStart,
                SessionChange::ToolComplete { .. } => ActionType::ToolComplete,
                SessionChange::PermissionRequest { .. } => ActionType::PermissionRequest,
                SessionChange::PermissionResolved { .. } => ActionType::PermissionResolved,
                SessionChange::TurnComplete { .. } => ActionType::TurnComplete,
                SessionChange::TurnCancelled { .. } => ActionType::TurnCancelled,
                SessionChange::Error { .. } => ActionType::Error,
                SessionChange::TitleChanged { .. } => ActionType::TitleChanged,
                SessionChange::Usage { .. } => ActionType::Usage,
                SessionChange::Reasoning { .. } => ActionType::Reasoning,
                SessionChange::ModelChanged { .. } => ActionType::ModelChanged,
            },
        }
    }

    /// Reads an action. An unknown type is [`ActionError::UnknownType`], which clients ignore silently.
    pub fn parse(raw: &RawValue) -> Result<Self, ActionError> {
        #[derive(Deserialize)]
        struct ActionHead {
            #[serde(rename = "type")]
            kind: String,
        }
        let head: ActionHead = serde_json::from_str(raw.get()).map_err(ActionError::Malformed)?;
        match ActionType::named(&head.kind) {
            None => Err(ActionError::UnknownType(head.kind)),
            Some(ActionType::AgentsChanged) => {
                serde_json::from_str(raw.get()).map(Action::Root).map_err(ActionError::Malformed)
            }
            Some(_) => serde_json::from_str(raw.get()).map(Action::Session).map_err(ActionError::Malformed),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    #[error("there is no action of type {0}")]
    UnknownType(String),
    #[error("the action cannot be read: {0}")]
    Malformed(serde_json::Error),
}

/// The client that dispatched an action, and the client's own number for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    pub client_id: String,
    pub client_seq: u64,
}

/// An action with its position in the order. `A` is the action: typed, or raw if it is passed on unread.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionEnvelope<A> {
    pub action: A,
    pub server_seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection_reason: Option<String>,
}

/// Params of `action`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionParams<A> {
    pub envelope: ActionEnvelope<A>,
}

/// News that are not state: sent once, never replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum Notification {
    #[serde(rename = "notify/sessionAdded")]
    SessionAdded { summary: SessionSummary },
    #[serde(rename = "notify/sessionRemoved")]
    SessionRemoved { session: String },
}

impl Notification {
    pub fn kind(&self) -> NotificationType {
        match self {
            Notification::SessionAdded { .. } => NotificationType::SessionAdded,
            Notification::SessionRemoved { .. } => NotificationType::SessionRemoved,
        }
    }
}

/// Params of `notification`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotificationParams {
    pub notification: Notification,
}
