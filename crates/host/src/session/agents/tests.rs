//! The rules of the agents of a session's chats.

use std::sync::Mutex;

use async_trait::async_trait;
use grove_agents::TurnSink;
use grove_fs::MemoryFs;
use grove_fs::temp_files::TempFilePolicy;

use super::*;
use crate::config::Config;
use crate::session::SetupKeeper;
use crate::session::reports::tests::{TURN, session_with};
use crate::session::spills::LeftoverSpills;

/// An agent that notes what it is told, and works on a turn for ever.
#[derive(Clone, Default)]
struct NotingAgent(Arc<Mutex<Vec<String>>>);

impl NotingAgent {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// The messages that it got, after the spawned tasks have run.
    async fn noted(&self) -> Vec<String> {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[async_trait]
impl Agent for NotingAgent {
    fn info(&self) -> AgentInfo {
        unreachable!("nobody asks")
    }

    async fn open(&self, opening: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        self.note(format!("open {:?}", opening.agent_session_id));
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl AgentSession for NotingAgent {
    async fn prompt(&self, _: Prompt, _: TurnSink) -> Result<(), AgentError> {
        self.note("prompt");
        std::future::pending().await
    }

    async fn configure(&self, values: Extra) {
        self.note(format!("configure {values:?}"));
    }

    async fn cancel(&self, turn: &TurnId) {
        self.note(format!("cancel {turn}"));
    }

    async fn close(&self, why: CloseReason) {
        self.note(format!("close {why:?}"));
    }
}

struct Fixture {
    agent: NotingAgent,
    agents: ChatAgents,
    inbox: mpsc::Receiver<ToSession>,
    _sender: mpsc::Sender<ToSession>,
    session: Session,
    env: Env,
    config: Config,
    spills: SessionSpills,
}

impl Fixture {
    fn new() -> Self {
        let (sender, inbox) = mpsc::channel(8);
        let (agent, config) = (NotingAgent::default(), Config::default());
        let agents = ChatAgents::new(Arc::new(agent.clone()), sender.downgrade());
        let (store, left) = (Arc::new(MemoryFs::default()), LeftoverSpills::None);
        let spills = SessionSpills::new("s".into(), store, left, TempFilePolicy::Removed, &config);
        let session = session_with(vec![]);
        Self { agent, agents, inbox, _sender: sender, session, env: Env::in_memory(), config, spills }
    }

    /// The main chat's agent works on the turn.
    async fn working() -> Self {
        let mut fixture = Self::new();
        fixture.prompt();
        fixture.take_opened().await;
        fixture.prompt();
        assert_eq!(fixture.agent.noted().await, ["open None", "prompt"]);
        fixture
    }

    fn prompt(&mut self) {
        let Self { agents, session, env, config, spills, .. } = self;
        let store = Arc::new(MemoryFs::default());
        let setup = SessionSetup::stored(store, session.id.clone(), SetupKeeper::Host).with(Arc::default());
        let context =
            AgentContext { session, env, limits: &config.limits, spills, setup: &setup, may_lack_folders: false };
        agents.prompt(&main(), &TURN.into(), context);
    }

    async fn take_opened(&mut self) {
        let Some(ToSession::AgentOpened(chat, Ok(agent))) = self.inbox.recv().await else { panic!("it opened") };
        self.agents.opened(&chat, agent, self.env.spawn.as_ref());
    }

    fn end(&mut self, by_agent: bool) {
        let ended = EndedTurn { chat: main(), turn: TURN.into(), by_agent, outcome: Outcome::Complete, error: None };
        self.agents.end(&ended, self.env.spawn.as_ref());
    }
}

fn main() -> ChatId {
    Session::MAIN_CHAT.into()
}

#[tokio::test]
async fn an_agent_starts_with_the_first_turn_and_gets_it_when_it_is_ready() {
    let mut fixture = Fixture::new();
    assert!(fixture.agents.is_closed(&main()) && !fixture.agents.is_busy());
    fixture.prompt();
    fixture.prompt();
    assert!(!fixture.agents.is_closed(&main()) && fixture.agents.is_busy());
    fixture.take_opened().await;
    assert_eq!(fixture.agent.noted().await, ["open None"], "it starts once, however often it is needed");
    fixture.prompt();
    assert_eq!(fixture.agent.noted().await, ["prompt"]);
}

#[tokio::test]
async fn settings_that_change_while_an_agent_starts_reach_it_when_it_is_ready() {
    let mut fixture = Fixture::new();
    fixture.prompt();
    let settings = Extra::from_iter([("mode".to_owned(), "plan".into())]);
    fixture.agents.configure(&settings, fixture.env.spawn.as_ref());
    fixture.take_opened().await;
    assert_eq!(fixture.agent.noted().await, ["open None".to_owned(), format!("configure {settings:?}")]);
    // The settings for one that did not start are not kept: the next one starts with them.
    fixture.agents.restart(&main(), fixture.env.spawn.as_ref());
    fixture.prompt();
    fixture.agents.configure(&settings, fixture.env.spawn.as_ref());
    fixture.agents.failed_to_open(&main());
    fixture.take_opened().await;
    assert_eq!(fixture.agent.noted().await, ["close Replaced", "open None"]);
}

#[tokio::test]
async fn only_a_turn_that_the_agent_did_not_end_is_cancelled() {
    let mut fixture = Fixture::working().await;
    fixture.end(true);
    assert_eq!(fixture.agent.noted().await, Vec::<String>::new());
    assert!(!fixture.agents.is_busy() && fixture.agents.silence.is_none());
    fixture.prompt();
    fixture.end(false);
    assert_eq!(fixture.agent.noted().await, [format!("cancel {TURN}")]);
}

#[tokio::test]
async fn the_end_of_a_turn_ends_its_requests() {
    let mut fixture = Fixture::working().await;
    let (sender, mut verdict) = oneshot::channel();
    fixture.agents.await_answer(&main(), &TURN.into(), "r".into(), AnswerSender::Permission(sender));
    fixture.end(true);
    assert_eq!(verdict.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    assert!(!fixture.agents.is_busy());
}

#[tokio::test]
async fn the_next_agent_waits_until_the_former_one_is_gone() {
    let mut fixture = Fixture::working().await;
    fixture.end(true);
    fixture.agents.restart(&main(), fixture.env.spawn.as_ref());
    assert!(fixture.agents.is_busy(), "it is not gone yet");
    fixture.prompt();
    assert_eq!(fixture.agent.noted().await, ["close Replaced", "open None"]);
}

#[tokio::test]
async fn a_copied_conversation_goes_on_in_the_first_agent() {
    let mut fixture = Fixture::new();
    let (copied, copy) = oneshot::channel();
    fixture.agents.inherit(&main(), copy);
    assert!(fixture.agents.is_busy());
    fixture.prompt();
    copied.send(Some("copy".to_owned())).unwrap();
    assert_eq!(fixture.agent.noted().await, [r#"open Some("copy")"#]);
    let AgentsEvent::Reports(reports) = fixture.agents.next(true).await else { panic!("a report") };
    assert!(matches!(&reports[0].events[..], [AgentEvent::AgentSessionId(id)] if id == "copy"));
}

#[tokio::test]
async fn reports_wait_while_they_cannot_be_stored() {
    let mut fixture = Fixture::new();
    let sink = ChatSink::new(main(), fixture.agents.report_sender.clone());
    sink.report(vec![AgentEvent::Text("a".to_owned())], None).await.unwrap();
    assert!(fixture.agents.next(false).now_or_never().is_none());
    let next = fixture.agents.next(true).now_or_never();
    assert!(matches!(next, Some(AgentsEvent::Reports(batch)) if batch.len() == 1));
}
