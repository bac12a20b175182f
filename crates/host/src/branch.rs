//! Requests to sessions that the host passes on: branching, forking, renaming, permissions, migration and handover.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use grove_agents::setup::{AgentSetup, SetupChange};
use grove_core::{ChatId, ClientCommand, Message, PermissionsChange, SessionTitle, SessionUri, StoreName};
use grove_storage::{pastes, paths};
use grove_tree::navigate::Prefill;
use grove_wire::x_grove::PermissionsResult;
use grove_work::{FileError, file_uri, local_path};
use tokio::sync::oneshot;

use crate::env::Spawn;
use crate::hooks::HookEvent;
use crate::host::{CreateError, Host};
use crate::rule_offers::RuleOfferError;
use crate::sequencer::{HostStopped, PublishedState};
use crate::session::{
    CommandError, ForkPlan, HandoverAnswer, HandoverRequest, MigrateError, MigrateOutcome, SetupChangeError, ToSession,
    TreeAnswer, TreeError, TreeRequest, WorkspaceAnswer, WorkspaceRequest, WorkspaceRequestError,
};

/// The address of a tree: a session and one of its chats.
pub type ChatAddress = (SessionUri, ChatId);

/// A session that was branched off another one.
#[derive(Debug)]
pub struct BranchedSession {
    pub session: SessionUri,
    /// The text to start the new session's first message with.
    pub prefill: Option<Prefill>,
}

