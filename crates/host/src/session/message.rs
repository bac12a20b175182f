//! The messages to a session's task, and what it starts with.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Weak};

use grove_agents::setup::{AgentSetup, SetupChange};
use grove_agents::{AgentError, AgentSession};
use grove_core::*;
use grove_fs::temp_files::TempFilePolicy as TempFate;
use grove_storage::ActionOrigin;
use grove_storage::chat_log::LogSnapshot;
use grove_storage::copies::ActiveCopies;
use tokio::sync::{mpsc, oneshot, watch};

use super::active_folders::ActiveFolders;
use super::client_hooks::HookMessage;
use super::departures::Departures;
use super::forks::ForkedChat;
use super::handover::{HandoverAnswer, HandoverRequest};
use super::migration::{MigrateError, MigrateOutcome};
use super::outbox::{ActionRefusal, CommandError};
use super::persistence::StorageClientPresence;
use super::setup::{SessionSetup, SetupChangeError, SetupFileError};
use super::spills::SessionSpills;
use super::tree::{TreeAnswer, TreeError, TreeOutcome, TreeRequest};
use super::workspace::{WorkspaceReply, WorkspaceRequest, WorkspaceUpdate};
use crate::audit::PendingRecord;
use crate::config::Config;
use crate::env::Env;
use crate::hooks::Hooks;
use crate::host::HostInner;
use crate::rule_offers::{RuleOfferError, RuleOffers};
use crate::sequencer::{DirectReply, SequencerHandle};

/// A message to a session's task.
pub(crate) enum ToSession {
    ClientAction(ClientAction),
    /// A command that a client waits for, or of the host itself.
    Do(HostCommand, oneshot::Sender<Result<(), CommandError>>),
    /// A chat's agent has started, or has failed to.
    AgentOpened(ChatId, Result<Arc<dyn AgentSession>, AgentError>),
    /// Another session started or ended a turn in a folder of this one.
    ActiveFoldersChanged,
    /// Adds a warning that a person should read.
    Warn(String),
    /// A participating client has been disconnected for too long.
    ClientGone(ClientId),
    /// Hooks of clients have answered.
    Hooks(HookMessage),
    /// Reads what the session's agent is configured with.
    ReadSetup(oneshot::Sender<Result<Arc<AgentSetup>, SetupFileError>>),
    /// Changes what the session's agent is configured with.
    ChangeSetup(SetupChange, oneshot::Sender<Result<(), SetupChangeError>>),
    /// Reads the log of a chat, for an agent without its conversation.
    Recall(ChatId, oneshot::Sender<Result<Option<LogSnapshot>, TreeError>>),
    /// Reads the tree of a chat, or changes it.
    Tree(ChatId, TreeRequest, oneshot::Sender<Result<TreeAnswer, TreeError>>),
    /// A long operation on a chat's tree has ended.
    TreeOutcome(ChatId, TreeOutcome),
    /// Reads the session's workspace, or changes it.
    Workspace(WorkspaceRequest, WorkspaceReply),
    /// The workspace has changed.
    WorkspaceUpdate(WorkspaceUpdate),
    /// The workspace that it has from its fork origin.
    WorkspaceScanned(WorkspaceDetails),
    /// The checkout in the session's folder; `None` if the folder is missing.
    CheckoutScanned(Option<Box<Checkout>>),
    /// A session was forked from a chat of this one, and has its log.
    Forked {
        fork: SessionId,
        title: String,
        origin: Arc<ChatOrigin>,
    },
    /// Creates a chat as a fork of another one.
    ForkChat(ChatForkRequest, oneshot::Sender<Result<(), TreeError>>),
    /// Moves the session to another store.
    Migrate(StoreName, oneshot::Sender<Result<MigrateOutcome, MigrateError>>),
    /// Hands the session over to another host.
    HandOver(HandoverRequest, oneshot::Sender<Result<HandoverAnswer, MigrateError>>),
    /// The session's storage client has disconnected or returned.
    StorageClient(StorageClientPresence),
    /// Asks for the rules that would answer a pending permission request of a chat.
    OfferRules(ChatId, String, oneshot::Sender<Result<RuleOffers, RuleOfferError>>),
    /// Judges the pending permission requests again; resolves when that is done.
    JudgePending(oneshot::Sender<()>),
    /// Resolves when the session is saved, or when it cannot be saved at the moment.
    Flush(oneshot::Sender<()>),
    /// Ends the task, if it is idle and not in use. The session stays.
    Evict,
    /// Ends the session; resolves when it is gone.
    Dispose(oneshot::Sender<()>),
    /// The host stops; resolves when no turn is running any more.
    Stop(oneshot::Sender<()>),
}

