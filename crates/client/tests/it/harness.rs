//! A host behind a proxy that can cut, delay and refuse connections.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_agents::Agent;
use grove_agents::scripted::ScriptedAgent;
use grove_client::{Ahp, Backoff, Client, Dial, Endpoint, Options, Subscription, V1};
use grove_fs::MemoryFs;
use grove_host::{Config, Env, Host};
use grove_storage::{JournalContents, JournalStorage, RecordJournal, Stores, SyncMode, recover};
use grove_testkit::host::{Dialer, PIPE_BYTES, TOKEN, Tasks, pipes};
use grove_wire::v1::{self, SessionChange, SessionState, UserMessage};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How long a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits with a time limit.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not happen in {PATIENCE:?}"))
}

pub(crate) struct TestHost {
    pub(crate) host: Host,
    pub(crate) front: Arc<Front>,
    journal: MemoryJournal,
    sessions: MemoryFs,
    tasks: Tasks,
}

/// The proxy between clients and the host, which outlives the host.
pub(crate) struct Front {
    address: SocketAddr,
    /// The way to the current host.
    dialer: Mutex<Dialer>,
    open: Mutex<Vec<AbortHandle>>,
    refuse: AtomicBool,
    /// Messages to the host, and from it, pass.
    up: watch::Sender<bool>,
    down: watch::Sender<bool>,
}

impl Front {
    fn new(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            address,
            dialer: Mutex::new(pipes().0),
            open: Mutex::default(),
            refuse: AtomicBool::new(false),
            up: watch::Sender::new(true),
            down: watch::Sender::new(true),
        })
    }

    /// Cuts every connection silently; messages in transit are lost.
    pub(crate) fn cut(&self) {
        self.open.lock().unwrap().drain(..).for_each(|open| open.abort());
    }

    /// Sets whether new connections are dropped at once.
    pub(crate) fn refuse(&self, refuse: bool) {
        self.refuse.store(refuse, Ordering::SeqCst);
    }

    /// Sets whether messages reach the host.
    pub(crate) fn let_up(&self, pass: bool) {
        self.up.send_replace(pass);
    }

    /// Sets whether messages reach the clients.
    pub(crate) fn let_down(&self, pass: bool) {
        self.down.send_replace(pass);
    }

    fn connect(&self, near: impl AsyncRead + AsyncWrite + Send + 'static) {
        if self.refuse.load(Ordering::SeqCst) {
            return;
        }
        // A restarting host accepts no connections.
        let Ok(middle) = self.dialer.lock().unwrap().dial(PIPE_BYTES) else { return };
        let (near_in, near_out) = tokio::io::split(near);
        let (far_in, far_out) = tokio::io::split(middle);
        let (up, down) = (self.up.subscribe(), self.down.subscribe());
        let task = tokio::spawn(async move {
            tokio::select! {
                () = carry(near_in, far_out, up) => {}
                () = carry(far_in, near_out, down) => {}
            }
        });
        self.open.lock().unwrap().push(task.abort_handle());
    }
}

async fn carry(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut pass: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
        if pass.wait_for(|pass| *pass).await.is_err() || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// A dialer without sockets, for tests with a paused clock.
struct InMemory(Arc<Front>);

#[async_trait]
impl Dial for InMemory {
    async fn dial(&self) -> io::Result<Box<dyn grove_client::ByteStream>> {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        self.0.connect(far);
        Ok(Box::new(near))
    }
}

/// A journal in memory.
#[derive(Clone, Debug, Default)]
struct MemoryJournal(Arc<Mutex<Vec<u8>>>);

#[async_trait]
impl JournalStorage for MemoryJournal {
    async fn append(&mut self, batch: Vec<u8>, _sync: SyncMode, _last_seq: u64) -> io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(&batch);
        Ok(())
    }

    async fn release(&mut self, _upto: u64) {}
}

