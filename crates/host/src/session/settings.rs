//! Model, thinking level and mode of a session, as its logs have them.
//!
//! A log says them along each branch, so that a branch that is left and gone to again has the model that it had.

use grove_core::*;
use grove_tree::settings::{BranchModel, BranchSettings};
use serde_json::Value;

/// How agents call the setting for how much a model thinks, in the order in which they are looked for.
pub(crate) const THINKING_SETTINGS: [&str; 5] =
    ["reasoning_effort", "reasoningEffort", "effort", "thought_level", "thinking"];
/// How agents call the setting for the mode, and for the model.
const MODE_SETTING: &str = "mode";
const MODEL_SETTING: &str = "model";

/// What a session goes on with now.
pub(super) fn current(session: &Session) -> BranchSettings {
    let model = session.model.as_ref().map(ToString::to_string).or_else(|| value(session, MODEL_SETTING));
    let provider = Some(session.provider.to_string());
    BranchSettings {
        model: model.map(|id| BranchModel { provider, id }),
        thinking_level: THINKING_SETTINGS.into_iter().find_map(|name| value(session, name)),
        mode: value(session, MODE_SETTING),
    }
}

/// What has to change so that a session goes on with the settings of a branch. What the branch does not say, and what the
/// session's agent does not know, stays as it is.
pub(super) fn restored(session: &Session, branch: &BranchSettings) -> RestoredSettings {
    let current = current(session);
    let mut restored = RestoredSettings::default();
    let mut set = |name: &str, wanted: &String| {
        if value(session, name).is_some_and(|known| known != *wanted) {
            restored.values.insert(name.to_owned(), Value::from(wanted.as_str()));
        }
    };
    if let Some(mode) = &branch.mode {
        set(MODE_SETTING, mode);
    }
    if let Some(level) = &branch.thinking_level
        && let Some(name) = THINKING_SETTINGS.into_iter().find(|name| value(session, name).is_some())
    {
        set(name, level);
    }
    let model = branch.model.as_ref().filter(|model| {
        model.provider.as_deref() == Some(session.provider.as_str()) && Some(*model) != current.model.as_ref()
    });
    if let Some(model) = model {
        if session.model.is_none() {
            set(MODEL_SETTING, &model.id);
        } else {
            restored.model = Some(model.id.as_str().into());
        }
    }
    restored
}

/// A setting that is a text.
fn value(session: &Session, name: &str) -> Option<String> {
    let value = session.config.as_ref()?.values.get(name)?.as_str()?;
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(model: Option<&str>, values: Value) -> Session {
        let new = NewSession {
            id: "s".into(),
            uri: "acme:/s".into(),
            provider: "acme".into(),
            model: model.map(ModelId::from),
            working_directories: vec![],
            config: values.as_object().cloned().map(SessionConfig::of),
            store: StoreName::default(),
        };
        Session::new(&new, Timestamp(0))
    }

    fn model(provider: &str, id: &str) -> Option<BranchModel> {
        Some(BranchModel { provider: Some(provider.to_owned()), id: id.to_owned() })
    }

    #[test]
    fn a_branch_brings_back_what_it_says_and_nothing_else() {
        let now = session(Some("oak"), serde_json::json!({"mode": "plan", "effort": "high", "other": "x"}));
        let branch = BranchSettings { model: model("acme", "ash"), thinking_level: Some("low".into()), mode: None };
        let back = restored(&now, &branch);
        assert_eq!(back.model, Some("ash".into()));
        assert_eq!(Value::from(back.values), serde_json::json!({"effort": "low"}));
        let same = restored(&now, &current(&now));
        assert_eq!(same, RestoredSettings::default());
    }

    #[test]
    fn settings_that_the_agent_does_not_have_are_not_brought_back() {
        let now = session(Some("oak"), serde_json::json!({}));
        let branch = BranchSettings {
            model: model("another", "ash"),
            thinking_level: Some("low".into()),
            mode: Some("plan".into()),
        };
        assert_eq!(restored(&now, &branch), RestoredSettings::default());
    }

    #[test]
    fn a_model_that_is_a_setting_of_the_agent_is_brought_back_as_one() {
        let now = session(None, serde_json::json!({"model": "oak"}));
        assert_eq!(current(&now).model, model("acme", "oak"));
        let branch = BranchSettings { model: model("acme", "ash"), ..BranchSettings::default() };
        let back = restored(&now, &branch);
        assert_eq!((back.model, Value::from(back.values)), (None, serde_json::json!({"model": "ash"})));
    }
}
