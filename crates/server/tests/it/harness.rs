//! A host on connections that are pairs of pipes.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_agents::Agent;
use grove_agents::scripted::ScriptedAgent;
use grove_fs::{MemoryFs, SessionFs};
use grove_host::{Config, Env, Host};
use grove_server::{AcceptedStream, Listener, PeerAddress};
use grove_storage::{ClientStorageRegister, JournalContents, JournalStorage, RecordJournal, Stores, SyncMode, recover};
use grove_testkit::ahp::ReconnectOutcome;
use grove_testkit::host::{ADDRESS, Dialer, PIPE_BYTES, Pipes, TOKEN, Tasks};
use grove_testkit::{Client, ahp};
use tokio::io::DuplexStream;

use crate::gated_fs::{Gate, GatedFs};

pub(crate) struct TestHost {
    pub(crate) host: Host,
    pub(crate) journal: MemoryJournal,
    /// The local store.
    pub(crate) sessions: MemoryFs,
    /// Another store that outlives the host, called `other`.
    pub(crate) other: MemoryFs,
    /// Holds up everything that changes one of the two.
    pub(crate) changes: Gate,
    /// Holds up copies of logs.
    pub(crate) gate: Gate,
    /// The storage of the register of client-stored sessions.
    pub(crate) register: MemoryFs,
    /// The damage that was found at the start.
    pub(crate) damage: Vec<String>,
    agents: Vec<Arc<dyn Agent>>,
    tasks: Tasks,
    dialer: Dialer,
}

/// A listener whose connections come from the given addresses of other machines, in order.
pub(crate) struct Addressed {
    pub(crate) pipes: Pipes,
    pub(crate) addresses: Arc<Mutex<Vec<&'static str>>>,
}

#[async_trait]
impl Listener for Addressed {
    async fn accept(&mut self) -> io::Result<AcceptedStream> {
        let accepted = self.pipes.accept().await?;
        let mut addresses = self.addresses.lock().unwrap();
        let peer = if addresses.is_empty() { "10.0.0.9:1" } else { addresses.remove(0) }.parse().unwrap();
        Ok(AcceptedStream { peer: PeerAddress::Tcp { peer, local: "10.0.0.1:4141".parse().unwrap() }, ..accepted })
    }
}

/// A journal in memory, which can be read, truncated, and made to fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryJournal {
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
    pub(crate) full: Arc<AtomicBool>,
    /// Holds up what is written.
    pub(crate) writes: Gate,
}

#[async_trait]
impl JournalStorage for MemoryJournal {
    async fn append(&mut self, batch: Vec<u8>, _sync: SyncMode, _last_seq: u64) -> io::Result<()> {
        self.writes.step().await;
        if self.full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.lock().unwrap().extend_from_slice(&batch);
        Ok(())
    }

    /// Releases every event at once, while real segments are deleted one by one.
    async fn release(&mut self, upto: u64) {
        let mut bytes = self.bytes.lock().unwrap();
        // Records of one group are released together.
        let mut goes = false;
        let mut needed = |line: &[u8]| {
            let record: serde_json::Value = serde_json::from_slice(&line[9..]).unwrap();
            if let Some(seq) = record["event"]["seq"].as_u64() {
                goes = seq <= upto;
            }
            !goes || (record["event"].is_null() && record["mark"].is_null())
        };
        *bytes = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| needed(line)).flatten().copied().collect();
    }
}

impl TestHost {
    pub(crate) async fn start(config: Config) -> Self {
        Self::with_agents(config, vec![Arc::new(ScriptedAgent)]).await
    }

    pub(crate) async fn with_agents(config: Config, agents: Vec<Arc<dyn Agent>>) -> Self {
        Self::recovered(config, agents, MemoryJournal::default(), MemoryFs::default(), MemoryFs::default()).await
    }

    /// A host that continues at the end of a journal.
    pub(crate) async fn recovered(
        config: Config,
        agents: Vec<Arc<dyn Agent>>,
        journal: MemoryJournal,
        sessions: MemoryFs,
        other: MemoryFs,
    ) -> Self {
        let host = Self::with_register(config, agents, journal, [sessions, other, MemoryFs::default()]).await;
        assert_eq!(host.damage, Vec::<String>::new());
        host
    }

    /// The same with an earlier register of client-stored sessions.
    async fn with_register(
        config: Config,
        agents: Vec<Arc<dyn Agent>>,
        journal: MemoryJournal,
        [sessions, other, register]: [MemoryFs; 3],
    ) -> Self {
        let tasks = Tasks::default();
        let (gate, changes) = (Gate::default(), Gate::default());
        let store =
            |files: &MemoryFs| Arc::new(GatedFs { files: files.clone(), gate: gate.clone(), changes: changes.clone() });
        let stores = Stores::new(store(&sessions)).with(&"other".into(), store(&other)).unwrap();
        let known = ClientStorageRegister::open(Arc::new(register.clone()), "entrusted.jsonl").await.unwrap();
        let stores = stores.with_register(known);
        let env = Env { spawn: Arc::new(tasks.clone()), stores, ..Env::in_memory() };
        let contents = JournalContents::from_bytes(&journal.bytes.lock().unwrap());
        let recovered = recover(contents, &env.stores, config.limits.snapshot()).await.unwrap();
        let damage = recovered.damage.clone();
        let host = Host::start(env, config, agents.clone(), Box::new(RecordJournal::new(journal.clone())), recovered)
            .await
            .unwrap();
        let (dialer, _) = grove_testkit::host::serve(&host);
        Self { host, journal, sessions, other, changes, gate, register, damage, agents, tasks, dialer }
    }

