//! Mapping errors to refusals of the host.

use grove_host::session_hub::{SessionHubRefusal, SessionHubRefusalKind};
use grove_sessions::management::ManagementError;
use grove_sessions::provider::ProviderError;
use grove_sessions::{BadId, ProviderId, StateStoreError};
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

/// The refusal for an error of a provider or the management. `provider` is that of the session.
pub(super) fn refused(error: ManagementError, provider: Option<&ProviderId>) -> SessionHubRefusal {
    let why = match &error {
        ManagementError::UnknownSession(_) | ManagementError::UnknownResource(_) => SessionHubRefusalKind::NoSession,
        ManagementError::UnknownProvider(_) => SessionHubRefusalKind::NoProvider,
        ManagementError::UnknownChat { .. } => SessionHubRefusalKind::NotFound,
        ManagementError::TrustUnanswered(folder) => {
            let words =
                format!("it is not known whether {folder} is trusted: answer that (answerTrust) and send again");
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
        | ManagementError::StateStore(StateStoreError::TooManyPins)
        | ManagementError::Send(_) => SessionHubRefusalKind::Unfit,
        ManagementError::Provider(error) => match error {
            ProviderError::UnknownSession(_) => SessionHubRefusalKind::NoSession,
            ProviderError::UnknownChat { .. } => SessionHubRefusalKind::NotFound,
            // The provider was asked and refused, so the request is the reason.
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
