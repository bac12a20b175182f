//! The configuration of an agent by the creator of its session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use grove_agents::setup::{
    AgentAbilities, AgentSetup, HookMode, McpAbilities, McpServer, McpTransport, SetupChange, Support, SystemMessage,
    SystemMessageAbility, SystemMessageMode,
};
use grove_agents::{Agent, AgentError, AgentSession, CloseReason, OpenSession, Prompt, TurnSink};
use grove_core::AgentInfo;
use grove_fs::SessionFs;
use grove_host::{Config, CreateError, CreateSession};
use grove_wire::v1::{Lifecycle, TurnState};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::harness::TestHost;

const SECRET: &str = "hunter2-and-more";
const FILE: &str = "s/setup.json";

/// An agent that notes the setups that it was opened with, and ends a turn when its test says so.
#[derive(Clone, Default)]
struct NotingAgent {
    opened: Arc<Mutex<Vec<Arc<AgentSetup>>>>,
    closed: Arc<Mutex<usize>>,
    /// A turn waits for its end.
    waiting: Arc<Notify>,
    end: Arc<Notify>,
}

impl NotingAgent {
    fn setups(&self) -> Vec<AgentSetup> {
        self.opened.lock().unwrap().iter().map(|setup| AgentSetup::clone(setup)).collect()
    }
}

#[async_trait]
impl Agent for NotingAgent {
    fn info(&self) -> AgentInfo {
        let (display_name, description) = ("Noting".to_owned(), String::new());
        AgentInfo { id: "noting".into(), display_name, description, models: Vec::new() }
    }

    fn abilities(&self) -> AgentAbilities {
        AgentAbilities {
            mcp: McpAbilities { stdio: Support::Yes, ..McpAbilities::default() },
            system_message: SystemMessageAbility::BeforeFirstPrompt,
            ..AgentAbilities::default()
        }
    }

