//! The sessions of every source in one list, as far as a host is told of it.
//!
//! The host knows no source but itself: whoever serves gives it a [`SessionHubService`]. A connection that uses it is a
//! [`SessionHubConnection`], whose client has a view of its own. Nothing of it is in the host's state, its journal or its numbers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use grove_core::ClientId;
use grove_wire::x_grove::sessions::{SessionsCall, SessionsOutcome, SubscribeResult, TrustNeeded};

/// What knows the sessions of every source.
pub trait SessionHubService: fmt::Debug + Send + Sync {
    /// A connection of a client uses it from now on.
    fn visit(&self, client: &ClientId) -> Result<Arc<dyn SessionHubConnection>, SessionHubRefusal>;
}

/// What a connection does with it. The connection has ended when this is dropped.
#[async_trait]
pub trait SessionHubConnection: fmt::Debug + Send + Sync {
    /// Does what the client asks for. Subscribing is not among it.
    async fn call(&self, call: SessionsCall) -> Result<SessionsOutcome, SessionHubRefusal>;

    /// What is looked at, and from then on everything that changes, as frames. Whoever is too slow in taking them misses
    /// some, and is told to list anew.
    fn subscribe(&self) -> (SubscribeResult, BoxStream<'static, Arc<str>>);
}

/// Why something is not done, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct SessionHubRefusal {
    pub why: SessionHubRefusalKind,
    pub words: String,
}

/// What kind of reason it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionHubRefusalKind {
    NoSession,
    NoProvider,
    /// Something else that was named is not there.
    NotFound,
    /// It cannot be done like this, or not with this session.
    Unfit,
    /// A person must say first that a folder is trusted.
    TrustNeeded(TrustNeeded),
    /// A person said that it is not.
    Untrusted,
    /// It was tried and failed.
    Failed,
}
