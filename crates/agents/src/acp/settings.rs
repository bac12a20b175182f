//! An agent's modes, models and configuration options as settings of a session.
//!
//! Agents report their settings in three ways: configuration options, the older list of modes, and the even older list
//! of models. Some use several for the same setting. Here they are one set of named settings: an option wins over an
//! older list of the same, which is kept up to date behind it.

use agent_client_protocol_schema::v1 as acp;
use grove_core::*;
use serde_json::{Value, json};

use crate::agent::*;

/// The names of the older lists as settings. An option for the mode mostly has the same name.
pub(crate) const MODE: &str = "mode";
const MODEL: &str = "model";

/// The settings that an agent offers, and their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AgentSettings {
    options: Vec<Setting>,
    modes: Option<Setting>,
    models: Option<Setting>,
}

/// A call that makes the agent use a setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SettingRequest {
    Option(acp::SetSessionConfigOptionRequest),
    Mode(acp::SetSessionModeRequest),
    /// The older method to choose a model: `session/set_model`, which the types no longer have.
    Model(Value),
}

/// One setting.
#[derive(Clone, Debug, PartialEq)]
struct Setting {
    name: String,
    title: String,
    description: Option<String>,
    role: Role,
    mechanism: SettingMechanism,
    value: SettingValue,
}

/// The meaning of a setting, if it matters here.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Mode,
    Model,
    Other,
}

/// The method that changes a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SettingMechanism {
    Option,
    Mode,
    Model,
}

#[derive(Clone, Debug, PartialEq)]
enum SettingValue {
    One { id: String, choices: Vec<Choice> },
    Switch(bool),
}

impl AgentSettings {
    /// The settings in an answer to `session/new`, `load`, `resume` or `fork`. It reads the result as it came, since
    /// the types no longer have the older list of models. Unknown members are skipped.
    pub(crate) fn of(result: &Value) -> Self {
        let options = result.get("configOptions").and_then(Value::as_array).into_iter().flatten();
        let options = options.filter_map(|option| serde_json::from_value(option.clone()).ok());
        let modes = older_list(result, "modes", ["currentModeId", "availableModes", "id"]);
        let models = older_list(result, "models", ["currentModelId", "availableModels", "modelId"]);
        Self {
            options: options.filter_map(|option| Setting::of(&option)).collect(),
            modes: modes.map(|value| Setting::older(MODE, "Mode", Role::Mode, SettingMechanism::Mode, value)),
            models: models.map(|value| Setting::older(MODEL, "Model", Role::Model, SettingMechanism::Model, value)),
        }
    }

    /// Takes the options of an update or an answer, and returns whether anything changed.
    pub(crate) fn take_options(&mut self, options: &[acp::SessionConfigOption]) -> bool {
        self.changes(|settings| {
            settings.options = options.iter().filter_map(Setting::of).collect();
            for (list, role) in [(&mut settings.modes, Role::Mode), (&mut settings.models, Role::Model)] {
                let option = settings.options.iter().find(|option| option.role == role);
                if let (Some(list), Some(SettingValue::One { id, .. })) = (list, option.map(|option| &option.value)) {
                    list.choose_known(id);
                }
            }
        })
    }

    /// Takes the mode that the agent has switched to, and returns whether anything changed.
    pub(crate) fn take_mode(&mut self, mode: &acp::SessionModeId) -> bool {
        self.changes(|settings| {
            if let Some(modes) = &mut settings.modes {
                modes.choose(&mode.0);
            }
            // Some agents have the modes as an option too, and report a switch only here.
            if let Some(option) = settings.options.iter_mut().find(|option| option.role == Role::Mode) {
                option.choose_known(&mode.0);
            }
        })
    }

    /// The settings as the session has them; `None` if there are none.
    pub(crate) fn event(&self) -> Option<AgentEvent> {
        let (mut properties, mut values) = (Extra::new(), Extra::new());
        for setting in self.all().filter(|setting| setting.is_choice()) {
            // Of two options with one name only the first could be changed.
            if !properties.contains_key(&setting.name) {
                properties.insert(setting.name.clone(), setting.schema());
                values.insert(setting.name.clone(), setting.chosen());
            }
        }
        if properties.is_empty() {
            return None;
        }
        let schema = [("type".to_owned(), json!("object")), ("properties".to_owned(), Value::Object(properties))];
        Some(AgentEvent::AgentSettings { schema: schema.into_iter().collect(), values })
    }

