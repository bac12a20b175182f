//! The session hub: the sessions of all sources in one list.
//!
//! The host knows no source but itself: the program that runs it passes a [`SessionHubService`]. A connection that uses
//! it is a [`SessionHubConnection`], whose client has a view of its own. It is not part of the host's state, its
//! journal or its sequence numbers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use grove_core::ClientId;
use grove_wire::x_grove::sessions::{SessionsCall, SessionsOutcome, SubscribeResult, TrustNeeded};

/// The list of the sessions of all sources.
pub trait SessionHubService: fmt::Debug + Send + Sync {
    /// Opens the hub for a client's connection.
    fn visit(&self, client: &ClientId) -> Result<Arc<dyn SessionHubConnection>, SessionHubRefusal>;
}

/// One connection's use of the hub. The connection has ended when this is dropped.
#[async_trait]
pub trait SessionHubConnection: fmt::Debug + Send + Sync {
    /// Carries out a request of the client, except for subscribing.
    async fn call(&self, call: SessionsCall) -> Result<SessionsOutcome, SessionHubRefusal>;

    /// The current view, and its changes from then on, as frames.
    ///
    /// A slow reader misses some, and is told to list again.
    fn subscribe(&self) -> (SubscribeResult, BoxStream<'static, Arc<str>>);
}

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct SessionHubRefusal {
    pub why: SessionHubRefusalKind,
    pub words: String,
}

/// The kind of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionHubRefusalKind {
    NoSession,
    NoProvider,
    /// Another named thing does not exist.
    NotFound,
    /// It cannot be done like this, or not with this session.
    Unfit,
    /// The user must trust a folder first.
    TrustNeeded(TrustNeeded),
    /// The user does not trust the folder.
    Untrusted,
    /// It was tried and failed.
    Failed,
}
