//! A host behind a real socket that can be closed, and its provider.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_agents::scripted::ScriptedAgent;
use grove_agents::{Agent, AgentError, AgentSession, OpenSession};
use grove_client::dialect::ahp::DisposeSession;
use grove_client::{Ahp, Backoff, Client, Dial, Endpoint, Options};
use grove_core::AgentInfo;
use grove_host::{Config, Env, Host};
use grove_sessions::provider::{ProviderEvent, SendOptions};
use grove_sessions::providers::hosts::{HostIdentity, HostOptions, HostProvider};
use grove_sessions::session::SessionWorkspace;
use grove_sessions::{Session, SessionsProvider, Uri};
use grove_storage::{JournalContents, NoJournal, recover};
use grove_testkit::host::{Dialer, PIPE_BYTES, TOKEN};
use grove_wire::ahp::{
    Action, ChatAction, ChatToolCallConfirmed, CreateSessionParams, ResponsePart, ToolCallConfirmationReason,
    ToolCallState,
};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

/// The time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits, with the time limit.
pub(super) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not happen in {PATIENCE:?}"))
}

/// Waits until a condition holds.
pub(super) async fn until(what: &str, holds: impl Fn() -> bool) {
    soon(what, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Lets time pass without waiting for it: the timers of this process fire in their order whenever no task can go on.
pub(super) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::sleep(time).await;
    tokio::time::resume();
}

/// The scripted agent under another name.
pub(super) struct Named {
    pub(super) id: &'static str,
    pub(super) display_name: &'static str,
}

#[async_trait]
impl Agent for Named {
    fn info(&self) -> AgentInfo {
        let (id, display_name) = (self.id.into(), self.display_name.to_owned());
        AgentInfo { id, display_name, ..ScriptedAgent.info() }
    }

    async fn open(&self, session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        ScriptedAgent.open(session).await
    }
}

/// A host on its own port.
pub(super) struct TestHost {
    address: SocketAddr,
    door: Arc<TestListener>,
    dialer: Dialer,
    /// The host itself, which ends with it.
    pub(super) host: Host,
}

#[derive(Default)]
struct TestListener {
    is_shut: AtomicBool,
    open: Mutex<Vec<AbortHandle>>,
}

/// A connection to the host that needs no socket.
struct TestConnector(Dialer);

#[async_trait]
impl Dial for TestConnector {
    async fn dial(&self) -> io::Result<Box<dyn grove_client::ByteStream>> {
        Ok(Box::new(self.0.dial(PIPE_BYTES)?))
    }
}

impl TestHost {
    pub(super) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    pub(super) async fn with(config: Config) -> Self {
        let env = Env::in_memory();
        let recovered = recover(JournalContents::from_bytes(&[]), &env.stores, config.limits.snapshot()).await.unwrap();
        let agents: Vec<Arc<dyn Agent>> =
            vec![Arc::new(ScriptedAgent), Arc::new(Named { id: "other", display_name: "Other" })];
        let host = Host::start(env, config, agents, Box::new(NoJournal::default()), recovered).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (dialer, _) = grove_testkit::host::serve_at(&host, address);
        let door = Arc::new(TestListener::default());
        tokio::spawn({
            let (door, dialer) = (door.clone(), dialer.clone());
            async move {
                while let Ok((mut near, _)) = listener.accept().await {
                    if door.is_shut.load(Ordering::SeqCst) {
                        continue;
                    }
                    let Ok(mut middle) = dialer.dial(PIPE_BYTES) else { return };
                    let carried = tokio::spawn(async move {
                        tokio::io::copy_bidirectional(&mut near, &mut middle).await.ok();
                    });
                    door.open.lock().unwrap().push(carried.abort_handle());
                }
            }
        });
        Self { address, door, dialer, host }
    }

    /// Cuts every connection through the socket, and accepts none.
    pub(super) fn shut(&self) {
        self.door.is_shut.store(true, Ordering::SeqCst);
        self.door.open.lock().unwrap().drain(..).for_each(|open| open.abort());
    }

    pub(super) fn open(&self) {
        self.door.is_shut.store(false, Ordering::SeqCst);
    }

    pub(super) fn is_shut(&self) -> bool {
        self.door.is_shut.load(Ordering::SeqCst)
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint::tcp(&format!("ws://{}/ws", self.address), Some(TOKEN)).unwrap()
    }

    /// Its address and its token, for other endpoints.
    pub(super) fn way(&self) -> (String, String) {
        (format!("ws://{}/ws", self.address), TOKEN.to_owned())
    }

    /// Another client of the host.
    pub(super) async fn client(&self) -> Client<Ahp> {
        soon("a client", Client::connect(self.endpoint(), Ahp::default(), Options::default())).await.unwrap()
    }

    /// Another client of the host, which is not affected by closing the socket.
    pub(super) async fn inside(&self) -> Client<Ahp> {
        let way = Arc::new(TestConnector(self.dialer.clone()));
        let endpoint = Endpoint::over(&format!("ws://{}/ws", self.address), Some(TOKEN), way).unwrap();
        soon("a client", Client::connect(endpoint, Ahp::default(), Options::default())).await.unwrap()
    }

    /// The provider of this host.
    pub(super) async fn here(&self) -> Arc<HostProvider> {
        self.provider(HostIdentity::this_host("Grove").unwrap(), options()).await
    }

    /// The provider of another host.
    pub(super) async fn there(&self, name: &str) -> Arc<HostProvider> {
        let identity = HostIdentity::other_host(&self.address.to_string(), name).unwrap();
        self.provider(identity, options()).await
    }

    pub(super) async fn provider(&self, identity: HostIdentity, options: HostOptions) -> Arc<HostProvider> {
        let (provider, driver) = HostProvider::new(identity, self.endpoint(), options);
        tokio::spawn(driver.run());
        let provider = Arc::new(provider);
        until("a connected provider", || !provider.session_types().is_empty()).await;
        provider
    }
}

pub(super) fn options() -> HostOptions {
    let reconnect =
        Backoff { first: Duration::from_millis(20), longest: Duration::from_millis(100), ..Backoff::default() };
    HostOptions { reconnect, ..HostOptions::default() }
}

/// A worktree of a repository with a remote, on the branch `fix`, which has a pull request. Returns the repository's
/// folder and its own.
pub(super) fn worktree(folder: &Path) -> (PathBuf, PathBuf) {
    let folder = folder.canonicalize().unwrap();
    let git = folder.join("site/.git");
    let put = |path: PathBuf, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let remote = "[remote \"origin\"]\n\turl = git@github.com:acme/site.git\n";
    let tied = "[branch \"fix\"]\n\tgithub-pr-owner-number = \"acme#site#7\"\n";
    put(git.join("config"), &format!("{remote}{tied}"));
    put(git.join("refs/remotes/origin/HEAD"), "ref: refs/remotes/origin/main\n");
    put(git.join("worktrees/fix/HEAD"), "ref: refs/heads/fix\n");
    put(git.join("worktrees/fix/commondir"), "../..\n");
    put(folder.join("fix/.git"), &format!("gitdir: {}\n", git.join("worktrees/fix").display()));
    (folder.join("site"), folder.join("fix"))
}

/// Creates a session on a host, without its provider.
pub(super) async fn create(client: &Client<Ahp>, uri: &str, folder: &str) {
    let params = CreateSessionParams {
        channel: uri.to_owned(),
        working_directories: Some(vec![format!("file://{folder}")]),
        ..CreateSessionParams::default()
    };
    client.request(params).await.unwrap();
}

pub(super) async fn dispose(client: &Client<Ahp>, uri: &str) {
    client.request(DisposeSession { channel: uri.to_owned() }).await.unwrap();
}

pub(super) fn script(steps: serde_json::Value) -> SendOptions {
    SendOptions::new(format!("script:{steps}"))
}

/// The host's own URIs of a provider's sessions, in order.
pub(super) fn listed(provider: &HostProvider) -> Vec<String> {
    let host = provider.host();
    let mut all: Vec<String> =
        provider.sessions().iter().map(|session| host.host_uri(session.resource()).unwrap().to_owned()).collect();
    all.sort_unstable();
    all
}

pub(super) async fn until_listed(provider: &HostProvider, wanted: &[&str]) {
    until(&format!("the list {wanted:?}"), || listed(provider) == wanted).await;
}

/// The session that the host has under a URI, once it is listed.
pub(super) async fn session(provider: &HostProvider, host_uri: &str) -> Session {
    let resource = provider.host().here(host_uri);
    let find = || provider.sessions().into_iter().find(|session| *session.resource() == resource);
    until(host_uri, || find().is_some()).await;
    find().unwrap()
}

pub(super) async fn workspace(provider: &HostProvider, folder: &str) -> SessionWorkspace {
    provider.resolve_workspace(&Uri::from(format!("file://{folder}"))).await.unwrap().unwrap()
}

/// A sent session, with its events announced.
pub(super) async fn sent(provider: &HostProvider, options: SendOptions) -> Session {
    let workspace = workspace(provider, "/").await;
    let draft = provider.create_new_session(&workspace).await.unwrap();
    soon("the first message", provider.send_and_create_chat(draft.id(), options)).await.unwrap()
}

/// The announced events so far, in words.
pub(super) fn told(events: &mut broadcast::Receiver<ProviderEvent>) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        match event {
            ProviderEvent::Sessions(change) => {
                let names = |verb: &str, all: &[Session]| -> Vec<String> {
                    all.iter().map(|session| format!("{verb} {}", session.id().local())).collect()
                };
                told.extend(names("added", &change.added));
                told.extend(names("removed", &change.removed));
                told.extend(names("changed", &change.changed));
            }
            ProviderEvent::SessionReplacement(replaced) => {
                told.push(format!("replaced {} {}", replaced.from.id().local(), replaced.to.id().local()));
            }
            ProviderEvent::SessionTypes => told.push("types".to_owned()),
            ProviderEvent::Availability => told.push("availability".to_owned()),
        }
    }
    told
}

/// Approves the pending tool call of a chat, as another client.
pub(super) async fn approve(endpoint: &Endpoint, chat: &str) {
    let client = Client::connect(endpoint.clone(), Ahp::default(), Options::default());
    let client = soon("a client", client).await.unwrap();
    let mut chat = client.subscribe(chat).await.unwrap();
    let asked = chat.until(|state| {
        let turn = state.chat()?.active_turn.as_ref()?;
        turn.response_parts.iter().find_map(|part| match part {
            ResponsePart::ToolCall(part) => match &part.tool_call {
                ToolCallState::PendingConfirmation(call) => Some((turn.id.clone(), call.base.tool_call_id.clone())),
                _ => None,
            },
            _ => None,
        })
    });
    let (turn_id, tool_call_id) = soon("a question", asked).await.unwrap();
    let confirmed = ChatToolCallConfirmed {
        turn_id,
        tool_call_id,
        meta: None,
        approved: true,
        confirmed: Some(ToolCallConfirmationReason::UserAction),
        reason: None,
        edited_tool_input: None,
        user_suggestion: None,
        reason_message: None,
        selected_option_id: None,
    };
    chat.dispatch(Action::Chat(ChatAction::ToolCallConfirmed(Box::new(confirmed)))).unwrap().await;
}
