//! Why something is not done, as the host tells it.

use grove_host::session_hub::{SessionHubRefusal, SessionHubRefusalKind};
use grove_sessions::management::ManagementError;
use grove_sessions::provider::ProviderError;
use grove_sessions::{BadId, ProviderId};
use grove_wire::x_grove::sessions::TrustNeeded;

pub(super) fn unfit(words: impl Into<String>) -> SessionHubRefusal {
    SessionHubRefusal { why: SessionHubRefusalKind::Unfit, words: words.into() }
}

pub(super) fn failed(words: impl Into<String>) -> SessionHubRefusal {
    SessionHubRefusal { why: SessionHubRefusalKind::Failed, words: words.into() }
}

pub(super) fn bad_id(error: BadId) -> SessionHubRefusal {
    unfit(error.to_string())
}

/// Why a provider or the management did not do it. `provider` is whose session it was about.
pub(super) fn refused(error: ManagementError, provider: Option<&ProviderId>) -> SessionHubRefusal {
    let why = match &error {
        ManagementError::UnknownSession(_) | ManagementError::UnknownResource(_) => SessionHubRefusalKind::NoSession,
        ManagementError::UnknownProvider(_) => SessionHubRefusalKind::NoProvider,
        ManagementError::UnknownChat { .. } => SessionHubRefusalKind::NotFound,
        ManagementError::TrustUnanswered(folder) => {
            let words = format!("nobody said whether {folder} is trusted: say it (answerTrust) and send again");
            let why = match provider {
                Some(provider) => SessionHubRefusalKind::TrustNeeded(TrustNeeded {
                    provider_id: provider.as_str().to_owned(),
                    folder: folder.as_str().to_owned(),
                }),
                None => SessionHubRefusalKind::Untrusted,
            };
            return SessionHubRefusal { why, words };
        }
        ManagementError::Untrusted(_) => SessionHubRefusalKind::Untrusted,
        ManagementError::UnknownSessionType { .. }
        | ManagementError::AlreadySent(_)
        | ManagementError::SingleChat(_)
        | ManagementError::Archived(_)
        | ManagementError::MainChat(_)
        | ManagementError::NotItsFolder { .. }
        | ManagementError::NobodysFolder(_)
        | ManagementError::Send(_) => SessionHubRefusalKind::Unfit,
        ManagementError::Provider(error) => match error {
            ProviderError::UnknownSession(_) => SessionHubRefusalKind::NoSession,
            ProviderError::UnknownChat { .. } => SessionHubRefusalKind::NotFound,
            // Who was asked and said no has a reason that lies in what was asked.
            ProviderError::Unsupported { .. }
            | ProviderError::UnknownSessionType(_)
            | ProviderError::UnknownBrowseAction { .. }
            | ProviderError::AlreadySent(_)
            | ProviderError::Refused(_) => SessionHubRefusalKind::Unfit,
            _ => SessionHubRefusalKind::Failed,
        },
        _ => SessionHubRefusalKind::Failed,
    };
    SessionHubRefusal { why, words: error.to_string() }
}