    /// Ends all tasks of the host at once.
    pub(crate) async fn kill(&self) {
        self.tasks.kill();
        tokio::task::yield_now().await;
    }

    /// Ends all tasks of the host at once, and starts another on its journal.
    pub(crate) async fn kill_and_restart(&mut self, config: Config) {
        self.kill().await;
        self.restart(config).await;
        assert_eq!(self.damage, Vec::<String>::new());
    }

    /// Starts another host on the data of a killed one.
    pub(crate) async fn restart(&mut self, config: Config) {
        let agents = self.agents.clone();
        let files = [self.sessions.clone(), self.other.clone(), self.register.clone()];
        *self = Self::with_register(config, agents, self.journal.clone(), files).await;
    }

    pub(crate) fn url() -> String {
        format!("ws://{ADDRESS}/ws?tkn={TOKEN}")
    }

    /// The near end of a new connection. `buffer` is the capacity of the pipe.
    pub(crate) fn dial(&self, buffer: usize) -> DuplexStream {
        self.dialer.dial(buffer).unwrap()
    }

    /// A client that has not initialized.
    pub(crate) async fn connect(&self, client_id: &str) -> Client {
        Client::over(Box::new(self.dial(PIPE_BYTES)), &Self::url(), client_id).await
    }

    /// A client that has initialized, and is subscribed to the root.
    pub(crate) async fn client(&self, client_id: &str) -> Client {
        let mut client = self.connect(client_id).await;
        client.initialize(&["agenthost:root"]).await;
        client
    }

    /// A client of the Agent Host Protocol without subscriptions. `buffer` is the capacity of its pipe.
    pub(crate) async fn ahp_over(&self, client_id: &str, buffer: usize) -> ahp::Client {
        let mut client = ahp::Client::over(Box::new(self.dial(buffer)), &Self::url(), client_id).await;
        client.initialize(&[]).await;
        client
    }

    /// A client of this version of the Agent Host Protocol.
    pub(crate) async fn ahp_of(&self, version: &str, client_id: &str) -> ahp::Client {
        let mut client = ahp::Client::over(Box::new(self.dial(PIPE_BYTES)), &Self::url(), client_id).await;
        client.initialize_with(&[version], &[]).await.unwrap();
        client
    }

    pub(crate) async fn ahp(&self, client_id: &str) -> ahp::Client {
        self.ahp_over(client_id, PIPE_BYTES).await
    }

    pub(crate) async fn bring_back_ahp(&self, client: &mut ahp::Client) -> ReconnectOutcome {
        client.reconnect(Box::new(self.dial(PIPE_BYTES)), &Self::url()).await
    }

    /// Reconnects a client. Returns whether it got a replay.
    pub(crate) async fn bring_back(&self, client: &mut Client) -> bool {
        client.reconnect(Box::new(self.dial(PIPE_BYTES)), &Self::url()).await
    }
}

/// A host that keeps its sessions in any store.
pub(crate) struct StoreHost {
    pub(crate) host: Host,
    journal: MemoryJournal,
    sessions: Arc<dyn SessionFs>,
    tasks: Tasks,
    dialer: Dialer,
}

impl StoreHost {
    pub(crate) async fn start(config: Config, sessions: Arc<dyn SessionFs>) -> Self {
        Self::recovered(config, sessions, MemoryJournal::default()).await
    }

    async fn recovered(config: Config, sessions: Arc<dyn SessionFs>, journal: MemoryJournal) -> Self {
        let tasks = Tasks::default();
        let stores = Stores::new(sessions.clone());
        let env = Env { spawn: Arc::new(tasks.clone()), stores, ..Env::in_memory() };
        let contents = JournalContents::from_bytes(&journal.bytes.lock().unwrap());
        let recovered = recover(contents, &env.stores, config.limits.snapshot()).await.unwrap();
        let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(ScriptedAgent)];
        let host =
            Host::start(env, config, agents, Box::new(RecordJournal::new(journal.clone())), recovered).await.unwrap();
        let (dialer, _) = grove_testkit::host::serve(&host);
        Self { host, journal, sessions, tasks, dialer }
    }

    /// Ends all tasks of the host at once, and starts another on another handle of its store.
    pub(crate) async fn kill_and_restart(self, config: Config, sessions: Arc<dyn SessionFs>) -> Self {
        self.tasks.kill();
        tokio::task::yield_now().await;
        // Like a killed process, it does not clean up either.
        std::mem::forget(self.sessions);
        Self::recovered(config, sessions, self.journal).await
    }

    pub(crate) async fn ahp(&self, client_id: &str) -> ahp::Client {
        let near = self.dialer.dial(PIPE_BYTES).unwrap();
        let mut client = ahp::Client::over(Box::new(near), &TestHost::url(), client_id).await;
        client.initialize(&[]).await;
        client
    }
}

/// Waits until a condition holds: a minute of the test's clock, and half a minute of the real one.
///
/// The test's clock may run ahead of processes and files.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let (deadline, began) = (tokio::time::Instant::now() + Duration::from_secs(60), std::time::Instant::now());
    while !holds().await {
        let is_late = tokio::time::Instant::now() > deadline && began.elapsed() > Duration::from_secs(30);
        assert!(!is_late, "it does not come: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A client of the Agent Host Protocol on a host of the test's own.
pub(crate) async fn dialed(host: &Host) -> ahp::Client {
    let (dialer, _) = grove_testkit::host::serve(host);
    let near = dialer.dial(PIPE_BYTES).unwrap();
    let mut client = ahp::Client::over(Box::new(near), &TestHost::url(), "dialed").await;
    client.initialize(&[]).await;
    client
}
