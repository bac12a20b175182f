//! Error codes, and the data of some errors.

use super::command::ResourceRequestParams;
use super::macros::records;
use super::state::ProtectedResourceMetadata;

/// The error codes: JSON-RPC's own, then the protocol's.
pub mod error_code {
    pub const PARSE_ERROR: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL_ERROR: i64 = -32603;

    pub const SESSION_NOT_FOUND: i64 = -32001;
    pub const PROVIDER_NOT_FOUND: i64 = -32002;
    pub const SESSION_ALREADY_EXISTS: i64 = -32003;
    pub const TURN_IN_PROGRESS: i64 = -32004;
    /// With [`super::UnsupportedProtocolVersionData`].
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32005;
    // -32006 is reserved by the protocol.
    /// With [`super::AuthRequiredData`].
    pub const AUTH_REQUIRED: i64 = -32007;
    pub const NOT_FOUND: i64 = -32008;
    /// With [`super::PermissionDeniedData`].
    pub const PERMISSION_DENIED: i64 = -32009;
    pub const ALREADY_EXISTS: i64 = -32010;
    pub const CONFLICT: i64 = -32011;
}

records! {
    /// The error of a response.
    pub struct ErrorObject {
        pub code: i64,
        pub message: String,
        pub data: Option<ErrorData>,
    }

    pub struct UnsupportedProtocolVersionData {
        pub supported_versions: Vec<String>,
    }

    pub struct AuthRequiredData {
        pub resources: Vec<ProtectedResourceMetadata>,
    }

    /// The access to ask for with `resourceRequest`, if asking could help.
    #[derive(Default)]
    pub struct PermissionDeniedData {
        pub request: Option<ResourceRequestParams>,
    }
}

/// The data of an error. The error's code decides the variant.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ErrorData {
    UnsupportedProtocolVersion(UnsupportedProtocolVersionData),
    AuthRequired(AuthRequiredData),
    PermissionDenied(PermissionDeniedData),
}
