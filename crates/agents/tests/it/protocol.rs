//! Corner cases of the protocol: logging in, settings, unknown messages.

use std::time::Duration;

use grove_agents::acp::ListedSession;
use grove_agents::*;
use grove_core::*;
use grove_testkit::acp::{AgentAbilities, AgentBehavior, RpcError, prompt};
use serde_json::{Value, json};

use crate::fixture::{AgentFixture, TestSession, approved, until};

#[tokio::test]
async fn what_nobody_knows_is_refused_or_passed_over() {
    let fixture =
        AgentFixture::new(AgentBehavior { unknown_request: true, ids_from_zero: true, ..AgentBehavior::default() });
    let mut session = fixture.open().await;
    let steps = json!([
        {"raw": "Starting up…"},
        {"raw": "{\"jsonrpc\":\"2.0\""},
        {"raw": {"hello": 1}},
        {"raw": ""},
        {"raw": [{"jsonrpc": "2.0", "method": "of/tomorrow"}, {"jsonrpc": "2.0", "id": "x", "result": null}]},
        {"update": {"sessionUpdate": "of_tomorrow"}},
        {"request": {"method": "session/request_permission", "params": {"nonsense": true}}},
        {"request": {"method": "fs/read_text_file", "params": {}}},
        {"say": "end"},
        "complaints",
    ]);
    session.turn("t", steps).await.unwrap();
    let text = &session.stored.text;
    assert_eq!(text.matches("-32602").count(), 2, "{text}");
    assert!(text.contains("-32601") || !text.contains("drainMidTurnQueue"), "{text}");
    assert!(text.contains("end") && text.ends_with("complaints: none\n"), "{text}");
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn an_agent_is_logged_in_the_way_that_is_configured_or_the_ways_are_named() {
    let behavior = AgentBehavior {
        needs_auth: true,
        auth_methods: vec!["key".into(), "browser".into()],
        ..AgentBehavior::default()
    };
    let mut fixture = AgentFixture::new(behavior);
    let mut session = fixture.open().await;
    let running = session.start("t1", &json!([]));
    session.until("it asks", |stored| !stored.questions.is_empty()).await;
    answer(&mut session, None);
    let error = session.end(running).await.unwrap_err().to_string();
    assert!(error.contains("`key`") && error.contains("`browser`") && error.contains("`auth`"), "{error}");
    fixture.program.auth = vec!["other".to_owned(), "key".to_owned()];
    let mut session = fixture.open_in(&fixture.pool(), "s2", None).await;
    session.turn("t1", json!([{"say": "in"}])).await.unwrap();
    assert_eq!(session.stored.text, "in");
    session.agent.close(CloseReason::Removed).await;
    fixture.program.auth = vec!["no-such-way".to_owned()];
    let mut session = fixture.open_in(&fixture.pool(), "s3", None).await;
    let running = session.start("t1", &json!([]));
    session.until("it asks", |stored| !stored.questions.is_empty()).await;
    answer(&mut session, None);
    let error = session.end(running).await.unwrap_err().to_string();
    assert!(error.contains("could not be logged in"), "{error}");
}

/// Answers the only question with an option, or declines.
fn answer(session: &mut TestSession, option: Option<&str>) -> InputRequest {
    let (request, answer) = session.stored.questions.remove(0);
    let value = |id: &str| Answer::Submitted(AnswerValue::One { id: id.to_owned(), freeform: Vec::new() });
    let answers = option.map(|id| (request.questions[0].id.clone(), value(id))).into_iter().collect();
    let outcome = if option.is_some() { InputOutcome::Accepted } else { InputOutcome::Declined };
    answer.send(InputResponse { outcome, answers }).unwrap();
    request
}

#[tokio::test]
async fn a_login_that_an_agent_requires_is_a_question_of_the_turn_which_goes_on_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    let behavior = AgentBehavior {
        needs_auth: true,
        auth_methods: vec!["browser".into()],
        terminal_login: true,
        credentials: Some(credentials.clone()),
        ..AgentBehavior::default()
    };
    let fixture = AgentFixture::new(behavior);
    let pool = fixture.pool();
    // The session is created: its first turn asks.
    let mut session = TestSession::create(&fixture.agent(&pool), "s", &fixture.work).await.unwrap();
    let running = session.start("t1", &json!([{"say": "in"}]));
    session.until("it asks", |stored| !stored.questions.is_empty()).await;
    let asked = answer(&mut session, Some("browser"));
    assert_eq!(asked.id.as_str(), "t1/login");
    assert!(asked.message.unwrap().contains("Scripted requires a login"));
    let QuestionKind::One { options, .. } = &asked.questions[0].kind else { panic!("one of several") };
    let ids: Vec<&str> = options.iter().map(|option| option.id.as_str()).collect();
    assert_eq!(ids, ["browser", "grove:retry"]);
    session.end(running).await.unwrap();
    assert_eq!(session.stored.text, "in");
    session.agent.close(CloseReason::Removed).await;

    // A login in a terminal is known to a new process.
    std::fs::remove_file(&credentials).unwrap();
    let mut session = fixture.open_in(&pool, "s2", None).await;
    let running = session.start("t1", &json!([{"say": "again"}]));
    session.until("it asks", |stored| !stored.questions.is_empty()).await;
    std::fs::write(&credentials, "by a terminal").unwrap();
    answer(&mut session, Some("grove:retry"));
    session.end(running).await.unwrap();
    assert_eq!(session.stored.text, "again");
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_login_that_a_prompt_requires_fails_the_turn_and_the_next_turn_asks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    std::fs::write(&credentials, "for now").unwrap();
    let fixture = AgentFixture::new(AgentBehavior {
        needs_auth: true,
        auth_methods: vec!["browser".into()],
        credentials: Some(credentials.clone()),
        store: Some(folder.path().join("store")),
        ..AgentBehavior::default()
    });
    let mut session = fixture.open().await;
    session.turn("t1", json!([{"say": "before"}])).await.unwrap();
    std::fs::remove_file(&credentials).unwrap();
    let error = session.turn("t2", json!([])).await.unwrap_err();
    assert_eq!(error.info().kind, "loginRequired");
    assert!(error.to_string().contains("grove agents login scripted-acp"), "{error}");
    let running = session.start("t3", &json!([{"say": ", after"}]));
    session.until("it asks", |stored| !stored.questions.is_empty()).await;
    answer(&mut session, Some("browser"));
    session.end(running).await.unwrap();
    assert_eq!(session.stored.text, "before, after");
    assert_eq!(session.stored.agent_session_id.len(), 1, "the conversation was reopened");
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_title_of_a_person_reaches_an_agent_that_keeps_titles() {
    for title in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let can = AgentAbilities { title, ..AgentAbilities::default() };
        let fixture =
            AgentFixture::new(AgentBehavior { can, store: Some(folder.path().to_owned()), ..AgentBehavior::default() });
        let pool = fixture.pool();
        let mut session = fixture.open_in(&pool, "s", None).await;
        // Before its start it is remembered.
        session.agent.set_title("Named by me".to_owned()).await;
        session.turn("t1", json!([{"say": "in"}, "complaints"])).await.unwrap();
        assert!(session.stored.text.ends_with("complaints: none\n"), "{}", session.stored.text);
        let listed = fixture.agent(&pool).list(None).await.unwrap();
        assert_eq!(listed[0].title.as_deref() == Some("Named by me"), title, "{listed:?}");
        session.agent.close(CloseReason::Removed).await;
        let left = fixture.agent(&pool).list(None).await.unwrap();
        assert!(left.is_empty(), "a removed session is deleted at the agent, which runs on beside others: {left:?}");
    }
}

