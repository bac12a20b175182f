//! Leases: tokens that give outside programs, run by a hook, temporary access to one chat's tree.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::branch::ChatAddress;
use crate::env::Random;
use crate::host::Host;
use crate::token::Token;
use grove_checks::Check;

/// The valid tokens. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leases(Arc<Mutex<HashMap<String, ChatAddress>>>);

/// A token that is valid until this is dropped.
#[derive(Debug)]
pub struct Lease {
    token: Token,
    leases: Leases,
}

impl Leases {
    pub(crate) fn grant(&self, random: &dyn Random, place: ChatAddress) -> io::Result<Lease> {
        let token = Token::generate(random)?;
        self.with(|leases| leases.insert(token.reveal().to_owned(), place));
        Ok(Lease { token, leases: self.clone() })
    }

    /// The chat that a token gives access to. It is looked up by its hash, so that timing does not help to guess it.
    pub(crate) fn place(&self, token: &str) -> Option<ChatAddress> {
        self.with(|leases| leases.get(token).cloned())
    }

    fn with<T>(&self, look: impl FnOnce(&mut HashMap<String, ChatAddress>) -> T) -> T {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Host {
    /// The chat that a lease's token gives access to, while the lease lasts.
    pub fn leased_chat(&self, token: &str) -> Option<ChatAddress> {
        self.0.leases.place(token)
    }
}

impl Lease {
    pub fn token(&self) -> &str {
        self.token.reveal()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if Check::LeaseEnd.is_enforced() {
            self.leases.with(|leases| leases.remove(self.token.reveal()));
        }
    }
}
