//! Principals: the holders of tokens behind connections, and their rights.

use std::sync::Arc;

use grove_checks::Check;
use grove_core::{ClientId, Scope, ScopeSet, SessionId, warning};
use grove_host::audit::{AuditAction, AuditOutcome};
use grove_host::presence::ClientParty;
use grove_host::tokens::{TokenGrant, TokenMaker, TokenPublicId};
use grove_host::{Clock, ConnectionUsage, FolderReach, Host};
use grove_wire::x_grove::presence::AttachedKind;

use crate::listener::PeerAddress;
use crate::origin::{Origin, PERSONS_ALONE, PeerProcess};
use crate::recording;

/// The name of the principal behind the host's Unix socket.
const OWNER: &str = "owner";
/// The name of the principal of connections inside the host's process.
const IN_PROCESS: &str = "in-process";

/// The party behind a connection: the name of its token, its rights, and where it connects from.
///
/// The host decides all of it. Nothing that a client says of itself changes it.
#[derive(Clone, Debug)]
pub struct Principal {
    name: Arc<str>,
    scopes: ScopeSet,
    address: PeerAddress,
    /// The token, which may end before the connection; none for the owner's socket and the host's own process.
    token: Option<TokenGrant>,
    process: Arc<PeerProcess>,
}

/// The refusal of a request or an action that needs a scope that the token does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{operation} needs the scope `{scope}`, which the token `{token}` does not have: use another token, or have the owner \
     of the host make one with `grove token add NAME --can {scope}`"
)]
pub(crate) struct MissingScope {
    operation: String,
    scope: Scope,
    token: Arc<str>,
}

/// The longest name of an operation, and of a folder in it, that a refusal shows.
const MAX_OPERATION_CHARS: usize = 300;
const MAX_FOLDER_CHARS: usize = 200;

/// The refusal of a request or an action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Forbidden {
    #[error(transparent)]
    Scope(#[from] MissingScope),
    #[error(
        "{0} is for persons alone, and this connection belongs to a process of an agent: ask the person to do it in a \
         terminal that no agent started, or on the page"
    )]
    Agent(String),
    #[error("{0} is for persons alone, and the process behind this connection cannot be found: connect again")]
    UnknownProcess(String),
}

impl Principal {
    /// The holder of a named token.
    pub fn new(name: impl Into<Arc<str>>, scopes: ScopeSet, address: PeerAddress) -> Self {
        Self { name: name.into(), scopes, address, token: None, process: Arc::new(PeerProcess::new(address)) }
    }

    /// The same principal, as a relay of a client with an address of its own.
    pub(crate) fn relaying(self, client: PeerAddress) -> Self {
        Self { process: Arc::new(self.process.relaying(client)), ..self }
    }

    /// The same principal, with the process of its connection, which may have been looked up already.
    pub(crate) fn with_process(self, process: Arc<PeerProcess>) -> Self {
        Self { process, ..self }
    }

    /// The holder of a token, with its rights until it ends.
    pub fn of_token(token: TokenGrant, address: PeerAddress) -> Self {
        let process = Arc::new(PeerProcess::new(address));
        Self { name: token.name.clone(), scopes: token.scopes, address, token: Some(token), process }
    }

    /// A process of the host's owner, through the host's own socket.
    pub fn owner(address: PeerAddress) -> Self {
        Self::new(OWNER, ScopeSet::ALL, address)
    }

    /// A part of the host's own process.
    pub fn in_process() -> Self {
        Self::new(IN_PROCESS, ScopeSet::ALL, PeerAddress::InProcess)
    }

    /// The public id of the named token; none for the owner of the host, whose socket and own token count as one.
    pub fn token_id(&self) -> Option<TokenPublicId> {
        self.token.as_ref().and_then(|token| token.id)
    }

    /// The rights that it can pass on to tokens that it makes.
    pub(crate) fn token_maker(&self) -> TokenMaker {
        TokenMaker { scopes: self.scopes, expires_at: self.token.as_ref().and_then(TokenGrant::expires_at) }
    }

    /// Waits until the principal's token ends.
    pub(crate) async fn ended(&self, clock: &dyn Clock) {
        match &self.token {
            Some(token) => token.ended(clock).await,
            None => std::future::pending().await,
        }
    }

