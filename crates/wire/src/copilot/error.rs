//! Errors of calls, with the messages that the SDK's clients look for.

use crate::jsonrpc::ErrorObject;

/// The codes of errors.
pub mod error_code {
    pub use crate::jsonrpc::code::{INTERNAL, METHOD_NOT_FOUND};

    /// A call before `connect` to a host with a token.
    pub const AUTHENTICATION_REQUIRED: i64 = -32001;
    /// A `connect` with a wrong token.
    pub const AUTHENTICATION_FAILED: i64 = -32002;
    /// A call that needs a scope that the client's token does not have. The SDK has no code for it; this is AHP's.
    pub const PERMISSION_DENIED: i64 = crate::ahp::error_code::PERMISSION_DENIED;
}

/// The maximum length of a method's name in an error.
const MAX_SHOWN: usize = 100;

/// The error for an unknown method. The SDK recognises an older host by these words.
pub fn unhandled(method: &str) -> ErrorObject {
    ErrorObject::new(error_code::METHOD_NOT_FOUND, format!("Unhandled method {}", shown(method)))
}

/// The error of a valid call that failed.
pub fn failed(method: &str, reason: impl std::fmt::Display) -> ErrorObject {
    ErrorObject::new(error_code::INTERNAL, format!("Request {} failed with message: {reason}", shown(method)))
}

/// The error of a call with invalid params.
pub fn invalid_params(method: &str, problem: impl std::fmt::Display) -> ErrorObject {
    failed(method, format_args!("Invalid {} params: {problem}", shown(method)))
}

/// The error of a call before `connect`.
pub fn authentication_required() -> ErrorObject {
    ErrorObject::new(error_code::AUTHENTICATION_REQUIRED, "AUTHENTICATION_REQUIRED")
}

/// The error of a wrong token.
pub fn authentication_failed() -> ErrorObject {
    ErrorObject::new(error_code::AUTHENTICATION_FAILED, "AUTHENTICATION_FAILED")
}

/// The error of a call that the client's token does not permit.
pub fn not_permitted(method: &str, reason: impl std::fmt::Display) -> ErrorObject {
    ErrorObject { code: error_code::PERMISSION_DENIED, ..failed(method, reason) }
}

fn shown(method: &str) -> &str {
    match method.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => &method[..end],
        None => method,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_codes_and_words_that_clients_look_for() {
        let text = |error: ErrorObject| (error.code, error.message);
        assert_eq!(text(unhandled("connect")), (-32601, "Unhandled method connect".to_owned()));
        let failure = failed("session.send", "no such session");
        assert_eq!(text(failure), (-32603, "Request session.send failed with message: no such session".to_owned()));
        let invalid = invalid_params("a.b", "missing field `c`");
        let words = "Request a.b failed with message: Invalid a.b params: missing field `c`";
        assert_eq!(text(invalid), (-32603, words.to_owned()));
        assert_eq!(text(authentication_required()), (-32001, "AUTHENTICATION_REQUIRED".to_owned()));
        assert_eq!(text(authentication_failed()), (-32002, "AUTHENTICATION_FAILED".to_owned()));
        assert!(unhandled(&"ü".repeat(1_000)).message.len() < 300);
    }
}
