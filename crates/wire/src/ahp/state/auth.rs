//! The data that a client needs to get a token for a protected resource.

use crate::ahp::macros::{records, words};

/// A protected resource as described in RFC 9728; hence the names in snake case.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProtectedResourceMetadata {
    pub resource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_servers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_policy_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_tos_uri: Option<String>,
    /// True if nothing works without a token. Absent means false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

words! {
    /// The reason why an MCP server or a tool call needs a token.
    pub enum McpAuthRequiredReason {
        Required = "required",
        Expired = "expired",
        InsufficientScope = "insufficientScope",
    }
}

records! {
    /// A client's registration with the server's identity provider, if the host has one.
    #[derive(Default, Eq)]
    pub struct McpOAuthClient {
        pub client_id: String,
        pub client_secret: Option<String>,
    }

    /// The authorization that a tool call or an MCP server waits for.
    #[derive(Eq)]
    pub struct McpAuthRequirement {
        pub reason: McpAuthRequiredReason,
        pub oauth_client: Option<McpOAuthClient>,
        pub resource: ProtectedResourceMetadata,
        pub required_scopes: Option<Vec<String>>,
        pub description: Option<String>,
    }
}
