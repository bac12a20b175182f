//! ACP agents behind the real host, as clients see them.
//!
//! The agent is the scripted one of the test kit: a test chooses its behavior, and its prompts are scripts.

mod asks;
mod asks_in_terminal;
mod client_tools;
mod creation;
mod editor;
mod flood;
mod life;
mod login;
mod places;
mod quirks;
mod restarts;
mod self_approval;
mod settings;
mod shows;
mod spills;
mod tree;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use grove_agents::acp::client_tools::RelayProgram;
use grove_agents::acp::{NoDocuments, ProcessPool, ProcessPoolOptions};
use grove_shim::{ShimLimits, ShimProgram};
use grove_testkit::acp::{AgentBehavior, BEHAVIOR_VARIABLE, agent_program, prompt};
use grove_testkit::ahp::{Client, markdown};
use grove_wire::ahp::{Method, ResponsePart, ToolCallState, Turn, TurnState};
use serde_json::{Value, json};

use crate::support::*;

/// The session of most tests, and its id.
const SESSION: &str = "mine:/s";
const ID: &str = "s";
/// How long an agent may take to end after a test.
const GRACE: Duration = Duration::from_millis(300);

/// A host with an agent `mine`. Dropping it cleans up, even after a failed test.
struct Stage {
    place: TestHome,
    /// `None` for a moment during a restart.
    host: Option<Host>,
    args: Vec<String>,
}

impl Stage {
    /// The agent keeps its sessions in a store, so that its next process knows them.
    fn new(behavior: AgentBehavior) -> Self {
        Self::with(behavior, &[])
    }

    fn with(behavior: AgentBehavior, args: &[&str]) -> Self {
        Self::with_env(behavior, &[], args)
    }

    /// The same with further environment variables of the agent.
    fn with_env(behavior: AgentBehavior, env: &[(&str, &str)], args: &[&str]) -> Self {
        Self::with_table(behavior, env, "", args)
    }

    /// The same with further lines of the agent's table in `grove.toml`.
    fn with_table(behavior: AgentBehavior, env: &[(&str, &str)], lines: &str, args: &[&str]) -> Self {
        let place = TestHome::new();
        let store = behavior.store.clone().unwrap_or_else(|| place.path("store"));
        let behavior = AgentBehavior { store: Some(store), ..behavior };
        let more: String = env.iter().map(|(name, value)| format!(", {name} = {value:?}")).collect();
        let toml = format!(
            "[agents.mine]\ncommand = [{:?}]\nenv = {{ {BEHAVIOR_VARIABLE} = {:?}{more} }}\n{lines}",
            agent_program(),
            behavior.to_json()
        );
        place.write("home/.config/grove/grove.toml", toml);
        std::fs::create_dir(place.path("work")).unwrap();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let host = Some(serve(&place, &args));
        Self { place, host, args }
    }

    fn host(&self) -> &Host {
        self.host.as_ref().unwrap()
    }

    /// Stops the host cleanly, and starts another on its data.
    fn restart(&mut self) {
        self.host.take().unwrap().stop();
        self.host = Some(serve(&self.place, &self.args));
    }

    /// The same with `kill -9`.
    fn kill_and_restart(&mut self) {
        self.host.take().unwrap().kill();
        self.host = Some(serve(&self.place, &self.args));
    }

    /// The working directory of sessions.
    fn work(&self, name: &str) -> PathBuf {
        self.place.path("work").join(name)
    }

    /// A client with a new [`SESSION`], subscribed to it and its chat.
    async fn begin(&self) -> (Client, String) {
        let mut client = self.host().ahp("a").await;
        let chat = self.session(&mut client, SESSION).await;
        (client, chat)
    }

    /// Creates a session in the usual folder, and returns its chat.
    async fn session(&self, client: &mut Client, uri: &str) -> String {
        let folder = file_uri(&self.place.path("work"));
        client.get(Method::CreateSession, json!({"channel": uri, "workingDirectories": [folder]})).await;
        client.follow(uri).await
    }

