//! The state of a grove: one root, and its sessions with their chats.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::checkout::Checkout;
use crate::ids::*;
use crate::input::InputRequest;
use crate::origin::ChatOrigin;
use crate::permissions::Permissions;
use crate::title::{SessionTitle, TitleSource, stored_chat_title};
use crate::turn::*;

/// The complete state that clients can see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub root: Root,
    pub sessions: HashMap<SessionId, Session>,
}

/// The state that belongs to no single session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Root {
    pub agents: Vec<AgentInfo>,
    /// The number of sessions.
    pub active_sessions: u32,
}

/// An agent, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    pub provider: ProviderId,
    pub display_name: String,
    pub description: String,
    pub models: Vec<ModelInfo>,
}

impl AgentInfo {
    /// True if the agent may have this model: an agent whose models are not known yet may have any.
    pub fn has_model(&self, id: &ModelId) -> bool {
        self.models.is_empty() || self.models.iter().any(|model| model.id == *id)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    pub id: ModelId,
    pub name: String,
    pub max_context_window: Option<u64>,
    pub supports_vision: Option<bool>,
}

/// A session groups chats that share an agent and working directories.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub id: SessionId,
    pub uri: SessionUri,
    pub provider: ProviderId,
    pub title: String,
    /// The origin of the title.
    pub title_source: TitleSource,
    pub lifecycle: Lifecycle,
    /// The model chosen for the session; a message may ask for another.
    pub model: Option<ModelId>,
    pub working_directories: Vec<String>,
    pub is_read: bool,
    pub is_archived: bool,
    pub created_at: Timestamp,
    /// The time of the last progress in the session itself or its main chat. Other chats have their times in their
    /// rows: a dialect that does not see them must not see this change either.
    pub modified_at: Timestamp,
    /// The chats; the first is the main one.
    pub chats: Vec<Chat>,
    /// The rows of the chats: a copy, kept in line by separate events.
    pub catalogue: Vec<ChatRow>,
    /// The questions of all chats that wait for a person or a client.
    pub input_needed: Vec<InputNeeded>,
    /// Clients that take part in the session: they offer tools.
    pub active_clients: Vec<ActiveClient>,
    /// The session's settings, if it has any.
    pub config: Option<SessionConfig>,
    pub details: SessionDetails,
    /// The version control state of its working directory.
    pub checkout: Checkout,
    /// The store that holds its folder.
    pub store: StoreName,
}

/// A session's details beside its conversation. They change as a whole, since no dialect can send less.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionDetails {
    /// The settings that exist, if the agent has announced them since the session's creation: a JSON schema of an
    /// object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Extra>,
    /// Commands that the agent understands in a message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<AgentCommand>,
    /// Remembered answers to permission requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<RememberedPermission>,
    /// The permission policy, if a client has set one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// Warnings that a person should read before going on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The contents of the session's workspace, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceDetails>,
    /// The reason why the newest events are not stored: the session's storage does not accept them at the moment. Until
    /// it does, the session accepts nothing new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<String>,
    /// The session's new host, if it was moved. The state here is that of the time of the move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<RemoteSession>,
    /// The session's previous host, if it was moved here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<RemoteSession>,
    /// The session of another tool that it was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<ImportSource>,
}

impl SessionDetails {
    /// Says whether everything is allowed without a question, except for what a rule denies.
    pub fn allows_all(&self) -> bool {
        self.permissions.as_ref().is_some_and(|permissions| permissions.allow_all)
    }

    /// The same without what a person allowed on one host alone: no policy and no remembered answer goes to another host,
    /// or comes back from a storage that others may write.
    pub fn without_permissions(self) -> Self {
        Self { permissions: None, remembered: Vec::new(), ..self }
    }
}

/// The session of another tool from which a session was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImportSource {
    /// The tool's name as lists have it; `log` for a file in the form that Grove and pi share.
    pub source: String,
    /// The id that the tool uses.
    pub source_id: String,
}

/// A session at another host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteSession {
    /// The host's name, as given by the client that moved the session.
    pub host: String,
    /// The host's address without credentials: its name may mean nothing, or another host, to others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The session's name there.
    pub session: String,
    /// The fingerprint of its files at the time of the move: a different one means that the session has gone on since.
    pub stamp: String,
}

/// A summary of a session's workspace, which tells a client with a cached copy when to fetch again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkspaceDetails {
    /// The time of the plan's last change, if there is a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Timestamp>,
    /// The time when a file was last added or deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Timestamp>,
    /// The number of checkpoints.
    pub checkpoints: u32,
}

