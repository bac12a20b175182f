//! A host whose clock, randomness, tasks, journal and stores belong to the test, so that two runs give the same bytes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_agents::Agent;
use grove_agents::scripted::ScriptedAgent;
use grove_core::Timestamp;
use grove_fs::rpc::StorageCapabilities;
use grove_fs::{Conventions, FileKind, MemoryFs, SessionFs, StorageClient};
use grove_host::{Compaction, Config, Env, Host, Random};
use grove_server::HostServer;
use grove_server::copilot::{EndpointConfig, EndpointSecret};
use grove_storage::{ClientStorageRegister, JournalContents, JournalStorage, RecordJournal, Stores, SyncMode, recover};
use grove_testkit::host::{Dialer, PausedClock, Tasks, pipes};
use tokio::io::DuplexStream;

use crate::agent::TapeAgent;
use crate::client::{Client, Dialect, Recording, SdkClient};
use crate::folder;
use crate::timed_fs::TimedFs;

pub(crate) const SECRET: &str = "the secret of the port";

/// The clock of a scenario begins here: 2023-11-14T22:13:20Z.
const BEGINNING: u64 = 1_700_000_000_000;
const DAY: u64 = 24 * 60 * 60 * 1_000;

/// Everything that outlives a host of a scenario.
pub(crate) struct World {
    clock: Arc<PausedClock>,
    random: Arc<CountingRandom>,
    journal: SegmentedJournal,
    local: MemoryFs,
    other: MemoryFs,
    register: MemoryFs,
    /// The files of sessions that a client stores, by session.
    pub(crate) client_files: BTreeMap<String, MemoryFs>,
    recordings: Mutex<BTreeMap<String, Recording>>,
}

/// A host of a scenario.
pub(crate) struct RunningHost {
    pub(crate) host: Host,
    tasks: Tasks,
    serving: HostServer,
    dialer: Dialer,
    sdk_dialer: Dialer,
}

pub(crate) fn agents() -> Vec<Arc<dyn Agent>> {
    vec![Arc::new(ScriptedAgent), Arc::new(TapeAgent)]
}

/// Conversations are compacted from a few tokens on.
pub(crate) fn config() -> Config {
    Config { compaction: Compaction { at_percent: 80, keep_tokens: 5 }, ..Config::default() }
}

