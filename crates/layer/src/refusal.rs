//! Why something is not done, as the host tells it.

use grove_host::sessions::{Refusal, Why};
use grove_sessions::management::ManagementError;
use grove_sessions::provider::ProviderError;
use grove_sessions::{BadId, ProviderId};
use grove_wire::x_grove::sessions::TrustNeeded;

pub(super) fn unfit(words: impl Into<String>) -> Refusal {
    Refusal { why: Why::Unfit, words: words.into() }
}

pub(super) fn failed(words: impl Into<String>) -> Refusal {
    Refusal { why: Why::Failed, words: words.into() }
}

pub(super) fn bad_id(error: BadId) -> Refusal {
    unfit(error.to_string())
}

/// Why a provider or the management did not do it. `provider` is whose session it was about.
pub(super) fn refused(error: ManagementError, provider: Option<&ProviderId>) -> Refusal {
    let why = match &error {
        ManagementError::UnknownSession(_) | ManagementError::UnknownResource(_) => Why::NoSession,
        ManagementError::UnknownProvider(_) => Why::NoProvider,
        ManagementError::UnknownChat { .. } => Why::NotFound,
        ManagementError::TrustUnanswered(folder) => {
            let words = format!("nobody said whether {folder} is trusted: say it (answerTrust) and send again");
            let why = match provider {
                Some(provider) => Why::TrustNeeded(TrustNeeded {
                    provider_id: provider.as_str().to_owned(),
                    folder: folder.as_str().to_owned(),
                }),
                None => Why::Untrusted,
            };
            return Refusal { why, words };
        }
        ManagementError::Untrusted(_) => Why::Untrusted,
        ManagementError::UnknownSessionType { .. }
        | ManagementError::AlreadySent(_)
        | ManagementError::SingleChat(_)
        | ManagementError::Archived(_)
        | ManagementError::MainChat(_)
        | ManagementError::NotItsFolder { .. }
        | ManagementError::NobodysFolder(_)
        | ManagementError::Send(_) => Why::Unfit,
        ManagementError::Provider(error) => match error {
            ProviderError::UnknownSession(_) => Why::NoSession,
            ProviderError::UnknownChat { .. } => Why::NotFound,
            // Who was asked and said no has a reason that lies in what was asked.
            ProviderError::Unsupported { .. }
            | ProviderError::UnknownSessionType(_)
            | ProviderError::UnknownBrowseAction { .. }
            | ProviderError::AlreadySent(_)
            | ProviderError::Refused(_) => Why::Unfit,
            _ => Why::Failed,
        },
        _ => Why::Failed,
    };
    Refusal { why, words: error.to_string() }
}
