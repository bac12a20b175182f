use serde_json::json;

use super::*;

fn agents() -> Vec<AgentInfo> {
    let agent = |id: &str, models: &[&str]| {
        let models: Vec<_> = models.iter().map(|model| json!({"id": model, "provider": id, "name": model})).collect();
        serde_json::from_value(json!({"provider": id, "displayName": id, "description": "", "models": models})).unwrap()
    };
    vec![agent("scripted", &["one", "two"]), agent("claude", &[])]
}

fn session(settings: Value) -> SessionState {
    let config =
        json!({"schema": {"type": "object", "properties": settings}, "values": {"mode": "plan", "fast": true}});
    let state = json!({"provider": "scripted", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [],
        "chats": [], "config": config});
    serde_json::from_value(state).unwrap()
}

fn with<T>(settings: Value, read: impl FnOnce(&SettingSource<'_>) -> T) -> T {
    let (session, agents) = (session(settings), agents());
    read(&SettingSource { session: &session, agents: &agents, model: Some("two"), has_switches: false })
}

fn mode() -> Value {
    json!({"mode": {"type": "string", "title": "Mode", "enum": ["ask", "plan"], "enumLabels": ["Ask", "Plan"]},
        "fast": {"type": "boolean", "title": "Fast"}})
}

fn value(id: &str) -> acp::SessionConfigOptionValue {
    acp::SessionConfigOptionValue::from(acp::SessionConfigValueId::new(id))
}

#[test]
fn settings_of_the_session_are_options_and_its_modes_are_modes() {
    with(mode(), |source| {
        let shown = source.shown();
        let options = serde_json::to_value(&shown.options).unwrap();
        assert_eq!(options[0]["currentValue"], "plan");
        assert_eq!(options[0]["category"], "mode");
        assert_eq!((options[1]["type"].as_str(), options[1]["currentValue"].as_str()), (Some("select"), Some("true")));
        assert_eq!((options[2]["id"].as_str(), options[2]["currentValue"].as_str()), (Some("model"), Some("two")));
        assert_eq!(options[3]["id"], AGENT);
        assert_eq!(shown.modes.unwrap().current_mode_id.to_string(), "plan");
        assert_eq!(source.mode_change("ask").unwrap(), source.change("mode", &value("ask")).unwrap());
        let fast = SettingChange::Config { name: "fast".to_owned(), value: false.into() };
        assert_eq!(source.change("fast", &value("false")).unwrap(), fast);
    });
}

#[test]
fn an_agent_without_modes_has_the_agents_as_modes() {
    with(json!({}), |source| {
        let modes = source.shown().modes.unwrap();
        assert_eq!(modes.current_mode_id.to_string(), "agent:scripted");
        assert_eq!(source.mode_change("agent:claude").unwrap(), SettingChange::Agent("claude".to_owned()));
    });
}

#[test]
fn an_unknown_value_is_refused() {
    with(mode(), |source| {
        for (id, given) in [("mode", "fly"), ("model", "three"), (AGENT, "nobody"), ("other", "x"), ("fast", "maybe")] {
            assert!(source.change(id, &value(given)).is_err(), "{id} {given}");
        }
        assert!(source.mode_change("agent:nobody").is_err() && source.mode_change("fly").is_err());
    });
}