/// Waits until everything has happened that was begun: paused time moves on only when nothing else can, and nothing takes so long.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            clock: Arc::new(PausedClock::new(Timestamp(BEGINNING))),
            random: Arc::default(),
            journal: SegmentedJournal::default(),
            local: MemoryFs::default(),
            other: MemoryFs::default(),
            register: MemoryFs::default(),
            client_files: BTreeMap::new(),
            recordings: Mutex::default(),
        }
    }

    /// The world that a committed scenario left, a day later.
    pub(crate) async fn load(scenario: &str) -> Self {
        let mut world = Self::new();
        world.clock = Arc::new(PausedClock::new(Timestamp(BEGINNING + DAY)));
        // Other ids than those that are given already.
        world.random = Arc::new(CountingRandom(AtomicU64::new(1 << 32)));
        for (path, bytes) in folder::read(&folder::root(scenario)) {
            let path = path.to_str().unwrap();
            let (place, rest) = path.split_once('/').unwrap();
            match (place, rest.split_once('/')) {
                ("data", Some(("journal", name))) => world.journal.load(name, bytes),
                ("data", Some(("session-state", path))) => put(&world.local, path, &bytes).await,
                ("data", None) if rest != "journal.end" => put(&world.register, rest, &bytes).await,
                ("other", _) => put(&world.other, rest, &bytes).await,
                ("client", Some((session, path))) => {
                    put(world.client_files.entry(session.to_owned()).or_default(), path, &bytes).await;
                }
                _ => {}
            }
        }
        world
    }

    /// The storage of a client that keeps one session.
    pub(crate) fn storage(&mut self, session: &str) -> Arc<StorageClient> {
        let files = self.client_files.entry(session.to_owned()).or_default().clone();
        let provider = StorageClient::new(Conventions::Posix, StorageCapabilities::default());
        provider.add(session, Arc::new(TimedFs::new(files)));
        Arc::new(provider)
    }

    /// The files of sessions, without journal and frames.
    pub(crate) async fn stored(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = self.files().await;
        files.retain(|path, _| !path.starts_with("data/journal") && !path.starts_with("frames"));
        files.remove(Path::new("data/journal.end"));
        files
    }

    /// Starts a host on what earlier ones left.
    pub(crate) async fn start(&self) -> RunningHost {
        let tasks = Tasks::default();
        let store = |files: &MemoryFs| Arc::new(TimedFs::new(files.clone()));
        let register = ClientStorageRegister::open(store(&self.register), "entrusted.jsonl").await.unwrap();
        let stores = Stores::new(store(&self.local)).with(&"other".into(), store(&self.other));
        let stores = stores.unwrap().with_register(register);
        let env = Env {
            clock: self.clock.clone(),
            random: self.random.clone(),
            spawn: Arc::new(tasks.clone()),
            stores,
            metrics: Arc::default(),
        };
        let contents = JournalContents::from_bytes(&self.journal.begin_next());
        let recovered = recover(contents, &env.stores, config().limits.snapshot()).await.unwrap();
        assert_eq!(recovered.damage, Vec::<String>::new());
        let host = Host::start(env, config(), agents(), Box::new(RecordJournal::new(self.journal.clone())), recovered)
            .await
            .unwrap();
        RunningHost::serve(host, tasks)
    }

    pub(crate) async fn client(&self, host: &RunningHost, dialect: Dialect, name: &str) -> Client {
        let recording = self.recording(&format!("{}-{name}", dialect.name()));
        Client::connect(host.connection(), dialect, name, recording).await
    }

    pub(crate) fn sdk(&self, host: &RunningHost, name: &str) -> SdkClient {
        SdkClient::connect(host.sdk_connection(), self.recording(&format!("copilot-{name}")))
    }

    fn recording(&self, name: &str) -> Recording {
        self.recordings.lock().unwrap().entry(name.to_owned()).or_default().clone()
    }

    /// Everything that the scenario left: the data folder under `data/`, the other store under `other/`, the files of
    /// storage clients under `client/`, and the frames under `frames/`.
    pub(crate) async fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        for (number, bytes) in self.journal.segments() {
            all.insert(PathBuf::from(format!("data/journal/{number:012}.journal")), bytes);
        }
        all.insert("data/journal.end".into(), self.journal.end_note());
        read_all(&self.local, String::new(), "data/session-state", &mut all).await;
        read_all(&self.other, String::new(), "other", &mut all).await;
        read_all(&self.register, String::new(), "data", &mut all).await;
        for (session, files) in &self.client_files {
            read_all(files, String::new(), &format!("client/{session}"), &mut all).await;
        }
        for (name, recording) in &*self.recordings.lock().unwrap() {
            all.insert(format!("frames/{name}.jsonl").into(), recording.text().into_bytes());
        }
        all
    }
}

async fn put(fs: &MemoryFs, path: &str, bytes: &[u8]) {
    if let Some((folder, _)) = path.rsplit_once('/') {
        fs.mkdir(folder).await.unwrap();
    }
    fs.write_file(path, bytes).await.unwrap();
}

async fn read_all(fs: &MemoryFs, folder: String, below: &str, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs.readdir_with_types(&folder).await.unwrap() {
        let path = if folder.is_empty() { entry.name.clone() } else { format!("{folder}/{}", entry.name) };
        match entry.kind {
            FileKind::Folder => Box::pin(read_all(fs, path, below, all)).await,
            _ => drop(all.insert(format!("{below}/{path}").into(), fs.read_file(&path).await.unwrap())),
        }
    }
}

impl RunningHost {
    /// A host that can be connected to by pipes.
    pub(crate) fn serve(host: Host, tasks: Tasks) -> Self {
        let (dialer, serving) = grove_testkit::host::serve(&host);
        let (sdk_dialer, pipes) = pipes();
        let config = EndpointConfig {
            store: "copilot".into(),
            secret: Some(EndpointSecret::Text(SECRET.to_owned())),
            keeps_temp_files: false,
            default_folder: None,
            allows_all: false,
        };
        serving.serve_sdks(config, Box::new(pipes));
        Self { host, tasks, serving, dialer, sdk_dialer }
    }

    pub(crate) fn connection(&self) -> DuplexStream {
        self.dialer.dial(1 << 20).unwrap()
    }

