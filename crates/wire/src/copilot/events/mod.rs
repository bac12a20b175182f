//! Events: the envelope, and the data of each type.
//!
//! A persisted event has the one before it as its parent, so that they form a chain. An ephemeral one has the last
//! persisted one as its parent and is no parent itself.

mod requests;
mod session;
mod turn;

pub use requests::*;
pub use session::*;
pub use turn::*;

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::methods::SessionContext;

/// An event's id: a UUID, as text.
pub type EventId = Arc<str>;

/// An event of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: EventId,
    /// RFC 3339, in milliseconds.
    pub timestamp: String,
    /// The previous persisted event; the first has none.
    pub parent_id: Option<EventId>,
    /// Sent once and not persisted.
    pub ephemeral: bool,
    /// The agent beside the main one that it concerns.
    pub agent_id: Option<String>,
    pub data: EventData,
}

impl Event {
    /// Its type on the wire.
    pub fn kind(&self) -> &str {
        self.data.kind()
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let optional = usize::from(self.ephemeral) + usize::from(self.agent_id.is_some());
        let mut written = serializer.serialize_struct("Event", 5 + optional)?;
        written.serialize_field("type", self.kind())?;
        written.serialize_field("data", &self.data)?;
        written.serialize_field("id", &self.id)?;
        written.serialize_field("timestamp", &self.timestamp)?;
        written.serialize_field("parentId", &self.parent_id)?;
        if self.ephemeral {
            written.serialize_field("ephemeral", &true)?;
        }
        if let Some(agent) = &self.agent_id {
            written.serialize_field("agentId", agent)?;
        }
        written.end()
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct EventEnvelope {
            #[serde(rename = "type")]
            kind: String,
            #[serde(default)]
            data: Value,
            id: EventId,
            #[serde(default)]
            timestamp: String,
            #[serde(default)]
            parent_id: Option<EventId>,
            #[serde(default)]
            ephemeral: Option<bool>,
            #[serde(default)]
            agent_id: Option<String>,
        }
        let EventEnvelope { kind, data, id, timestamp, parent_id, ephemeral, agent_id } =
            EventEnvelope::deserialize(deserializer)?;
        let data = EventData::read(kind, data);
        Ok(Self { id, timestamp, parent_id, ephemeral: ephemeral.unwrap_or(false), agent_id, data })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Event {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Event".into()
    }

    /// Left open: the protocol has its own schema of events' data.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

macro_rules! events {
    ($($(#[$about:meta])* $kind:literal => $variant:ident($data:ty)),* $(,)?) => {
        /// The data of an event, by its type.
        #[derive(Clone, Debug, PartialEq)]
        pub enum EventData {
            $($(#[$about])* $variant($data),)*
            /// An event of an unknown type, or with data of another form, as it came: events of an older or a newer
            /// program must not make the whole log unreadable.
            Unknown { kind: String, data: Value },
        }

        impl EventData {
            /// The known types.
            pub const KINDS: &[&str] = &[$($kind),*];

            /// The type on the wire.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Unknown { kind, .. } => kind,
                }
            }

            fn read(kind: String, data: Value) -> Self {
                match kind.as_str() {
                    $($kind => match crate::value_reader::from_value(&data) {
                        Ok(data) => Self::$variant(data),
                        Err(_) => Self::Unknown { kind, data },
                    },)*
                    _ => Self::Unknown { kind, data },
                }
            }
        }

        /// Serializes the data without its type.
        impl Serialize for EventData {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(data) => data.serialize(serializer),)*
                    Self::Unknown { data, .. } => data.serialize(serializer),
                }
            }
        }

        $(impl From<$data> for EventData {
            fn from(data: $data) -> Self {
                Self::$variant(data)
            }
        })*
    };
}

events! {
    "session.start" => SessionStart(SessionStart),
    "session.resume" => SessionResume(SessionResume),
    "session.idle" => SessionIdle(SessionIdle),
    "session.error" => SessionError(SessionError),
    "session.warning" => SessionWarning(SessionWarning),
    "session.info" => SessionInfo(SessionInfo),
    "session.title_changed" => TitleChanged(TitleChanged),
    "session.model_change" => ModelChange(ModelChange),
    "session.plan_changed" => PlanChanged(PlanChanged),
    "session.mode_changed" => ModeChanged(ModeChanged),
    "subagent.selected" => AgentSelected(AgentSelected),
    "subagent.deselected" => AgentDeselected(AgentDeselected),
    "session.context_changed" => ContextChanged(SessionContext),
    "session.permissions_changed" => PermissionsChanged(PermissionsChanged),
    "session.workspace_file_changed" => WorkspaceFileChanged(WorkspaceFileChanged),
    "session.todos_changed" => TodosChanged(TodosChanged),
    "session.compaction_start" => CompactionStart(CompactionStart),
    "session.compaction_complete" => CompactionComplete(CompactionComplete),
    "session.snapshot_rewind" => SnapshotRewind(SnapshotRewind),
    "session.usage_info" => UsageInfo(UsageInfo),
    "session.shutdown" => SessionShutdown(Box<SessionShutdown>),
    "pending_messages.modified" => PendingMessagesModified(PendingMessagesModified),
    "user.message" => UserMessage(UserMessage),
    "assistant.turn_start" => TurnStart(TurnStart),
    "assistant.turn_end" => TurnEnd(TurnEnd),
    "assistant.message_start" => MessageStart(MessageStart),
    "assistant.message_delta" => MessageDelta(MessageDelta),
    "assistant.message" => AssistantMessage(AssistantMessage),
    "assistant.reasoning_delta" => ReasoningDelta(ReasoningDelta),
    "assistant.reasoning" => Reasoning(Reasoning),
    "assistant.tool_call_delta" => ToolCallDelta(ToolCallDelta),
    "assistant.usage" => Usage(Usage),
    "tool.execution_start" => ToolStart(ToolStart),
    "tool.execution_partial_result" => ToolPartialResult(ToolPartialResult),
    "tool.execution_complete" => ToolComplete(ToolComplete),
    "permission.requested" => PermissionRequested(Box<PermissionRequested>),
    "permission.completed" => PermissionCompleted(PermissionCompleted),
    "external_tool.requested" => ExternalToolRequested(ExternalToolRequested),
    "external_tool.completed" => ExternalToolCompleted(ExternalToolCompleted),
    "user_input.requested" => UserInputRequested(UserInputRequested),
    "user_input.completed" => UserInputCompleted(UserInputCompleted),
    "elicitation.requested" => ElicitationRequested(ElicitationRequested),
    "elicitation.completed" => ElicitationCompleted(ElicitationCompleted),
    "command.queued" => CommandQueued(CommandQueued),
    "command.execute" => CommandExecute(CommandExecute),
    "command.completed" => CommandCompleted(CommandCompleted),
    "commands.changed" => CommandsChanged(CommandsChanged),
    "capabilities.changed" => CapabilitiesChanged(CapabilitiesChanged),
    "abort" => Abort(Abort),
}
