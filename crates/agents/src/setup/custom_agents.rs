//! Custom agents: instructions that a program defines under names, of which it selects one.

use serde::{Deserialize, Serialize};

use super::SetupRefusal;

/// The custom agents of a session, and the selected one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomAgents {
    pub defined: Vec<CustomAgent>,
    /// The name of the agent whose prompt goes to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<String>,
}

/// A custom agent. Grove's agents cannot run it beside themselves: they take its prompt while it is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomAgent {
    pub name: String,
    pub display_name: Option<String>,
    pub description: Option<String>,
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The members that only an agent of its own could honour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<String>,
}

impl CustomAgents {
    /// Returns whether a program has defined none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The selected agent.
    pub fn selected(&self) -> Option<&CustomAgent> {
        let name = self.selected.as_ref()?;
        self.defined.iter().find(|agent| agent.name == *name)
    }

    /// The same agents after a change. The selected one stays selected while it is defined.
    pub(super) fn changed(&self, defined: Option<Vec<CustomAgent>>, selected: Option<String>) -> Self {
        let defined = defined.unwrap_or_else(|| self.defined.clone());
        let is_defined = |name: &String| defined.iter().any(|agent| agent.name == *name);
        let selected = match selected {
            Some(name) => Some(name).filter(|name| !name.is_empty()),
            None => self.selected.clone().filter(is_defined),
        };
        Self { defined, selected }
    }

    pub(super) fn check(&self, agent: &str) -> Result<(), SetupRefusal> {
        for (at, defined) in self.defined.iter().enumerate() {
            if defined.name.is_empty() || self.defined[..at].iter().any(|before| before.name == defined.name) {
                return Err(SetupRefusal::CustomAgentName(defined.name.clone()));
            }
        }
        match (&self.selected, self.selected()) {
            (None, _) => Ok(()),
            (Some(name), None) => Err(SetupRefusal::NoCustomAgent(name.clone())),
            (Some(name), Some(selected)) => match selected.unserved.first() {
                None => Ok(()),
                Some(member) => Err(SetupRefusal::CustomAgent {
                    agent: agent.to_owned(),
                    custom: name.clone(),
                    member: member.clone(),
                }),
            },
        }
    }
}
