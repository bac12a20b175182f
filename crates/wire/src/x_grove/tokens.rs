//! The tokens of the host: making, listing, rotating and revoking them, and one-time codes for pages.
//!
//! No method names a `channel`. Each needs the scope `admin`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokensMethod {
    List,
    Add,
    Revoke,
    Rotate,
    IssueCode,
}

impl TokensMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            TokensMethod::List => "x-grove/tokens/list",
            TokensMethod::Add => "x-grove/tokens/add",
            TokensMethod::Revoke => "x-grove/tokens/revoke",
            TokensMethod::Rotate => "x-grove/tokens/rotate",
            TokensMethod::IssueCode => "x-grove/tokens/issueCode",
        }
    }
}

/// The host's own token comes first, then the others by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensListResult {
    pub tokens: Vec<TokenRow>,
}

/// A token without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRow {
    pub name: String,
    pub scopes: Vec<String>,
    /// Milliseconds since 1970; absent for the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// Makes a token. It has no scope that its maker does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddTokenParams {
    pub name: String,
    pub scopes: Vec<String>,
    /// The time in milliseconds after which it expires; absent means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// Names a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenNameParams {
    pub name: String,
}

/// The result of `x-grove/tokens/add` and `x-grove/tokens/rotate`: the host keeps no copy of the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSecretResult {
    pub token: String,
}

/// Its connections are closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokeTokenResult {}

/// A code that a page exchanges for a token of its own, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssueCodeResult {
    /// The code. Its name is one that logs of frames leave out.
    pub secret: String,
    pub expires_in_ms: u64,
}

// The secrets are for the client alone, and for no log.
impl fmt::Debug for TokenSecretResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecretResult(…)")
    }
}

impl fmt::Debug for IssueCodeResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssueCodeResult(…)")
    }
}
