//! A session's settings.

use serde::{Deserialize, Serialize};

use crate::turn::Extra;

/// A session's settings: their schema and their values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionConfig {
    /// A JSON schema of an object, from the agent.
    pub schema: Extra,
    pub values: Extra,
}

impl SessionConfig {
    /// Creates settings with values and an unknown schema.
    pub fn of(values: Extra) -> Self {
        let schema = serde_json::json!({"type": "object", "properties": {}});
        Self { schema: schema.as_object().cloned().unwrap_or_default(), values }
    }

    /// The same settings without the agent's mode: many agents have modes in which they ask for nothing.
    pub fn without_mode(mut self) -> Self {
        self.values.remove(Self::MODE);
        self
    }

    /// The setting that holds an agent's mode.
    pub const MODE: &str = "mode";

    /// Sets those of the values that the schema has.
    pub fn choose(&mut self, values: Extra) {
        let known = self.schema.get("properties").and_then(serde_json::Value::as_object);
        let known: Vec<_> =
            values.into_iter().filter(|(name, _)| known.is_some_and(|k| k.contains_key(name))).collect();
        self.values.extend(known);
    }

    /// The values after a change.
    pub fn changed(&self, values: &Extra, replace: bool) -> Extra {
        let mut next = if replace { Extra::new() } else { self.values.clone() };
        next.extend(values.iter().map(|(name, value)| (name.clone(), value.clone())));
        next
    }
}