    async fn open(&self, session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        self.opened.lock().unwrap().push(session.setup);
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl AgentSession for NotingAgent {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        if prompt.message.text == "wait" {
            self.waiting.notify_one();
            self.end.notified().await;
        }
        turn.text("done").await
    }

    async fn cancel(&self, _: &grove_core::TurnId) {}

    async fn close(&self, _: CloseReason) {
        *self.closed.lock().unwrap() += 1;
    }
}

fn setup() -> AgentSetup {
    let env = BTreeMap::from([("KEY".to_owned(), SECRET.to_owned())]);
    let transport = McpTransport::Stdio { command: "/bin/server".to_owned(), args: Vec::new(), env };
    AgentSetup { mcp_servers: vec![McpServer::new("search", transport)], ..AgentSetup::default() }
}

fn wanted(setup: AgentSetup) -> CreateSession {
    CreateSession {
        uri: "noting:/s".into(),
        agent: None,
        model: None,
        working_directories: Vec::new(),
        config: None,
        store: None,
        setup,
        active_client: None,
    }
}

fn brief() -> SetupChange {
    let system_message = SystemMessage { mode: SystemMessageMode::Append, content: "be brief".to_owned() };
    SetupChange { system_message: Some(system_message), ..SetupChange::default() }
}

async fn host_with(agent: &NotingAgent) -> TestHost {
    TestHost::with_agents(Config::default(), vec![Arc::new(agent.clone())]).await
}

#[tokio::test(start_paused = true)]
async fn a_setup_is_in_its_own_file_alone_and_survives_the_host() {
    let agent = NotingAgent::default();
    let mut host = host_with(&agent).await;
    host.host.create_session(wanted(setup())).await.unwrap();
    let mut client = host.client("a").await;
    ready(&mut client).await;
    client.start_turn("noting:/s", "t1", "hello").await;
    assert_eq!(client.turn_end("noting:/s", "t1").await.state, TurnState::Complete);
    assert_eq!(agent.setups(), [setup()]);
    let snapshot = format!("{:?}", client.session("noting:/s"));
    assert!(!snapshot.contains(SECRET), "{snapshot}");
    let journal = String::from_utf8_lossy(&host.journal.bytes.lock().unwrap()).into_owned();
    assert!(!journal.contains(SECRET), "{journal}");
    for (path, bytes) in files(&host).await {
        assert_eq!(String::from_utf8_lossy(&bytes).contains(SECRET), path == FILE, "{path}");
    }

    host.kill_and_restart(Config::default()).await;
    let mut client = host.client("b").await;
    client.subscribe("noting:/s").await.unwrap();
    client.start_turn("noting:/s", "t2", "again").await;
    client.turn_end("noting:/s", "t2").await;
    assert_eq!(agent.setups(), [setup(), setup()]);

    assert!(host.host.dispose_session(&"noting:/s".into()).await.unwrap());
    assert!(!host.sessions.exists(FILE).await.unwrap(), "deleting the session deletes its secrets");
}

#[tokio::test(start_paused = true)]
async fn a_setup_that_the_agent_cannot_honour_is_refused_before_there_is_a_session() {
    let agent = NotingAgent::default();
    let host = host_with(&agent).await;
    let transport = McpTransport::Http { url: "https://example.org".to_owned(), headers: BTreeMap::new() };
    let mcp_servers = vec![McpServer::new("far", transport)];
    let refused = host.host.create_session(wanted(AgentSetup { mcp_servers, ..AgentSetup::default() })).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, CreateError::Setup(_)), "{refused}");
    assert!(refused.to_string().contains("noting cannot use the MCP server far"), "{refused}");
    let hooks = AgentSetup { hooks: HookMode::Strict, ..AgentSetup::default() };
    let refused = host.host.create_session(wanted(hooks)).await.unwrap_err();
    assert!(matches!(refused, CreateError::Setup(_)) && refused.to_string().contains("hooks"), "{refused}");
    assert_eq!(host.host.status().await.unwrap().sessions, 0);
    assert!(agent.setups().is_empty() && files(&host).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_changed_setup_starts_an_idle_agent_again_and_lets_a_turn_finish() {
    let agent = NotingAgent::default();
    let host = host_with(&agent).await;
    host.host.create_session(wanted(setup())).await.unwrap();
    let mut client = host.client("a").await;
    ready(&mut client).await;
    client.start_turn("noting:/s", "t1", "wait").await;
    agent.waiting.notified().await;
    let uri = "noting:/s".into();
    host.host.change_setup(&uri, brief()).await.unwrap();
    assert_eq!(*agent.closed.lock().unwrap(), 0, "its turn runs");
    agent.end.notify_one();
    assert_eq!(client.turn_end("noting:/s", "t1").await.state, TurnState::Complete);
    client.start_turn("noting:/s", "t2", "hello").await;
    client.turn_end("noting:/s", "t2").await;
    let both = setup().changed(brief());
    assert_eq!(agent.setups(), [setup(), both.clone()]);
    assert_eq!(*agent.closed.lock().unwrap(), 1);

    // The same again changes nothing; another one restarts the idle agent.
    host.host.change_setup(&uri, brief()).await.unwrap();
    client.start_turn("noting:/s", "t3", "hello").await;
    client.turn_end("noting:/s", "t3").await;
    assert_eq!(agent.setups().len(), 2);
    let none = SetupChange { mcp_servers: Some(Vec::new()), ..SetupChange::default() };
    host.host.change_setup(&uri, none).await.unwrap();
    client.start_turn("noting:/s", "t4", "hello").await;
    client.turn_end("noting:/s", "t4").await;
    assert_eq!(agent.setups()[2], AgentSetup { mcp_servers: Vec::new(), ..both });
}

#[tokio::test(start_paused = true)]
async fn a_setup_goes_along_to_another_store_and_to_a_fork() {
    let agent = NotingAgent::default();
    let host = host_with(&agent).await;
    host.host.create_session(wanted(setup())).await.unwrap();
    let mut client = host.client("a").await;
    ready(&mut client).await;
    client.start_turn("noting:/s", "t1", "hello").await;
    client.turn_end("noting:/s", "t1").await;
    client.call::<Value>("x-grove/migrate", json!({"channel": "noting:/s", "store": "other"})).await.unwrap();
    assert!(host.other.exists(FILE).await.unwrap());
    host.host.change_setup(&"noting:/s".into(), brief()).await.unwrap();
    let written = String::from_utf8(host.other.read_file(FILE).await.unwrap()).unwrap();
    assert!(written.contains("be brief"), "{written}");
    assert!(!host.sessions.exists(FILE).await.unwrap(), "nothing is written where the session was");

    let forked: Value = client.call("x-grove/fork", json!({"channel": "noting:/s"})).await.unwrap();
    let fork = forked["session"].as_str().unwrap();
    client.subscribe(fork).await.unwrap();
    client.start_turn(fork, "t2", "hello").await;
    client.turn_end(fork, "t2").await;
    assert_eq!(agent.setups().last(), Some(&setup().changed(brief())));
}

/// Subscribes to the session, and waits until its agent is there.
async fn ready(client: &mut grove_testkit::Client) {
    client.subscribe("noting:/s").await.unwrap();
    client.until(|client| client.session("noting:/s").lifecycle == Lifecycle::Ready).await;
}

/// The files of all sessions.
async fn files(host: &TestHost) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in host.sessions.readdir_with_types(&folder).await.unwrap_or_default() {
            let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            match entry.kind {
                grove_fs::FileKind::Folder => folders.push(path),
                _ => found.push((path.clone(), host.sessions.read_file(&path).await.unwrap())),
            }
        }
    }
    found
}
