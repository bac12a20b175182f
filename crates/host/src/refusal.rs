//! The kinds of the host's refusals. Dialects take their error codes from these, and nothing else decides about codes.

use std::fmt;

use grove_core::RefusalKind;
use grove_fs::FsError;
use grove_fs::workspace::WorkspaceError;
use grove_fs::workspace::database::DatabaseError;
use grove_metrics::RefusalLabel;
use grove_storage::session_file::LoadError;
use grove_tree::LogError;

use crate::branch::SessionRequestError;
use crate::host::CreateError;
use crate::import::ImportError;
use crate::rule_offers::RuleOfferError;
use crate::sequencer::HostStopped;
use crate::session::{
    ActionRefusal, CommandError, MigrateError, PasteError, SetupChangeError, TreeError, WorkspaceRequestError,
};

/// A refusal or failure in words, with its kind.
pub trait Refusal: fmt::Display {
    fn kind(&self) -> RefusalKind;
}

impl Refusal for HostStopped {
    fn kind(&self) -> RefusalKind {
        RefusalKind::Failed
    }
}

/// The label of a kind of refusal in metrics.
pub fn refusal_label(kind: RefusalKind) -> RefusalLabel {
    match kind {
        RefusalKind::InvalidParams => RefusalLabel::InvalidParams,
        RefusalKind::InvalidState => RefusalLabel::InvalidState,
        RefusalKind::SessionNotFound => RefusalLabel::SessionNotFound,
        RefusalKind::AgentNotFound => RefusalLabel::AgentNotFound,
        RefusalKind::SessionExists => RefusalLabel::SessionExists,
        RefusalKind::Busy => RefusalLabel::Busy,
        RefusalKind::NotFound => RefusalLabel::NotFound,
        RefusalKind::NotPermitted => RefusalLabel::NotPermitted,
        RefusalKind::Exists => RefusalLabel::Exists,
        RefusalKind::LimitReached => RefusalLabel::LimitReached,
        RefusalKind::Failed => RefusalLabel::Failed,
    }
}

impl Refusal for ActionRefusal {
    fn kind(&self) -> RefusalKind {
        match self {
            ActionRefusal::Invalid(_) => RefusalKind::InvalidParams,
            ActionRefusal::Command(error) => error.kind(),
            ActionRefusal::Tree(error) => error.kind(),
        }
    }
}

impl Refusal for CommandError {
    fn kind(&self) -> RefusalKind {
        match self {
            CommandError::Rejected(rejection) => rejection.kind(),
            CommandError::Paste(error) => error.kind(),
            CommandError::Gone => RefusalKind::SessionNotFound,
            CommandError::HostStopped(_)
            | CommandError::Unsaved(_)
            | CommandError::TooManyPrompts(_)
            | CommandError::NotWritten(_)
            | CommandError::Fs(_) => RefusalKind::Failed,
        }
    }
}

impl Refusal for PasteError {
    fn kind(&self) -> RefusalKind {
        match self {
            PasteError::Unreadable(_) => RefusalKind::InvalidParams,
            PasteError::Rejected(rejection) => rejection.kind(),
            PasteError::Workspace(_) | PasteError::Fs(_) => RefusalKind::Failed,
        }
    }
}

impl Refusal for TreeError {
    fn kind(&self) -> RefusalKind {
        match self {
            TreeError::TurnRuns | TreeError::TurnBegan | TreeError::Busy | TreeError::WentOn => RefusalKind::Busy,
            TreeError::Forbidden { .. } | TreeError::MustAsk => RefusalKind::NotPermitted,
            TreeError::Refused(refusal) => refusal.kind(),
            TreeError::TreeEdit(_)
            | TreeError::Point(_)
            | TreeError::Rows(_)
            | TreeError::UnknownChat(_)
            | TreeError::UnknownTurn(_)
            | TreeError::NoModel { .. }
            | TreeError::NothingToCompact
            | TreeError::NothingToMerge { .. }
            | TreeError::OnActiveBranch { .. } => RefusalKind::InvalidParams,
            TreeError::Aborted
            | TreeError::Summary(_)
            | TreeError::EmptySummary { .. }
            | TreeError::HookFailed { .. }
            | TreeError::NewLog(_)
            | TreeError::Log(_)
            | TreeError::Read(_)
            | TreeError::Fs(_)
            | TreeError::Append(_)
            | TreeError::NotCopied(_)
            | TreeError::Workspace(_)
            | TreeError::Setup(_)
            | TreeError::ReaderCrash(_) => RefusalKind::Failed,
        }
    }
}

