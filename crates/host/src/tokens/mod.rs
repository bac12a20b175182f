//! Tokens by name: who may connect beside the owner of the host, with which scopes, and until when.
//!
//! - [`TokenRegistry`]: the tokens of a host; it makes, finds, rotates and revokes them.
//! - [`TokenGrant`]: what a valid token gives to a connection. It ends when the token is revoked, rotated or expires.
//! - [`SecretText`]: a token or one-time code as its holder has it. Its id is public, the rest is secret.
//! - [`TokenRecord`], [`TokenStorage`]: tokens as they are stored, with a verifier instead of the secret.
//! - [`HostToken`]: the host's own token, which has every scope.
//!
//! A one-time code is good once, for a minute: a page exchanges it for a token of its own.

mod grant;
mod host_token;
mod record;
pub(crate) mod registry;
mod secret;

pub use grant::TokenGrant;
pub use host_token::HostToken;
pub use record::{TokenRecord, TokenStorage};
pub use registry::{
    EndedTokens, NewToken, RotatedToken, TokenError, TokenLogin, TokenMaker, TokenRegistry, TokenSummary,
};
pub use secret::{SecretText, TokenPublicId, Verifier};

/// The name of the host's own token.
pub const HOST_TOKEN_NAME: &str = "host";
/// The most tokens of a host, the host's own aside.
pub const MAX_TOKENS: usize = 256;
/// The longest name of a token.
pub const MAX_TOKEN_NAME: usize = 64;
