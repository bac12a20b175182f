//! The administration of the host: its agents, other hosts, permission rules and settings.
//!
//! The host knows neither files nor catalogs: the program that runs it passes a [`HostAdministration`].

use std::fmt;

use async_trait::async_trait;
use grove_core::RefusalKind;
use grove_wire::x_grove::administration::{AdministrationCall, AdministrationOutcome};

/// The service that carries out the requests of administration.
#[async_trait]
pub trait HostAdministration: fmt::Debug + Send + Sync {
    /// Carries out a request. Its work ends when the future is dropped, except for an installation that has begun.
    async fn call(&self, call: AdministrationCall) -> Result<AdministrationOutcome, AdministrationRefusal>;
}

/// The reason why a request is refused or has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct AdministrationRefusal {
    pub kind: RefusalKind,
    /// The reason, and what to do.
    pub words: String,
}

impl AdministrationRefusal {
    pub fn new(kind: RefusalKind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into() }
    }
}
