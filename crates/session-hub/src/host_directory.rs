//! The other hosts: their list, and the cached sessions of each.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use grove_client::{Credentials, Endpoint, EndpointError, HostAddress};
use grove_sessions::providers::hosts::{InMemorySessionListCache, SessionListCache};

/// Another host with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteHost {
    pub name: String,
    pub address: HostAddress,
    pub access: Credentials,
}

impl RemoteHost {
    /// The endpoint of the host.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        Endpoint::new(&self.address, &self.access)
    }
}

/// The known hosts.
#[derive(Debug, Default)]
pub struct RemoteHosts {
    pub hosts: Vec<RemoteHost>,
    /// The unusable hosts. They do not affect the others.
    pub unusable: Vec<UnusableHost>,
}

/// An unusable host.
#[derive(Debug)]
pub struct UnusableHost {
    pub name: String,
    /// The reason, and what to do.
    pub error: HostDirectoryError,
}

/// An error of reading the list of hosts. Its message says what to do.
pub type HostDirectoryError = Box<dyn Error + Send + Sync>;

/// A list of other hosts. It is read repeatedly, so it may be a file that users edit.
pub trait HostDirectory: fmt::Debug + Send + Sync {
    /// A mark that changes whenever the list does. It is requested every few seconds, so it must be cheap.
    fn mark(&self) -> Option<String>;

    /// All hosts.
    fn all(&self) -> Result<RemoteHosts, HostDirectoryError>;

    /// The cache for the session list of a host.
    fn list_cache(&self, host: &RemoteHost) -> Arc<dyn SessionListCache>;
}

/// An empty list of other hosts.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRemoteHosts;

impl HostDirectory for NoRemoteHosts {
    fn mark(&self) -> Option<String> {
        None
    }

    fn all(&self) -> Result<RemoteHosts, HostDirectoryError> {
        Ok(RemoteHosts::default())
    }

    fn list_cache(&self, _host: &RemoteHost) -> Arc<dyn SessionListCache> {
        Arc::new(InMemorySessionListCache::default())
    }
}
