//! Agents that survive the host, and the special cases that such agents bring.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_agents::*;
use grove_core::*;
use grove_host::{Config, Limits};
use grove_testkit::{Client, ahp};
use grove_wire::ahp::{Method, ToolCallState};
use grove_wire::v1::TurnState;
use serde_json::json;
use tokio::sync::Notify;

use crate::harness::{TestHost, until};

const URI: &str = "tape:/s";

/// An agent whose reports are on a tape that plays without listeners: the cursor alone decides which comes next.
#[derive(Clone, Default)]
struct Tape(Arc<TapeInner>);

#[derive(Default)]
struct TapeInner {
    frames: Mutex<Vec<Frame>>,
    grown: Notify,
    stored: AtomicUsize,
    configured: Mutex<Vec<Extra>>,
    closed: Mutex<Vec<CloseReason>>,
    verdicts: Mutex<Vec<Option<String>>>,
}

#[derive(Clone)]
enum Frame {
    Say(&'static str),
    /// Requests permission to run a command.
    Ask(&'static str),
    Settings,
    End,
}

impl Tape {
    fn record(&self, frame: Frame) {
        self.0.frames.lock().unwrap().push(frame);
        self.0.grown.notify_waiters();
    }

    /// Plays the tape from a frame on.
    async fn play(&self, from: Resumption, turn: &TurnSink) -> Result<(), AgentError> {
        let mark = from.mark.unwrap_or_default();
        let mut waiting = from.waiting;
        let mut open = mark.open.clone();
        let mut next = mark.open.iter().copied().min().unwrap_or(mark.frame + 1);
        loop {
            let grown = self.0.grown.notified();
            let frame = self.0.frames.lock().unwrap().get(next as usize - 1).cloned();
            let Some(frame) = frame else {
                grown.await;
                continue;
            };
            let heard = next <= mark.frame;
            let here = FrameCursor { frame: next.max(mark.frame), open: open.clone(), ..FrameCursor::default() };
            match frame {
                Frame::Ask(_) | Frame::Say(_) | Frame::Settings if heard && !open.contains(&next) => {}
                Frame::Say(text) => turn.report(vec![AgentEvent::Text(text.to_owned())], Some(here)).await?,
                Frame::Settings => {
                    let object = |json: serde_json::Value| json.as_object().cloned().unwrap();
                    let schema =
                        object(json!({"type": "object", "properties": {"mode": {"type": "string", "title": "Mode"}}}));
                    let settings = AgentEvent::AgentSettings { schema, values: object(json!({"mode": "plan"})) };
                    turn.report(vec![settings], Some(here)).await?;
                }
                Frame::Ask(command) => {
                    let id = RequestId::from(format!("{}/{next}", turn.turn()));
                    let known = waiting.iter().position(|waiting| waiting.request == id);
                    let answered = match known.map(|at| waiting.remove(at).answer_from) {
                        Some(PendingAnswer::Permission(_, answered)) => answered,
                        _ => {
                            open.push(next);
                            let (answer, answered) = tokio::sync::oneshot::channel();
                            let update = asking(id, command, answer);
                            let mark = FrameCursor { frame: next, open: open.clone(), ..FrameCursor::default() };
                            turn.report(vec![AgentEvent::Tool(Box::new(update))], Some(mark)).await?;
                            answered
                        }
                    };
                    let verdict = answered.await.map_err(|_| AgentError::TurnOver)?;
                    self.0.verdicts.lock().unwrap().push(verdict.option);
                    open.retain(|frame| *frame != next);
                }
                Frame::End => return Ok(()),
            }
            next += 1;
        }
    }
}

fn asking(id: RequestId, command: &str, answer: tokio::sync::oneshot::Sender<Verdict>) -> ToolUpdate {
    let option = |id: &str, allows, lasting| PermissionOption { id: id.into(), label: id.into(), allows, lasting };
    let request = PermissionRequest {
        id: id.clone(),
        kind: PermissionKind::Shell,
        path: None,
        full_command_text: Some(command.to_owned()),
        intention: None,
        title: None,
        options: vec![option("once", true, false), option("always", true, true), option("no", false, false)],
        edits: vec![],
        editable: false,
    };
    ToolUpdate {
        title: Some(command.to_owned()),
        permission: Some(PermissionPrompt::new(request, answer)),
        ..ToolUpdate::of(id.as_str().into())
    }
}

#[async_trait]
impl Agent for Tape {
    fn info(&self) -> AgentInfo {
        let (display_name, description) = ("Tape".to_owned(), String::new());
        AgentInfo { id: "tape".into(), display_name, description, models: vec![] }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        Ok(Arc::new(self.clone()))
    }

    fn settings(&self) -> Option<SessionConfig> {
        Some(SessionConfig::of(Extra::new()))
    }

    fn edits_files(&self) -> bool {
        true
    }

    fn turn_survival(&self) -> TurnSurvival {
        TurnSurvival::Running
    }
}

#[async_trait]
impl AgentSession for Tape {
    async fn prompt(&self, _prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        self.play(Resumption::default(), &turn).await
    }

    async fn resume(&self, _prompt: Prompt, from: Resumption, turn: TurnSink) -> Result<(), AgentError> {
        self.play(from, &turn).await
    }

    async fn configure(&self, values: Extra) {
        self.0.configured.lock().unwrap().push(values);
    }

    fn stored(&self, mark: &FrameCursor) {
        self.0.stored.fetch_max(mark.frame as usize, Ordering::SeqCst);
    }

    async fn cancel(&self, _turn: &TurnId) {}

    async fn close(&self, why: CloseReason) {
        self.0.closed.lock().unwrap().push(why);
    }
}

async fn host_with(tape: &Tape) -> TestHost {
    TestHost::with_agents(Config::default(), vec![Arc::new(tape.clone())]).await
}

fn text(client: &Client) -> String {
    client.session(URI).active_turn.as_ref().map(|turn| turn.streaming_text.clone()).unwrap_or_default()
}

fn permission(client: &Client) -> Option<String> {
    client.session(URI).active_turn.as_ref()?.pending_permissions.keys().next().cloned()
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_outlasts_the_host_is_told_once_and_whole_wherever_the_host_was_killed() {
    let words = ["a", "b", "c", "d", "e", "f"];
    for kill_after in 0..words.len() {
        let tape = Tape::default();
        let mut host = host_with(&tape).await;
        let mut client = host.client("a").await;
        client.ready_session(URI).await;
        client.start_turn(URI, "t1", "go").await;
        client.until(|client| client.session(URI).active_turn.is_some()).await;
        for (n, word) in words.into_iter().enumerate() {
            tape.record(Frame::Say(word));
            if n == kill_after {
                // With and without time for it to be received.
                for _ in 0..n {
                    tokio::task::yield_now().await;
                }
                host.kill_and_restart(Config::default()).await;
                host.bring_back(&mut client).await;
            }
        }
        client.until(|client| text(client) == words.concat()).await;
        tape.record(Frame::End);
        assert_eq!(client.turn_end(URI, "t1").await.state, TurnState::Complete);
        client.must_agree(URI).await;
        assert_eq!(tape.0.stored.load(Ordering::SeqCst), words.len(), "the agent may forget what is stored");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_from_before_the_kill_is_asked_once_and_its_answer_arrives() {
    let tape = Tape::default();
    let mut host = host_with(&tape).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.start_turn(URI, "t1", "go").await;
    tape.record(Frame::Ask("ls"));
    client.until(|client| permission(client).is_some()).await;
    for _ in 0..2 {
        host.kill_and_restart(Config::default()).await;
        host.bring_back(&mut client).await;
    }
    let request = permission(&client).unwrap();
    client
        .dispatch(json!({"type": "session/permissionResolved", "session": URI, "turnId": "t1",
            "requestId": request, "approved": true}))
        .await;
    client.until(|client| permission(client).is_none()).await;
    tape.record(Frame::Say("ran"));
    client.until(|client| text(client) == "ran").await;
    // The answer may not have reached the agent, so it is sent again: its position in the frames identifies it.
    assert_eq!(*tape.0.verdicts.lock().unwrap(), [None]);
    host.kill_and_restart(Config::default()).await;
    host.bring_back(&mut client).await;
    tape.record(Frame::End);
    assert_eq!(client.turn_end(URI, "t1").await.tool_calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_all_times_is_given_again_by_itself() {
    let tape = Tape::default();
    let host = host_with(&tape).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    client.start_turn(&chat, "t1", "go").await;
    tape.record(Frame::Ask("ls"));
    let waits = |call: &ToolCallState| matches!(call, ToolCallState::PendingConfirmation(_));
    let call = client.call_that(&chat, waits).await;
    client
        .dispatch(
            &chat,
            json!({"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": call.id().unwrap(),
                "approved": true, "confirmed": "user-action", "selectedOptionId": "always"}),
        )
        .await;
    tape.record(Frame::Ask("ls"));
    tape.record(Frame::End);
    let turn = client.turn_end(&chat, "t1").await;
    assert_eq!(*tape.0.verdicts.lock().unwrap(), [Some("always".to_owned()), Some("always".to_owned())]);
    assert_eq!(client.session(URI).meta.as_ref().unwrap()["remembered"][0]["about"], "ls");
    assert_eq!(turn.response_parts.len(), 2);
    client.must_agree(URI).await;
}

#[tokio::test]
async fn a_quiet_agent_is_said_to_be_quiet_until_it_speaks() {
    let tape = Tape::default();
    let limits = Limits { turn_quiet: Duration::from_millis(20), ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let host = TestHost::with_agents(config, vec![Arc::new(tape.clone())]).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    client.start_turn(&chat, "t1", "go").await;
    client
        .until(|client| client.chat(&chat).activity.as_ref().is_some_and(|words| words.starts_with("no report")))
        .await;
    tape.record(Frame::Say("x"));
    client.until(|client| client.chat(&chat).activity.is_none()).await;
    tape.record(Frame::End);
    client.turn_end(&chat, "t1").await;
    client.must_agree(&chat).await;
}

#[tokio::test]
async fn the_time_that_a_person_takes_to_answer_is_no_silence() {
    let tape = Tape::default();
    let (turn_silence, turn_quiet) = (Duration::from_millis(2_000), Duration::from_millis(500));
    let config = Config { limits: Limits { turn_silence, turn_quiet, ..Limits::default() }, ..Config::default() };
    let host = TestHost::with_agents(config, vec![Arc::new(tape.clone())]).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.start_turn(URI, "t1", "go").await;
    tape.record(Frame::Ask("ls"));
    client.until(|client| permission(client).is_some()).await;
    // It is checked after half a second and after two more: the answer comes just before, and the agent continues.
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    let request = permission(&client).unwrap();
    client
        .dispatch(json!({"type": "session/permissionResolved", "session": URI, "turnId": "t1",
            "requestId": request, "approved": true}))
        .await;
    client.until(|client| permission(client).is_none()).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    tape.record(Frame::End);
    assert_eq!(client.turn_end(URI, "t1").await.state, TurnState::Complete);
}

#[tokio::test(start_paused = true)]
async fn settings_go_both_ways() {
    let tape = Tape::default();
    let host = host_with(&tape).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    client.start_turn(&chat, "t1", "go").await;
    tape.record(Frame::Settings);
    let mode = |client: &ahp::Client| Some(client.session(URI).config.as_ref()?.values.get("mode")?.clone());
    client.until(|client| mode(client) == Some("plan".into())).await;
    assert!(client.session(URI).meta.as_ref().unwrap()["settings"]["properties"]["mode"].is_object());
    client.dispatch(URI, json!({"type": "session/configChanged", "config": {"mode": "build"}})).await;
    client.until(|client| mode(client) == Some("build".into())).await;
    until("the agent is configured", async || !tape.0.configured.lock().unwrap().is_empty()).await;
    let configured = serde_json::to_value(&tape.0.configured.lock().unwrap()[0]).unwrap();
    assert_eq!(configured, json!({"mode": "build"}));
}

#[tokio::test(start_paused = true)]
async fn two_sessions_in_one_folder_are_warned_only_while_both_run() {
    let tape = Tape::default();
    let host = host_with(&tape).await;
    let mut client = host.ahp("a").await;
    let warnings = |client: &ahp::Client, uri: &str| {
        let meta = client.session(uri).meta.as_ref();
        meta.and_then(|meta| meta.get("warnings").cloned()).unwrap_or(json!([]))
    };
    let mut chats = Vec::new();
    for uri in ["tape:/one", "tape:/two"] {
        let params = json!({"channel": uri, "provider": "tape", "workingDirectories": ["file:///work"]});
        client.get(Method::CreateSession, params).await;
        chats.push(client.follow(uri).await);
    }
    client.dispatch("tape:/one", json!({"type": "session/titleChanged", "title": "Fix the tests"})).await;
    client.start_turn(&chats[0], "t1", "go").await;
    client.until(|client| client.chat(&chats[0]).active_turn.is_some()).await;
    client.barrier().await;
    assert_eq!(warnings(&client, "tape:/one"), json!([]), "the other one does not run");
    client.start_turn(&chats[1], "t1", "go").await;
    client.until(|client| ["tape:/one", "tape:/two"].iter().all(|uri| warnings(client, uri) != json!([]))).await;
    let told = warnings(&client, "tape:/two");
    assert_eq!(told, json!(["“Fix the tests” is running in /work, too: their changes may collide"]));
    assert!(!warnings(&client, "tape:/one").to_string().contains(":/"), "no URI");
    client.dispatch(&chats[0], json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})).await;
    client.until(|client| ["tape:/one", "tape:/two"].iter().all(|uri| warnings(client, uri) == json!([]))).await;
    assert!(client.chat(&chats[1]).active_turn.is_some(), "it runs on, alone");
    client.must_agree_on_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stops_leaves_turns_that_can_go_on_and_lets_the_agent_know() {
    let tape = Tape::default();
    let mut host = host_with(&tape).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.start_turn(URI, "t1", "go").await;
    tape.record(Frame::Say("before "));
    client.until(|client| text(client) == "before ").await;
    host.host.stop().await;
    assert_eq!(*tape.0.closed.lock().unwrap(), [CloseReason::Detached]);
    host.kill_and_restart(Config::default()).await;
    host.bring_back(&mut client).await;
    tape.record(Frame::Say("after"));
    client.until(|client| text(client) == "before after").await;
    tape.record(Frame::End);
    assert_eq!(client.turn_end(URI, "t1").await.state, TurnState::Complete);
}
