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

/// Everything that clients can see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub root: Root,
    pub sessions: HashMap<SessionId, Session>,
}

/// What concerns no single session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Root {
    pub agents: Vec<AgentInfo>,
    /// How many sessions there are.
    pub active_sessions: u32,
}

/// An agent backend, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    pub provider: ProviderId,
    pub display_name: String,
    pub description: String,
    pub models: Vec<ModelInfo>,
}

impl AgentInfo {
    /// Whether it may have this model: an agent of which no model is known yet may have any.
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
    /// When the session itself or its main chat last moved on. Other chats have their times in their rows: a dialect
    /// that does not see them must not see this change either.
    pub modified_at: Timestamp,
    /// The chats themselves; the first is the main one.
    pub chats: Vec<Chat>,
    /// What the session says of its chats. A copy of theirs, kept in line by events of its own.
    pub catalogue: Vec<ChatRow>,
    /// The questions that wait for a person or a client, of all chats.
    pub input_needed: Vec<InputNeeded>,
    /// Clients that take part: they offer tools.
    pub active_clients: Vec<ActiveClient>,
    /// The session's settings, where it has any.
    pub config: Option<SessionConfig>,
    pub details: SessionDetails,
    /// What version control says of where it works.
    pub checkout: Checkout,
    /// Where its folder lies.
    pub store: StoreName,
}

/// What is known about a session beside what is said in it. It changes as a whole, since no dialect can tell less.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionDetails {
    /// What may be set, where the agent has said it since the session was made: a JSON schema of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Extra>,
    /// Commands that the agent understands in a message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<AgentCommand>,
    /// Answers that hold for all times that the same is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<RememberedPermission>,
    /// What may happen without anybody being asked, where a client has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// What a person should know before going on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What the session has beside its conversation, where somebody has put something there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceDetails>,
    /// Why what was said last is not where the session is kept: its storage does not take it at the moment. Until it
    /// does, the session takes nothing new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<String>,
    /// Where the session went, where it is another host's now. What is here is what it was then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<RemoteSession>,
    /// Where it came from, where it was another host's before.
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
    /// What the host is called by whoever moved the session.
    pub host: String,
    /// Where it is, without what lets anybody in: its name may mean nothing to others, or another host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What the session is called there.
    pub session: String,
    /// What its files were when it went: whoever has others has gone on since.
    pub stamp: String,
}

/// What is in a session's workspace, in few words: who keeps some of it knows when to look again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkspaceDetails {
    /// When the plan was last written, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Timestamp>,
    /// When a file was last put there or taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Timestamp>,
    /// How many checkpoints are listed.
    pub checkpoints: u32,
}

/// A command that an agent understands at the beginning of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCommand {
    /// Without the slash.
    pub name: String,
    pub description: String,
    /// What may follow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// An answer to a permission request that was meant for all times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RememberedPermission {
    pub kind: PermissionKind,
    /// What was asked about: the command, the path, else the question.
    pub about: String,
    pub option: PermissionOption,
}

impl RememberedPermission {
    /// What a request is about, as it is compared: exactly, since nobody but the agent knows what resembles it.
    /// Leave to run something that was not said would be leave to run anything.
    pub fn subject(request: &PermissionRequest) -> Option<&str> {
        let said = match request.kind {
            PermissionKind::Shell => request.full_command_text.as_ref(),
            PermissionKind::Write | PermissionKind::Mcp | PermissionKind::Read | PermissionKind::Url => {
                request.full_command_text.as_ref().or(request.path.as_ref()).or(request.title.as_ref())
            }
        };
        said.map(String::as_str).filter(|about| !about.is_empty())
    }

    /// Whether this answers a request.
    pub fn answers(&self, request: &PermissionRequest) -> bool {
        self.kind == request.kind && Self::subject(request) == Some(self.about.as_str())
    }
}

/// A session's settings: what may be set, and what is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionConfig {
    /// A JSON schema of an object, as the agent gives it.
    pub schema: Extra,
    pub values: Extra,
}

impl SessionConfig {
    /// Settings of which nothing is known but their values.
    pub fn of(values: Extra) -> Self {
        let schema = serde_json::json!({"type": "object", "properties": {}});
        Self { schema: schema.as_object().cloned().unwrap_or_default(), values }
    }

    /// The same without the agent's mode: many agents have modes in which they ask for nothing.
    pub fn without_mode(mut self) -> Self {
        self.values.remove(Self::MODE);
        self
    }

    /// The setting in which agents keep their mode.
    pub const MODE: &str = "mode";

    /// Takes those of the values that can be set.
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
    /// What its dialect said beyond this.
    pub extra: Option<Extra>,
}

/// A tool that a client runs for the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    pub name: String,
    pub description: Option<String>,
    pub input_schema: Option<serde_json::Value>,
    /// What its dialect said beyond this.
    pub extra: Option<Extra>,
}

/// How far a session's creation has come.
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
    /// Where it comes from, if it began with what another one had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<ChatOrigin>>,
    pub status: ChatStatus,
    #[serde(default)]
    pub is_read: bool,
    #[serde(default)]
    pub is_archived: bool,
    pub modified_at: Timestamp,
    /// When it last moved on by the host's clock: what lists are ordered by.
    #[serde(default)]
    pub touched_at: Timestamp,
}

