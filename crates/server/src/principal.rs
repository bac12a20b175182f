//! Principals: the holders of tokens behind connections, and their rights.

use std::sync::Arc;

use grove_checks::Check;
use grove_core::{Scope, ScopeSet};
use grove_host::{ConnectionUsage, Host};

use crate::listener::PeerAddress;

/// The name of the principal with the host's own token.
const HOST_TOKEN: &str = "host";
/// The name of the principal behind the host's Unix socket.
const OWNER: &str = "owner";
/// The name of the principal of connections inside the host's process.
const IN_PROCESS: &str = "in-process";

/// The party behind a connection: the name of its token, its rights, and where it connects from.
///
/// The host decides all of it. Nothing that a client says of itself changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    name: Arc<str>,
    scopes: ScopeSet,
    address: PeerAddress,
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

/// The longest name of an operation that a refusal shows.
const MAX_OPERATION_CHARS: usize = 100;

impl Principal {
    /// The holder of a named token.
    pub fn new(name: impl Into<Arc<str>>, scopes: ScopeSet, address: PeerAddress) -> Self {
        Self { name: name.into(), scopes, address }
    }

    /// A holder of the host's own token, who may do everything.
    pub fn host_token(address: PeerAddress) -> Self {
        Self::new(HOST_TOKEN, ScopeSet::ALL, address)
    }

    /// A process of the host's owner, through the host's own socket.
    pub fn owner(address: PeerAddress) -> Self {
        Self::new(OWNER, ScopeSet::ALL, address)
    }

    /// A part of the host's own process.
    pub fn in_process() -> Self {
        Self::new(IN_PROCESS, ScopeSet::ALL, PeerAddress::InProcess)
    }

    /// The name of the token, which people see in lists and in the audit log.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Says whether it is a part of the host's own process, to which no limits of use apply.
    pub fn is_in_process(&self) -> bool {
        self.address == PeerAddress::InProcess && &*self.name == IN_PROCESS
    }

    /// The use that a new connection of the principal makes of a host.
    pub(crate) fn usage(&self, host: &Host) -> ConnectionUsage {
        match self.is_in_process() {
            true => ConnectionUsage::unbounded(),
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

    /// Says whether the principal has a right.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }
}
