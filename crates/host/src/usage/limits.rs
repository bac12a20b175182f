//! The bounds of the use that a token and its connections make of a host.

use std::collections::BTreeMap;

use super::Rate;
use crate::config::Limits;

/// The bounds of one token and its connections. [`Limits`] has the same for every token, with the behaviour beyond each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageLimits {
    pub requests: Rate,
    pub token_requests: Rate,
    pub bytes: Rate,
    pub token_bytes: Rate,
    pub open_answers: usize,
    pub token_open_requests: usize,
    pub subscriptions: usize,
    pub watches: usize,
    pub token_subscriptions: usize,
    pub large_calls: usize,
    pub token_large_calls: usize,
    pub token_starts: Rate,
    pub imports: usize,
    pub token_connections: usize,
}

/// The bounds of all tokens, and of the host's connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageLimitTable {
    /// Authenticated connections of the host.
    pub connections: usize,
    /// Connections through the owner's socket, in addition to those.
    pub owner_connections: usize,
    /// The bounds of tokens that have none of their own.
    pub common: UsageLimits,
    /// The bounds of single tokens, by name.
    pub tokens: BTreeMap<String, UsageLimits>,
}

/// The connections that a host accepts, and one token has a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub all: usize,
    pub per_token: usize,
    pub owner: usize,
}

impl UsageLimitTable {
    /// The bounds of the connections, with those of the token of this name.
    pub(super) fn connections(&self, token: &str) -> ConnectionLimits {
        let per_token = self.of(token).token_connections;
        ConnectionLimits { all: self.connections, per_token, owner: self.owner_connections }
    }

    pub(super) fn of(&self, token: &str) -> UsageLimits {
        self.tokens.get(token).copied().unwrap_or(self.common)
    }
}

impl From<&Limits> for UsageLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            requests: limits.requests,
            token_requests: limits.token_requests,
            bytes: limits.bytes,
            token_bytes: limits.token_bytes,
            open_answers: limits.open_answers,
            token_open_requests: limits.token_open_requests,
            subscriptions: limits.subscriptions,
            watches: limits.watches,
            token_subscriptions: limits.token_subscriptions,
            large_calls: limits.large_calls,
            token_large_calls: limits.token_large_calls,
            token_starts: limits.token_starts,
            imports: limits.imports,
            token_connections: limits.token_connections,
        }
    }
}