#[tokio::test]
async fn what_is_chosen_reaches_the_agent_and_what_it_refuses_is_said() {
    let behavior = AgentBehavior {
        modes: vec!["code".into(), "plan".into(), "ask".into()],
        models: vec!["small".into(), "large".into()],
        ..AgentBehavior::default()
    };
    let fixture = AgentFixture::new(behavior.clone());
    let pool = fixture.pool();
    let agent = fixture.agent(&pool);
    let models = agent.models();
    assert!(agent.info().models.is_empty());
    let chosen = json!({"mode": "plan", "unknown": 1}).as_object().cloned().unwrap();
    let work = vec![fixture.work.display().to_string()];
    let mut session = TestSession::open(&agent, "s", work, None, chosen).await;
    let message = Message::user(prompt(&json!(["settings"])));
    let asked = Prompt { message, model: Some("large".into()), client_tools: vec![], memory: std::sync::Arc::new(()) };
    let running = session.start_with("t1", asked);
    session.end(running).await.unwrap();
    let text = std::mem::take(&mut session.stored.text);
    assert!(text.contains("\"mode\":\"plan\"") && text.contains("\"model\":\"large\""), "{text}");
    let profile: Vec<ModelId> = agent.info().models.into_iter().map(|model| model.id).collect();
    assert_eq!(profile, ["small".into(), "large".into()]);
    assert!(models.has_changed().unwrap(), "listeners are notified");
    let (_, values) = session.stored.settings.clone().unwrap();
    assert_eq!(values.get("mode"), Some(&json!("plan")));

    session.agent.configure(json!({"mode": "ask"}).as_object().cloned().unwrap()).await;
    session.turn("t2", json!([{"mode": "code"}, "settings"])).await.unwrap();
    session.turn("t3", json!(["settings"])).await.unwrap();
    let text = &session.stored.text;
    assert!(!text.contains("\"mode\":\"ask\"") && text.contains("\"mode\":\"code\""), "its own choice stays: {text}");
    session.agent.close(CloseReason::Removed).await;

    let fault = RpcError { code: -32603, message: "not now".to_owned(), data: None };
    let fixture =
        AgentFixture::new(AgentBehavior { refuses: [("session/set_mode".to_owned(), fault)].into(), ..behavior });
    let agent = fixture.agent(&fixture.pool());
    let chosen = json!({"mode": "plan"}).as_object().cloned().unwrap();
    let mut session = TestSession::open(&agent, "s", vec![], None, chosen).await;
    session.turn("t1", json!([{"say": "all the same"}])).await.unwrap();
    session.turn("t2", json!([])).await.unwrap();
    assert_eq!(session.stored.text, "all the same");
    assert!(matches!(&session.stored.notices[..], [one] if one.contains("not now")), "{:?}", session.stored.notices);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn settings_start_an_agent_that_was_not_started() {
    let fixture =
        AgentFixture::new(AgentBehavior { modes: vec!["code".into(), "plan".into()], ..AgentBehavior::default() });
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    session.agent.configure(json!({"mode": "plan"}).as_object().cloned().unwrap()).await;
    let plan = |stored: &crate::fixture::StoredReports| {
        stored.settings.as_ref().is_some_and(|(_, values)| values.get("mode") == Some(&json!("plan")))
    };
    session.until("it is set", plan).await;
    assert_eq!(pool.running(), 1);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn what_comes_after_a_turn_is_told_of_the_session() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    let title = json!({"sessionUpdate": "session_info_update", "title": "Late"});
    let text = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "too late"}});
    let steps = json!([
        {"commands": [{"name": "go", "description": "d"}]},
        {"later": {"delay_ms": 200, "update": text}},
        {"later": {"delay_ms": 250, "update": title}},
    ]);
    session.turn("t", steps).await.unwrap();
    assert_eq!(session.stored.commands[0].name, "go");
    session.until("the title comes", |stored| stored.titles == ["Late"]).await;
    assert_eq!(session.stored.text, "", "what belongs to a turn that is over is left out");
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn an_agents_own_sessions_are_listed_and_copied() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    session.turn("t", json!([{"say": "original"}])).await.unwrap();
    session.agent.close(CloseReason::Detached).await;
    let agent = fixture.agent(&pool);
    let agent_session_id = session.stored.agent_session_id[0].clone();
    let listed = agent.list(Some(&fixture.work)).await.unwrap();
    assert!(matches!(&listed[..], [ListedSession { id, .. }] if *id == agent_session_id), "{listed:?}");
    let copy = agent.fork(&agent_session_id, &fixture.work).await.unwrap();
    assert_ne!(copy, agent_session_id);
    assert_eq!(agent.list(None).await.unwrap().len(), 2);
    assert_eq!(pool.running(), 0);
    let mut copied = fixture.open_in(&pool, "copy", Some(copy)).await;
    copied.turn("t", json!(["echo_history"])).await.unwrap();
    assert!(copied.stored.text.contains("agent: original"), "{}", copied.stored.text);
    copied.agent.close(CloseReason::Removed).await;

    let fixture = AgentFixture::new(AgentBehavior { can: AgentAbilities::NOTHING, ..AgentBehavior::default() });
    let error = fixture.agent(&fixture.pool()).list(None).await.unwrap_err().to_string();
    assert!(error.contains("cannot list"), "{error}");
    assert_eq!(std::fs::read_dir(fixture.root().join("shims")).unwrap().count(), 0, "nothing is left");
}