/// The reason why a session did not carry out a request.
#[derive(Debug, thiserror::Error)]
pub enum SessionRequestError {
    #[error("there is no session {0}")]
    NoSession(SessionUri),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Setup(#[from] SetupChangeError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error(transparent)]
    WorkingDirectory(#[from] FileError),
    #[error("a client stores this session: it names the working directory when it resumes the session")]
    DirectoryOfClient,
    #[error(transparent)]
    RuleOffer(#[from] RuleOfferError),
    #[error(transparent)]
    HostStopped(#[from] HostStopped),
}

/// A request to a session's tree that is not answered yet.
#[derive(Debug)]
pub struct PendingTreeRequest {
    session: SessionUri,
    reply: oneshot::Receiver<Result<TreeAnswer, TreeError>>,
}

impl PendingTreeRequest {
    /// Waits for the answer.
    pub async fn answer(self) -> Result<TreeAnswer, SessionRequestError> {
        let Self { session, reply } = self;
        Ok(reply.await.map_err(|_| SessionRequestError::NoSession(session))??)
    }

    async fn fork_plan(self) -> Result<ForkPlan, SessionRequestError> {
        let session = self.session.clone();
        match self.answer().await? {
            TreeAnswer::PlanFork(fork_plan) => Ok(*fork_plan),
            _ => Err(SessionRequestError::NoSession(session)),
        }
    }
}

/// A request to move a session to another store that is not answered yet.
#[derive(Debug)]
pub struct PendingMigration {
    session: SessionUri,
    reply: oneshot::Receiver<Result<MigrateOutcome, MigrateError>>,
}

/// A command that a session was given. It has its place among what the session does.
#[derive(Debug)]
pub struct PendingCommand {
    session: SessionUri,
    reply: oneshot::Receiver<Result<(), CommandError>>,
}

impl PendingCommand {
    /// Waits for the answer.
    pub async fn answer(self) -> Result<(), SessionRequestError> {
        let Self { session, reply } = self;
        let done = reply.await.map_err(|_| SessionRequestError::NoSession(session))?;
        Ok(done.map_err(TreeError::Refused)?)
    }
}

/// A request for a session's permissions that is not answered yet.
#[derive(Debug)]
pub struct PendingPermissionsRequest {
    session: SessionUri,
    /// Resolves when everything is revoked; `None` if the request does not revoke.
    revoked: Option<oneshot::Receiver<Result<(), CommandError>>>,
}

impl PendingPermissionsRequest {
    /// Waits for the answer.
    pub async fn answer(self, host: &Host) -> Result<PermissionsResult, SessionRequestError> {
        let Self { session, revoked } = self;
        if let Some(revoked) = revoked {
            let done = revoked.await.map_err(|_| SessionRequestError::NoSession(session.clone()))?;
            done.map_err(TreeError::Refused)?;
        }
        let wanted = session.clone();
        let look = move |published: &PublishedState| {
            published.session_at(&wanted).map(|session| PermissionsResult::of(&session.details))
        };
        host.0.sequencer.read(look).ok_or(SessionRequestError::NoSession(session))
    }
}

/// A request to hand a session over to another host that is not answered yet.
#[derive(Debug)]
pub struct PendingHandover {
    pub session: SessionUri,
    reply: oneshot::Receiver<Result<HandoverAnswer, MigrateError>>,
}

impl PendingHandover {
    /// Waits for the answer.
    pub async fn answer(self) -> Result<HandoverAnswer, SessionRequestError> {
        let Self { session, reply } = self;
        Ok(reply.await.map_err(|_| SessionRequestError::NoSession(session))??)
    }
}

impl PendingMigration {
    /// Waits for the answer.
    pub async fn answer(self) -> Result<MigrateOutcome, SessionRequestError> {
        let Self { session, reply } = self;
        Ok(reply.await.map_err(|_| SessionRequestError::NoSession(session))??)
    }
}

impl Host {
    /// Queues a request about the tree of a chat. Its position in the session's order is fixed when this returns.
    pub async fn ask_tree(
        &self,
        (uri, chat): &ChatAddress,
        request: TreeRequest,
    ) -> Result<PendingTreeRequest, SessionRequestError> {
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        let (done, reply) = oneshot::channel();
        session.inbox.send(ToSession::Tree(chat.clone(), request, done)).await.map_err(|_| gone())?;
        Ok(PendingTreeRequest { session: uri.clone(), reply })
    }

    /// Queues a request about the workspace. Its position in the session's order is fixed when this returns.
    pub async fn ask_workspace(
        &self,
        uri: &SessionUri,
        request: WorkspaceRequest,
    ) -> Result<oneshot::Receiver<Result<WorkspaceAnswer, WorkspaceRequestError>>, SessionRequestError> {
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        let (done, reply) = oneshot::channel();
        session.inbox.send(ToSession::Workspace(request, done)).await.map_err(|_| gone())?;
        Ok(reply)
    }

    /// Reads what a session's agent is configured with. It may hold secrets.
    pub async fn setup_of(&self, uri: &SessionUri) -> Result<Arc<AgentSetup>, SessionRequestError> {
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        let (done, setup) = oneshot::channel();
        session.inbox.send(ToSession::ReadSetup(done)).await.map_err(|_| gone())?;
        Ok(setup.await.map_err(|_| gone())?.map_err(SetupChangeError::File)?)
    }

    /// Changes what a session's agent is configured with. Idle agents start again with it; a running turn finishes first.
    pub async fn change_setup(&self, uri: &SessionUri, change: SetupChange) -> Result<(), SessionRequestError> {
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        let (done, changed) = oneshot::channel();
        session.inbox.send(ToSession::ChangeSetup(change, done)).await.map_err(|_| gone())?;
        Ok(changed.await.map_err(|_| gone())??)
    }

    /// Creates a session from the conversation before a user message. Hooks may forbid it.
    pub async fn branch_off(
        &self,
        place: &ChatAddress,
        entry: String,
        cut: PendingTreeRequest,
    ) -> Result<BranchedSession, SessionRequestError> {
        let fork_plan = cut.fork_plan().await?;
        let (uri, chat) = place;
        let hooks = self.0.hooks.at(Arc::downgrade(&self.0), uri.clone(), chat.clone());
        hooks.ask(&HookEvent::BeforeBranch { entry_id: entry }).await?;
        let (prefill, title, store) =
            (fork_plan.prefill.clone(), fork_plan.title.clone(), fork_plan.like.store.clone());
        let session = self.create_from(fork_plan, title, None).await?;
        let prefill = prefill.map(|prefill| self.in_branch(prefill, &store, uri, &session));
        let previous = uri.id().map(|id| paths::log(&id, chat)).unwrap_or_default();
        let event = HookEvent::Branch { previous_session_file: previous, session: session.to_string() };
        self.0.env.spawn.spawn(Box::pin(async move { hooks.tell(&event).await }));
        Ok(BranchedSession { session, prefill })
    }

    /// The prefill, with its references to pasted files pointing into the new session.
    fn in_branch(&self, prefill: Prefill, store: &StoreName, from: &SessionUri, to: &SessionUri) -> Prefill {
        let (Ok(fs), Some(from), Some(to)) = (self.0.env.stores.get(store), from.id(), to.id()) else { return prefill };
        let moved = pastes::moved((fs.as_ref(), &from), (fs.as_ref(), &to));
        let text = pastes::in_message(&moved, &Message::user(&prefill.text)).map(|message| message.text);
        let message = prefill.message.as_ref().and_then(|message| pastes::in_message(&moved, message));
        Prefill { text: text.unwrap_or(prefill.text), message: message.or(prefill.message), ..prefill }
    }

    /// Forks a whole session, into the named store or else into the store of the source.
    pub async fn fork_off(
        &self,
        title: Option<String>,
        store: Option<StoreName>,
        cut: PendingTreeRequest,
    ) -> Result<SessionUri, SessionRequestError> {
        let fork_plan = cut.fork_plan().await?;
        let given = title.as_deref().map(SessionTitle::given).filter(|title| !title.is_none());
        let title = given.unwrap_or_else(|| fork_plan.title.of_fork());
        Ok(self.create_from(fork_plan, title, store).await?)
    }

    /// Asks a session to rename one of its chats.
    pub async fn ask_to_rename(
        &self,
        (uri, chat): &ChatAddress,
        title: String,
    ) -> Result<PendingCommand, SessionRequestError> {
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        let (done, reply) = oneshot::channel();
        let rename = ClientCommand::RenameChat { chat: chat.clone(), title };
        session.inbox.send(ToSession::Do(rename.into(), done)).await.map_err(|_| gone())?;
        Ok(PendingCommand { session: uri.clone(), reply })
    }

    /// Has a session's agents work in another folder. It is checked as that of a new session, and must exist. Gives its URI.
    pub async fn ask_to_set_working_directory(
        &self,
        uri: &SessionUri,
        directory: String,
    ) -> Result<(PendingCommand, String), SessionRequestError> {
        let path = local_path(&self.0.config.folders.expand(directory))?;
        let path = folder_at(self.0.env.spawn.as_ref(), path).await?;
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        let wanted = uri.clone();
        let look = move |published: &PublishedState| published.session_at(&wanted).map(|session| session.store.clone());
        let store = self.0.sequencer.read(look).ok_or_else(gone)?;
        if self.stores().is_client_stored(&store) {
            return Err(SessionRequestError::DirectoryOfClient);
        }
        let directory = file_uri(&path);
        let (done, reply) = oneshot::channel();
        let set = ClientCommand::SetWorkingDirectory(directory.clone());
        session.inbox.send(ToSession::Do(set.into(), done)).await.map_err(|_| gone())?;
        Ok((PendingCommand { session: uri.clone(), reply }, directory))
    }

    /// Asks a session for its permissions, and revokes them all if `revoke` is set.
    pub async fn ask_permissions(
        &self,
        uri: &SessionUri,
        revoke: bool,
    ) -> Result<PendingPermissionsRequest, SessionRequestError> {
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        let mut revoked = None;
        if revoke {
            let (done, reply) = oneshot::channel();
            let change = ClientCommand::ChangePermissions(PermissionsChange::Revoke);
            session.inbox.send(ToSession::Do(change.into(), done)).await.map_err(|_| gone())?;
            revoked = Some(reply);
        }
        Ok(PendingPermissionsRequest { session: uri.clone(), revoked })
    }

    /// Asks a session to move to another store. Everything is copied and compared before it moves.
    pub async fn ask_to_migrate(
        &self,
        uri: &SessionUri,
        to: StoreName,
    ) -> Result<PendingMigration, SessionRequestError> {
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        let (done, reply) = oneshot::channel();
        session.inbox.send(ToSession::Migrate(to, done)).await.map_err(|_| gone())?;
        Ok(PendingMigration { session: uri.clone(), reply })
    }

    /// Asks a session for the manifest of a handover to another host.
    pub async fn ask_to_hand_over(
        &self,
        uri: &SessionUri,
        request: HandoverRequest,
    ) -> Result<PendingHandover, SessionRequestError> {
        let gone = || SessionRequestError::NoSession(uri.clone());
        let session = self.session(uri).await?.ok_or_else(gone)?;
        let (done, reply) = oneshot::channel();
        session.inbox.send(ToSession::HandOver(request, done)).await.map_err(|_| gone())?;
        Ok(PendingHandover { session: uri.clone(), reply })
    }
}

/// The path, where it is a folder.
async fn folder_at(spawn: &dyn Spawn, path: PathBuf) -> Result<PathBuf, FileError> {
    let looked_at = path.clone();
    let found = spawn.run_blocking(move || looked_at.metadata()).await;
    match found.map_err(io::Error::other).and_then(|found| found) {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(_) => Err(FileError::NotAFolder { path }),
        Err(error) => Err(FileError::from_io(error, &path)),
    }
}