    /// The models to choose from.
    pub(crate) fn models(&self) -> Vec<ModelInfo> {
        let choices = match self.of_role(Role::Model).map(|setting| &setting.value) {
            Some(SettingValue::One { choices, .. }) => choices.as_slice(),
            Some(SettingValue::Switch(_)) | None => &[],
        };
        let model = |choice: &Choice| ModelInfo {
            id: choice.id.as_str().into(),
            name: choice.label.clone(),
            max_context_window: None,
            supports_vision: None,
        };
        choices.iter().map(model).collect()
    }

    /// The call that gives a setting this value; `None` if it already has it, or there is no such value.
    pub(crate) fn change(&self, session: &acp::SessionId, name: &str, value: &Value) -> Option<SettingRequest> {
        self.all().find(|setting| setting.name == name)?.change(session, value)
    }

    /// The same for the model.
    pub(crate) fn change_model(&self, session: &acp::SessionId, model: &ModelId) -> Option<SettingRequest> {
        self.of_role(Role::Model)?.change(session, &Value::from(model.as_str()))
    }

    /// Notes a change if the agent's answer does not contain the new state.
    pub(crate) fn made(&mut self, change: &SettingRequest) {
        match change {
            SettingRequest::Option(made) => {
                let option = self.options.iter_mut().find(|option| option.name == *made.config_id.0);
                match (option, made.value.as_bool(), made.value.as_value_id()) {
                    (Some(option), _, Some(id)) => option.choose(&id.0),
                    (Some(Setting { value: SettingValue::Switch(on), .. }), Some(value), None) => *on = value,
                    _ => {}
                }
            }
            SettingRequest::Mode(made) => {
                if let Some(modes) = &mut self.modes {
                    modes.choose(&made.mode_id.0);
                }
            }
            SettingRequest::Model(made) => {
                if let (Some(models), Some(id)) = (&mut self.models, made.get("modelId").and_then(Value::as_str)) {
                    models.choose(id);
                }
            }
        }
    }

    /// The settings that clients see: the options, and the older lists that no option replaces.
    fn all(&self) -> impl Iterator<Item = &Setting> {
        let older = [&self.modes, &self.models].into_iter().flatten();
        let older = older.filter(|list| !self.options.iter().any(|option| option.stands_for(list)));
        self.options.iter().chain(older)
    }

    fn of_role(&self, role: Role) -> Option<&Setting> {
        self.all().find(|setting| setting.role == role)
    }

    fn changes(&mut self, change: impl FnOnce(&mut Self)) -> bool {
        let before = self.clone();
        change(self);
        !self.all().eq(before.all())
    }
}

impl Setting {
    /// Reads an option; `None` if its kind is unknown.
    fn of(option: &acp::SessionConfigOption) -> Option<Self> {
        let value = match &option.kind {
            acp::SessionConfigKind::Select(select) => {
                let choices = match &select.options {
                    acp::SessionConfigSelectOptions::Ungrouped(choices) => choices.iter().map(choice).collect(),
                    acp::SessionConfigSelectOptions::Grouped(groups) => {
                        groups.iter().flat_map(|group| &group.options).map(choice).collect()
                    }
                    _ => return None,
                };
                SettingValue::One { id: select.current_value.to_string(), choices }
            }
            acp::SessionConfigKind::Boolean(switch) => SettingValue::Switch(switch.current_value),
            _ => return None,
        };
        let name = option.id.to_string();
        let role = match (&option.category, name.as_str()) {
            (Some(acp::SessionConfigOptionCategory::Mode), _) | (None, MODE) => Role::Mode,
            (Some(acp::SessionConfigOptionCategory::Model), _) | (None, MODEL) => Role::Model,
            _ => Role::Other,
        };
        let description = option.description.clone().filter(|description| !description.is_empty());
        Some(Self { name, title: option.name.clone(), description, role, mechanism: SettingMechanism::Option, value })
    }

