//! Tokens as they are stored.

use std::io;

use grove_checks::Check;
use grove_core::{Scope, Timestamp};
use serde::{Deserialize, Serialize};

use super::{TokenPublicId, Verifier};
use crate::Token;

/// A named token as it is stored: everything but its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRecord {
    pub name: String,
    pub id: TokenPublicId,
    pub verifier: Verifier,
    /// The names of its scopes. Unknown ones, of a later version, are kept and give nothing.
    pub scopes: Vec<String>,
    /// Milliseconds since 1970.
    pub created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The time, in milliseconds, by which each login moves the expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed_for: Option<u64>,
}

impl TokenRecord {
    pub(super) fn scopes(&self) -> grove_core::ScopeSet {
        self.scopes.iter().filter_map(|name| name.parse::<Scope>().ok()).collect()
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        Check::TokenExpiry.is_enforced() && self.expires_at.is_some_and(|at| at <= now.0)
    }
}

/// The storage of tokens.
pub trait TokenStorage: Send + Sync {
    /// The stored tokens.
    fn load(&self) -> io::Result<Vec<TokenRecord>>;

    /// Replaces all stored tokens, or none if it fails.
    fn store(&self, tokens: &[TokenRecord]) -> io::Result<()>;

    /// Replaces the host's own token.
    fn store_host_token(&self, token: &Token) -> io::Result<()>;
}
