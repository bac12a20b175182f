//! Agents that require a login: the question in a turn, `grove agents login` in a terminal.

use std::path::Path;

use grove_testkit::acp::AgentBehavior;

use super::*;
use crate::terminal::Terminal;

/// An agent that has no sessions without a stored login.
fn requires_login(credentials: &Path) -> AgentBehavior {
    AgentBehavior {
        needs_auth: true,
        auth_methods: vec!["browser".to_owned()],
        terminal_login: true,
        credentials: Some(credentials.to_owned()),
        ..AgentBehavior::default()
    }
}

/// The question of the running turn, as the page gets it.
async fn question(client: &mut Client) -> Value {
    client.until(|client| client.session(SESSION).input_needed.is_some()).await;
    let needed = serde_json::to_value(client.session(SESSION).input_needed.as_ref().unwrap()).unwrap();
    needed[0]["request"].clone()
}

fn choice(asked: &Value, option: &str) -> Value {
    json!({
        "type": "chat/inputCompleted", "requestId": asked["id"], "response": "accept",
        "answers": {"login": {"state": "submitted", "value": {"kind": "selected", "value": option}}},
    })
}

#[tokio::test]
async fn a_required_login_is_asked_in_the_turn_survives_the_host_and_lets_the_turn_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::new(requires_login(&folder.path().join("credentials")));
    let (mut client, chat) = stage.begin().await;
    start(&mut client, &chat, "t", &json!([{"say": "logged in"}])).await;
    let asked = question(&mut client).await;
    assert_eq!(asked["message"], "mine requires a login: Authentication required");
    let options: Vec<&Value> =
        asked["questions"][0]["options"].as_array().unwrap().iter().map(|option| &option["id"]).collect();
    assert_eq!(options, ["browser", "grove:retry"], "the methods that need no terminal");

    stage.kill_and_restart();
    let mut client = stage.host().ahp_connect("b").await;
    client.initialize(&[SESSION, &chat]).await;
    let again = question(&mut client).await;
    assert_eq!(again["id"], asked["id"], "it is the same question");
    accepted(&mut client, &chat, choice(&again, "browser")).await;
    let turn = client.turn_end(&chat, "t").await;
    assert_eq!((turn.state, markdown(&turn.response_parts).as_str()), (TurnState::Complete, "logged in"));
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_login_that_nobody_wants_fails_the_turn_with_the_ways_and_the_next_turn_asks_again() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    let stage = Stage::new(requires_login(&credentials));
    let (mut client, chat) = stage.begin().await;
    start(&mut client, &chat, "t", &json!([{"say": "x"}])).await;
    let asked = question(&mut client).await;
    let no = json!({"type": "chat/inputCompleted", "requestId": asked["id"], "response": "decline"});
    accepted(&mut client, &chat, no).await;
    let turn = client.turn_end(&chat, "t").await;
    assert_eq!(turn.state, TurnState::Error);
    let error = parts(&turn, "error")[0]["error"].clone();
    let message = error["message"].as_str().unwrap_or_default();
    assert_eq!(error["errorType"], "loginRequired", "{error}");
    assert!(message.contains("grove agents login mine") && message.contains("`browser`"), "{message}");

    // A login in a terminal, and the retry of a person.
    start(&mut client, &chat, "u", &json!([{"say": "now"}])).await;
    let asked = question(&mut client).await;
    std::fs::write(&credentials, "by hand").unwrap();
    accepted(&mut client, &chat, choice(&asked, "grove:retry")).await;
    assert_eq!(markdown(&client.turn_end(&chat, "u").await.response_parts), "now");
}

#[test]
fn a_person_logs_in_with_the_agents_method_or_in_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    let stage = Stage::new(requires_login(&credentials));
    let listed = stage.place.run(&["agents", "login", "mine", "--list", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let method = |id: &str, name: &str, kind: &str| json!({"id": id, "name": name, "description": null, "kind": kind});
    let methods = json!([method("browser", "browser", "agent"), method("terminal", "Terminal", "terminal")]);
    assert_eq!(listed, json!({"agent": "mine", "methods": methods}));

    let by_agent = stage.place.run(&["agents", "login", "mine", "browser"]);
    assert_eq!(by_agent.code, Some(0), "{}", by_agent.stderr);
    assert!(by_agent.stdout.contains("logged in to mine"), "{}", by_agent.stdout);
    std::fs::remove_file(&credentials).expect("the agent stored its login");

    // Without a method, the login in a terminal is taken if there is one.
    let piped = stage.place.run(&["agents", "login", "mine"]);
    assert!(piped.code == Some(1) && piped.stderr.contains("needs a terminal"), "{}", piped.stderr);
    let mut terminal = Terminal::run(&stage.place, &["agents", "login", "mine"]);
    terminal.until("--login");
    terminal.until("logged in to mine");
    assert_eq!(terminal.exit(), Some(0), "{}", terminal.screen());
    assert!(credentials.exists());

    let unknown = stage.place.run(&["agents", "login", "mine", "fax"]);
    assert!(unknown.code == Some(8) && unknown.stderr.contains("browser, terminal"), "{}", unknown.stderr);
    let built_in = stage.place.run(&["agents", "login", "scripted"]);
    assert!(built_in.code == Some(1) && built_in.stderr.contains("part of Grove"), "{}", built_in.stderr);
    let missing = stage.place.run(&["agents", "login", "nothing"]);
    assert!(missing.code == Some(8) && missing.stderr.contains("`grove agents ls`"), "{}", missing.stderr);
}

#[tokio::test]
async fn an_agents_own_sessions_are_listed_with_the_title_that_a_person_gave() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    said(&mut client, &chat, "t", json!([{"say": "x"}])).await;
    let renamed = json!({"type": "session/titleChanged", "title": "My own title"});
    accepted(&mut client, SESSION, renamed).await;
    let deadline = Deadline::new("the agent is not told the title");
    loop {
        let listed = stage.place.run(&["agents", "sessions", "mine", "--json"]);
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1), "{listed}");
        if listed["sessions"][0]["title"] == "My own title" {
            break;
        }
        deadline.check();
    }
}
