//! A session: chats that share an agent and working directories.

use serde::{Deserialize, Serialize};

use super::*;
use crate::checkout::Checkout;
use crate::ids::*;
use crate::title::{SessionTitle, TitleSource};
use crate::turn::{ErrorInfo, Extra};

/// A session groups chats that share an agent and working directories.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub id: SessionId,
    pub uri: SessionUri,
    pub agent: AgentId,
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

impl ClientTool {
    /// The member of `extra` that says that a person is asked before each call.
    pub const ASKS_FIRST: &str = "grove.asksFirst";

    /// Says whether a person is asked before each call.
    pub fn asks_first(&self) -> bool {
        let asks = self.extra.as_ref().and_then(|extra| extra.get(Self::ASKS_FIRST));
        asks.and_then(serde_json::Value::as_bool).unwrap_or(false)
    }
}

/// The progress of a session's creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Lifecycle {
    Creating,
    Ready,
    CreationFailed(ErrorInfo),
}

/// The properties of a new session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub id: SessionId,
    pub uri: SessionUri,
    #[serde(rename = "provider")]
    pub agent: AgentId,
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
            agent: new.agent.clone(),
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
            agent: self.agent.clone(),
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

    /// The first chat, which every session has.
    pub fn main_chat(&self) -> Option<&Chat> {
        self.chats.first()
    }
}