impl Refusal for MigrateError {
    fn kind(&self) -> RefusalKind {
        match self {
            MigrateError::TurnRuns
            | MigrateError::Busy
            | MigrateError::Creating
            | MigrateError::BeingCopied
            | MigrateError::BeingChanged
            | MigrateError::Changed => RefusalKind::Busy,
            MigrateError::NoFile(_) => RefusalKind::NotFound,
            MigrateError::Store(_) | MigrateError::OfClient => RefusalKind::InvalidParams,
            MigrateError::NotCopied(error) => error.kind(),
            MigrateError::Refused(error) => error.kind(),
            MigrateError::NotWritten
            | MigrateError::Move(_)
            | MigrateError::Inventory(_)
            | MigrateError::SessionFile(_)
            | MigrateError::Fs(_) => RefusalKind::Failed,
        }
    }
}

impl Refusal for CreateError {
    fn kind(&self) -> RefusalKind {
        match self {
            CreateError::BadUri(_)
            | CreateError::ReservedUri(_)
            | CreateError::UnknownModel { .. }
            | CreateError::Store(_)
            | CreateError::WorkingDirectory(_)
            | CreateError::Setup(_)
            | CreateError::TooManyDirectories(_) => RefusalKind::InvalidParams,
            CreateError::UnknownAgent { .. } => RefusalKind::AgentNotFound,
            CreateError::Exists(_)
            | CreateError::IdTaken { .. }
            | CreateError::BeingImported(_)
            | CreateError::Kept(_) => RefusalKind::SessionExists,
            CreateError::Folder(_)
            | CreateError::SetupFile(_)
            | CreateError::Provider { .. }
            | CreateError::BeingCopied(_)
            | CreateError::IdGenerationError(_)
            | CreateError::NotStored(_)
            | CreateError::HostStopped(_) => RefusalKind::Failed,
        }
    }
}

impl Refusal for SessionRequestError {
    fn kind(&self) -> RefusalKind {
        match self {
            SessionRequestError::NoSession(_) => RefusalKind::SessionNotFound,
            SessionRequestError::Tree(error) => error.kind(),
            SessionRequestError::Migrate(error) => error.kind(),
            SessionRequestError::Create(error) => error.kind(),
            SessionRequestError::Setup(SetupChangeError::Refused(_)) => RefusalKind::InvalidParams,
            SessionRequestError::Setup(SetupChangeError::File(_)) => RefusalKind::Failed,
            SessionRequestError::WorkingDirectory(_) | SessionRequestError::DirectoryOfClient => {
                RefusalKind::InvalidParams
            }
            SessionRequestError::RuleOffer(RuleOfferError::NoRequest(_)) => RefusalKind::NotFound,
            SessionRequestError::RuleOffer(RuleOfferError::NotOffered | RuleOfferError::NoFile) => {
                RefusalKind::InvalidParams
            }
            SessionRequestError::RuleOffer(RuleOfferError::NotStored(_)) => RefusalKind::Failed,
            SessionRequestError::HostStopped(stopped) => stopped.kind(),
        }
    }
}

