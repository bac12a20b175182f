//! "Always allow": rules that a pending permission request offers, and storing one of them.

use serde::{Deserialize, Serialize};

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyMethod {
    Offers,
    Allow,
}

impl PolicyMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            PolicyMethod::Offers => "x-grove/policy/offers",
            PolicyMethod::Allow => "x-grove/policy/allow",
        }
    }
}

/// The sessions that a stored rule counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RuleTarget {
    #[default]
    Session,
    /// `.grove/policy.toml` of the repository, whose new content is then trusted.
    Repository,
    /// The user's `grove.toml`.
    Everywhere,
}

impl RuleTarget {
    pub const ALL: [Self; 3] = [Self::Session, Self::Repository, Self::Everywhere];
}

/// Asks which rules would answer a pending permission request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyOffersParams {
    /// The id of the permission request, or of its tool call.
    pub request: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyOffersResult {
    /// The rules, the narrowest first. There is none if no rule can answer the request.
    pub rules: Vec<OfferedRule>,
    /// The targets that can be stored at.
    pub targets: Vec<OfferedTarget>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedRule {
    /// The rule in one line, such as `allow shell "cargo test *"`.
    pub text: String,
    /// The rule as it is stored; several tables if the request needs several rules.
    pub toml: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedTarget {
    pub target: RuleTarget,
    /// The file that the rule would be added to; none for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Stores an offered rule, which then answers the pending permission request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAllowParams {
    /// The id of the permission request, or of its tool call.
    pub request: String,
    pub target: RuleTarget,
    /// The `toml` of the offered rule, as the person has seen it.
    pub rule: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAllowResult {
    /// The stored rule in one line.
    pub text: String,
    /// The file that it was added to; none for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}
