//! The rights that a valid token gives to a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use grove_core::{ScopeSet, Timestamp};
use tokio::sync::watch;

use super::{HostToken, TokenPublicId};
use crate::Clock;

/// The longest sleep until an expiry is looked at again: the clock may be set.
const EXPIRY_PAUSE: Duration = Duration::from_secs(60);

/// The rights of a token's holder, until the token is revoked, rotated or expires.
#[derive(Clone, Debug)]
pub struct TokenGrant {
    /// None for the host's own token.
    pub id: Option<TokenPublicId>,
    pub name: Arc<str>,
    pub scopes: ScopeSet,
    pub(super) life: TokenLife,
}

impl PartialEq for TokenGrant {
    fn eq(&self, other: &Self) -> bool {
        (self.id, &self.name, self.scopes) == (other.id, &other.name, other.scopes)
    }
}

impl Eq for TokenGrant {}

/// Ends with the sender of its token.
#[derive(Clone, Debug)]
pub(super) struct TokenLife {
    pub(super) ended: watch::Receiver<()>,
    /// In milliseconds since 1970; `u64::MAX` is never.
    pub(super) expires_at: Arc<AtomicU64>,
    /// Kept, so that the end of a listener is not the end of the host's own token.
    pub(super) _host_token: Option<HostToken>,
}

impl TokenGrant {
    /// The time at which it expires, in milliseconds since 1970.
    pub fn expires_at(&self) -> Option<u64> {
        Some(self.life.expires_at.load(Ordering::Relaxed)).filter(|at| *at != u64::MAX)
    }

    /// Says whether the token still exists.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.life.ended.has_changed().is_ok() && now.0 < self.life.expires_at.load(Ordering::Relaxed)
    }

    /// Waits until the token is revoked, rotated or expires.
    pub async fn ended(&self, clock: &dyn Clock) {
        let mut ended = self.life.ended.clone();
        let revoked = async { while ended.changed().await.is_ok() {} };
        let expired = async {
            loop {
                match self.life.expires_at.load(Ordering::Relaxed) {
                    u64::MAX => std::future::pending().await,
                    at => match at.checked_sub(clock.now().0).filter(|left| *left > 0) {
                        Some(left) => clock.sleep(Duration::from_millis(left).min(EXPIRY_PAUSE)).await,
                        None => return,
                    },
                }
            }
        };
        tokio::select! {
            () = revoked => {}
            () = expired => {}
        }
    }
}