    /// The name of the token, which people see in lists and in the audit log.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The party that other clients see, with the name that the client sent.
    pub(crate) fn party(&self, name: Option<&str>) -> ClientParty {
        let kind = match self.is_in_process() {
            true => AttachedKind::Hub,
            false if self.process.is_known_agent() => AttachedKind::Agent,
            false => AttachedKind::Client,
        };
        ClientParty::new(self.name.clone(), name, kind)
    }

    /// Says whether it is a part of the host's own process, to which no limits of use apply.
    pub fn is_in_process(&self) -> bool {
        self.address == PeerAddress::InProcess && &*self.name == IN_PROCESS
    }

    /// The use that a new connection of the principal makes of a host.
    pub(crate) fn usage(&self, host: &Host) -> ConnectionUsage {
        match self.is_in_process() {
            true => host.in_process_usage(),
            false => host.connection_usage(&self.name),
        }
    }

    pub fn scopes(&self) -> ScopeSet {
        self.scopes
    }

    pub fn address(&self) -> PeerAddress {
        self.address
    }

    /// Refuses an operation if it needs a scope that the principal does not have.
    pub(crate) fn check(&self, needed: ScopeSet, operation: &str) -> Result<(), MissingScope> {
        match needed.iter().find(|scope| !self.may(*scope)) {
            Some(scope) if Check::Scopes.is_enforced() => {
                let operation = operation.chars().take(MAX_OPERATION_CHARS).collect();
                Err(MissingScope { operation, scope, token: self.name.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The folders that the principal may work in and see.
    pub(crate) fn folder_reach(&self) -> FolderReach {
        match self.may(Scope::Folders) || !Check::Folders.is_enforced() {
            true => FolderReach::Everywhere,
            false => FolderReach::Roots,
        }
    }

    /// Refuses to work in folders outside the configured roots, unless the principal may.
    pub(crate) async fn check_folders(
        &self,
        host: &Host,
        folders: Vec<String>,
        operation: &str,
    ) -> Result<(), MissingScope> {
        if self.folder_reach() == FolderReach::Everywhere {
            return Ok(());
        }
        for folder in folders {
            if !host.is_inside_roots(folder.clone()).await {
                let shown: String =
                    folder.chars().filter(|letter| !letter.is_control()).take(MAX_FOLDER_CHARS).collect();
                let needed = ScopeSet::NONE.with(Scope::Folders);
                return self.check(needed, &format!("{operation} in {shown}, outside the configured roots,"));
            }
        }
        Ok(())
    }

    /// Refuses an operation that the principal may not carry out, by its scopes or by its process.
    ///
    /// The attempt of an agent is recorded, and shown in the session of the agent, or in the one that it is about.
    pub(crate) async fn authorize(
        &self,
        host: &Host,
        needed: ScopeSet,
        operation: &str,
        client: Option<&ClientId>,
        about: Option<&SessionId>,
    ) -> Result<(), Forbidden> {
        self.check(needed, operation)?;
        if needed.intersection(PERSONS_ALONE) == ScopeSet::NONE {
            return Ok(());
        }
        self.refuse_agents(host, operation, client, about).await
    }

    /// Refuses an operation if the connection belongs to a process of an agent, or if that cannot be known.
    pub(crate) async fn refuse_agents(
        &self,
        host: &Host,
        operation: &str,
        client: Option<&ClientId>,
        about: Option<&SessionId>,
    ) -> Result<(), Forbidden> {
        if !Check::AgentProcess.is_enforced() {
            return Ok(());
        }
        let operation: String = operation.chars().take(MAX_OPERATION_CHARS).collect();
        let (forbidden, session) = match self.process.origin(host).await {
            Origin::Other => return Ok(()),
            Origin::Agent(session) => (Forbidden::Agent(operation.clone()), session.or_else(|| about.cloned())),
            Origin::Unknown => (Forbidden::UnknownProcess(operation.clone()), about.cloned()),
        };
        tracing::warn!(%operation, address = %self.address, "an agent's process tried to act as a person");
        let record = recording::record(host, self, client, AuditAction::AgentAttempt, &operation);
        let record = record.with_session(session.as_ref().map(SessionId::as_str));
        host.audit(record.with_outcome(AuditOutcome::Refused, Some(&forbidden.to_string())));
        if let (Some(session), Forbidden::Agent(_)) = (session, &forbidden) {
            host.warn(&session, warning::agent_attempt(&operation)).await;
        }
        Err(forbidden)
    }

    /// Says whether the principal has a right.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }
}
