//! The requirements for every agent behind Grove.

use std::time::Duration;

use grove_testkit::ahp::{Client, markdown};
use grove_testkit::model::{FakeModel, ReplyStep, RequestPurpose, Script, Turn};
use grove_wire::ahp::{Method, ToolCallState, TurnState};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::support::{Host, TestHome};

/// The model's answers to the prompts of the story.
fn script() -> Script {
    let slow = Duration::from_millis(100);
    Script::new([
        Turn::told(
            "run the command",
            [
                vec![
                    ReplyStep::say("I will run it."),
                    ReplyStep::shell("echo grove-was-here > made.txt && cat made.txt"),
                ],
                vec![ReplyStep::say("It has run.")],
            ],
        ),
        Turn::told("count slowly", [vec![ReplyStep::slowly(&numbers(60), 60, slow)]]),
        Turn::told("count while the host restarts", [vec![ReplyStep::slowly(&numbers(50), 50, slow)]]),
        Turn::told(
            "ask and wait",
            [
                vec![ReplyStep::shell("echo asked-before > asked.txt && cat asked.txt")],
                vec![ReplyStep::say("Thank you.")],
            ],
        ),
        Turn::told("what did I say", [vec![ReplyStep::say("You said a lot.")]]),
    ])
}

fn numbers(count: usize) -> String {
    (1..=count).map(|number| format!("n{number} ")).collect()
}

struct Stage {
    place: TestHome,
    model: FakeModel,
    host: Host,
    uri: String,
}

impl Stage {
    /// A host with the agent, without turns; `None` if the agent is not enabled.
    async fn set(peer: Peer) -> Option<Self> {
        let program = peer.program()?;
        let place = TestHome::new();
        let model = FakeModel::start(script()).await;
        peer.settle(&place, &model, &program);
        let host = serve(&place);
        let uri = format!("{}:/story", peer.name());
        Some(Self { place, model, host, uri })
    }

    async fn client(&self, name: &str) -> Client {
        let mut client = Client::connect(&self.host.ws, &self.host.token, name).await;
        client.initialize(&[]).await;
        client
    }

    /// A client with a new session, subscribed to it and its chat.
    async fn begin(&self, name: &str) -> (Client, String) {
        let mut client = self.client(name).await;
        let folder = format!("file://{}", self.place.path("work").display());
        let params = json!({"channel": self.uri, "workingDirectories": [folder]});
        client.get(Method::CreateSession, params).await;
        let chat = client.follow(&self.uri).await;
        (client, chat)
    }

    /// The last request to the model with this word, without titles and the like.
    fn asked(&self, word: &str) -> String {
        let requests = self.model.requests();
        let bodies = requests.iter().filter(|request| matches!(request.purpose, RequestPurpose::Turn { .. }));
        let mut bodies = bodies.map(|request| request.body.to_string()).filter(|body| body.contains(word));
        bodies.next_back().unwrap_or_else(|| panic!("the model was not asked with {word}"))
    }

    /// Stops the host, and starts another on its data after a while.
    async fn restart(&mut self, signal: Signal, after: Duration) {
        self.host.signal(signal);
        self.host.exit();
        tokio::time::sleep(after).await;
        self.host = serve(&self.place);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Agents outlive a killed host: this one must end them, whatever the result of the test.
        self.place.run(&["stop", "--turns"]);
    }
}

fn serve(place: &TestHome) -> Host {
    let mut command = place.serve_command(&[]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LANG", "C.UTF-8");
    place.start(command)
}

fn waits(call: &ToolCallState) -> bool {
    matches!(call, ToolCallState::PendingConfirmation(_))
}

async fn approve(client: &mut Client, chat: &str, turn: &str) {
    let call = client.call_that(chat, waits).await;
    client
        .dispatch(
            chat,
            json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": call.id().unwrap(),
                "approved": true, "confirmed": "user-action"}),
        )
        .await;
}

