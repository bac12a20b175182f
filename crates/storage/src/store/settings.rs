//! Model, thinking level and mode of a session, as its logs have them.
//!
//! A log has them along each branch, so that going back to a branch restores its model.

use grove_core::*;
use grove_fs::SessionFs;
use grove_tree::settings::{BranchModel, BranchSettings, names_models, settings_to_go_on_with};
use grove_tree::{EntryNo, LogError, LogIndex};
use serde_json::Value;

/// The agents' names for the setting of the thinking level, in the order in which they are tried.
pub const THINKING_SETTINGS: [&str; 5] = ["reasoning_effort", "reasoningEffort", "effort", "thought_level", "thinking"];
/// The agents' names for the settings of the mode and of the model.
const MODE_SETTING: &str = "mode";
const MODEL_SETTING: &str = "model";

/// The current settings of a session.
pub(crate) fn current(session: &Session) -> BranchSettings {
    let model = session.model.as_ref().map(ToString::to_string).or_else(|| value(session, MODEL_SETTING));
    let provider = Some(session.agent.to_string());
    BranchSettings {
        model: model.map(|id| BranchModel { provider, id }),
        thinking_level: THINKING_SETTINGS.into_iter().find_map(|name| value(session, name)),
        mode: value(session, MODE_SETTING),
    }
}

/// The changes that a session needs to go on behind an entry of one of its logs.
pub async fn restored_at(
    session: &Session,
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    at: Option<EntryNo>,
) -> Result<RestoredSettings, LogError> {
    let branch = settings_to_go_on_with(fs, path, index, at).await?;
    Ok(restored(session, &branch, names_models(index)))
}

/// The changes that a session needs to go on with the settings of a branch. A setting that the branch does not name has its
/// default, if that is known; a setting that the session's agent does not know stays as it is.
fn restored(session: &Session, branch: &BranchSettings, names_models: bool) -> RestoredSettings {
    let current = current(session);
    let mut restored = RestoredSettings::default();
    let mut set = |name: &str, wanted: Option<&String>| {
        let wanted = wanted.cloned().or_else(|| default_of(session, name));
        if let (Some(known), Some(wanted)) = (value(session, name), wanted)
            && known != wanted
        {
            restored.values.insert(name.to_owned(), Value::from(wanted));
        }
    };
    set(MODE_SETTING, branch.mode.as_ref());
    if let Some(name) = THINKING_SETTINGS.into_iter().find(|name| value(session, name).is_some()) {
        set(name, branch.thinking_level.as_ref());
    }
    let is_of_agent = |model: &&BranchModel| model.provider.as_deref() == Some(session.agent.as_str());
    let is_setting = session.model.is_none() && value(session, MODEL_SETTING).is_some();
    match &branch.model {
        None if is_setting => set(MODEL_SETTING, None),
        None => restored.model = Some(RestoredModel::Default).filter(|_| names_models && session.model.is_some()),
        // A model of another agent means nothing to this one.
        Some(model) if !is_of_agent(&model) || Some(model) == current.model.as_ref() => {}
        Some(model) if is_setting => set(MODEL_SETTING, Some(&model.id)),
        Some(model) => restored.model = Some(RestoredModel::Named(model.id.as_str().into())),
    }
    restored
}

/// The value that a setting has by itself, where its schema says it and it is a text.
fn default_of(session: &Session, name: &str) -> Option<String> {
    let schema = session.details.settings.as_ref().or_else(|| session.config.as_ref().map(|config| &config.schema))?;
    let default = schema.get("properties")?.get(name)?.get("default")?.as_str()?;
    (!default.is_empty()).then(|| default.to_owned())
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
            agent: "acme".into(),
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
        let back = restored(&now, &branch, true);
        assert_eq!(back.model, Some(RestoredModel::Named("ash".into())));
        assert_eq!(Value::from(back.values), serde_json::json!({"effort": "low"}));
        let same = restored(&now, &current(&now), true);
        assert_eq!(same, RestoredSettings::default());
    }

    #[test]
    fn a_branch_that_says_nothing_has_the_defaults_that_are_known() {
        let none = BranchSettings::default();
        let mut now = session(Some("oak"), serde_json::json!({"mode": "plan", "effort": "high"}));
        let settings = serde_json::json!({"properties": {"mode": {"default": "ask"}, "effort": {}}});
        now.details.settings = settings.as_object().cloned();
        let back = restored(&now, &none, true);
        assert_eq!(back.model, Some(RestoredModel::Default));
        assert_eq!(Value::from(back.values), serde_json::json!({"mode": "ask"}), "an effort has no default");
        // A log that names no model anywhere says nothing of models.
        assert_eq!(restored(&now, &none, false).model, None);
        assert_eq!(restored(&session(None, serde_json::json!({})), &none, true), RestoredSettings::default());
    }

    #[test]
    fn settings_that_the_agent_does_not_have_are_not_brought_back() {
        let now = session(Some("oak"), serde_json::json!({}));
        let branch = BranchSettings {
            model: model("another", "ash"),
            thinking_level: Some("low".into()),
            mode: Some("plan".into()),
        };
        assert_eq!(restored(&now, &branch, true), RestoredSettings::default());
    }

    #[test]
    fn a_model_that_is_a_setting_of_the_agent_is_brought_back_as_one() {
        let now = session(None, serde_json::json!({"model": "oak"}));
        assert_eq!(current(&now).model, model("acme", "oak"));
        let branch = BranchSettings { model: model("acme", "ash"), ..BranchSettings::default() };
        let back = restored(&now, &branch, true);
        assert_eq!((back.model, Value::from(back.values)), (None, serde_json::json!({"model": "ash"})));
    }
}
