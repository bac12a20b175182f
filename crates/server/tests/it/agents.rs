//! Agents that are added, removed or changed, crash, hang or report too late.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_agents::scripted::ScriptedAgent;
use grove_agents::{Agent, AgentError, AgentSession, OpenSession, Prompt, TurnSink};
use grove_core::{AgentInfo, ModelInfo, Timestamp, TurnId};
use grove_host::{Config, Env, Host, Limits};
use grove_testkit::host::PausedClock;
use grove_wire::ahp::{self, ToolCallState};
use grove_wire::v1::{Lifecycle, TurnState};
use serde_json::json;

use crate::harness::TestHost;

/// An agent that does what its test says.
#[derive(Clone, Default)]
struct OddAgent {
    models: Arc<Mutex<Vec<&'static str>>>,
    cancelled: Arc<Mutex<Vec<String>>>,
    /// Sinks of turns that are over.
    kept: Arc<Mutex<Vec<TurnSink>>>,
    /// The folders that it was opened in, one time after the other.
    opened_in: Arc<Mutex<Vec<Vec<String>>>>,
}

#[async_trait]
impl Agent for OddAgent {
    fn info(&self) -> AgentInfo {
        let model = |id: &&str| ModelInfo {
            id: (*id).into(),
            name: (*id).to_owned(),
            max_context_window: None,
            supports_vision: None,
        };
        AgentInfo {
            id: "odd".into(),
            display_name: "Odd".to_owned(),
            description: String::new(),
            models: self.models.lock().unwrap().iter().map(model).collect(),
        }
    }