/// An action of a client.
pub struct ClientAction {
    /// The request, or the reason why it is invalid.
    pub client_request: Result<ClientRequest, String>,
    pub origin: ActionOrigin,
    /// Its record in the audit log.
    pub record: PendingRecord,
    /// Makes the reply to the client alone: the refusal, or that nothing changes.
    pub answer: Box<dyn FnOnce(DispatchOutcome) -> DirectReply + Send>,
}

impl fmt::Debug for ClientAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAction")
            .field("client_request", &self.client_request)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// A request to create a chat as a fork of another one of its session.
#[derive(Debug)]
pub struct ChatForkRequest {
    pub source: ChatId,
    /// The last turn of the fork.
    pub turn: TurnId,
    pub chat: ChatId,
    pub uri: String,
    pub kind: OriginKind,
}

/// The request of a client's action.
#[derive(Debug)]
pub enum ClientRequest {
    Command(Box<ClientCommand>),
    /// Moves back to the end of a turn, or before the first one. Later turns stay in the log.
    Truncate {
        chat: ChatId,
        turn: Option<TurnId>,
    },
}

/// The outcome of an action that causes no event.
#[derive(Debug)]
pub enum DispatchOutcome {
    Refused(ActionRefusal),
    /// It is allowed, and changes nothing.
    NoChange,
}

/// A handle to a session's task.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    pub uri: SessionUri,
    pub(crate) inbox: mpsc::Sender<ToSession>,
}

impl SessionHandle {
    /// Sends an action of a client. A session that ends at this moment ignores it.
    pub async fn dispatch(&self, action: ClientAction) {
        self.inbox.send(ToSession::ClientAction(action)).await.ok();
    }

    /// Creates a chat as a fork of another one. `None` if the session has ended.
    pub async fn fork_chat(&self, request: ChatForkRequest) -> Option<Result<(), TreeError>> {
        let (done, forked) = oneshot::channel();
        self.inbox.send(ToSession::ForkChat(request, done)).await.ok()?;
        forked.await.ok()
    }

    /// Notes that a participating client has left.
    pub async fn client_gone(&self, client: ClientId) {
        self.inbox.send(ToSession::ClientGone(client)).await.ok();
    }
}

/// The environment of a session's task.
pub(crate) struct SessionContext {
    pub(crate) env: Env,
    pub(crate) config: Arc<Config>,
    pub(crate) sequencer: SequencerHandle,
    pub(crate) agents: watch::Receiver<Arc<[AgentInfo]>>,
    /// The folders in which sessions' agents work.
    pub(crate) active_folders: Arc<ActiveFolders>,
    /// The agents of disposed sessions.
    pub(crate) departures: Arc<Departures>,
    pub(crate) hooks: Hooks,
    /// The host, for the actions of hooks.
    pub(crate) host: Weak<HostInner>,
    pub(crate) copies: ActiveCopies,
    /// Sessions whose temporary files an earlier host left.
    pub(crate) left: Arc<HashSet<SessionId>>,
    /// The fate of the session's own temporary files.
    pub(crate) temp_files: TempFate,
    /// The temporary files from before the session was evicted.
    pub(crate) spills: Option<SessionSpills>,
}

/// The start of a session's task.
pub(crate) enum SessionStart {
    /// The session is new; the task waits until it is in the state. Its chats may be forks.
    New { begun: oneshot::Receiver<()>, forked: Vec<ForkedChat>, setup: SessionSetup },
    /// The session existed before its task; everything of it up to a sequence number is in it.
    /// The frames of its agents are processed up to these cursors.
    Known { seq: u64, marks: HashMap<ChatId, FrameCursor> },
}
