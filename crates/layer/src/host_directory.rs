//! Hosts beside this one: which there are, and what is kept of each.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use grove_client::{Credentials, Endpoint, EndpointError, HostAddress};
use grove_sessions::providers::hosts::{InMemorySessionListCache, SessionListCache};

/// A host that somebody has given a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteHost {
    pub name: String,
    pub address: HostAddress,
    pub access: Credentials,
}

impl RemoteHost {
    /// How it is reached.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        Endpoint::new(&self.address, &self.access)
    }
}

/// The hosts that are known.
#[derive(Debug, Default)]
pub struct RemoteHosts {
    pub hosts: Vec<RemoteHost>,
    /// Those of which something is wrong. The others are there all the same.
    pub unusable: Vec<UnusableHost>,
}

/// A host that is known and cannot be used.
#[derive(Debug)]
pub struct UnusableHost {
    pub name: String,
    /// Why, and what to do.
    pub error: HostDirectoryError,
}

/// Why it cannot be read which hosts are known. It says itself what to do.
pub type HostDirectoryError = Box<dyn Error + Send + Sync>;

/// Whoever knows other hosts. It is asked again and again, so it may be a file that somebody changes.
pub trait HostDirectory: fmt::Debug + Send + Sync {
    /// What the list looks like from outside: for as long as this is the same, so is the list. It is asked for every few
    /// seconds, and costs little.
    fn mark(&self) -> Option<String>;

    /// All of them.
    fn all(&self) -> Result<RemoteHosts, HostDirectoryError>;

    /// Where it is kept what a host had when it was last seen.
    fn list_cache(&self, host: &RemoteHost) -> Arc<dyn SessionListCache>;
}

/// No other host is known.
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