    fn older(name: &str, title: &str, role: Role, mechanism: SettingMechanism, value: SettingValue) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), description: None, role, mechanism, value }
    }

    /// Returns whether this option replaces an older list.
    fn stands_for(&self, list: &Setting) -> bool {
        self.role == list.role || self.name == list.name
    }

    fn is_choice(&self) -> bool {
        match &self.value {
            SettingValue::One { choices, .. } => !choices.is_empty(),
            SettingValue::Switch(_) => true,
        }
    }

    /// Takes the agent's value, even if the agent never offered it.
    fn choose(&mut self, chosen: &str) {
        if let SettingValue::One { id, .. } = &mut self.value {
            chosen.clone_into(id);
        }
    }

    /// Takes the value if it is one of the choices.
    fn choose_known(&mut self, chosen: &str) {
        if let SettingValue::One { choices, .. } = &self.value
            && choices.iter().any(|choice| choice.id == chosen)
        {
            self.choose(chosen);
        }
    }

    fn chosen(&self) -> Value {
        match &self.value {
            SettingValue::One { id, .. } => Value::from(id.as_str()),
            SettingValue::Switch(on) => Value::from(*on),
        }
    }

    /// The setting as a property of a schema.
    fn schema(&self) -> Value {
        let mut schema = json!({"title": self.title, "sessionMutable": true});
        if let Some(description) = &self.description {
            schema["description"] = json!(description);
        }
        match &self.value {
            SettingValue::Switch(_) => schema["type"] = json!("boolean"),
            SettingValue::One { id, choices } => {
                // The value must be among the choices, or no form could show it.
                let unlisted = Choice { id: id.clone(), label: id.clone(), description: None, recommended: false };
                let unlisted = (!choices.iter().any(|choice| choice.id == *id)).then_some(&unlisted);
                let choices: Vec<&Choice> = choices.iter().chain(unlisted).collect();
                schema["type"] = json!("string");
                schema["enum"] = choices.iter().map(|choice| choice.id.as_str()).collect();
                schema["enumLabels"] = choices.iter().map(|choice| choice.label.as_str()).collect();
                if choices.iter().any(|choice| choice.description.is_some()) {
                    let descriptions = choices.iter().map(|choice| choice.description.as_deref().unwrap_or_default());
                    schema["enumDescriptions"] = descriptions.collect();
                }
            }
        }
        schema
    }

    fn change(&self, session: &acp::SessionId, value: &Value) -> Option<SettingRequest> {
        if self.chosen() == *value {
            return None;
        }
        let name = self.name.as_str();
        match (&self.value, value) {
            (SettingValue::Switch(_), Value::Bool(on)) => {
                let name = acp::SessionConfigId::new(name);
                Some(SettingRequest::Option(acp::SetSessionConfigOptionRequest::new(session.clone(), name, *on)))
            }
            (SettingValue::One { choices, .. }, Value::String(id)) => {
                let id = choices.iter().find(|choice| choice.id == *id)?.id.as_str();
                Some(match self.mechanism {
                    SettingMechanism::Option => {
                        let name = acp::SessionConfigId::new(name);
                        SettingRequest::Option(acp::SetSessionConfigOptionRequest::new(session.clone(), name, id))
                    }
                    SettingMechanism::Mode => {
                        let id = acp::SessionModeId::new(id);
                        SettingRequest::Mode(acp::SetSessionModeRequest::new(session.clone(), id))
                    }
                    SettingMechanism::Model => SettingRequest::Model(json!({"sessionId": session, "modelId": id})),
                })
            }
            _ => None,
        }
    }
}

fn choice(option: &acp::SessionConfigSelectOption) -> Choice {
    Choice {
        id: option.value.to_string(),
        label: option.name.clone(),
        description: option.description.clone().filter(|description| !description.is_empty()),
        recommended: false,
    }
}