/// A command that an agent understands at the beginning of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCommand {
    /// The name without the slash.
    pub name: String,
    pub description: String,
    /// A hint for the command's arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A remembered answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RememberedPermission {
    pub kind: PermissionKind,
    /// The subject: the command, the path, or else the question.
    pub about: String,
    pub option: PermissionOption,
}

impl RememberedPermission {
    /// The subject of a request, to be compared exactly, since only the agent knows similar ones. A request without a
    /// subject is not remembered: its permission would allow anything.
    pub fn subject(request: &PermissionRequest) -> Option<&str> {
        let said = match request.kind {
            PermissionKind::Shell => request.full_command_text.as_ref(),
            PermissionKind::Write | PermissionKind::Mcp | PermissionKind::Read | PermissionKind::Url => {
                request.full_command_text.as_ref().or(request.path.as_ref()).or(request.title.as_ref())
            }
        };
        said.map(String::as_str).filter(|about| !about.is_empty())
    }

    /// True if this answers a request.
    pub fn answers(&self, request: &PermissionRequest) -> bool {
        self.kind == request.kind && Self::subject(request) == Some(self.about.as_str())
    }
}

/// A session's settings: their schema and their values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionConfig {
    /// A JSON schema of an object, from the agent.
    pub schema: Extra,
    pub values: Extra,
}

impl SessionConfig {
    /// Creates settings with values and an unknown schema.
    pub fn of(values: Extra) -> Self {
        let schema = serde_json::json!({"type": "object", "properties": {}});
        Self { schema: schema.as_object().cloned().unwrap_or_default(), values }
    }

    /// The same settings without the agent's mode: many agents have modes in which they ask for nothing.
    pub fn without_mode(mut self) -> Self {
        self.values.remove(Self::MODE);
        self
    }

    /// The setting that holds an agent's mode.
    pub const MODE: &str = "mode";

    /// Sets those of the values that the schema has.
    pub fn choose(&mut self, values: Extra) {
        let known = self.schema.get("properties").and_then(serde_json::Value::as_object);
        let known: Vec<_> =
            values.into_iter().filter(|(name, _)| known.is_some_and(|k| k.contains_key(name))).collect();
        self.values.extend(known);
    }

    /// The values after a change.
    pub fn changed(&self, values: &Extra, replace: bool) -> Extra {
        let mut next = if replace { Extra::new() } else { self.values.clone() };
        next.extend(values.iter().map(|(name, value)| (name.clone(), value.clone())));
        next
    }
}

/// A client that takes part in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveClient {
    pub client: ClientId,
    pub display_name: Option<String>,
    pub tools: Vec<ClientTool>,
    /// Further data from its dialect.
    pub extra: Option<Extra>,
}

/// A tool that a client runs for the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    pub name: String,
    pub description: Option<String>,
    pub input_schema: Option<serde_json::Value>,
    /// Further data from its dialect.
    pub extra: Option<Extra>,
}

/// The progress of a session's creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Lifecycle {
    Creating,
    Ready,
    CreationFailed(ErrorInfo),
}

/// A chat's row in its session's catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatRow {
    pub chat: ChatId,
    /// The URI that a client gave it; the main chat has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    #[serde(deserialize_with = "stored_chat_title")]
    pub title: String,
    /// The origin, if the chat began with another chat's turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<ChatOrigin>>,
    pub status: ChatStatus,
    #[serde(default)]
    pub is_read: bool,
    #[serde(default)]
    pub is_archived: bool,
    pub modified_at: Timestamp,
    /// The time of its last progress by the host's clock: lists are ordered by it.
    #[serde(default)]
    pub touched_at: Timestamp,
}

/// A request that waits for a person or a client, with its chat. Chat and request together identify it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputNeeded {
    pub request: RequestId,
    pub chat: ChatId,
    pub turn: TurnId,
    pub about: InputSubject,
}

