//! Notifications: people's devices are told when an agent needs them.
//!
//! The host knows no device and sends nothing: the program that runs it passes a [`NotificationService`], which listens to
//! [`ListenScope::Attention`](crate::sequencer::ListenScope). It is not part of the host's state, its journal or its
//! sequence numbers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use grove_core::{RefusalKind, ScopeSet};
use grove_wire::x_grove::notify::{NotifyCall, NotifyOutcome};

use crate::tokens::TokenPublicId;

/// The devices that are told, and their requests.
#[async_trait]
pub trait NotificationService: fmt::Debug + Send + Sync {
    /// Carries out a request of a client. A test waits for the push service, for seconds.
    async fn call(&self, caller: NotifyCaller, call: NotifyCall) -> Result<NotifyOutcome, NotifyRefusal>;
}

/// The token behind a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyCaller {
    /// None for the owner of the host, whose socket and own token count as one.
    pub token: Option<TokenPublicId>,
    pub name: Arc<str>,
    pub scopes: ScopeSet,
}

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct NotifyRefusal {
    pub kind: RefusalKind,
    pub words: String,
}

impl NotifyRefusal {
    pub fn new(kind: RefusalKind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into() }
    }
}
