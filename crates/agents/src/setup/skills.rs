//! Skills: instructions in files. The agent is told their names and places, and reads one when it needs it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The text before the list of skills.
const OPENING: &str =
    "These skills are available. Before you do what one of them describes, read its file and follow it:";

/// The skills of a session, and the folders that they were found in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Skills {
    pub directories: Vec<String>,
    /// The names of those that the agent is not told of.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub disabled: BTreeSet<String>,
    pub found: Vec<Skill>,
}

/// A skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// The path of its file.
    pub path: String,
}

impl Skills {
    /// Returns whether a program has named no folders.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the agent is told of a skill.
    pub fn is_enabled(&self, name: &str) -> bool {
        !self.disabled.contains(name)
    }

    /// The list for the agent; `None` if there is nothing to tell.
    pub(super) fn text(&self) -> Option<String> {
        let enabled = self.found.iter().filter(|skill| self.is_enabled(&skill.name));
        let lines: Vec<String> =
            enabled.map(|Skill { name, description, path }| format!("- {name}: {description} ({path})")).collect();
        (!lines.is_empty()).then(|| format!("{OPENING}\n{}", lines.join("\n")))
    }
}