async fn a_tool_call_is_allowed_by_another_client(peer: Peer) {
    let Some(stage) = Stage::set(peer).await else { return };
    let (mut client, chat) = stage.begin("asks").await;
    client.start_turn(&chat, "t1", "please run the command").await;
    let mut other = stage.client("allows").await;
    other.follow(&stage.uri).await;
    approve(&mut other, &chat, "t1").await;
    let turn = client.turn_end(&chat, "t1").await;
    assert_eq!(turn.state, TurnState::Complete, "{turn:?}");
    assert!(markdown(&turn.response_parts).contains("It has run."), "{turn:?}");
    let parts = serde_json::to_string(&turn.response_parts).unwrap();
    assert!(parts.contains("grove-was-here"), "the tool's output is shown: {parts}");
    let made = std::fs::read_to_string(stage.place.path("work/made.txt")).unwrap();
    assert_eq!(made.trim(), "grove-was-here");
    client.must_agree(&chat).await;
    other.turn_end(&chat, "t1").await;
    other.must_agree(&chat).await;
}

async fn a_turn_is_cancelled_in_the_middle_and_the_next_one_runs(peer: Peer) {
    let Some(stage) = Stage::set(peer).await else { return };
    let (mut client, chat) = stage.begin("a").await;
    client.start_turn(&chat, "t1", "count slowly").await;
    client.until(|client| said(client, &chat).contains("n3 ")).await;
    client.dispatch(&chat, json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 0})).await;
    let turn = client.turn_end(&chat, "t1").await;
    assert_eq!(turn.state, TurnState::Cancelled);
    assert!(!markdown(&turn.response_parts).contains("n60"));
    client.start_turn(&chat, "t2", "what did I say").await;
    let turn = client.turn_end(&chat, "t2").await;
    assert_eq!(turn.state, TurnState::Complete, "{turn:?}");
    assert!(markdown(&turn.response_parts).contains("You said a lot."), "{turn:?}");
}

async fn a_turn_outlives_the_host(peer: Peer) {
    let Some(mut stage) = Stage::set(peer).await else { return };
    let (mut client, chat) = stage.begin("a").await;
    client.start_turn(&chat, "t1", "count while the host restarts").await;
    client.until(|client| said(client, &chat).contains("n5 ")).await;
    // The agent continues meanwhile.
    stage.restart(Signal::KILL, Duration::from_millis(1_500)).await;
    let mut client = stage.client("b").await;
    client.follow(&stage.uri).await;
    let turn = client.turn_end(&chat, "t1").await;
    assert_eq!(turn.state, TurnState::Complete, "{turn:?}");
    let text = markdown(&turn.response_parts);
    // Some send something before the model answers.
    let told = text.find("n1 ").map(|at| text[at..].trim());
    assert_eq!(told, Some(numbers(50).trim()), "nothing is lost, nothing said twice");

    client.start_turn(&chat, "t2", "ask and wait").await;
    client.call_that(&chat, waits).await;
    stage.restart(Signal::KILL, Duration::ZERO).await;
    let mut client = stage.client("c").await;
    client.follow(&stage.uri).await;
    approve(&mut client, &chat, "t2").await;
    let turn = client.turn_end(&chat, "t2").await;
    assert_eq!(turn.state, TurnState::Complete, "{turn:?}");
    assert!(std::fs::read_to_string(stage.place.path("work/asked.txt")).unwrap().contains("asked-before"));
}

async fn a_conversation_is_resumed_by_a_new_process(peer: Peer) {
    let Some(mut stage) = Stage::set(peer).await else { return };
    let (mut client, chat) = stage.begin("a").await;
    client.start_turn(&chat, "t1", "what did I say: the word is heliotrope").await;
    assert_eq!(client.turn_end(&chat, "t1").await.state, TurnState::Complete);
    // Nothing runs, so the agent ends with the host.
    stage.restart(Signal::TERM, Duration::ZERO).await;
    let mut client = stage.client("b").await;
    client.follow(&stage.uri).await;
    client.start_turn(&chat, "t2", "and now, what did I say").await;
    assert_eq!(client.turn_end(&chat, "t2").await.state, TurnState::Complete);
    let requests = stage.model.requests();
    let last = requests.iter().rev().find(|request| request.body.to_string().contains("and now, what did I say"));
    let body = last.expect("the model was asked").body.to_string();
    assert!(body.contains("heliotrope"), "the agent remembers: {body}");
}