#[tokio::test]
async fn every_frame_is_captured_without_secrets() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.program.env.insert("API_KEY".to_owned(), "hunter2-hunter2".to_owned());
    let path = fixture.root().join("frames.jsonl");
    fixture.options.capture = Some(path.clone());
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    let create = json!({"command": "true", "env": [{"name": "HIDDEN", "value": "4711-4711"}]});
    session.turn("t", json!([{"env": "API_KEY"}, {"terminal": {"create": create}}])).await.unwrap();
    assert!(session.stored.text.contains("hunter2-hunter2"), "the agent itself has it: {}", session.stored.text);
    session.agent.close(CloseReason::Removed).await;
    pool.captured().await;
    let frames = std::fs::read_to_string(&path).unwrap();
    assert!(!frames.contains("hunter2-hunter2"), "a secret is in the capture");
    let frames: Vec<Value> = frames.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let created = frames.iter().find(|frame| frame["msg"]["method"] == "terminal/create").unwrap();
    assert_eq!(created["msg"]["params"]["env"][0]["value"], "[redacted]");
    assert_eq!(
        (&created["dir"], &created["agent"], &created["session"]),
        (&json!("a->c"), &json!("scripted-acp"), &json!("s"))
    );
    assert!(frames.iter().any(|frame| frame["dir"] == "c->a" && frame["msg"]["id"] == "turn:t"));
}