/// One of the older lists, by the names of its members: the current value, the list, and the id of each item.
fn older_list(result: &Value, list: &str, [current, available, id]: [&str; 3]) -> Option<SettingValue> {
    let list = result.get(list)?;
    let choices = list.get(available)?.as_array()?.iter().filter_map(|choice| {
        let text = |name: &str| choice.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let id = text(id)?;
        let label = text("name").unwrap_or_else(|| id.clone());
        Some(Choice { id, label, description: text("description"), recommended: false })
    });
    Some(SettingValue::One { id: list.get(current)?.as_str()?.to_owned(), choices: choices.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> acp::SessionId {
        acp::SessionId::new("s")
    }

    fn form(settings: &AgentSettings) -> (Value, Value) {
        match settings.event() {
            Some(AgentEvent::AgentSettings { schema, values }) => (Value::Object(schema), Value::Object(values)),
            other => panic!("{other:?}"),
        }
    }

    fn options(options: Value) -> Vec<acp::SessionConfigOption> {
        serde_json::from_value(options).unwrap()
    }

    /// An option and an older list for the mode, only an older list for the model.
    fn mixed() -> AgentSettings {
        AgentSettings::of(&json!({
            "sessionId": "s",
            "configOptions": [
                {"id": "how", "name": "How", "category": "mode", "type": "select", "currentValue": "ask",
                    "options": [{"value": "ask", "name": "Ask"}, {"value": "do", "name": "Do", "description": "All"}]},
                {"id": "fast", "name": "Fast", "description": "Hurry", "type": "boolean", "currentValue": false},
            ],
            "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "do", "name": "Do"}]},
            "models": {"currentModelId": "m1", "availableModels": [
                {"modelId": "m1", "name": "One"}, {"modelId": "m2", "name": "Two", "description": null}]},
        }))
    }

    #[test]
    fn an_option_wins_over_an_older_list_of_the_same() {
        let (schema, values) = form(&mixed());
        let wanted = json!({"type": "object", "properties": {
            "how": {"type": "string", "title": "How", "sessionMutable": true, "enum": ["ask", "do"],
                "enumLabels": ["Ask", "Do"], "enumDescriptions": ["", "All"]},
            "fast": {"type": "boolean", "title": "Fast", "description": "Hurry", "sessionMutable": true},
            "model": {"type": "string", "title": "Model", "sessionMutable": true, "enum": ["m1", "m2"],
                "enumLabels": ["One", "Two"]},
        }});
        assert_eq!(schema, wanted);
        assert_eq!(values, json!({"how": "ask", "fast": false, "model": "m1"}));
    }

    #[test]
    fn the_schema_is_one_that_clients_can_read() {
        let (schema, _) = form(&mixed());
        let read: grove_wire::ahp::SessionConfigSchema = serde_json::from_value(schema.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), schema);
    }

    #[test]
    fn an_option_wins_by_its_id_as_well() {
        let settings = AgentSettings::of(&json!({
            "configOptions": [{"id": "mode", "name": "M", "category": "_other", "type": "boolean", "currentValue": true}],
            "modes": {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}]},
        }));
        assert_eq!(form(&settings).1, json!({"mode": true}));
    }

    #[test]
    fn older_lists_alone_are_settings() {
        let settings = AgentSettings::of(&json!({
            "modes": {"currentModeId": "https://x/#a", "availableModes": [
                {"id": "https://x/#a", "name": "A"}, {"id": "https://x/#b"}, {"name": "without an id"}]},
        }));
        let (schema, values) = form(&settings);
        assert_eq!(schema["properties"]["mode"]["enum"], json!(["https://x/#a", "https://x/#b"]));
        assert_eq!(schema["properties"]["mode"]["enumLabels"], json!(["A", "https://x/#b"]));
        assert_eq!(values, json!({"mode": "https://x/#a"}));
        let change = settings.change(&session(), "mode", &json!("https://x/#b")).unwrap();
        let wanted = acp::SetSessionModeRequest::new(session(), acp::SessionModeId::new("https://x/#b"));
        assert_eq!(change, SettingRequest::Mode(wanted));
    }

    #[test]
    fn grouped_choices_are_one_list() {
        let settings = AgentSettings::of(&json!({"configOptions": [
            {"id": "m", "name": "M", "category": "model", "type": "select", "currentValue": "b", "options": [
                {"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}]},
                {"group": "h", "name": "H", "options": [{"value": "b", "name": "B"}]}]},
        ]}));
        let models: Vec<_> = settings.models().into_iter().map(|model| (model.id.to_string(), model.name)).collect();
        assert_eq!(models, [("a".to_owned(), "A".to_owned()), ("b".to_owned(), "B".to_owned())]);
    }

    #[test]
    fn what_is_not_understood_is_passed_over() {
        let settings = AgentSettings::of(&json!({
            "configOptions": [{"id": "x", "name": "X", "type": "slider", "currentValue": 3}, 7,
                {"id": "e", "name": "E", "type": "select", "currentValue": "a", "options": []}],
            "modes": "none",
            "models": {"availableModels": []},
        }));
        assert!(settings.event().is_none());
        for nothing in [json!(null), json!({}), json!({"modes": null, "configOptions": null})] {
            assert_eq!(AgentSettings::of(&nothing), AgentSettings::default());
        }
    }

    #[test]
    fn what_is_chosen_is_always_among_the_choices() {
        let settings = AgentSettings::of(&json!({
            "models": {"currentModelId": "secret", "availableModels": [{"modelId": "m1", "name": "One"}]},
        }));
        let (schema, values) = form(&settings);
        assert_eq!(schema["properties"]["model"]["enum"], json!(["m1", "secret"]));
        assert_eq!(values["model"], "secret");
    }

    #[test]
    fn a_setting_is_changed_in_the_way_it_was_offered() {
        let settings = mixed();
        let change = |name: &str, value: Value| settings.change(&session(), name, &value);
        let option = |id: &'static str, value: acp::SessionConfigOptionValue| {
            Some(SettingRequest::Option(acp::SetSessionConfigOptionRequest::new(session(), id, value)))
        };
        assert_eq!(change("how", json!("do")), option("how", "do".into()));
        assert_eq!(change("fast", json!(true)), option("fast", true.into()));
        let model = Some(SettingRequest::Model(json!({"sessionId": "s", "modelId": "m2"})));
        assert_eq!(change("model", json!("m2")), model);
        assert_eq!(settings.change_model(&session(), &"m2".into()), model);
    }

    #[test]
    fn what_is_so_already_or_cannot_be_is_not_called() {
        let settings = mixed();
        for (name, value) in [
            ("how", json!("ask")),
            ("fast", json!(false)),
            ("how", json!("dance")),
            ("how", json!(true)),
            ("fast", json!("true")),
            ("mode", json!("do")),
            ("other", json!("x")),
        ] {
            assert_eq!(settings.change(&session(), name, &value), None, "{name} {value}");
        }
        assert_eq!(settings.change_model(&session(), &"m1".into()), None);
        assert_eq!(settings.change_model(&session(), &"m9".into()), None);
    }

    #[test]
    fn a_change_that_was_made_shows() {
        let mut settings = mixed();
        for (name, value) in [("how", json!("do")), ("fast", json!(true)), ("model", json!("m2"))] {
            let change = settings.change(&session(), name, &value).unwrap();
            settings.made(&change);
            assert_eq!(form(&settings).1[name], value);
            assert_eq!(settings.change(&session(), name, &value), None);
        }
    }

    #[test]
    fn a_mode_that_the_agent_switched_to_shows_wherever_it_is_offered() {
        let mut settings = mixed();
        assert!(settings.take_mode(&acp::SessionModeId::new("do")));
        assert_eq!(form(&settings).1["how"], "do");
        assert!(!settings.take_mode(&acp::SessionModeId::new("do")), "nothing is different");
        assert!(!settings.take_mode(&acp::SessionModeId::new("unheard")), "the option has no such choice");
        let mut older = AgentSettings::of(&json!({
            "modes": {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]},
        }));
        assert!(older.take_mode(&acp::SessionModeId::new("b")));
        assert_eq!(form(&older).1["mode"], "b");
        assert!(!AgentSettings::default().take_mode(&acp::SessionModeId::new("b")));
    }

    #[test]
    fn options_are_taken_whole() {
        let mut settings = mixed();
        let how = |chosen: &str| {
            options(json!([{"id": "how", "name": "How", "category": "mode", "type": "select", "currentValue": chosen,
                "options": [{"value": "ask", "name": "Ask"}, {"value": "do", "name": "Do"}]}]))
        };
        assert!(settings.take_options(&how("do")));
        assert_eq!(form(&settings).1, json!({"how": "do", "model": "m1"}));
        assert!(!settings.take_options(&how("do")));
        assert!(settings.take_options(&[]), "the older list stands for itself again, and is up to date");
        assert_eq!(form(&settings).1, json!({"mode": "do", "model": "m1"}));
    }
}
