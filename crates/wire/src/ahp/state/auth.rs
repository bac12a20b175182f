//! What a client needs to know in order to get a token for something protected.

use crate::ahp::macros::{records, words};

/// A protected resource as RFC 9728 describes it; hence the names in snake case.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
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
    /// Whether nothing works without a token. Absent means that it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

words! {
    /// Why an MCP server or a tool call asks for a token.
    pub enum McpAuthRequiredReason {
        Required = "required",
        Expired = "expired",
        InsufficientScope = "insufficientScope",
    }
}

records! {
    /// A client's registration with the server's identity provider, where the host has one.
    #[derive(Default, Eq)]
    pub struct McpOAuthClient {
        pub client_id: String,
        pub client_secret: Option<String>,
    }

    /// What a tool call, or an MCP server, waits for.
    #[derive(Eq)]
    pub struct McpAuthRequirement {
        pub reason: McpAuthRequiredReason,
        pub oauth_client: Option<McpOAuthClient>,
        pub resource: ProtectedResourceMetadata,
        pub required_scopes: Option<Vec<String>>,
        pub description: Option<String>,
    }
}