impl TestHost {
    /// A host behind a real TCP socket.
    pub(crate) async fn on_tcp(config: Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = Front::new(listener.local_addr().unwrap());
        let host = Self::behind(front.clone(), config).await;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                front.connect(stream);
            }
        });
        host
    }

    /// A host without sockets.
    pub(crate) async fn in_memory(config: Config) -> Self {
        Self::behind(Front::new("127.0.0.1:7000".parse().unwrap()), config).await
    }

    async fn behind(front: Arc<Front>, config: Config) -> Self {
        Self::recovered(front, config, MemoryJournal::default(), MemoryFs::default()).await
    }

    async fn recovered(front: Arc<Front>, config: Config, journal: MemoryJournal, sessions: MemoryFs) -> Self {
        let tasks = Tasks::default();
        let stores = Stores::new(Arc::new(sessions.clone()));
        let env = Env { spawn: Arc::new(tasks.clone()), stores, ..Env::in_memory() };
        let contents = JournalContents::from_bytes(&journal.0.lock().unwrap());
        let recovered = recover(contents, &env.stores, config.limits.snapshot()).await.unwrap();
        let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(ScriptedAgent)];
        let host =
            Host::start(env, config, agents, Box::new(RecordJournal::new(journal.clone())), recovered).await.unwrap();
        *front.dialer.lock().unwrap() = grove_testkit::host::serve_at(&host, front.address).0;
        Self { host, front, journal, sessions, tasks }
    }

    /// Aborts all tasks of the host, and starts another on its journal.
    pub(crate) async fn kill_and_restart(&mut self, config: Config) {
        self.tasks.kill();
        self.front.cut();
        tokio::task::yield_now().await;
        *self = Self::recovered(self.front.clone(), config, self.journal.clone(), self.sessions.clone()).await;
    }

    /// Aborts all tasks of the host, and starts one with an empty journal.
    pub(crate) async fn forget_and_restart(&mut self, config: Config) {
        (self.journal, self.sessions) = (MemoryJournal::default(), MemoryFs::default());
        self.kill_and_restart(config).await;
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}/ws", self.front.address)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::tcp(&self.url(), Some(TOKEN)).unwrap()
    }

    pub(crate) fn endpoint_in_memory(&self) -> Endpoint {
        Endpoint::over(&self.url(), Some(TOKEN), Arc::new(InMemory(self.front.clone()))).unwrap()
    }

    pub(crate) async fn client(&self, id: &str) -> Client<V1> {
        soon("a connection", Client::connect(self.endpoint(), V1::default(), options(id))).await.unwrap()
    }

    /// A client of the Agent Host Protocol.
    pub(crate) async fn ahp(&self, id: &str) -> Client<Ahp> {
        soon("a connection", Client::connect(self.endpoint(), Ahp::default(), options(id))).await.unwrap()
    }

    pub(crate) async fn ahp_in_memory(&self, id: &str) -> Client<Ahp> {
        let connect = Client::connect(self.endpoint_in_memory(), Ahp::default(), options(id));
        soon("a connection", connect).await.unwrap()
    }

    pub(crate) async fn client_in_memory(&self, id: &str) -> Client<V1> {
        let connect = Client::connect(self.endpoint_in_memory(), V1::default(), options(id));
        soon("a connection", connect).await.unwrap()
    }
}

pub(crate) fn options(id: &str) -> Options {
    let reconnect =
        Backoff { first: Duration::from_millis(20), longest: Duration::from_millis(200), ..Backoff::default() };
    Options { client_id: Some(id.to_owned()), reconnect, ..Options::default() }
}

pub(crate) async fn create(client: &Client<V1>, uri: &str) {
    let params =
        v1::CreateSessionParams { session: uri.to_owned(), provider: None, model: None, working_directory: None };
    client.request(params).await.unwrap();
}

/// A session that is subscribed and ready.
pub(crate) async fn ready_session(client: &Client<V1>, uri: &str) -> Subscription<V1> {
    create(client, uri).await;
    let mut session = client.subscribe(uri).await.unwrap();
    until(&mut session, "a ready session", |state| state.lifecycle == v1::Lifecycle::Ready).await;
    session
}

pub(crate) fn start(turn: &str, text: &str) -> SessionChange {
    let user_message = UserMessage { text: text.to_owned(), attachments: None };
    SessionChange::TurnStarted { turn_id: turn.to_owned(), user_message }
}

pub(crate) fn script(turn: &str, steps: serde_json::Value) -> SessionChange {
    start(turn, &format!("script:{steps}"))
}

/// Waits until the optimistic state of a session fulfils a condition.
pub(crate) async fn until(session: &mut Subscription<V1>, what: &str, done: impl Fn(&SessionState) -> bool) {
    soon(what, session.until(|state| done(state.session()?).then_some(()))).await.unwrap();
}

pub(crate) async fn turn_end(session: &mut Subscription<V1>, turn: &str) {
    until(session, "a turn's end", |state| state.turns.iter().any(|done| done.id == turn)).await;
}

pub(crate) fn confirmed(session: &Subscription<V1>) -> SessionState {
    session.read_confirmed(|state, _| state.session().unwrap().clone())
}

/// The session's current state at the host.
pub(crate) async fn snapshot(client: &Client<V1>, uri: &str) -> v1::Snapshot<SessionState> {
    soon("a snapshot", client.request_raw("subscribe", &json!({"resource": uri}))).await.unwrap()
}

/// Waits until the host has answered every action, so that a snapshot contains them.
pub(crate) async fn all_answered(pending: impl Fn() -> usize) {
    soon("an answer to each action", async {
        while pending() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Law 1: the confirmed state equals the host's at the same number. For an idle session.
pub(crate) async fn must_agree(session: &Subscription<V1>) {
    all_answered(|| session.pending()).await;
    let theirs = snapshot(session.client(), session.resource()).await;
    assert_eq!(confirmed(session), theirs.state, "{} at {}", session.client().client_id(), theirs.from_seq);
}