/// Something that waits for a person or a client, and where it was asked. Chat and request together name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputNeeded {
    pub request: RequestId,
    pub chat: ChatId,
    pub turn: TurnId,
    pub about: InputSubject,
}

impl InputNeeded {
    /// Whether this is what `chat` asked under `request`.
    pub fn is(&self, chat: &ChatId, request: &RequestId) -> bool {
        self.chat == *chat && self.request == *request
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum InputSubject {
    /// Whether a call may run, or its result be seen. The call as it waits.
    ToolConfirmation(Box<ToolCall>),
    Question(Box<InputRequest>),
    /// A call that its client has to run. Nobody is asked.
    ClientExecution(Box<ToolCall>),
}

/// What a chat is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChatStatus {
    Idle,
    InProgress,
    InputNeeded,
    Error,
}

/// One conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Chat {
    pub id: ChatId,
    /// The URI that a client gave it; the main chat has none of its own.
    pub uri: Option<String>,
    pub title: String,
    /// Where it comes from, if it began with what another one had.
    pub origin: Option<Arc<ChatOrigin>>,
    pub turns: Vec<Arc<Turn>>,
    /// Whether there are older turns, which are stored and not here.
    pub has_older_turns: bool,
    pub active: Option<Box<ActiveTurn>>,
    /// Whether what happened last is that a turn ended in error. Who goes elsewhere leaves that behind.
    pub has_failed: bool,
    /// A message for the running turn.
    pub steering: Option<PendingMessage>,
    /// Messages that become turns of their own, in order.
    pub queued: Vec<PendingMessage>,
    /// What a person is writing.
    pub draft: Option<Message>,
    /// What it is busy with, where nothing else shows it.
    pub activity: Option<String>,
    /// How its agent calls this conversation.
    pub agent_session: Option<String>,
    /// The agent's conversation began with a summary or a retelling of earlier turns. The agent would name the session
    /// after those words.
    pub is_agent_retold: bool,
    /// Entries that its log may not have yet.
    pub unlogged: Vec<LogEntry>,
    pub is_read: bool,
    pub is_archived: bool,
    /// When its newest turn started or ended, by that turn's own time.
    pub modified_at: Timestamp,
    /// The same by the host's clock: what lists are ordered by.
    pub touched_at: Timestamp,
}

/// An entry of a chat's log, as its line, and the turn that it stands behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    pub line: Arc<str>,
    /// The newest turn at that time; without one there was none.
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

    /// The chat that a row tells of, empty.
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

    /// The row that tells of this chat.
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

    /// What the chat is doing.
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

    /// The running turn, where it is this one.
    pub fn active_turn(&self, id: &TurnId) -> Option<&ActiveTurn> {
        self.active.as_deref().filter(|turn| turn.id == *id)
    }

    /// Whether a turn of this id ever was.
    pub fn has_turn(&self, id: &TurnId) -> bool {
        self.active_turn(id).is_some() || self.position(id).is_some()
    }

    /// Where the finished turn stands. New turns are asked for most, so the search goes backwards.
    pub fn position(&self, id: &TurnId) -> Option<usize> {
        self.turns.iter().rposition(|turn| turn.id == *id)
    }

    /// Puts an equal finished turn in the place of this chat's own copy, so that two states share one.
    pub fn share(&mut self, turn: Arc<Turn>) {
        if let Some(at) = self.position(&turn.id) {
            self.turns[at] = turn;
        }
    }
}

/// What a new session is made of.
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
    /// Where its folder lies.
    #[serde(default, skip_serializing_if = "StoreName::is_local")]
    pub store: StoreName,
}

impl Session {
    /// The id of the chat that every session has.
    pub const MAIN_CHAT: &'static str = "main";
    /// What a session is called until somebody names it.
    pub const UNTITLED: &'static str = "New session";

    /// A session as it stands at its creation: its main chat is there, its agent is not.
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

    /// A copy with at most the newest `turns` finished turns of each chat. Turns are shared, so it costs what is
    /// copied of the rest: the running turn, above all.
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

    /// Whether a turn of this id is in any chat. Turns are told apart by their ids alone, whatever chat they are in.
    pub fn has_turn(&self, id: &TurnId) -> bool {
        self.chats.iter().any(|chat| chat.has_turn(id))
    }

    pub fn chat_mut(&mut self, id: &ChatId) -> Option<&mut Chat> {
        self.chats.iter_mut().find(|chat| chat.id == *id)
    }

    /// Gives the session a title. The main chat goes by it too.
    pub fn set_title(&mut self, title: &SessionTitle) {
        title.text().clone_into(&mut self.title);
        self.title_source = title.source();
        if let Some(main) = self.chats.first_mut() {
            main.title.clone_from(&self.title);
        }
    }

    /// The title, with who gave it.
    pub fn session_title(&self) -> SessionTitle {
        SessionTitle::new(&self.title, self.title_source)
    }

    /// The chat that version 1 shows as the session.
    pub fn main_chat(&self) -> Option<&Chat> {
        self.chats.first()
    }
}
