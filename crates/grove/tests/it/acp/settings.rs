//! Quirk 5: the model is an option, in an older list, or missing; modes are modes, an option, or both; ids may be URLs.

use grove_testkit::acp::AgentBehavior;
use grove_testkit::ahp::Client;
use grove_wire::ahp::ROOT;
use serde_json::{Value, json};

use super::*;

/// A choice between these values; the first one is selected.
fn option(id: &str, category: &str, values: &[&str]) -> Value {
    let options: Vec<Value> = values.iter().map(|value| json!({"value": value, "name": value})).collect();
    json!({
        "id": id, "name": id, "category": category, "type": "select", "currentValue": values[0], "options": options,
    })
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// The selected values, as a client has them from actions alone.
fn values(client: &Client) -> Value {
    json!(client.session(SESSION).config.as_ref().map(|config| &config.values))
}

/// A change by a client, and the agent's report of it.
async fn change(client: &mut Client, chat: &str, turn: &str, name: &str, value: &str) -> Value {
    accepted(client, SESSION, json!({"type": "session/configChanged", "config": {name: value}})).await;
    let told = said(client, chat, turn, json!(["settings", "complaints"])).await;
    assert!(told.contains("complaints: none"), "{told}");
    assert_eq!(values(client)[name], value);
    serde_json::from_str(after(&told, "settings: ")).unwrap()
}

/// The models that the root offers to clients.
fn models(client: &Client) -> Vec<String> {
    let mine = client.root().agents.iter().find(|agent| agent.provider == "mine").unwrap();
    mine.models.iter().map(|model| model.id.clone()).collect()
}

#[tokio::test]
async fn settings_are_shown_and_set_in_whichever_way_an_agent_has_them() {
    let url = |mode: &str| format!("https://agents.example/modes#{mode}");
    let (ask, code) = (url("ask"), url("code"));
    let urls = [ask.as_str(), code.as_str()];
    // The behavior, the names of its settings for mode and model, and their initial values.
    let ways = [
        (
            "options",
            AgentBehavior {
                options: vec![option("how", "mode", &["ask", "code"]), option("which", "model", &["large", "small"])],
                ..AgentBehavior::default()
            },
            json!({"how": "ask", "which": "large"}),
            ["how", "code"],
            Some(["which", "small"]),
        ),
        (
            "older lists",
            AgentBehavior {
                modes: texts(&["ask", "code"]),
                models: texts(&["large", "small"]),
                ..AgentBehavior::default()
            },
            json!({"mode": "ask", "model": "large"}),
            ["mode", "code"],
            Some(["model", "small"]),
        ),
        (
            "modes in both ways, with URLs as ids",
            AgentBehavior {
                modes: texts(&urls),
                options: vec![option("how", "mode", &urls)],
                ..AgentBehavior::default()
            },
            json!({"how": ask}),
            ["how", code.as_str()],
            None,
        ),
        (
            "modes alone, with URLs as ids",
            AgentBehavior { modes: texts(&urls), ..AgentBehavior::default() },
            json!({"mode": ask}),
            ["mode", code.as_str()],
            None,
        ),
    ];
    for (way, behavior, begins_with, mode, model) in ways {
        let has_modes = !behavior.modes.is_empty();
        let mut stage = Stage::new(behavior);
        let mut client = stage.host().ahp_connect("a").await;
        client.initialize(&[ROOT]).await;
        let chat = stage.session(&mut client, SESSION).await;
        said(&mut client, &chat, "t1", json!([{"say": "hello"}])).await;
        client.until(|client| values(client) == begins_with).await;
        let properties = meta(&client, SESSION, "settings")["properties"].clone();
        assert_eq!(properties.as_object().unwrap().len(), begins_with.as_object().unwrap().len(), "{way}");
        assert!(properties[mode[0]]["enum"].as_array().unwrap().contains(&json!(mode[1])), "{way}: {properties}");
        let mut fresh = stage.host().ahp_connect("b").await;
        fresh.initialize(&[SESSION]).await;
        let config = serde_json::to_value(fresh.session(SESSION).config.as_ref().unwrap()).unwrap();
        assert_eq!((&config["values"], &config["schema"]["properties"]), (&begins_with, &properties), "{way}");

        let told = change(&mut client, &chat, "t2", mode[0], mode[1]).await;
        let mode_now = if has_modes { &told["mode"] } else { &told["options"][mode[0]] };
        assert_eq!(mode_now, mode[1], "{way}");
        if let Some([name, value]) = model {
            let told = change(&mut client, &chat, "t3", name, value).await;
            let model_now = if has_modes { &told["model"] } else { &told["options"][name] };
            assert_eq!(model_now, value, "{way}");
            client.until(|client| models(client) == ["large", "small"]).await;
            assert!(client.kinds(ROOT).contains(&"root/agentsChanged"), "{way}");
        } else {
            assert_eq!(models(&client), Vec::<String>::new(), "{way}");
        }
        // A choice of the agent itself is seen, and a client's choice applies to its next process.
        let first = &begins_with[mode[0]];
        let by_itself = if has_modes { json!({"mode": first}) } else { json!({"config": {mode[0]: first}}) };
        said(&mut client, &chat, "t4", json!([by_itself])).await;
        assert_eq!(&values(&client)[mode[0]], first, "{way}");
        client.must_agree(SESSION).await;
        let last = values(&client);
        stage.restart();
        stage.host().ahp_reconnect(&mut client).await;
        let told = said(&mut client, &chat, "t5", json!(["settings"])).await;
        assert_eq!(values(&client), last, "{way}");
        if let Some([_, value]) = model {
            assert!(told.contains(&format!("{value:?}")), "{way}: {told}");
        }
        client.must_agree(SESSION).await;
    }
}

#[tokio::test]
async fn moving_to_another_branch_brings_back_its_model_thinking_level_and_mode() {
    let mut stage = Stage::new(AgentBehavior {
        modes: texts(&["ask", "code"]),
        models: texts(&["large", "small"]),
        options: vec![option("effort", "thought_level", &["low", "high"])],
        ..AgentBehavior::default()
    });
    let (mut client, chat) = stage.begin().await;
    let first = json!({"mode": "ask", "model": "large", "effort": "low"});
    let second = json!({"mode": "code", "model": "small", "effort": "high"});
    said(&mut client, &chat, "t1", json!([{"say": "heliotrope"}])).await;
    client.until(|client| values(client) == first).await;
    for (number, name) in ["mode", "model", "effort"].into_iter().enumerate() {
        change(&mut client, &chat, &format!("c{number}"), name, second[name].as_str().unwrap()).await;
    }
    said(&mut client, &chat, "t2", json!([{"say": "marigold"}])).await;
    let tree = client.ask("x-grove/tree", json!({"channel": SESSION, "filter": "all"})).await.unwrap();
    let answer = |text: &str| -> String {
        let rows = tree["rows"].as_array().unwrap().iter();
        let mut rows = rows.filter(|row| row["role"] == "assistant" && row["text"].as_str().unwrap().contains(text));
        rows.next().unwrap_or_else(|| panic!("{text} in {tree}"))["id"].as_str().unwrap().to_owned()
    };
    let (heliotrope, marigold) = (answer("heliotrope"), answer("marigold"));
    let mut turn = 0;
    for (target, expected) in [(heliotrope.as_str(), &first), (&marigold, &second), ("root", &first)] {
        let ran = stage.place.run(&["goto", ID, target]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        client.until(|client| values(client) == *expected).await;
        // Its agent uses them, also where the next host starts it.
        if target == marigold {
            stage.restart();
            stage.host().ahp_reconnect(&mut client).await;
        }
        turn += 1;
        let told = said(&mut client, &chat, &format!("asked {turn}"), json!(["settings", "complaints"])).await;
        assert!(told.contains("complaints: none"), "{told}");
        let told: Value = serde_json::from_str(after(&told, "settings: ")).unwrap();
        // An option that nobody has set in this process has its first value.
        let effort = told["options"]["effort"].as_str().unwrap_or("low");
        let used = json!({"mode": told["mode"], "model": told["model"], "effort": effort});
        assert_eq!((&used, &values(&client)), (expected, expected), "{target}");
    }
    client.must_agree(SESSION).await;
}

#[tokio::test]
async fn an_agent_without_settings_has_none() {
    let stage = Stage::new(AgentBehavior::default());
    let mut client = stage.host().ahp_connect("a").await;
    client.initialize(&[ROOT]).await;
    let chat = stage.session(&mut client, SESSION).await;
    let told = said(&mut client, &chat, "t1", json!(["settings"])).await;
    assert_eq!(after(&told, "settings: "), r#"{"mode":null,"model":null,"options":{}}"#);
    assert_eq!(meta(&client, SESSION, "settings"), Value::Null);
    assert!(models(&client).is_empty());
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn what_is_chosen_before_an_agent_runs_is_its_first_setting() {
    let stage = Stage::new(AgentBehavior {
        options: vec![option("how", "mode", &["ask", "code"])],
        models: texts(&["large", "small"]),
        ..AgentBehavior::default()
    });
    let mut client = stage.host().ahp("a").await;
    let folder = file_uri(&stage.place.path("work"));
    let wanted = json!({"how": "code", "model": "small"});
    let params = json!({"channel": SESSION, "workingDirectories": [folder], "config": wanted});
    client.get(Method::CreateSession, params).await;
    let chat = client.follow(SESSION).await;
    let told = said(&mut client, &chat, "t1", json!(["settings", "complaints"])).await;
    let settings: Value = serde_json::from_str(after(&told, "settings: ")).unwrap();
    assert_eq!((&settings["options"]["how"], &settings["model"]), (&json!("code"), &json!("small")));
    assert!(told.contains("complaints: none"), "{told}");
    client.until(|client| values(client) == wanted).await;

    // By then the client that creates the next session knows the settings and their defaults.
    let asked = client.get(Method::ResolveSessionConfig, json!({"channel": ROOT, "provider": "mine"})).await;
    assert_eq!(asked["values"], json!({"how": "ask", "model": "large"}), "{asked}");
    assert!(asked["schema"]["properties"]["how"].is_object(), "{asked}");
}
