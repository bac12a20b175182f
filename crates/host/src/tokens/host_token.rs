//! The host's own token.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};

use grove_core::ScopeSet;
use tokio::sync::watch;

use super::HOST_TOKEN_NAME;
use super::grant::{TokenGrant, TokenLife};
use crate::Token;

/// The host's own token, which can be replaced while the host runs. Clones share it.
#[derive(Clone, Debug)]
pub struct HostToken(Arc<RwLock<CurrentToken>>);

#[derive(Debug)]
struct CurrentToken {
    token: Token,
    life: watch::Sender<()>,
}

impl From<Token> for HostToken {
    fn from(token: Token) -> Self {
        Self(Arc::new(RwLock::new(CurrentToken { token, life: watch::Sender::new(()) })))
    }
}

impl HostToken {
    /// The token of this moment.
    pub fn current(&self) -> Token {
        self.0.read().unwrap_or_else(PoisonError::into_inner).token.clone()
    }

    /// The rights of the token, if the guess is right. It compares in constant time.
    pub fn check(&self, guess: &str) -> Option<TokenGrant> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        current.token.matches(guess).then(|| self.grant_of(&current))
    }

    /// The token of this moment, and its rights. A rotation between two separate calls would mix two tokens.
    pub fn current_with_grant(&self) -> (Token, TokenGrant) {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (current.token.clone(), self.grant_of(&current))
    }

    /// The rights of the token.
    pub fn grant(&self) -> TokenGrant {
        self.grant_of(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn grant_of(&self, current: &CurrentToken) -> TokenGrant {
        let life = TokenLife {
            ended: current.life.subscribe(),
            expires_at: Arc::new(AtomicU64::new(u64::MAX)),
            _host_token: Some(self.clone()),
        };
        TokenGrant { id: None, name: HOST_TOKEN_NAME.into(), scopes: ScopeSet::ALL, life }
    }

    /// Replaces the token. The connections of the old one are closed when the returned sender is dropped.
    pub(super) fn replace(&self, token: Token) -> watch::Sender<()> {
        let new = CurrentToken { token, life: watch::Sender::new(()) };
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, new).life
    }
}
