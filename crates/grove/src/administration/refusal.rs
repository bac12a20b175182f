//! Refusals of administration.

use grove_core::RefusalKind;
use grove_host::administration::AdministrationRefusal;
use tokio::task::JoinError;

use crate::agents::install::prepared::PrepareError;
use crate::agents::install::{AgentFolderError, PlanError};
use crate::commands::Failure;
use crate::hosts::HostsError;

pub(super) fn failed(words: impl Into<String>) -> AdministrationRefusal {
    AdministrationRefusal::new(RefusalKind::Failed, words)
}

pub(super) fn invalid(words: impl Into<String>) -> AdministrationRefusal {
    AdministrationRefusal::new(RefusalKind::InvalidParams, words)
}

pub(super) fn wrong_state(words: impl Into<String>) -> AdministrationRefusal {
    AdministrationRefusal::new(RefusalKind::InvalidState, words)
}

pub(super) fn not_found(words: impl Into<String>) -> AdministrationRefusal {
    AdministrationRefusal::new(RefusalKind::NotFound, words)
}

/// The refusal of a request whose work panicked, or was stopped with the host.
pub(super) fn joined(error: JoinError) -> AdministrationRefusal {
    failed(format!("the work was interrupted: {error}"))
}

/// The refusal for a failure of a command.
pub(super) fn of_command(failure: &Failure) -> AdministrationRefusal {
    match failure {
        Failure::NotFound(_) => not_found(failure.to_string()),
        Failure::NoHost(_) | Failure::Damaged(_) | Failure::Exit(_) | Failure::Other(_) => failed(failure.to_string()),
    }
}

pub(super) fn of_installation(error: &PrepareError) -> AdministrationRefusal {
    let kind = match error {
        PrepareError::Unknown(_) => RefusalKind::NotFound,
        PrepareError::Folder(AgentFolderError::Busy { .. })
        | PrepareError::Installed { .. }
        | PrepareError::Plan(PlanError::Manual { .. } | PlanError::UnknownKind { .. } | PlanError::Platform { .. }) => {
            RefusalKind::InvalidState
        }
        PrepareError::Folder(AgentFolderError::Io { .. })
        | PrepareError::Plan(PlanError::MissingInstaller { .. } | PlanError::Requirement(_))
        | PrepareError::Other(_) => RefusalKind::Failed,
    };
    AdministrationRefusal::new(kind, error.to_string())
}

pub(super) fn of_hosts(error: &HostsError) -> AdministrationRefusal {
    let kind = match error {
        HostsError::Name(_) => RefusalKind::InvalidParams,
        HostsError::Known(_) => RefusalKind::Exists,
        HostsError::TooMany(_) => RefusalKind::InvalidState,
        HostsError::File { .. }
        | HostsError::TooLarge { .. }
        | HostsError::Damaged { .. }
        | HostsError::Table { .. }
        | HostsError::Address { .. }
        | HostsError::Pin { .. }
        | HostsError::Encode(_) => RefusalKind::Failed,
    };
    AdministrationRefusal::new(kind, error.to_string())
}