    pub(crate) fn sdk_connection(&self) -> DuplexStream {
        self.sdk_dialer.dial(1 << 20).unwrap()
    }

    /// Ends all tasks of the host at once, as `kill -9` does.
    pub(crate) async fn kill(self) {
        self.tasks.kill();
        settle().await;
        drop(self.serving);
    }
}

/// Bytes that follow from how often they were asked for (SplitMix64 of a counter).
#[derive(Debug, Default)]
struct CountingRandom(AtomicU64);

impl Random for CountingRandom {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        for piece in bytes.chunks_mut(8) {
            let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            let mut z = count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            piece.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..piece.len()]);
        }
        Ok(())
    }
}

/// A journal in memory with the segments that the journal's files would have: a new one for each host.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentedJournal(Arc<Mutex<Segments>>);

#[derive(Debug, Default)]
struct Segments {
    /// Bytes and highest number of each.
    all: BTreeMap<u64, (Vec<u8>, u64)>,
    current: u64,
    /// The end of the newest segment at its last sync.
    synced: usize,
}

impl SegmentedJournal {
    /// Begins the segment of another host, and gives everything before it.
    fn begin_next(&self) -> Vec<u8> {
        let mut segments = self.0.lock().unwrap();
        let before = segments.all.values().flat_map(|(bytes, _)| bytes.clone()).collect();
        segments.current += 1;
        segments.synced = 0;
        before
    }

    /// Takes a segment of an earlier host.
    fn load(&self, name: &str, bytes: Vec<u8>) {
        let number = name.strip_suffix(".journal").unwrap().parse().unwrap();
        let numbers = records(&bytes).into_iter().filter_map(|record| record["event"]["seq"].as_u64());
        let last_seq = numbers.max().unwrap_or_default();
        let mut segments = self.0.lock().unwrap();
        segments.all.insert(number, (bytes, last_seq));
        segments.current = segments.current.max(number);
    }

    fn segments(&self) -> BTreeMap<u64, Vec<u8>> {
        self.0.lock().unwrap().all.iter().map(|(number, (bytes, _))| (*number, bytes.clone())).collect()
    }

    /// The file beside the journal that names its end.
    fn end_note(&self) -> Vec<u8> {
        let segments = self.0.lock().unwrap();
        let fields = format!("{:020} {:020}", segments.current, segments.synced);
        format!("{fields} {:08x}\n", crc32fast::hash(fields.as_bytes())).into_bytes()
    }
}

/// The records of a segment.
pub(crate) fn records(bytes: &[u8]) -> Vec<serde_json::Value> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(&line[9..]).unwrap()).collect()
}

impl Segments {
    fn current_is_empty(&self) -> bool {
        !self.all.contains_key(&self.current)
    }

    /// The first line of a segment: how long the one before it was.
    fn head(&self) -> Vec<u8> {
        let before = self.all.last_key_value();
        let after = before.map(|(number, (bytes, _))| serde_json::json!({"number": number, "bytes": bytes.len()}));
        let json = match after {
            Some(after) => format!("{{\"segment\":{{\"after\":{after}}}}}"),
            None => "{\"segment\":{\"after\":null}}".to_owned(),
        };
        format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes()
    }
}

#[async_trait]
impl JournalStorage for SegmentedJournal {
    async fn append(&mut self, batch: Vec<u8>, sync: SyncMode, last_seq: u64) -> io::Result<()> {
        let mut segments = self.0.lock().unwrap();
        let lines = match segments.current_is_empty() {
            true => [segments.head(), batch].concat(),
            false => batch,
        };
        let current = segments.current;
        let segment = segments.all.entry(current).or_default();
        segment.0.extend_from_slice(&lines);
        segment.1 = segment.1.max(last_seq);
        let length = segment.0.len();
        if sync == SyncMode::Now {
            segments.synced = length;
        }
        Ok(())
    }

    fn begins_segment(&self) -> bool {
        self.0.lock().unwrap().current_is_empty()
    }

    async fn release(&mut self, upto: u64) {
        let mut segments = self.0.lock().unwrap();
        if !segments.current_is_empty() {
            let current = segments.current;
            segments.all.retain(|number, (_, last_seq)| *number == current || *last_seq > upto);
        }
    }
}
