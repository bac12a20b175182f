//! The table `[copilot]` of `grove.toml`: model names and hooks of the Copilot SDK's programs.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use grove_host::setup::HookMode;
use serde::{Deserialize, Serialize};

/// The settings for programs of the Copilot SDK.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct CopilotConfig {
    /// Names of models, each with its `<agent>` or `<agent>/<model>`.
    #[serde(default)]
    pub(crate) models: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "HookPolicy::is_strict")]
    pub(crate) hooks: HookPolicy,
}

/// How the hooks of programs count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HookPolicy {
    /// A session with hooks needs an agent that waits for them before every tool call, and a hook that does not answer denies.
    #[default]
    Strict,
    /// Hooks are called where the agent allows it, and one that does not answer decides nothing.
    BestEffort,
}

impl HookPolicy {
    fn is_strict(&self) -> bool {
        *self == Self::Strict
    }
}

impl From<HookPolicy> for HookMode {
    fn from(policy: HookPolicy) -> Self {
        match policy {
            HookPolicy::Strict => HookMode::Strict,
            HookPolicy::BestEffort => HookMode::BestEffort,
        }
    }
}

pub(crate) fn read(file: &Path, table: Option<&toml::Value>) -> Result<CopilotConfig> {
    let Some(table) = table else { return Ok(CopilotConfig::default()) };
    let config: CopilotConfig =
        table.clone().try_into().with_context(|| format!("{}: [copilot] is not valid", file.display()))?;
    for (name, target) in &config.models {
        let (agent, model) = target.split_once('/').unwrap_or((target, "default"));
        if name.is_empty() || agent.is_empty() || model.is_empty() {
            bail!(
                "{}: [copilot.models] has {name:?} = {target:?}: write \"NAME\" = \"AGENT\" or \"AGENT/MODEL\"",
                file.display()
            );
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CopilotConfig> {
        let table: toml::Table = text.parse().unwrap();
        super::read(Path::new("grove.toml"), table.get("copilot"))
    }

    #[test]
    fn a_model_name_stands_for_an_agent_or_one_of_its_models() {
        let config = read("[copilot.models]\n\"gpt-5\" = \"codex/gpt-5\"\nsonnet = \"claude\"").unwrap();
        assert_eq!(config.models["gpt-5"], "codex/gpt-5");
        assert_eq!(config.models["sonnet"], "claude");
        assert_eq!(read("").unwrap(), CopilotConfig::default());
    }

    #[test]
    fn hooks_are_strict_unless_the_table_says_otherwise() {
        assert_eq!(read("[copilot]").unwrap().hooks, HookPolicy::Strict);
        assert_eq!(read("[copilot]\nhooks = \"strict\"").unwrap().hooks, HookPolicy::Strict);
        assert_eq!(read("[copilot]\nhooks = \"best-effort\"").unwrap().hooks, HookPolicy::BestEffort);
    }

    #[test]
    fn a_wrong_table_is_refused_with_its_place() {
        for (wrong, why) in [
            ("[copilot]\nmodel = 1", "[copilot] is not valid"),
            ("[copilot]\nhooks = \"never\"", "[copilot] is not valid"),
            ("[copilot.models]\na = 1", "[copilot] is not valid"),
            ("[copilot.models]\na = \"\"", "[copilot.models] has \"a\""),
            ("[copilot.models]\na = \"codex/\"", "[copilot.models] has \"a\""),
        ] {
            let error = format!("{:#}", read(wrong).unwrap_err());
            assert!(error.contains("grove.toml") && error.contains(why), "{error}");
        }
    }
}
