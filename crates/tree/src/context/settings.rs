//! The settings along a branch: the last of each kind counts.

use serde_json::value::RawValue;

use super::{Model, Rules};
use crate::kind::Kind;
use crate::object::Object;
use crate::scan::lossy;

pub(super) struct Settings {
    pub(super) thinking_level: String,
    pub(super) model: Model,
    pub(super) mode: Option<String>,
    pub(super) injected_rules: Vec<String>,
}

impl Settings {
    pub(super) fn of(rules: Rules, path: &[Object<'_>]) -> Self {
        let mut settings = Self {
            thinking_level: "off".to_owned(),
            model: match rules {
                Rules::Pi | Rules::Grove => Model::Unknown,
                Rules::Omp => Model::ByRole(Vec::new()),
            },
            mode: match rules {
                Rules::Pi => None,
                Rules::Omp | Rules::Grove => Some("none".to_owned()),
            },
            injected_rules: Vec::new(),
        };
        // oh-my-pi: a model that was chosen is not changed by whoever answered.
        let mut chosen = false;
        for entry in path {
            match kind(entry) {
                Kind::ThinkingLevelChange => {
                    settings.thinking_level = text(entry, "thinkingLevel").unwrap_or_else(|| "off".to_owned());
                }
                Kind::ModelChange => match rules {
                    Rules::Pi => settings.model = pair(entry, "provider", "modelId"),
                    Rules::Grove => settings.change_model(entry),
                    Rules::Omp => {
                        let model = text(entry, "model").filter(|model| !model.is_empty());
                        let role = text(entry, "role").unwrap_or_else(|| "default".to_owned());
                        if let Some(model) = model {
                            chosen |= role == "default";
                            settings.set_role(role, model);
                        }
                    }
                },
                Kind::Message => settings.answered(rules, entry, chosen),
                Kind::ModeChange if rules != Rules::Pi => {
                    settings.mode = Some(text(entry, "mode").unwrap_or_else(|| "none".to_owned()));
                }
                Kind::TtsrInjection if rules != Rules::Pi => settings.inject(entry),
                _ => {}
            }
        }
        settings
    }

    /// Either program's form of a change.
    fn change_model(&mut self, entry: &Object<'_>) {
        match text(entry, "model") {
            None => self.model = pair(entry, "provider", "modelId"),
            Some(model) if text(entry, "role").is_none_or(|role| role == "default") => {
                let (provider, id) = match model.split_once('/') {
                    Some((provider, id)) => (Some(provider.to_owned()), id.to_owned()),
                    None => (None, model),
                };
                self.model = Model::One { provider, model_id: Some(id) };
            }
            Some(_) => {}
        }
    }

    /// An assistant's message says which model wrote it.
    fn answered(&mut self, rules: Rules, entry: &Object<'_>, chosen: bool) {
        let message = entry.get("message").and_then(Object::parse);
        let Some(message) = message.filter(|message| message.is("role", "assistant")) else { return };
        match rules {
            Rules::Pi | Rules::Grove => self.model = pair(&message, "provider", "model"),
            Rules::Omp if chosen => {}
            Rules::Omp => {
                let part = |name| text(&message, name).unwrap_or_else(|| "undefined".to_owned());
                self.set_role("default".to_owned(), format!("{}/{}", part("provider"), part("model")));
            }
        }
    }

    fn set_role(&mut self, role: String, model: String) {
        let Model::ByRole(models) = &mut self.model else { return };
        match models.iter_mut().find(|(known, _)| *known == role) {
            Some(known) => known.1 = model,
            None => models.push((role, model)),
        }
    }

    fn inject(&mut self, entry: &Object<'_>) {
        let list = entry.get("injectedRules").and_then(|list| serde_json::from_slice::<Vec<&RawValue>>(list).ok());
        for rule in list.unwrap_or_default().iter().filter_map(|rule| lossy(rule.get().as_bytes())) {
            if !self.injected_rules.contains(&rule) {
                self.injected_rules.push(rule);
            }
        }
    }
}

pub(super) fn kind(entry: &Object<'_>) -> Kind {
    entry.text("type").map_or(Kind::Unknown, |name| Kind::named(&name))
}

fn text(object: &Object<'_>, name: &str) -> Option<String> {
    object.get(name).and_then(lossy)
}

fn pair(object: &Object<'_>, provider: &str, model: &str) -> Model {
    Model::One { provider: text(object, provider), model_id: text(object, model) }
}