impl InputNeeded {
    /// True if this is `request` of `chat`.
    pub fn is(&self, chat: &ChatId, request: &RequestId) -> bool {
        self.chat == *chat && self.request == *request
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum InputSubject {
    /// A call that waits for permission to run, or for its result to be released.
    ToolConfirmation(Box<ToolCall>),
    Question(Box<InputRequest>),
    /// A call that its client has to run. Nobody is asked.
    ClientExecution(Box<ToolCall>),
}

/// The status of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChatStatus {
    Idle,
    InProgress,
    InputNeeded,
    Error,
}

/// A conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Chat {
    pub id: ChatId,
    /// The URI that a client gave it; the main chat has none of its own.
    pub uri: Option<String>,
    pub title: String,
    /// The origin, if the chat began with another chat's turns.
    pub origin: Option<Arc<ChatOrigin>>,
    pub turns: Vec<Arc<Turn>>,
    /// True if there are older turns, which are stored and not loaded.
    pub has_older_turns: bool,
    pub active: Option<Box<ActiveTurn>>,
    /// True if the newest turn ended in an error. Moving the leaf clears it.
    pub has_failed: bool,
    /// A message for the running turn.
    pub steering: Option<PendingMessage>,
    /// Messages that will become turns, in order.
    pub queued: Vec<PendingMessage>,
    /// The message that a person is writing.
    pub draft: Option<Message>,
    /// The current activity, if nothing else shows it.
    pub activity: Option<String>,
    /// The agent's own name for this conversation.
    pub agent_session: Option<String>,
    /// True if the agent's conversation began with a summary or a retelling of earlier turns. The agent would name the
    /// session after those words.
    pub is_agent_retold: bool,
    /// Entries that may not be in its log yet.
    pub unlogged: Vec<LogEntry>,
    pub is_read: bool,
    pub is_archived: bool,
    /// The time when its newest turn started or ended, by that turn's own time.
    pub modified_at: Timestamp,
    /// The same by the host's clock: lists are ordered by it.
    pub touched_at: Timestamp,
}

/// An entry of a chat's log as its line, and the turn before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    pub line: Arc<str>,
    /// The newest turn at that time, if there was one.
    pub after: Option<TurnId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingMessage {
    pub id: PendingId,
    pub message: Message,
}

impl Chat {
    pub fn new(id: ChatId, at: Timestamp) -> Self {
        Self {
            id,
            uri: None,
            title: String::new(),
            origin: None,
            turns: Vec::new(),
            has_older_turns: false,
            active: None,
            steering: None,
            queued: Vec::new(),
            draft: None,
            activity: None,
            agent_session: None,
            is_agent_retold: false,
            has_failed: false,
            unlogged: Vec::new(),
            is_read: true,
            is_archived: false,
            modified_at: at,
            touched_at: at,
        }
    }

    /// Creates an empty chat from its row.
    pub fn of(row: &ChatRow) -> Self {
        Self {
            uri: row.uri.clone(),
            title: row.title.clone(),
            origin: row.origin.clone(),
            is_read: row.is_read,
            is_archived: row.is_archived,
            touched_at: row.touched_at,
            ..Self::new(row.chat.clone(), row.modified_at)
        }
    }

    /// The row of this chat.
    pub fn row(&self) -> ChatRow {
        ChatRow {
            chat: self.id.clone(),
            uri: self.uri.clone(),
            title: self.title.clone(),
            origin: self.origin.clone(),
            status: self.status(),
            is_read: self.is_read,
            is_archived: self.is_archived,
            modified_at: self.modified_at,
            touched_at: self.touched_at,
        }
    }

    /// The status of the chat.
    pub fn status(&self) -> ChatStatus {
        match &self.active {
            Some(active) if active.waits_for_person() => ChatStatus::InputNeeded,
            Some(_) => ChatStatus::InProgress,
            None if self.has_failed => ChatStatus::Error,
            None => ChatStatus::Idle,
        }
    }

    /// A copy with at most the newest `turns` finished turns, which are shared.
    pub fn with_newest_turns(&self, turns: usize) -> Self {
        Self {
            id: self.id.clone(),
            uri: self.uri.clone(),
            title: self.title.clone(),
            origin: self.origin.clone(),
            turns: self.turns[self.turns.len().saturating_sub(turns)..].to_vec(),
            has_older_turns: self.has_older_turns || self.turns.len() > turns,
            active: self.active.clone(),
            steering: self.steering.clone(),
            queued: self.queued.clone(),
            draft: self.draft.clone(),
            activity: self.activity.clone(),
            agent_session: self.agent_session.clone(),
            is_agent_retold: self.is_agent_retold,
            has_failed: self.has_failed,
            unlogged: self.unlogged.clone(),
            is_read: self.is_read,
            is_archived: self.is_archived,
            modified_at: self.modified_at,
            touched_at: self.touched_at,
        }
    }

