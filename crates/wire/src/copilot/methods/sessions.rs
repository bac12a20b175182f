//! Sessions: opening, prompting, closing, listing, forking.

use std::collections::BTreeMap;

use serde_json::Value;

use super::CommandDeclaration;
use crate::ahp::macros::{records, words};
use crate::copilot::Event;

records! {
    /// The params of `session.create` and of `session.resume`, which are nearly the same. Other members concern an
    /// agent's internals and are ignored.
    #[derive(Default)]
    pub struct OpenParams {
        /// The client may choose a new session's id; a resumed session has one.
        pub session_id: Option<String>,
        pub model: Option<String>,
        pub client_name: Option<String>,
        pub tools: Option<Vec<ToolDeclaration>>,
        pub working_directory: Option<String>,
        pub additional_directories: Option<Vec<String>>,
        /// True if the client answers permission requests.
        pub request_permission: Option<bool>,
        /// True if the client answers `userInput.request`.
        pub request_user_input: Option<bool>,
        /// True if the client answers `elicitation.requested`.
        pub request_elicitation: Option<bool>,
        /// The commands that the client runs.
        pub commands: Option<Vec<CommandDeclaration>>,
        pub hooks: Option<bool>,
        /// True if the client wants streamed text.
        pub streaming: Option<bool>,
        pub include_sub_agent_streaming_events: Option<bool>,
        pub system_message: Option<Value>,
        /// The MCP servers by their names.
        pub mcp_servers: Option<BTreeMap<String, Value>>,
        pub available_tools: Option<Vec<String>>,
        pub excluded_tools: Option<Vec<String>>,
        pub custom_agents: Option<Value>,
        /// The name of the custom agent to select.
        pub agent: Option<String>,
        pub default_agent: Option<DefaultAgent>,
        /// The folders in which the program's skills are, each in a folder of its own.
        pub skill_directories: Option<Vec<String>>,
        pub disabled_skills: Option<Vec<String>>,
        pub plugin_directories: Option<Value>,
        pub instruction_directories: Option<Value>,
        pub enable_file_hooks: Option<Value>,
        pub disabled_mcp_servers: Option<Value>,
        /// A model server, or several.
        pub provider: Option<Value>,
        pub providers: Option<Value>,
        pub reasoning_effort: Option<String>,
        /// Resuming: no `session.resume` event is sent.
        pub disable_resume: Option<bool>,
        /// Resuming: pending requests stay pending.
        pub continue_pending_work: Option<bool>,
    }

    /// The session's agent beside custom ones.
    #[derive(Default, Eq)]
    pub struct DefaultAgent {
        pub excluded_tools: Option<Vec<String>>,
    }

    /// A tool that the client runs for the agent.
    pub struct ToolDeclaration {
        pub name: String,
        pub description: Option<String>,
        /// A JSON schema.
        pub parameters: Option<Value>,
        pub overrides_built_in_tool: Option<bool>,
        pub skip_permission: Option<bool>,
    }

    #[derive(Default)]
    pub struct OpenResult {
        pub session_id: String,
        pub workspace_path: Option<String>,
        pub capabilities: Option<SessionCapabilities>,
    }

    #[derive(Default, Eq)]
    pub struct SessionCapabilities {
        pub ui: Option<UiCapabilities>,
    }

    /// The abilities of the clients that have the session open, together.
    #[derive(Copy, Default, Eq)]
    pub struct UiCapabilities {
        /// True if one of them shows forms.
        pub elicitation: Option<bool>,
    }

    pub struct SendParams {
        pub session_id: String,
        pub prompt: String,
        /// The text to show instead of the prompt.
        pub display_prompt: Option<String>,
        pub attachments: Option<Vec<Attachment>>,
        pub mode: Option<SendMode>,
        pub agent_mode: Option<String>,
        pub source: Option<String>,
        /// True if a queued message goes before the others.
        pub prepend: Option<bool>,
        /// True if the result waits for the turn's end.
        pub wait: Option<bool>,
    }

    #[derive(Eq)]
    pub struct SendResult {
        pub message_id: String,
    }

    /// The result of `session.sendAndWait`, at the turn's end.
    pub struct SendAndWaitResult {
        pub message_id: String,
        /// The last message of the agent in the turn.
        pub response: Option<Event>,
    }

    #[derive(Default)]
    pub struct AttachmentRange {
        pub start: u64,
        pub end: u64,
    }

    /// Both counts start at zero.
    #[derive(Copy, Default, Eq)]
    pub struct AttachmentPosition {
        pub line: u64,
        pub character: u64,
    }

    #[derive(Copy, Default, Eq)]
    pub struct AttachmentSelectionRange {
        pub start: AttachmentPosition,
        pub end: AttachmentPosition,
    }

    pub struct FileAttachment {
        pub path: String,
        pub display_name: Option<String>,
        pub line_range: Option<AttachmentRange>,
    }

    pub struct DirectoryAttachment {
        pub path: String,
        pub display_name: Option<String>,
    }

    pub struct SelectionAttachment {
        pub file_path: String,
        pub display_name: Option<String>,
        pub text: Option<String>,
        pub selection: Option<AttachmentSelectionRange>,
    }

    /// Bytes in base64.
    pub struct BlobAttachment {
        pub data: Option<String>,
        pub mime_type: Option<String>,
        pub display_name: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct AbortParams {
        pub session_id: String,
        pub reason: Option<String>,
    }

    pub struct GetMessagesResult {
        pub events: Vec<Event>,
    }

    #[derive(Default, Eq)]
    pub struct ShutdownParams {
        pub session_id: String,
        /// `routine` or `error`.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        pub reason: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ListParams {
        pub filter: Option<ListFilter>,
    }

    /// All given members must match.
    #[derive(Default, Eq)]
    pub struct ListFilter {
        pub cwd: Option<String>,
        pub git_root: Option<String>,
        pub repository: Option<String>,
        pub branch: Option<String>,
    }

    #[derive(Eq)]
    pub struct ListResult {
        pub sessions: Vec<SessionMetadata>,
    }

    #[derive(Default, Eq)]
    pub struct SessionMetadata {
        pub session_id: String,
        pub start_time: String,
        pub modified_time: String,
        pub summary: Option<String>,
        pub name: Option<String>,
        pub client_name: Option<String>,
        pub is_remote: bool,
        pub context: Option<SessionContext>,
    }

    /// The working directory of a session.
    #[derive(Default, Eq)]
    pub struct SessionContext {
        pub cwd: String,
        pub git_root: Option<String>,
        pub repository: Option<String>,
        pub branch: Option<String>,
        pub repository_host: Option<String>,
        pub host_type: Option<String>,
        pub head_commit: Option<String>,
        pub base_commit: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct GetMetadataResult {
        pub session: Option<SessionMetadata>,
    }

    /// The result of `session.getLastId` and of `session.getForeground`: a session, if there is one.
    #[derive(Default, Eq)]
    pub struct MaybeSession {
        pub session_id: Option<String>,
        pub workspace_path: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ForkParams {
        pub session_id: String,
        /// The first event that the fork does not have.
        pub to_event_id: Option<String>,
        pub name: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ForkResult {
        pub session_id: String,
        pub name: Option<String>,
    }
}

words! {
    /// The handling of a prompt while a turn runs.
    pub enum SendMode {
        /// It is queued.
        Enqueue = "enqueue",
        /// It goes to the running turn.
        Immediate = "immediate",
    }
}

crate::ahp::macros::unions! {
    /// A prompt's reference or embedded content. References to GitHub are kept as they came.
    pub enum Attachment by "type" {
        "file" => File(FileAttachment),
        "directory" => Directory(DirectoryAttachment),
        "selection" => Selection(SelectionAttachment),
        "blob" => Blob(BlobAttachment),
    }
}

impl SessionMetadata {
    /// The row of a session.
    pub fn of(session: &grove_core::Session) -> Self {
        let named = Some(&session.title).filter(|title| *title != grove_core::Session::UNTITLED);
        Self {
            session_id: session.id.to_string(),
            start_time: crate::ahp::time::text(session.created_at),
            modified_time: crate::ahp::time::text(session.modified_at),
            summary: named.cloned(),
            name: named.cloned(),
            client_name: None,
            is_remote: false,
            context: SessionContext::of(session),
        }
    }
}

impl SessionMetadata {
    /// The row of a session of which only the id and the times are known.
    pub fn unread(id: &grove_core::SessionId, created: grove_core::Timestamp, modified: grove_core::Timestamp) -> Self {
        Self {
            session_id: id.to_string(),
            start_time: crate::ahp::time::text(created),
            modified_time: crate::ahp::time::text(modified),
            ..Self::default()
        }
    }
}

impl SessionContext {
    /// The working directory of a session, as far as core knows it.
    pub fn of(session: &grove_core::Session) -> Option<Self> {
        let folder = session.working_directories.first()?;
        // Sessions name folders by URIs, the SDK by paths.
        let cwd = crate::file_uri::to_path(folder).unwrap_or_else(|| folder.clone());
        Some(Self { cwd, ..Self::default() })
    }
}

impl ListFilter {
    /// True if a session in this context matches the filter.
    pub fn takes(&self, context: Option<&SessionContext>) -> bool {
        let fits = |wanted: &Option<String>, is: Option<&String>| wanted.is_none() || wanted.as_ref() == is;
        fits(&self.cwd, context.map(|context| &context.cwd))
            && fits(&self.git_root, context.and_then(|context| context.git_root.as_ref()))
            && fits(&self.repository, context.and_then(|context| context.repository.as_ref()))
            && fits(&self.branch, context.and_then(|context| context.branch.as_ref()))
    }
}