async fn an_agent_knows_what_was_said_on_the_way_and_nothing_else(peer: Peer) {
    let Some(stage) = Stage::set(peer).await else { return };
    let (mut client, chat) = stage.begin("a").await;
    told(&mut client, &chat, "t1", "what did I say: the word is heliotrope").await;
    told(&mut client, &chat, "t2", "what did I say: the word is marigold").await;

    let entry = message(&mut client, &stage.uri, "marigold").await;
    client.ask("x-grove/navigate", json!({"channel": stage.uri, "entry": entry})).await.unwrap();
    told(&mut client, &chat, "t3", "what did I say: the word is snapdragon").await;
    let body = stage.asked("snapdragon");
    assert!(body.contains("heliotrope") && !body.contains("marigold"), "after a move: {body}");

    let fork = client.ask("x-grove/fork", json!({"channel": stage.uri})).await.unwrap();
    let forked = client.follow(fork["session"].as_str().unwrap()).await;
    told(&mut client, &forked, "t4", "what did I say: the word is foxglove").await;
    let body = stage.asked("foxglove");
    let knows = body.contains("heliotrope") && body.contains("snapdragon") && !body.contains("marigold");
    assert!(knows, "in a fork: {body}");
    let retold = body.contains(r"User:\nwhat did I say: the word is snapdragon");
    assert_eq!(retold, !peer.copies(), "who can copy a conversation is not told it: {body}");

    let entry = message(&mut client, &stage.uri, "snapdragon").await;
    let branch = client.ask("x-grove/branch", json!({"channel": stage.uri, "entry": entry})).await.unwrap();
    let branched = client.follow(branch["session"].as_str().unwrap()).await;
    told(&mut client, &branched, "t5", "what did I say: the word is larkspur").await;
    let body = stage.asked("larkspur");
    let knows = body.contains("heliotrope") && !body.contains("snapdragon") && !body.contains("marigold");
    assert!(knows && !body.contains("foxglove"), "in a branch: {body}");

    // The source continued with none of it.
    told(&mut client, &chat, "t6", "what did I say: the word is edelweiss").await;
    let body = stage.asked("edelweiss");
    let knows = body.contains("heliotrope") && body.contains("snapdragon");
    assert!(knows && !body.contains("foxglove") && !body.contains("larkspur"), "in the source: {body}");
}

/// Sends a prompt, and waits for the answer.
async fn told(client: &mut Client, chat: &str, turn: &str, text: &str) {
    client.start_turn(chat, turn, text).await;
    let ended = client.turn_end(chat, turn).await;
    assert_eq!(ended.state, TurnState::Complete, "{ended:?}");
}

/// The entry of a user message.
async fn message(client: &mut Client, session: &str, text: &str) -> Value {
    let tree = client.ask("x-grove/tree", json!({"channel": session, "filter": "user-only"})).await.unwrap();
    let rows = tree["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["text"].as_str().unwrap().contains(text));
    row.unwrap_or_else(|| panic!("{text} in {tree}"))["id"].clone()
}

fn said(client: &Client, chat: &str) -> String {
    client.chat(chat).active_turn.as_ref().map(|turn| markdown(&turn.response_parts)).unwrap_or_default()
}

macro_rules! with {
    ($($agent:ident: $peer:expr),* $(,)?) => {$(
        mod $agent {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn a_tool_call_is_allowed_by_another_client() {
                super::a_tool_call_is_allowed_by_another_client($peer).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn a_turn_is_cancelled_in_the_middle_and_the_next_one_runs() {
                super::a_turn_is_cancelled_in_the_middle_and_the_next_one_runs($peer).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn a_turn_outlives_the_host() {
                super::a_turn_outlives_the_host($peer).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn a_conversation_is_resumed_by_a_new_process() {
                super::a_conversation_is_resumed_by_a_new_process($peer).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn an_agent_knows_what_was_said_on_the_way_and_nothing_else() {
                super::an_agent_knows_what_was_said_on_the_way_and_nothing_else($peer).await;
            }
        }
    )*};
}

with! { opencode: Peer::OpenCode, codex: Peer::Codex, copilot: Peer::Copilot }
