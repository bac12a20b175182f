//! A test folder with a pool of agents, and a stand-in for the host that stores their reports.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use grove_agents::acp::client_tools::RelayProgram;
use grove_agents::acp::{AcpAgent, AcpProgram, FileScope, NoDocuments, ProcessPool, ProcessPoolOptions};
use grove_agents::*;
use grove_core::*;
use grove_shim::{ShimLimits, ShimOptions, ShimProgram};
use grove_testkit::acp::{AgentBehavior, BEHAVIOR_VARIABLE, agent_program, prompt};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// The timeout for operations that are expected to hang.
pub(crate) const SHORT: Duration = Duration::from_millis(300);
/// The time limit for an agent's initialization when its session is created.
pub(crate) const CREATION: Duration = Duration::from_secs(5);
pub(crate) const CHAT: &str = "main";

/// This test program is the shim as well, so that it exists wherever the tests are built.
#[test]
#[ignore = "other tests run it as their shim"]
fn as_a_shim() {
    if std::env::args().any(|arg| arg == "--exact") {
        ShimOptions::from_stdin().and_then(grove_shim::run).expect("the shim runs");
    }
}

fn shim_program() -> ShimProgram {
    let args = ["--ignored", "--exact", "fixture::as_a_shim", "--nocapture"].map(Into::into).to_vec();
    ShimProgram { program: std::env::current_exe().unwrap(), args }
}

pub(crate) struct AgentFixture {
    folder: TempDir,
    pub(crate) work: PathBuf,
    pub(crate) options: ProcessPoolOptions,
    pub(crate) program: AcpProgram,
}

impl AgentFixture {
    /// An agent with this behavior and a store, so that its sessions outlive its process.
    pub(crate) fn new(behavior: AgentBehavior) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (work, store) = (root.join("work"), root.join("store"));
        for path in [&work, &store] {
            std::fs::create_dir(path).unwrap();
        }
        let behavior = AgentBehavior { store: behavior.store.or(Some(store)), ..behavior };
        // A failed test leaves nothing behind for long.
        let shim_limits = ShimLimits { alone: DEADLINE, linger: DEADLINE, grace: SHORT, ..ShimLimits::default() };
        let options = ProcessPoolOptions {
            folder: root.join("shims"),
            shim: shim_program(),
            shim_limits,
            processes: 8,
            idle: DEADLINE,
            patience: DEADLINE,
            start: DEADLINE,
            cancel: DEADLINE,
            capture: None,
            private: Vec::new(),
            documents: Arc::new(NoDocuments),
            relay: RelayProgram { program: PathBuf::new(), args: Vec::new(), filter_args: Vec::new() },
        };
        let program = AcpProgram {
            id: "scripted-acp".into(),
            display_name: "Scripted".to_owned(),
            description: String::new(),
            program: agent_program(),
            args: Vec::new(),
            env: [(BEHAVIOR_VARIABLE.to_owned(), behavior.to_json())].into(),
            auth: Vec::new(),
            files: FileScope::default(),
            known: None,
            mcp_servers: Vec::new(),
        };
        Self { folder, work, options, program }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn pool(&self) -> Arc<ProcessPool> {
        ProcessPool::new(self.options.clone())
    }

    pub(crate) fn agent(&self, pool: &Arc<ProcessPool>) -> AcpAgent {
        AcpAgent::new(self.program.clone(), Arc::clone(pool))
    }

    pub(crate) async fn open(&self) -> TestSession {
        self.open_in(&self.pool(), "s", None).await
    }

    pub(crate) async fn open_in(
        &self,
        pool: &Arc<ProcessPool>,
        session: &str,
        agent_session_id: Option<String>,
    ) -> TestSession {
        let agent = self.agent(pool);
        TestSession::open(&agent, session, vec![self.work.display().to_string()], agent_session_id, Extra::new()).await
    }
}

/// A chat's agent, and the reports that a host would have stored.
pub(crate) struct TestSession {
    pub(crate) agent: Arc<dyn AgentSession>,
    reports: mpsc::Receiver<Report>,
    sink: ChatSink,
    pub(crate) stored: StoredReports,
}

