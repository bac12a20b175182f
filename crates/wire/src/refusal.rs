//! The error codes of refusals, which version 1, AHP and Grove's extensions share.

use grove_core::RefusalKind;
use serde::{Deserialize, Serialize};

use crate::ahp::error_code;

/// The code of Grove's own for a bound of a connection or a token, with [`LimitReachedData`].
pub const LIMIT_REACHED: i64 = -32029;

/// The data of an error with the code [`LIMIT_REACHED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitReachedData {
    /// The name of the limit in `docs/limits.md`.
    pub limit: String,
    /// The time after which the request may be tried again, if waiting helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// The code of the error that answers a refused request.
pub fn error_code(kind: RefusalKind) -> i64 {
    match kind {
        RefusalKind::InvalidParams => error_code::INVALID_PARAMS,
        RefusalKind::InvalidState => error_code::INVALID_REQUEST,
        RefusalKind::SessionNotFound => error_code::SESSION_NOT_FOUND,
        RefusalKind::AgentNotFound => error_code::PROVIDER_NOT_FOUND,
        RefusalKind::SessionExists => error_code::SESSION_ALREADY_EXISTS,
        RefusalKind::Busy => error_code::TURN_IN_PROGRESS,
        RefusalKind::NotFound => error_code::NOT_FOUND,
        RefusalKind::NotPermitted => error_code::PERMISSION_DENIED,
        RefusalKind::Exists => error_code::ALREADY_EXISTS,
        RefusalKind::LimitReached => LIMIT_REACHED,
        RefusalKind::Failed => error_code::INTERNAL_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1;

    #[test]
    fn the_codes_of_both_protocols_are_the_same() {
        assert_eq!(error_code(RefusalKind::SessionNotFound), v1::error_code::SESSION_NOT_FOUND);
        assert_eq!(error_code(RefusalKind::AgentNotFound), v1::error_code::PROVIDER_NOT_FOUND);
        assert_eq!(error_code(RefusalKind::SessionExists), v1::error_code::SESSION_EXISTS);
        assert_eq!(error_code(RefusalKind::Busy), v1::error_code::TURN_IN_PROGRESS);
        assert_eq!(error_code(RefusalKind::Failed), crate::jsonrpc::code::INTERNAL);
    }
}