    async fn open(&self, session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        if session.session.as_str() == "breaks" {
            panic!("an agent broke down while it started");
        }
        self.opened_in.lock().unwrap().push(session.working_directories);
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl AgentSession for OddAgent {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        match prompt.message.text.as_str() {
            "panic" => panic!("an agent broke down"),
            "keep" => {
                self.kept.lock().unwrap().push(turn.clone());
                turn.text("before").await?;
                std::future::pending().await
            }
            model => {
                let chosen = prompt.model.map(|model| model.to_string()).unwrap_or_default();
                turn.text(format!("{model}: {chosen}")).await
            }
        }
    }

    async fn cancel(&self, turn: &TurnId) {
        self.cancelled.lock().unwrap().push(turn.to_string());
    }
}

async fn host_with(agent: &OddAgent, limits: Limits) -> TestHost {
    TestHost::with_agents(Config { limits, ..Config::default() }, vec![Arc::new(agent.clone())]).await
}

#[tokio::test(start_paused = true)]
async fn root_subscribers_hear_when_an_agent_appears_changes_its_models_or_goes() {
    let agent = OddAgent::default();
    let host = TestHost::start(Config::default()).await;
    let mut client = host.connect("a").await;
    client.initialize(&["agenthost:/root"]).await;
    let agents = |client: &grove_testkit::Client| {
        let root = &client.roots["agenthost:/root"];
        root.agents.iter().map(|agent| format!("{}:{}", agent.provider, agent.models.len())).collect::<Vec<_>>()
    };
    assert_eq!(agents(&client), ["scripted:3"]);
    host.host.add_agent(Arc::new(agent.clone())).await.unwrap();
    client.until(|client| agents(client) == ["scripted:3", "odd:0"]).await;
    agent.models.lock().unwrap().push("m1");
    host.host.agents_changed().await.unwrap();
    client.until(|client| agents(client) == ["scripted:3", "odd:1"]).await;
    host.host.agents_changed().await.unwrap();
    host.host.remove_agent(&"odd".into()).await.unwrap();
    client.until(|client| agents(client) == ["scripted:3"]).await;
    let changes = client.envelopes.iter().filter(|e| e.action.get().contains("root/agentsChanged")).count();
    assert_eq!(changes, 3, "nothing is said where nothing changed");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_breaks_down_ends_its_turn_in_error_and_the_host_goes_on() {
    let agent = OddAgent::default();
    let host = host_with(&agent, Limits::default()).await;
    let mut client = host.client("a").await;
    client.ready_session("odd:/s").await;
    client.start_turn("odd:/s", "t1", "panic").await;
    let turn = client.turn_end("odd:/s", "t1").await;
    assert_eq!(turn.state, TurnState::Error);
    assert_eq!(turn.error.unwrap().error_type, "agentDied");
    client.start_turn("odd:/s", "t2", "fine").await;
    assert_eq!(client.turn_end("odd:/s", "t2").await.state, TurnState::Complete);

    client.create_session("odd:/breaks").await.unwrap();
    client.subscribe("odd:/breaks").await.unwrap();
    client.until(|client| client.session("odd:/breaks").lifecycle == Lifecycle::CreationFailed).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_ends_its_turn_in_error_after_the_silence_allowed() {
    let silence = Duration::from_secs(10);
    let limits = Limits { turn_silence: silence, ..Limits::default() };
    let env = Env { clock: Arc::new(PausedClock::new(Timestamp(1_700_000_000_000))), ..Env::in_memory() };
    let config = Config { limits, ..Config::default() };
    let host = Host::in_memory(env, config, vec![Arc::new(ScriptedAgent)]).await.unwrap();
    let mut client = crate::harness::dialed(&host).await;
    let chat = client.ready_session("scripted:/s").await;
    let began = tokio::time::Instant::now();
    client.run_script(&chat, "t", json!([{"say": "a"}, {"hang": true}])).await;
    let turn = serde_json::to_value(&client.chat(&chat).turns[0]).unwrap().to_string();
    assert!(turn.contains("agentSilent"), "{turn}");
    assert!(began.elapsed() >= silence && began.elapsed() < silence * 2, "{:?}", began.elapsed());

    // Waiting for the user is not silence.
    let ask = json!([{"tool": {"name": "sh", "permission": "shell"}}, {"say": "done"}]);
    client.start_turn(&chat, "t2", &format!("script:{ask}")).await;
    let call = client.call_that(&chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
    tokio::time::sleep(3 * silence).await;
    let approve = json!({"type": "chat/toolCallConfirmed", "turnId": "t2", "toolCallId": call.id().unwrap(),
        "approved": true, "confirmed": "user-action"});
    client.dispatch(&chat, approve).await;
    assert_eq!(client.turn_end(&chat, "t2").await.state, ahp::TurnState::Complete);
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_says_of_a_turn_that_is_over_changes_nothing() {
    let agent = OddAgent::default();
    let host = host_with(&agent, Limits::default()).await;
    let mut client = host.client("a").await;
    client.ready_session("odd:/s").await;
    client.start_turn("odd:/s", "t1", "keep").await;
    client.until(|c| c.session("odd:/s").active_turn.as_ref().is_some_and(|t| t.streaming_text == "before")).await;
    client.dispatch(json!({"type": "session/turnCancelled", "session": "odd:/s", "turnId": "t1"})).await;
    let cancelled = client.turn_end("odd:/s", "t1").await;
    assert_eq!(cancelled.state, TurnState::Cancelled);
    let late = agent.kept.lock().unwrap().remove(0);
    late.text("after").await.unwrap();
    late.title("after".to_owned()).await.unwrap();
    client.start_turn("odd:/s", "t2", "next").await;
    client.turn_end("odd:/s", "t2").await;
    client.must_agree("odd:/s").await;
    assert_eq!(client.session("odd:/s").turns[0], cancelled);
    assert_eq!(client.session("odd:/s").summary.title, "keep", "the first prompt");
    assert_eq!(*agent.cancelled.lock().unwrap(), ["t1"], "the agent is told to stop");
}

#[tokio::test(start_paused = true)]
async fn a_changed_model_holds_from_the_next_turn_on() {
    let agent = OddAgent::default();
    agent.models.lock().unwrap().extend(["m1", "m2"]);
    let host = host_with(&agent, Limits::default()).await;
    let mut client = host.client("a").await;
    client.call::<()>("createSession", json!({"session": "odd:/s", "model": "m1"})).await.unwrap();
    client.subscribe("odd:/s").await.unwrap();
    client.start_turn("odd:/s", "t1", "x").await;
    let first = client.turn_end("odd:/s", "t1").await;
    client.dispatch(json!({"type": "session/modelChanged", "session": "odd:/s", "model": "m2"})).await;
    client.start_turn("odd:/s", "t2", "x").await;
    let second = client.turn_end("odd:/s", "t2").await;
    let text = |turn: grove_wire::v1::Turn| serde_json::to_string(&turn.response_parts).unwrap();
    assert!(text(first).contains("x: m1"));
    assert!(text(second).contains("x: m2"));
}

#[tokio::test(start_paused = true)]
async fn a_stopping_host_gives_running_turns_a_while_and_takes_no_new_ones() {
    let host = TestHost::with_agents(Config::default(), vec![Arc::new(ScriptedAgent)]).await;
    let mut client = host.client("a").await;
    client.ready_session("scripted:/ends").await;
    client.ready_session("scripted:/hangs").await;
    client.ready_session("scripted:/idle").await;
    client.script("scripted:/ends", "t1", json!([{"sleepMs": 3_000}, {"say": "in time"}])).await;
    client.script("scripted:/hangs", "t2", json!([{"hang": true}])).await;
    client.until(|c| c.sessions.values().filter(|session| session.active_turn.is_some()).count() == 2).await;
    let began = tokio::time::Instant::now();
    let stopping = tokio::spawn({
        let host = host.host.clone();
        async move { host.stop().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let late = client.script("scripted:/idle", "t3", json!([{"say": "x"}])).await;
    let answer = client.answer_to(late).await;
    assert_eq!(answer.rejection_reason.as_deref(), Some("the host is stopping"));
    assert_eq!(client.turn_end("scripted:/ends", "t1").await.state, TurnState::Complete);
    let hung = client.turn_end("scripted:/hangs", "t2").await;
    assert_eq!(hung.error.unwrap().error_type, "hostStopped");
    stopping.await.unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(6), "{took:?}");
    let ended = client.until_end().await;
    assert_eq!(ended, grove_testkit::ConnectionEnd::Closed { code: 1001, reason: "the host stops".into() });
}

#[tokio::test(start_paused = true)]
async fn an_agent_starts_again_in_the_folder_that_a_session_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let uri = |name: &str| {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        format!("file://{}/{name}", folder.path().display())
    };
    let (first, second) = (uri("first"), uri("second"));
    let agent = OddAgent::default();
    let host = host_with(&agent, Limits::default()).await;
    let mut client = host.ahp("a").await;
    let (session, rows) = ("odd:/s", "root/sessionSummaryChanged");
    client.subscribe(ahp::ROOT).await.unwrap();
    let chat = client.ready_session(session).await;
    client.start_turn(&chat, "t1", "one").await;
    client.turn_end(&chat, "t1").await;
    for directory in [&first, &first, &second] {
        let set = json!({"channel": session, "directory": directory});
        let told = client.ask("x-grove/setWorkingDirectory", set).await.unwrap();
        assert_eq!(told, json!({"directory": directory}));
        client.until(|client| client.session(session).working_directories == Some(vec![directory.clone()])).await;
        client.must_agree(session).await;
    }
    let told = client.told(rows).iter().filter(|told| told["changes"].get("workingDirectories").is_some()).count();
    assert_eq!(told, 2, "lists hear of each change, and of nothing else");
    client.start_turn(&chat, "t2", "two").await;
    client.turn_end(&chat, "t2").await;
    assert_eq!(*agent.opened_in.lock().unwrap(), [vec![], vec![second.clone()]]);

    client.start_turn(&chat, "t3", "keep").await;
    client.until(|client| client.chat(&chat).active_turn.is_some()).await;
    let set = json!({"channel": session, "directory": first});
    let refused = client.ask("x-grove/setWorkingDirectory", set).await.unwrap_err();
    assert_eq!(refused.code, ahp::error_code::TURN_IN_PROGRESS, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_client_of_version_1_gets_a_snapshot_with_the_folder_that_a_session_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_with(&OddAgent::default(), Limits::default()).await;
    let (mut client, mut other) = (host.client("a").await, host.client("b").await);
    client.ready_session("odd:/s").await;
    other.subscribe("odd:/s").await.unwrap();
    let set = json!({"session": "odd:/s", "directory": folder.path()});
    client.call::<serde_json::Value>("x-grove/setWorkingDirectory", set).await.expect("an answer before the close");
    for mut client in [client, other] {
        let ended = client.until_end().await;
        assert!(matches!(ended, grove_testkit::ConnectionEnd::Closed { code: 4009, .. }), "{ended:?}");
        host.bring_back(&mut client).await;
        let directory = client.session("odd:/s").summary.working_directory.clone().unwrap();
        assert!(directory.ends_with(folder.path().to_str().unwrap()), "{directory}");
    }
}