#[derive(Default)]
pub(crate) struct StoredReports {
    /// The text of its turns.
    pub(crate) text: String,
    /// The ids of the messages that the text is from.
    pub(crate) messages: Vec<String>,
    pub(crate) usage: Usage,
    pub(crate) activities: Vec<Option<String>>,
    pub(crate) notices: Vec<String>,
    /// The output of tool calls that have it as data only.
    pub(crate) results: Vec<String>,
    pub(crate) agent_session_id: Vec<String>,
    pub(crate) commands: Vec<AgentCommand>,
    pub(crate) settings: Option<(Extra, Extra)>,
    pub(crate) titles: Vec<String>,
    pub(crate) mark: Option<FrameCursor>,
    pub(crate) asked: Vec<AskedPermission>,
    pub(crate) questions: Vec<(InputRequest, oneshot::Sender<InputResponse>)>,
    /// Lets the agent forget reports that are stored.
    pub(crate) forgets: bool,
}

/// A permission request to a person.
pub(crate) struct AskedPermission {
    pub(crate) request: PermissionRequest,
    pub(crate) call: ToolCallId,
    /// Dropping it would withdraw the request.
    pub(crate) answer: oneshot::Sender<Verdict>,
}

pub(crate) fn approved() -> Verdict {
    Decision::Approved.into()
}

pub(crate) type TurnTask = JoinHandle<Result<(), AgentError>>;

impl TestSession {
    pub(crate) async fn open(
        agent: &AcpAgent,
        session: &str,
        working_directories: Vec<String>,
        agent_session_id: Option<String>,
        settings: Extra,
    ) -> Self {
        Self::open_spilling(agent, session, working_directories, agent_session_id, settings, Arc::new(())).await
    }

    /// Opens a session with a store for output that is too large.
    pub(crate) async fn open_spilling(
        agent: &AcpAgent,
        session: &str,
        working_directories: Vec<String>,
        agent_session_id: Option<String>,
        settings: Extra,
        spills: Arc<dyn SpillStore>,
    ) -> Self {
        // Small, so that the agent waits for its reports to be taken.
        let (sender, reports) = mpsc::channel(4);
        let sink = ChatSink::new(CHAT.into(), sender);
        let opening = OpenSession {
            session: session.into(),
            chat: CHAT.into(),
            model: None,
            working_directories,
            agent_session_id,
            settings,
            reports: sink.clone(),
            spills,
            start: AgentStart::FirstTurn,
            setup: Arc::default(),
            client_tools: ClientTools::default(),
        };
        let agent = agent.open(opening).await.unwrap();
        Self { agent, reports, sink, stored: StoredReports { forgets: true, ..StoredReports::default() } }
    }

    /// Creates a session: its agent starts at once.
    pub(crate) async fn create(agent: &AcpAgent, session: &str, folder: &Path) -> Result<Self, AgentError> {
        // As large as a host's: nobody takes the reports while the agent starts.
        let (sender, reports) = mpsc::channel(256);
        let sink = ChatSink::new(CHAT.into(), sender);
        let opening = OpenSession {
            session: session.into(),
            chat: CHAT.into(),
            model: None,
            working_directories: vec![folder.display().to_string()],
            agent_session_id: None,
            settings: Extra::new(),
            reports: sink.clone(),
            spills: Arc::new(()),
            start: AgentStart::Now { within: CREATION },
            setup: Arc::default(),
            client_tools: ClientTools::default(),
        };
        let agent = agent.open(opening).await?;
        Ok(Self { agent, reports, sink, stored: StoredReports { forgets: true, ..StoredReports::default() } })
    }

    /// Starts a turn; its reports wait to be taken.
    pub(crate) fn start(&self, turn: &str, steps: &Value) -> TurnTask {
        self.start_with(turn, simple(&prompt(steps)))
    }

    pub(crate) fn start_with(&self, turn: &str, prompt: Prompt) -> TurnTask {
        let (agent, sink) = (Arc::clone(&self.agent), self.sink.turn(turn.into()));
        tokio::spawn(async move { agent.prompt(prompt, sink).await })
    }

    pub(crate) fn resume(&self, turn: &str, from: Resumption) -> TurnTask {
        let (agent, sink) = (Arc::clone(&self.agent), self.sink.turn(turn.into()));
        tokio::spawn(async move { agent.resume(simple(""), from, sink).await })
    }

    /// Runs a turn to its end.
    pub(crate) async fn turn(&mut self, turn: &str, steps: Value) -> Result<(), AgentError> {
        let running = self.start(turn, &steps);
        self.end(running).await
    }

