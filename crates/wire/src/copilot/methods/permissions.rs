//! Permissions without asking, by mode, rules and folders.

use super::Nullable;
use crate::ahp::macros::records;

/// People are asked.
pub const MANUAL: &str = "manual";
/// Nobody is asked, except for denials by rules.
pub const ALLOW_ALL: &str = "allow-all";

records! {
    #[derive(Eq)]
    pub struct SetApproveAllParams {
        pub session_id: String,
        pub enabled: bool,
    }

    #[derive(Eq)]
    pub struct SetPermissionModeParams {
        pub session_id: String,
        /// [`MANUAL`], [`ALLOW_ALL`], or `assisted`, which needs a model as the judge.
        pub mode: String,
    }

    #[derive(Default, Eq)]
    pub struct SetPermissionModeResult {
        pub success: bool,
        /// The current mode.
        pub mode: String,
    }

    #[derive(Default, Eq)]
    pub struct PermissionModeResult {
        pub mode: String,
    }

    #[derive(Eq)]
    pub struct Rule {
        /// `shell`, `write`, `read`, `url`, or `mcp`.
        pub kind: String,
        #[serde(default)]
        pub argument: Nullable<String>,
    }

    #[derive(Default, Eq)]
    pub struct RuleSet {
        #[serde(default)]
        pub approved: Vec<Rule>,
        #[serde(default)]
        pub denied: Vec<Rule>,
    }

    #[derive(Default, Eq)]
    pub struct PathPolicy {
        pub unrestricted: Option<bool>,
        pub additional_directories: Option<Vec<String>>,
    }

    #[derive(Default, Eq)]
    pub struct UrlPolicy {
        pub unrestricted: Option<bool>,
        pub initial_allowed: Option<Vec<String>>,
    }

    #[derive(Default, Eq)]
    pub struct ConfigurePermissionsParams {
        pub session_id: String,
        pub approve_all_tool_permission_requests: Option<bool>,
        pub approve_all_read_permission_requests: Option<bool>,
        pub rules: Option<RuleSet>,
        pub paths: Option<PathPolicy>,
        pub urls: Option<UrlPolicy>,
    }

    #[derive(Default, Eq)]
    pub struct ModifyRulesParams {
        pub session_id: String,
        /// `session` or `location`.
        pub scope: String,
        pub add: Option<Vec<Rule>>,
        pub remove: Option<Vec<Rule>>,
        pub remove_all: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct AllowedPaths {
        pub directories: Vec<String>,
        pub primary: String,
    }

    /// The path of a request: `session.permissions.paths.*` and `session.permissions.folderTrust.*`.
    #[derive(Eq)]
    pub struct PathParams {
        pub session_id: String,
        pub path: String,
    }

    #[derive(Copy, Default, Eq)]
    pub struct AllowedResult {
        pub allowed: bool,
    }

    #[derive(Copy, Default, Eq)]
    pub struct TrustedResult {
        pub trusted: bool,
    }

    #[derive(Eq)]
    pub struct LocationParams {
        pub session_id: String,
        pub working_directory: String,
    }

    #[derive(Default, Eq)]
    pub struct Location {
        pub location_key: String,
        /// `repo` or `dir`.
        pub location_type: String,
    }

    #[derive(Default, Eq)]
    pub struct AppliedLocation {
        pub location_key: String,
        pub location_type: String,
        pub changed: bool,
        pub applied_rule_count: u32,
        pub applied_directory_count: u32,
        pub applied_rules: Vec<Rule>,
    }
}
