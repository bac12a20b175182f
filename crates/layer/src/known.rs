//! Hosts beside this one: which there are, and what is kept of each.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use grove_client::{Access, Endpoint, EndpointError, HostAddress};
use grove_sessions::providers::hosts::{KeepSeen, SeenInMemory};

/// A host that somebody has given a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHost {
    pub name: String,
    pub address: HostAddress,
    pub access: Access,
}

impl OtherHost {
    /// How it is reached.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        Endpoint::new(&self.address, &self.access)
    }
}

/// The hosts that are known.
#[derive(Debug, Default)]
pub struct AllHosts {
    pub hosts: Vec<OtherHost>,
    /// Those of which something is wrong. The others are there all the same.
    pub unusable: Vec<UnusableHost>,
}

/// A host that is known and cannot be used.
#[derive(Debug)]
pub struct UnusableHost {
    pub name: String,
    /// Why, and what to do.
    pub error: Unread,
}

/// Why it cannot be read which hosts are known. It says itself what to do.
pub type Unread = Box<dyn Error + Send + Sync>;

/// Whoever knows other hosts. It is asked again and again, so it may be a file that somebody changes.
pub trait KnownHosts: fmt::Debug + Send + Sync {
    /// What the list looks like from outside: for as long as this is the same, so is the list. It is asked for every few
    /// seconds, and costs little.
    fn mark(&self) -> Option<String>;

    /// All of them.
    fn all(&self) -> Result<AllHosts, Unread>;

    /// Where it is kept what a host had when it was last seen.
    fn kept(&self, host: &OtherHost) -> Arc<dyn KeepSeen>;
}

/// No other host is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOtherHosts;

impl KnownHosts for NoOtherHosts {
    fn mark(&self) -> Option<String> {
        None
    }

    fn all(&self) -> Result<AllHosts, Unread> {
        Ok(AllHosts::default())
    }

    fn kept(&self, _host: &OtherHost) -> Arc<dyn KeepSeen> {
        Arc::new(SeenInMemory::default())
    }
}