    /// Takes reports until a turn is over.
    pub(crate) async fn end(&mut self, mut running: TurnTask) -> Result<(), AgentError> {
        let ended = async {
            loop {
                tokio::select! {
                    biased;
                    Some(report) = self.reports.recv() => take(&mut self.stored, &*self.agent, report),
                    ended = &mut running => break ended.unwrap(),
                }
            }
        };
        let ended = timeout(DEADLINE, ended).await.expect("the turn ends");
        while let Ok(report) = self.reports.try_recv() {
            take(&mut self.stored, &*self.agent, report);
        }
        ended
    }

    /// Waits until the channel of reports is full: its receiver takes none.
    pub(crate) async fn until_full(&self) {
        until("the channel is full", || self.reports.len() == self.reports.max_capacity()).await;
    }

    /// Takes reports until it is so.
    pub(crate) async fn until(&mut self, what: &str, is_so: impl Fn(&StoredReports) -> bool) {
        let reached = async {
            while !is_so(&self.stored) {
                let report = self.reports.recv().await.expect("the agent goes on");
                take(&mut self.stored, &*self.agent, report);
            }
        };
        if timeout(DEADLINE, reached).await.is_err() {
            panic!("{what}; said so far: {:?}", self.stored.text);
        }
    }

    /// Kills the host: nothing is closed in an orderly way. Its stored reports are left.
    pub(crate) fn kill(self, running: &TurnTask) -> StoredReports {
        running.abort();
        self.stored
    }
}

fn simple(text: &str) -> Prompt {
    Prompt { message: Message::user(text), model: None, client_tools: Vec::new(), memory: Arc::new(()) }
}

fn take(stored: &mut StoredReports, agent: &dyn AgentSession, report: Report) {
    assert_eq!(report.chat, CHAT.into());
    for event in report.events {
        match event {
            AgentEvent::Text(text) => stored.text.push_str(&text),
            AgentEvent::MessageText(chunk) => {
                stored.text.push_str(&chunk.content);
                if stored.messages.last() != Some(&chunk.message) {
                    stored.messages.push(chunk.message);
                }
            }
            AgentEvent::Usage(usage) => stored.usage = stored.usage.updated(usage),
            AgentEvent::CallUsage(usage) => stored.usage = stored.usage.added(usage),
            AgentEvent::Activity(activity) => stored.activities.push(activity),
            AgentEvent::Notice(notice) => stored.notices.push(notice),
            AgentEvent::AgentSessionId(agent_session_id) => {
                assert_eq!(report.turn, None, "it holds whatever becomes of the turn");
                stored.agent_session_id.push(agent_session_id);
            }
            AgentEvent::Commands(commands) => stored.commands = commands,
            AgentEvent::AgentSettings { schema, values } => stored.settings = Some((schema, values)),
            AgentEvent::Title(title) => stored.titles.push(title),
            AgentEvent::InputNeeded { request, answer } => stored.questions.push((*request, answer)),
            AgentEvent::Tool(update) => {
                stored.results.extend(update.result_text);
                if let Some(PermissionPrompt { request, answer, .. }) = update.permission {
                    stored.asked.push(AskedPermission { request, call: update.call, answer });
                }
            }
            _ => {}
        }
    }
    if let Some(mark) = report.mark {
        if stored.forgets {
            agent.stored(&mark);
        }
        stored.mark = Some(mark);
    }
}

pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < DEADLINE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns when no task of this process can go on by itself: timers that are due within the time have fired, without waiting
/// for them. What has not happened by then waits for something outside.
pub(crate) async fn until_idle(within: Duration) {
    tokio::time::pause();
    tokio::time::sleep(within).await;
    tokio::time::resume();
}

/// The process that started another one.
pub(crate) fn parent_of(id: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    stat[stat.rfind(')').unwrap()..].split(' ').nth(2).unwrap().to_owned()
}

/// Returns true while a process has not ended.
pub(crate) fn is_alive(id: impl ToString) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", id.to_string().trim()))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

/// The text after a word in an agent's output, up to the end of the line.
pub(crate) fn after<'a>(text: &'a str, word: &str) -> &'a str {
    let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("{word} in {text:?}"));
    rest.lines().next().unwrap_or_default().trim()
}
