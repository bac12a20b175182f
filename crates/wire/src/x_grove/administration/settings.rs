//! The settings of a host, to read. Secrets are left out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingsResult {
    /// The path of `grove.toml`.
    pub config_file: String,
    /// True if that file exists.
    pub config_file_exists: bool,
    pub settings: Vec<SettingRow>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingRow {
    /// The key in `grove.toml`.
    pub name: String,
    pub value: Value,
    /// `default`, `file`, `environment` or `flag`.
    pub source: String,
    /// The file, the variable or the flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_name: Option<String>,
}