    /// The running turn, if it has this id.
    pub fn active_turn(&self, id: &TurnId) -> Option<&ActiveTurn> {
        self.active.as_deref().filter(|turn| turn.id == *id)
    }

    /// True if the chat has or had a turn of this id.
    pub fn has_turn(&self, id: &TurnId) -> bool {
        self.active_turn(id).is_some() || self.position(id).is_some()
    }

    /// The position of a finished turn. It searches backwards, since new turns are asked for most.
    pub fn position(&self, id: &TurnId) -> Option<usize> {
        self.turns.iter().rposition(|turn| turn.id == *id)
    }

    /// Replaces this chat's copy of a finished turn by an equal one, so that two states share it.
    pub fn share(&mut self, turn: Arc<Turn>) {
        if let Some(at) = self.position(&turn.id) {
            self.turns[at] = turn;
        }
    }
}

/// The properties of a new session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub id: SessionId,
    pub uri: SessionUri,
    pub provider: ProviderId,
    pub model: Option<ModelId>,
    pub working_directories: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<SessionConfig>,
    /// The store that holds its folder.
    #[serde(default, skip_serializing_if = "StoreName::is_local")]
    pub store: StoreName,
}

impl Session {
    /// The id of every session's main chat.
    pub const MAIN_CHAT: &'static str = "main";
    /// The name of a session without a title.
    pub const UNTITLED: &'static str = "New session";

    /// Creates the session's initial state: it has its main chat, but no agent yet.
    pub fn new(new: &NewSession, at: Timestamp) -> Self {
        let chat = Chat { title: Self::UNTITLED.to_owned(), ..Chat::new(ChatId::from(Self::MAIN_CHAT), at) };
        Self {
            id: new.id.clone(),
            uri: new.uri.clone(),
            provider: new.provider.clone(),
            title: Self::UNTITLED.to_owned(),
            title_source: TitleSource::None,
            lifecycle: Lifecycle::Creating,
            model: new.model.clone(),
            working_directories: new.working_directories.clone(),
            is_read: true,
            is_archived: false,
            created_at: at,
            modified_at: at,
            catalogue: vec![chat.row()],
            chats: vec![chat],
            input_needed: Vec::new(),
            active_clients: Vec::new(),
            config: new.config.clone(),
            details: SessionDetails::default(),
            checkout: Checkout::default(),
            store: new.store.clone(),
        }
    }

    /// A copy with at most the newest `turns` finished turns of each chat. Finished turns are shared, so it costs only
    /// the copy of the rest: mostly the running turn.
    pub fn with_newest_turns(&self, turns: usize) -> Self {
        Self {
            id: self.id.clone(),
            uri: self.uri.clone(),
            provider: self.provider.clone(),
            title: self.title.clone(),
            title_source: self.title_source,
            lifecycle: self.lifecycle.clone(),
            model: self.model.clone(),
            working_directories: self.working_directories.clone(),
            is_read: self.is_read,
            is_archived: self.is_archived,
            created_at: self.created_at,
            modified_at: self.modified_at,
            chats: self.chats.iter().map(|chat| chat.with_newest_turns(turns)).collect(),
            catalogue: self.catalogue.clone(),
            input_needed: self.input_needed.clone(),
            active_clients: self.active_clients.clone(),
            config: self.config.clone(),
            details: self.details.clone(),
            checkout: self.checkout.clone(),
            store: self.store.clone(),
        }
    }

    pub fn chat(&self, id: &ChatId) -> Option<&Chat> {
        self.chats.iter().find(|chat| chat.id == *id)
    }

    /// True if any chat has a turn of this id. Turns are identified by their ids alone, in whichever chat.
    pub fn has_turn(&self, id: &TurnId) -> bool {
        self.chats.iter().any(|chat| chat.has_turn(id))
    }

    pub fn chat_mut(&mut self, id: &ChatId) -> Option<&mut Chat> {
        self.chats.iter_mut().find(|chat| chat.id == *id)
    }

    /// Sets the session's title. The main chat goes by it too.
    pub fn set_title(&mut self, title: &SessionTitle) {
        title.text().clone_into(&mut self.title);
        self.title_source = title.source();
        if let Some(main) = self.chats.first_mut() {
            main.title.clone_from(&self.title);
        }
    }

    /// The title with its source.
    pub fn session_title(&self) -> SessionTitle {
        SessionTitle::new(&self.title, self.title_source)
    }

    /// The chat that version 1 shows as the session.
    pub fn main_chat(&self) -> Option<&Chat> {
        self.chats.first()
    }
}