#[tokio::test]
async fn an_agent_that_asks_without_end_is_refused_at_some_point() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    session.turn("t1", json!([])).await.unwrap();
    let asks = (0..300).map(|n| {
        let option = json!({"optionId": "y", "name": "Yes", "kind": "allow_once"});
        let call = json!({"toolCallId": format!("c{n}")});
        let params = json!({"sessionId": session.stored.agent_session_id[0], "toolCall": call, "options": [option]});
        json!({"raw": {"jsonrpc": "2.0", "id": format!("many-{n}"), "method": "session/request_permission", "params": params}})
    });
    let steps: Vec<Value> = asks.chain([json!({"say": "end"})]).collect();
    session.turn("t2", json!(steps)).await.unwrap();
    assert_eq!((session.stored.asked.len(), session.stored.text.as_str()), (256, "end"));
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_request_with_an_id_that_is_open_is_refused_and_the_first_is_answered() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    let path = fixture.root().join("frames.jsonl");
    fixture.options.capture = Some(path.clone());
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    session.turn("t1", json!([])).await.unwrap();
    let asks = |call: &str| {
        let option = json!({"optionId": "y", "name": "Yes", "kind": "allow_once"});
        let ours = &session.stored.agent_session_id[0];
        let params = json!({"sessionId": ours, "toolCall": {"toolCallId": call}, "options": [option]});
        json!({"raw": {"jsonrpc": "2.0", "id": 7001, "method": "session/request_permission", "params": params}})
    };
    let go_on = fixture.root().join("go-on");
    let steps =
        json!([asks("a"), asks("b"), {"say": "asked"}, {"await_file": go_on}, asks("c"), {"say": "again"}, "hang"]);
    let running = session.start("t2", &steps);
    session.until("it has asked", |stored| stored.text.contains("asked")).await;
    assert_eq!(session.stored.asked.len(), 1, "the second question is not put to a person");
    session.stored.asked.remove(0).answer.send(approved()).unwrap();
    let answers = || {
        let frames = std::fs::read_to_string(&path).unwrap_or_default();
        let frames = frames.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let ours = frames.filter(|frame| frame["dir"] == "c->a" && frame["msg"]["id"] == 7001);
        ours.map(|frame| frame["msg"].clone()).collect::<Vec<_>>()
    };
    until("both are answered", || answers().len() == 2).await;
    let answered = answers();
    assert_eq!(answered[0]["error"]["code"], -32600, "{answered:?}");
    assert_eq!(answered[1]["result"]["outcome"]["optionId"], "y", "{answered:?}");
    std::fs::write(&go_on, "").unwrap();
    session.until("the id is free again", |stored| stored.asked.len() == 1).await;
    session.agent.cancel(&"t2".into()).await;
    running.abort();
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn output_usage_and_messages_are_kept_wherever_an_agent_puts_them() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    let chunk = |message: &str, text: &str, meta: Value| {
        let content = json!({"type": "text", "text": text});
        json!({"update": {"sessionUpdate": "agent_message_chunk", "messageId": message, "content": content, "_meta": meta}})
    };
    let steps = json!([
        {"tool_update": {"toolCallId": "c", "status": "completed", "rawOutput": {"result": "from cline"}}},
        {"tool_update": {"toolCallId": "d", "status": "completed", "rawOutput": [{"query": "q", "result": "of a list"}]}},
        chunk("m1", "one", Value::Null),
        chunk("m1", " more", Value::Null),
        chunk("m2", "two", Value::Null),
        chunk("m2", "", json!({"usage": {"inputTokens": 10, "outputTokens": 2, "thoughtTokens": 1}})),
        chunk("m2", "", json!({"usage": {"promptTokens": 5, "completionTokens": 3, "cachedTokens": 4}})),
    ]);
    session.turn("t1", steps).await.unwrap();
    assert_eq!(session.stored.results, ["from cline", "of a list"]);
    assert_eq!(
        (session.stored.text.as_str(), &session.stored.messages[..]),
        ("one moretwo", &["m1", "m2"].map(str::to_owned)[..])
    );
    let usage = std::mem::take(&mut session.stored.usage);
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.reasoning_tokens), (Some(15), Some(5), Some(1)));
    assert_eq!(usage.cache_read_tokens, Some(4));

    let model_usage = json!([{"model": "gemini-x", "token_count": {"input_tokens": 7, "output_tokens": 9}}]);
    let quota = json!({"quota": {"token_count": {"input_tokens": 7, "output_tokens": 9}, "model_usage": model_usage}});
    session.turn("t2", json!([{"stop": {"reason": "end_turn", "_meta": quota}}])).await.unwrap();
    let usage = &session.stored.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(7), Some(9)));
    assert_eq!(usage.model.as_ref().map(|model| model.as_str()), Some("gemini-x"));
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_at_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture = AgentFixture::new(AgentBehavior {
        store: Some(folder.path().to_owned()),
        answers_if_cancelled: vec!["session/list".to_owned()],
        ..AgentBehavior::default()
    });
    fixture.options.patience = Duration::from_millis(300);
    let error = fixture.agent(&fixture.pool()).list(None).await.unwrap_err().to_string();
    assert!(error.contains("did not answer `session/list`"), "{error}");
    let heard = folder.path().join("cancelled");
    until("the agent hears of it", || heard.exists()).await;
    assert_eq!(std::fs::read_to_string(heard).unwrap(), "session/list");
}

#[tokio::test]
async fn a_request_that_an_agent_cancels_is_answered_at_once() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let elicit = json!({"mode": "form", "message": "Never mind", "requestedSchema": schema});
    let steps = json!([{"request": {"method": "elicitation/create", "params": elicit, "cancel": true}}, {"say": "on"}]);
    session.turn("t", steps).await.unwrap();
    assert_eq!(session.stored.text, "elicitation/create: error -32800 the request was cancelled\non");
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_session_that_is_removed_while_its_agent_is_stopped_is_deleted_at_the_agent_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture =
        AgentFixture::new(AgentBehavior { store: Some(folder.path().to_owned()), ..AgentBehavior::default() });
    fixture.options.idle = Duration::from_millis(50);
    let pool = fixture.pool();
    let agent = fixture.agent(&pool);
    let folder_of = vec![fixture.work.display().to_string()];
    let mut session = TestSession::open(&agent, "s", folder_of, None, Extra::new()).await;
    session.turn("t1", json!([{"say": "in"}])).await.unwrap();
    until("the idle agent is stopped", || pool.running() == 0).await;
    let stored = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(stored(), 1);
    session.agent.close(CloseReason::Removed).await;
    until("the agent has deleted it", || stored() == 0).await;
}
