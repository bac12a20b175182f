//! The permission rules of `grove.toml` and of repositories: reading, trying and changing them.
//!
//! Those of a session are in `x-grove/permissions`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Asks for the rules of `grove.toml`, and of the repository that a folder is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RulesParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RulesResult {
    /// The path of `grove.toml`, to which rules are added.
    pub file: String,
    pub files: Vec<RulesFileRow>,
    /// The effective rules. An untrusted file has only those that deny or ask.
    pub rules: Vec<RuleRow>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RulesFileRow {
    pub path: String,
    /// False if nobody has trusted the content of a repository's file.
    pub trusted: bool,
    /// The number of its rules.
    pub rules: usize,
    /// The reason why it cannot be read. Every request is asked then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleRow {
    /// The rule in one line, such as `allow shell "cargo test *"`.
    pub text: String,
    /// The rule as `grove.toml` has it.
    pub toml: String,
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    pub kinds: Vec<String>,
    pub patterns: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `settings` or `repository`; absent for a rule that is stored nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// The subject of a permission request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum RuleSubject {
    Shell { command: String },
    Read { path: String },
    Edit { path: String },
    Fetch { url: String },
    Mcp { tool: String },
}

/// Asks for the verdict about a request that an agent might make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckRulesParams {
    #[serde(flatten)]
    pub subject: RuleSubject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckRulesResult {
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRow>,
    /// The reason of a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Judges the requests that people answered by the present rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TestRulesParams {
    /// Milliseconds since 1970; by default the last 30 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Rules that are tried in addition to the present ones, as `grove.toml` would have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// Continues the list of differences after the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TestRulesResult {
    pub since_ms: u64,
    pub requests: usize,
    /// The number of requests of each source.
    pub sources: BTreeMap<String, usize>,
    pub allowed: usize,
    pub denied: usize,
    pub asked: usize,
    /// Requests that a rule answers as the person did.
    pub agreed: usize,
    /// Requests that a rule answers differently.
    pub differed: usize,
    pub differences: Vec<RuleDifference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A request that a rule answers differently than a person did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleDifference {
    pub verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRow>,
    /// `approved` or `denied`.
    pub answer: String,
    pub agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The command, the paths, the address or the tool. A long one is cut.
    pub subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    pub session: String,
    pub source: String,
    /// Milliseconds since 1970.
    pub at: u64,
}

/// Asks for rules that would have answered past requests as people did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuggestRulesParams {
    /// Milliseconds since 1970; by default the last 30 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuggestRulesResult {
    pub since_ms: u64,
    pub requests: usize,
    pub sources: BTreeMap<String, usize>,
    /// Those that match most answers.
    pub suggestions: Vec<RuleSuggestion>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleSuggestion {
    pub rule: RuleRow,
    /// The number of answers that it would have given.
    pub answers: usize,
}

/// Adds rules to `grove.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddRulesParams {
    /// One or several `[[policy.rules]]`, exactly as the person has seen them.
    pub toml: String,
}

/// Removes a rule from `grove.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveRuleParams {
    /// The line at which the rule begins.
    pub line: usize,
    /// The rule's `toml`, as the person has seen it. If another rule is at that line now, nothing is removed.
    pub toml: String,
}

/// The result of `x-grove/policy/add` and `x-grove/policy/remove`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesChangedResult {
    /// The changed file.
    pub file: String,
    /// The rules in one line each.
    pub rules: Vec<String>,
}
