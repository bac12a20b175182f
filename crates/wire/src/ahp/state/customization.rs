//! Customizations: plugins, directories and MCP servers, and their contents.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Icon, McpServerCustomization, TextRange};
use crate::ahp::macros::{records, unions, words};
use crate::ahp::{Object, Uri};

words! {
    pub enum CustomizationType {
        Plugin = "plugin",
        Directory = "directory",
        Agent = "agent",
        Skill = "skill",
        Prompt = "prompt",
        Rule = "rule",
        Hook = "hook",
        McpServer = "mcpServer",
    }
}

records! {
    #[derive(Default)]
    pub struct PluginCustomization {
        pub id: String,
        pub uri: Uri,
        pub name: String,
        pub icons: Option<Vec<Icon>>,
        pub range: Option<TextRange>,
        pub meta: Option<Object>,
        /// The client that brought it.
        pub client_id: Option<String>,
        pub load: Option<CustomizationLoadState>,
        pub children: Option<Vec<ChildCustomization>>,
        pub enablement: Option<Vec<CustomizationEnablement>>,
        pub version: Option<String>,
    }

    /// A plugin that a client brings to a session.
    pub struct ClientPluginCustomization {
        pub id: String,
        pub uri: Uri,
        pub name: String,
        pub icons: Option<Vec<Icon>>,
        pub range: Option<TextRange>,
        pub meta: Option<Object>,
        pub client_id: Option<String>,
        pub load: Option<CustomizationLoadState>,
        pub children: Option<Vec<ChildCustomization>>,
        /// Always a plugin.
        #[serde(rename = "type")]
        pub kind: CustomizationType,
        pub enablement: Option<Vec<CustomizationEnablement>>,
        pub version: Option<String>,
        /// Changes whenever the plugin's contents do.
        pub nonce: Option<String>,
        pub child_enablement: Option<IndexMap<String, Vec<CustomizationEnablement>>>,
    }

    pub struct DirectoryCustomization {
        pub id: String,
        pub uri: Uri,
        pub name: String,
        pub icons: Option<Vec<Icon>>,
        pub range: Option<TextRange>,
        pub meta: Option<Object>,
        pub client_id: Option<String>,
        pub load: Option<CustomizationLoadState>,
        pub children: Option<Vec<ChildCustomization>>,
        pub enabled: bool,
        /// The type of its contents.
        pub contents: CustomizationType,
        pub writable: bool,
    }

    #[derive(Default)]
    pub struct AgentCustomization {
        pub id: String,
        pub uri: Uri,
        pub name: String,
        pub icons: Option<Vec<Icon>>,
        pub range: Option<TextRange>,
        pub meta: Option<Object>,
        pub enabled: Option<bool>,
        pub description: Option<String>,
        pub model: Option<String>,
        pub tools: Option<Vec<String>>,
        pub disable_model_invocation: Option<bool>,
        pub disable_user_invocation: Option<bool>,
    }

    #[derive(Default)]
    pub struct SkillCustomization {
        pub id: String,
        pub uri: Uri,
        pub name: String,
        pub icons: Option<Vec<Icon>>,
        pub range: Option<TextRange>,
        pub meta: Option<Object>,
        pub enabled: Option<bool>,
        pub description: Option<String>,
        pub disable_model_invocation: Option<bool>,
        pub disable_user_invocation: Option<bool>,
    }

    #[derive(Default)]
    pub struct PromptCustomization {
        pub id: String,
        pub uri: Uri,
        pub name: String,
        pub icons: Option<Vec<Icon>>,
        pub range: Option<TextRange>,
        pub meta: Option<Object>,
        pub enabled: Option<bool>,
        pub description: Option<String>,
    }

    #[derive(Default)]
    pub struct RuleCustomization {
        pub id: String,
        pub uri: Uri,
        pub name: String,
        pub icons: Option<Vec<Icon>>,
        pub range: Option<TextRange>,
        pub meta: Option<Object>,
        pub enabled: Option<bool>,
        pub description: Option<String>,
        pub always_apply: Option<bool>,
        pub globs: Option<Vec<String>>,
    }

    #[derive(Default)]
    pub struct HookCustomization {
        pub id: String,
        pub uri: Uri,
        pub name: String,
        pub icons: Option<Vec<Icon>>,
        pub range: Option<TextRange>,
        pub meta: Option<Object>,
        pub enabled: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct GlobalEnablement {
        pub enabled: bool,
    }

    #[derive(Default, Eq)]
    pub struct WorkspaceEnablement {
        pub uri: Uri,
        pub enabled: bool,
    }

    #[derive(Default, Eq)]
    pub struct SessionEnablement {
        pub enabled: bool,
    }
}

unions! {
    /// A top-level customization: a container, or an MCP server outside of any.
    pub enum Customization by "type" {
        "plugin" => Plugin(PluginCustomization),
        "directory" => Directory(DirectoryCustomization),
        "mcpServer" => McpServer(Box<McpServerCustomization>),
    }

    /// A customization in a container.
    pub enum ChildCustomization by "type" {
        "agent" => Agent(AgentCustomization),
        "skill" => Skill(SkillCustomization),
        "prompt" => Prompt(PromptCustomization),
        "rule" => Rule(RuleCustomization),
        "hook" => Hook(HookCustomization),
        "mcpServer" => McpServer(Box<McpServerCustomization>),
    }

    /// A decision to enable or disable something, with its scope.
    pub enum CustomizationEnablement by "kind" {
        "global" => Global(GlobalEnablement),
        "workspace" => Workspace(WorkspaceEnablement),
        "session" => Session(SessionEnablement),
    }
}

impl Customization {
    /// The id for replacing, removing and toggling it, if its type is known or it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            Customization::Plugin(plugin) => Some(&plugin.id),
            Customization::Directory(directory) => Some(&directory.id),
            Customization::McpServer(server) => Some(&server.id),
            Customization::Unknown(value) => value.get("id").and_then(serde_json::Value::as_str),
        }
    }
}

impl ChildCustomization {
    /// The id for removing and toggling it, if its type is known or it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            ChildCustomization::Agent(child) => Some(&child.id),
            ChildCustomization::Skill(child) => Some(&child.id),
            ChildCustomization::Prompt(child) => Some(&child.id),
            ChildCustomization::Rule(child) => Some(&child.id),
            ChildCustomization::Hook(child) => Some(&child.id),
            ChildCustomization::McpServer(child) => Some(&child.id),
            ChildCustomization::Unknown(value) => value.get("id").and_then(serde_json::Value::as_str),
        }
    }
}

/// The load state of a container. The protocol closes this list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum CustomizationLoadState {
    Loading,
    Loaded,
    /// Partly usable.
    Degraded {
        message: String,
    },
    Error {
        message: String,
    },
}
