//! What a model is given: the messages of a branch, and the settings along it.

mod messages;
mod settings;
mod tools;

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::object::Object;

/// Whose rules build a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rules {
    /// pi 1.5
    Pi,
    /// oh-my-pi 18.3
    Omp,
    /// Grove's own: what both agree on, with the modes and rules of oh-my-pi. Nothing is left that a provider refuses:
    /// neither a tool call without its result nor a result without its call. Summaries and custom messages are messages
    /// of the user.
    #[default]
    Grove,
}

/// What a model is given.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    pub messages: Vec<ContextMessage>,
    pub thinking_level: String,
    pub model: Model,
    /// pi has no modes.
    pub mode: Option<String>,
    pub injected_rules: Vec<String>,
}

/// A message, as it stands in the log where nothing had to be changed.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct ContextMessage {
    pub json: Box<RawValue>,
    /// The how-manieth entry of the branch it comes from.
    #[serde(skip)]
    pub source: usize,
}

/// The model of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    Unknown,
    One {
        provider: Option<String>,
        model_id: Option<String>,
    },
    /// oh-my-pi: `provider/id` for each role.
    ByRole(Vec<(String, String)>),
}

impl Serialize for Model {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Model::Unknown => serializer.serialize_none(),
            Model::One { provider, model_id } => {
                let mut map = serializer.serialize_map(None)?;
                for (name, value) in [("provider", provider), ("modelId", model_id)] {
                    if let Some(value) = value {
                        map.serialize_entry(name, value)?;
                    }
                }
                map.end()
            }
            Model::ByRole(models) => serializer.collect_map(models.iter().map(|(role, model)| (role, model))),
        }
    }
}

impl Context {
    /// Builds the context of a branch from the lines of its entries, root first.
    pub fn build<L: AsRef<[u8]>>(rules: Rules, branch: &[L]) -> Self {
        let texts: Vec<Cow<'_, str>> = branch.iter().map(|line| String::from_utf8_lossy(line.as_ref())).collect();
        // A line that is no object would not have become an entry.
        let path: Vec<Object<'_>> =
            texts.iter().map(|text| Object::parse(text.as_bytes()).unwrap_or_default()).collect();
        let mut drafts = messages::select(rules, &path);
        match rules {
            Rules::Pi => {}
            Rules::Omp => {
                tools::strip_dangling_calls(&mut drafts);
                tools::drop_broken_turns(&mut drafts);
            }
            Rules::Grove => {
                tools::drop_broken_turns(&mut drafts);
                tools::strip_dangling_calls(&mut drafts);
                tools::drop_orphan_results(&mut drafts);
            }
        }
        let settings = settings::Settings::of(rules, &path);
        Context {
            messages: drafts.iter().filter_map(messages::Draft::finish).collect(),
            thinking_level: settings.thinking_level,
            model: settings.model,
            mode: settings.mode,
            injected_rules: settings.injected_rules,
        }
    }
}