    /// A turn as a new client sees it.
    async fn seen_anew(&self, chat: &str, turn: &str) -> Turn {
        let mut fresh = self.host().ahp_connect("somebody-who-just-came").await;
        fresh.initialize(&[chat]).await;
        fresh.turn_end(chat, turn).await
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Agents outlive a killed host: they are ended as the next host would end them.
        drop(self.host.take());
        let pool = ProcessPool::new(ProcessPoolOptions {
            folder: self.place.data().join("agents"),
            shim: ShimProgram { program: PathBuf::new(), args: Vec::new() },
            shim_limits: ShimLimits { grace: GRACE, ..ShimLimits::default() },
            processes: 1,
            idle: GRACE,
            start: GRACE,
            cancel: GRACE,
            patience: GRACE,
            capture: None,
            private: Vec::new(),
            documents: Arc::new(NoDocuments),
            relay: RelayProgram { program: PathBuf::new(), args: Vec::new(), filter_args: Vec::new() },
        });
        // A test's own runtime cannot be blocked.
        let sweeping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(pool.sweep(&[])))
        });
        sweeping.join().ok();
    }
}

fn serve(place: &TestHome, args: &[String]) -> Host {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = place.serve_command(&args);
    // The PATH for agents' commands, without agents of the user who runs the tests.
    command.env("PATH", "/usr/bin:/bin");
    place.start(command)
}

/// Starts a turn with these steps of the agent.
async fn start(client: &mut Client, chat: &str, turn: &str, steps: &Value) {
    client.start_turn(chat, turn, &prompt(steps)).await;
}

/// The same to the turn's end.
async fn run(client: &mut Client, chat: &str, turn: &str, steps: Value) -> Turn {
    start(client, chat, turn, &steps).await;
    client.turn_end(chat, turn).await
}

/// Runs a turn that must complete, and returns the agent's text.
async fn said(client: &mut Client, chat: &str, turn: &str, steps: Value) -> String {
    let turn = run(client, chat, turn, steps).await;
    assert_eq!(turn.state, TurnState::Complete, "{turn:#?}");
    markdown(&turn.response_parts)
}

/// The agent's text so far in the running turn.
fn streamed(client: &Client, chat: &str) -> String {
    client.chat(chat).active_turn.as_ref().map(|turn| markdown(&turn.response_parts)).unwrap_or_default()
}

/// The tool calls of a turn, as JSON.
fn calls(turn: &Turn) -> Vec<Value> {
    let calls = turn.response_parts.iter().filter_map(|part| match part {
        ResponsePart::ToolCall(part) => Some(serde_json::to_value(&part.tool_call).unwrap()),
        _ => None,
    });
    calls.collect()
}

/// The parts of a turn of one kind, as JSON.
fn parts(turn: &Turn, kind: &str) -> Vec<Value> {
    let parts = turn.response_parts.iter().map(|part| serde_json::to_value(part).unwrap());
    parts.filter(|part| part["kind"] == kind).collect()
}

/// The call that waits for a person, once its request is complete.
async fn asked(client: &mut Client, chat: &str) -> Value {
    let asked = |call: &ToolCallState| matches!(call, ToolCallState::PendingConfirmation(call) if call.confirmation_title.is_some());
    serde_json::to_value(client.call_that(chat, asked).await).unwrap()
}

/// Dispatches an action that must be accepted.
async fn accepted(client: &mut Client, channel: &str, action: Value) {
    let seq = client.dispatch(channel, action).await;
    let answered = client.answer_to(seq).await;
    assert_eq!(answered.rejection_reason, None, "{}", answered.action);
}

async fn cancel(client: &mut Client, chat: &str, turn: &str) {
    accepted(client, chat, json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 1})).await;
}

/// Answers a pending call.
async fn answer(client: &mut Client, chat: &str, turn: &str, call: &Value, option: &str) {
    let approved = option.starts_with("allow");
    let mut action = json!({
        "type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": call["toolCallId"], "approved": approved,
        "selectedOptionId": option,
    });
    if approved {
        action["confirmed"] = json!("user-action");
    } else {
        action["reason"] = json!("denied");
    }
    accepted(client, chat, action).await;
}

/// A value of the session's metadata.
fn meta(client: &Client, uri: &str, name: &str) -> Value {
    client.session(uri).meta.as_ref().and_then(|meta| meta.get(name)).cloned().unwrap_or_default()
}

/// The text after a word in the agent's text, up to the end of the line.
fn after<'a>(text: &'a str, word: &str) -> &'a str {
    let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("no {word} in {text:?}"));
    rest.lines().next().unwrap_or_default().trim()
}

/// Returns whether a process is alive, and not a zombie.
fn is_alive(id: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}