impl Refusal for ImportError {
    fn kind(&self) -> RefusalKind {
        match self {
            ImportError::Create(error) => error.kind(),
            ImportError::NotAFile { .. }
            | ImportError::Offset { .. }
            | ImportError::TooManyFiles { .. }
            | ImportError::TooLarge { .. }
            | ImportError::NoLog
            | ImportError::NotTheSame
            | ImportError::SessionFile(LoadError::File(_) | LoadError::Version(_))
            | ImportError::Fs(FsError::BadName { .. } | FsError::BadPath { .. } | FsError::Link { .. }) => {
                RefusalKind::InvalidParams
            }
            ImportError::Log(LogError::Fs(_)) => RefusalKind::Failed,
            ImportError::Log(_) => RefusalKind::InvalidParams,
            ImportError::Fs(_) | ImportError::SessionFile(_) | ImportError::Inventory(_) => RefusalKind::Failed,
        }
    }
}

impl Refusal for WorkspaceRequestError {
    fn kind(&self) -> RefusalKind {
        match self {
            WorkspaceRequestError::Workspace(error) => match error {
                WorkspaceError::NoWorkspace | WorkspaceError::TooLarge { .. } | WorkspaceError::NotText { .. } => {
                    RefusalKind::InvalidParams
                }
                WorkspaceError::NoCheckpoint { .. } => RefusalKind::NotFound,
                WorkspaceError::Fs(error) => kind_of_store_error(error),
                WorkspaceError::Manifest { .. } | WorkspaceError::NoNumberLeft { .. } => RefusalKind::Failed,
            },
            WorkspaceRequestError::Database(DatabaseError::Fs(error)) => kind_of_store_error(error),
            WorkspaceRequestError::Database(_)
            | WorkspaceRequestError::Busy
            | WorkspaceRequestError::Unsaved(_)
            | WorkspaceRequestError::NotCopied(_) => RefusalKind::Failed,
        }
    }
}

fn kind_of_store_error(error: &FsError) -> RefusalKind {
    match error {
        FsError::NotFound { .. } => RefusalKind::NotFound,
        FsError::BadName { .. }
        | FsError::BadPath { .. }
        | FsError::Link { .. }
        | FsError::IsADirectory { .. }
        | FsError::NotADirectory { .. }
        | FsError::NotEmpty { .. }
        | FsError::NotText { .. }
        | FsError::TooLarge { .. } => RefusalKind::InvalidParams,
        _ => RefusalKind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use grove_core::{Rejection, StoreName};

    use super::*;

    #[test]
    fn a_refusal_keeps_its_kind_through_every_layer() {
        let rejected = || CommandError::from(Rejection::TurnInProgress("t".into()));
        assert_eq!(rejected().kind(), RefusalKind::Busy);
        assert_eq!(CommandError::from(PasteError::from(Rejection::EmptyId)).kind(), RefusalKind::InvalidParams);
        assert_eq!(TreeError::Refused(rejected()).kind(), RefusalKind::Busy);
        assert_eq!(MigrateError::Refused(rejected()).kind(), RefusalKind::Busy);
        assert_eq!(MigrateError::NotCopied(TreeError::Refused(rejected())).kind(), RefusalKind::Busy);
        let in_tree = SessionRequestError::Tree(TreeError::Refused(rejected()));
        assert_eq!(in_tree.kind(), RefusalKind::Busy);
        let unknown = || CreateError::UnknownAgent { agent: "none".into(), hint: String::new() };
        assert_eq!(SessionRequestError::Create(unknown()).kind(), RefusalKind::AgentNotFound);
        assert_eq!(ImportError::Create(unknown()).kind(), RefusalKind::AgentNotFound);
        assert_eq!(ImportError::Create(CreateError::Kept("s".into())).kind(), RefusalKind::SessionExists);
        let no_storage = CreateError::Provider { store: StoreName::default(), reason: "it is away".to_owned() };
        assert_eq!(SessionRequestError::Create(no_storage).kind(), RefusalKind::Failed);
        assert_eq!(CommandError::Gone.kind(), RefusalKind::SessionNotFound);
        assert_eq!(CommandError::from(HostStopped).kind(), RefusalKind::Failed);
    }
}
