//! The agents of a host: which are installed, and installing them.

use serde::{Deserialize, Serialize};

/// The scripted agent first, then the agents of the catalog, then those of `grove.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentsResult {
    pub agents: Vec<AgentRow>,
    /// The date of the catalog, such as `2026-05-01`.
    pub catalog_date: String,
}

/// The usability of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentAvailability {
    BuiltIn,
    Installed,
    #[default]
    Missing,
    /// `enabled = false` in `grove.toml`.
    Disabled,
}

/// The origin of an agent's definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentOrigin {
    BuiltIn,
    #[default]
    Catalog,
    Settings,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentRow {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub availability: AgentAvailability,
    /// True if it can be used.
    pub installed: bool,
    /// The installed version, if the agent tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of the catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
    /// True if the catalog's version is newer than the installed one.
    pub outdated: bool,
    /// The program and its arguments; empty if it is missing.
    pub command: Vec<String>,
    /// The party that has installed it: `grove`, `path` or `command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_by: Option<String>,
    /// How to install it, or its newer version. Absent if there is nothing to install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<AgentInstallation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<AgentLogin>,
    /// The ids of its models, if the agent has told them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    pub is_default: bool,
    pub source: AgentOrigin,
    /// The programs that were looked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub looked_for: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInstallation {
    /// The command that installs it, or instructions for a person.
    pub command: String,
    /// `npm`, `bun`, `pypi`, `binary`, `manual` or `unknown`.
    pub kind: String,
    /// True if `x-grove/agents/install` may install it.
    pub possible: bool,
    /// The reason why it cannot, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentLogin {
    /// The login in words, from the catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The methods that the agent has told. Absent until `x-grove/agents/check` has asked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<AgentLoginMethod>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentLoginMethod {
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The command for a terminal of the host's machine, if the agent cannot log in by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Looks for programs again. With an agent, that agent is also started and asked for its ways to log in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckAgentsParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Names an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentParams {
    pub id: String,
}

/// The commands that would install an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallPlanResult {
    pub id: String,
    pub name: String,
    pub version: String,
    pub commands: Vec<String>,
}

/// Installs an agent. The version is the one that the person has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallParams {
    pub id: String,
    pub version: String,
}

/// Asks for the running or the last installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallStatusParams {
    /// The number of lines of output that the client has.
    pub after: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallStatusResult {
    /// Absent if nothing was installed since the host's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<InstallationStatus>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstallationState {
    #[default]
    Running,
    Done,
    Failed,
    Cancelled,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallationStatus {
    pub id: String,
    pub version: String,
    pub state: InstallationState,
    /// The lines after those that the client has. The oldest are dropped if there are too many.
    pub lines: Vec<String>,
    /// The number of all lines so far.
    pub line_count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of `x-grove/agents/cancelInstall`: `cancelled` is true if an installation was running.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelInstallResult {
    pub cancelled: bool,
}

/// Has an agent log in by itself. It may open a browser on the host's machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogInParams {
    pub id: String,
    pub method: String,
}
