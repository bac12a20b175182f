//! Forks on every kind of store and from each to each, compared file by file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_agents::scripted::ScriptedAgent;
use grove_fs::rpc::{CallError, Limits as RpcLimits, Remote, RemoteCalls, StorageCapabilities, StorageClientConfig};
use grove_fs::workspace::database::{Database, LocalDatabase, Statement};
use grove_fs::workspace::{Field, Manifest, Todo, TodoStatus, Todos};
use grove_fs::{Conventions, FileKind, LocalFs, MemoryFs, RpcFs, SessionFs, StorageClient};
use grove_host::{Compaction, Config, Env, Host, Limits};
use grove_storage::Stores;
use grove_testkit::ahp::Client;
use serde_json::{Value, json};

use crate::harness::until;

const STORES: [&str; 3] = ["local", "memory", "provider"];

/// Calls that a storage client in this process answers.
#[derive(Debug)]
struct InProcess(StorageClient);

#[async_trait]
impl RemoteCalls for InProcess {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.0.answer(method, params).await
    }
}

async fn provider() -> RpcFs {
    let capabilities = StorageCapabilities { binary: true, ..StorageCapabilities::default() };
    let config = StorageClientConfig {
        initial_cwd: "/work".to_owned(),
        session_state_path: "/state".to_owned(),
        conventions: Conventions::Posix,
        capabilities,
    };
    let provider = StorageClient::new(Conventions::Posix, capabilities);
    provider.add("host", Arc::new(MemoryFs::default()));
    let remote = Remote::new(Arc::new(InProcess(provider)), RpcLimits::default());
    let fs = RpcFs::new(Arc::new(remote), "host", config).unwrap();
    fs.mkdir("").await.unwrap();
    fs
}

struct StoreFolder {
    client: Client,
    stores: Stores,
    _host: Host,
    _folder: tempfile::TempDir,
}

impl StoreFolder {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let local = Arc::new(LocalFs::new(folder.path().join("sessions")));
        let stores = Stores::new(local).with(&"provider".into(), Arc::new(provider().await)).unwrap();
        let config = Config {
            compaction: Compaction { at_percent: 80, keep_tokens: 5 },
            limits: Limits { spill_bytes: 1_000, ..Limits::default() },
            ..Config::default()
        };
        let env = Env { stores: stores.clone(), ..Env::in_memory() };
        let host = Host::in_memory(env, config, vec![Arc::new(ScriptedAgent)]).await.unwrap();
        let client = crate::harness::dialed(&host).await;
        Self { client, stores, _host: host, _folder: folder }
    }

    fn fs(&self, store: &str) -> Arc<dyn SessionFs> {
        self.stores.get(&store.into()).unwrap()
    }

    async fn ask(&mut self, method: &str, session: &str, params: Value) -> Value {
        let mut all = json!({"channel": format!("scripted:/{session}")});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        self.client.ask(&format!("x-grove/{method}"), all).await.unwrap()
    }

    async fn say(&mut self, chat: &str, turn: &str, text: &str) {
        self.client.run_script(chat, turn, json!([{"say": text}])).await;
    }

    /// Every file of a session, once nothing changes any more.
    async fn files(&self, store: &str, session: &str) -> BTreeMap<String, Vec<u8>> {
        let fs = self.fs(store);
        let mut last = BTreeMap::new();
        until("the session's files are at rest", async || {
            tokio::time::sleep(Duration::from_millis(30)).await;
            let found = everything(fs.as_ref(), session).await;
            let is_whole = found.contains_key("session.json") && !found.contains_key(".copying");
            let is_same = found == last;
            last = found;
            is_same && is_whole
        })
        .await;
        // These two are not the conversation, and are different in every session.
        last.retain(|name, _| !name.ends_with("events.idx") && name != "session.json");
        last
    }

    /// The folders of a session's other chats, in the order of the chats.
    async fn chats(&mut self, session: &str) -> Vec<String> {
        let uri = format!("scripted:/{session}");
        self.client.follow(&uri).await;
        let mut folders = Vec::new();
        for chat in self.client.session(&uri).chats.clone() {
            // Readers wait for the copy.
            self.client.ask("x-grove/tree", json!({"channel": chat.resource})).await.unwrap();
            folders.push(format!("chats/{}", chat.resource.rsplit('/').next().unwrap()));
        }
        folders.remove(0);
        folders
    }

    /// Creates a session with everything: chats, checkpoints, plan, files, a database, a paste, a stored body.
    ///
    /// Returns the message in the middle of it.
    async fn full_session(&mut self, store: &str, session: &str) -> Value {
        let uri = format!("scripted:/{session}");
        self.client.ask("createSession", json!({"channel": uri, "config": {"grove.store": store}})).await.unwrap();
        let chat = self.client.follow(&uri).await;
        self.client.dispatch(&uri, json!({"type": "session/titleChanged", "title": "All of it"})).await;
        self.say(&chat, "t1", "one").await;
        self.say(&chat, "t2", &"pasted ".repeat(300)).await;
        self.client.run_script(&chat, "t3", json!([{"part": {"mimeType": "image/png", "base64": "/wAB"}}])).await;
        self.ask("workspace/setPlan", session, json!({"text": "early plan"})).await;
        self.ask("workspace/writeFile", session, json!({"name": "a/early.md", "data": "early"})).await;
        let research = json!({"name": "early.bin", "shelf": "research", "data": "/wD+", "encoding": "base64"});
        self.ask("workspace/writeFile", session, research).await;
        if let Some(database) = LocalDatabase::of(self.fs(store).as_ref(), session) {
            put_todos(&database).await;
        }
        for (name, source) in [
            ("plain", Value::Null),
            ("side", json!({"kind": "sideChat", "chat": chat, "turnId": "t1", "selection": {"text": "on"}})),
        ] {
            let other = format!("ahp-chat:/{session}-{name}");
            let mut params = json!({"channel": uri, "chat": other});
            if !source.is_null() {
                params["source"] = source;
            }
            self.client.ask("createChat", params).await.unwrap();
            self.client.subscribe(&other).await.unwrap();
            self.say(&other, &format!("{name}-1"), &"in another chat, pasted ".repeat(100)).await;
        }
        self.ask("compact", session, json!({})).await;
        // Files and messages are told apart by milliseconds of the real clock.
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.say(&chat, "t4", "the boundary").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.ask("workspace/setPlan", session, json!({"text": "late plan"})).await;
        self.ask("workspace/writeFile", session, json!({"name": "late.md", "data": "late"})).await;
        self.say(&chat, "t5", &"late and pasted ".repeat(100)).await;
        self.ask("compact", session, json!({})).await;
        let rows = self.ask("tree", session, json!({"filter": "user-only"})).await["rows"].clone();
        let boundary = rows.as_array().unwrap().iter().find(|row| row["text"].as_str().unwrap().contains("boundary"));
        boundary.unwrap()["id"].clone()
    }

    /// Checks that a fork has every file of its source, each the same except for what must differ.
    async fn must_be_forked(&mut self, (from, source): (&str, &str), (to, fork): (&str, &str), before: &Snapshot) {
        let what = format!("{source} from {from} to {to}");
        let chats: Vec<(String, String)> = before.chats.iter().cloned().zip(self.chats(fork).await).collect();
        let mut copied = self.files(to, fork).await;
        let spelled = |store: &str, id: &str| self.fs(store).location(&format!("{id}/files/paste-")).unwrap();
        let renamed = |text: &str| {
            let text = text.replace(&spelled(from, source), &spelled(to, fork));
            text.replace(&format!("\"{source}/checkpoints/"), &format!("\"{fork}/checkpoints/"))
        };
        for (name, bytes) in &before.files {
            let folder = chats.iter().find(|(old, _)| name.starts_with(&format!("{old}/")));
            let name = folder.map_or(name.clone(), |(old, new)| name.replace(old, new));
            let mine = copied.remove(&name).unwrap_or_else(|| panic!("{what}: no {name}"));
            if name.ends_with("events.jsonl") {
                let (theirs, mine) = (renamed(&text(bytes)), text(&mine));
                let (theirs, mine): (Vec<&str>, Vec<&str>) = (theirs.lines().collect(), mine.lines().collect());
                assert_eq!(mine[1..theirs.len()], theirs[1..], "{what}: {name}");
                let header: Value = serde_json::from_str(mine[0]).unwrap();
                assert_eq!(header["id"], fork, "{what}: {name}");
                let own = mine[theirs.len()..].iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
                let own: Vec<String> = own.map(|line| line["type"].as_str().unwrap().to_owned()).collect();
                // Its origin, and its name.
                let expected: &[&str] = if name == "events.jsonl" { &["custom", "session_info"] } else { &[] };
                assert_eq!(own, expected, "{what}: {name}");
            } else if name == "workspace.yaml" {
                assert_eq!(about(&mine), about(bytes), "{what}");
                let manifest = Manifest::parse(&text(&mine)).unwrap();
                assert_eq!(manifest.text(Field::Id).unwrap(), Some(fork), "{what}");
            } else if name == "session.db" && from == "local" {
                // A database that others may write is copied by SQLite.
                assert!(mine.starts_with(b"SQLite format 3\0"), "{what}");
            } else {
                assert_eq!(mine, *bytes, "{what}: {name}");
            }
        }
        assert_eq!(copied.keys().collect::<Vec<_>>(), Vec::<&String>::new(), "{what}: more than there was");
        // The source's log has it, too, before any later request.
        let log = format!("{source}/events.jsonl");
        until("the source is told", async || self.fs(from).read_text(&log).await.unwrap().contains(fork)).await;
    }
}

/// A session at one moment.
struct Snapshot {
    files: BTreeMap<String, Vec<u8>>,
    chats: Vec<String>,
}

impl Snapshot {
    async fn of(place: &mut StoreFolder, store: &str, session: &str) -> Self {
        let chats = place.chats(session).await;
        Self { files: place.files(store, session).await, chats }
    }

    fn names(&self, beginning: &str) -> Vec<&str> {
        self.files.keys().map(String::as_str).filter(|name| name.starts_with(beginning)).collect()
    }

    fn text(&self, name: &str) -> String {
        text(&self.files[name])
    }
}

async fn everything(fs: &dyn SessionFs, session: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![session.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs.readdir_with_types(&folder).await.unwrap_or_default() {
            let path = format!("{folder}/{}", entry.name);
            match entry.kind {
                FileKind::Folder => folders.push(path),
                // It may be a temporary one that is gone already.
                _ => drop(
                    found.insert(path[session.len() + 1..].to_owned(), fs.read_file(&path).await.unwrap_or_default()),
                ),
            }
        }
    }
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The part of a manifest that is the same in a fork.
fn about(manifest: &[u8]) -> Vec<String> {
    let own = ["id:", "name:", "user_named:", "fork_count:", "created_at:", "updated_at:"];
    let lines = text(manifest);
    lines.lines().filter(|line| !own.iter().any(|field| line.starts_with(field))).map(str::to_owned).collect()
}

/// Todos as the Copilot CLI writes them.
async fn put_todos(database: &LocalDatabase) {
    let todo = |id: &str, status, depends_on: &[&str]| Todo {
        id: id.to_owned(),
        title: format!("do {id}"),
        description: (id == "b").then(|| "at length".to_owned()),
        status,
        depends_on: depends_on.iter().map(|&other| other.to_owned()).collect(),
    };
    let todos = Todos::of(database);
    todos.put(&todo("b", TodoStatus::Done, &[])).await.unwrap();
    todos.put(&todo("a", TodoStatus::InProgress, &["b"])).await.unwrap();
    let by_hand =
        "INSERT INTO todos (id, title) VALUES ('c', 'do c'); INSERT INTO todo_deps VALUES ('c', 'a'), ('c', 'b')";
    database.query(Statement::exec(by_hand)).await.unwrap();
}

fn expected_todos() -> Value {
    json!([
        {"id": "b", "title": "do b", "description": "at length", "status": "done", "dependsOn": []},
        {"id": "a", "title": "do a", "status": "in_progress", "dependsOn": ["b"]},
        {"id": "c", "title": "do c", "status": "pending", "dependsOn": ["a", "b"]},
    ])
}

fn id_of(answer: &Value) -> String {
    answer["session"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

#[tokio::test]
async fn whole_forks_from_each_store_to_each_have_every_file_of_their_source() {
    let mut place = StoreFolder::new().await;
    for from in STORES {
        let source = format!("whole-{from}");
        place.full_session(from, &source).await;
        for to in STORES {
            let before = Snapshot::of(&mut place, from, &source).await;
            assert_eq!(before.names("checkpoints/").len(), 3, "two and their index");
            assert_eq!((before.names("files/").len(), before.names("chats/").len()), (6, 2), "four were pasted");
            assert!(
                before.files.contains_key("session.db") == (from == "local") && before.names("content/").len() == 1
            );
            let fork = id_of(&place.ask("fork", &source, json!({"store": to})).await);
            place.must_be_forked((from, &source), (to, &fork), &before).await;
            assert!(!everything(place.fs(from).as_ref(), &fork).await.contains_key("plan.md") || from == to);
        }
    }
}

#[tokio::test]
async fn bounded_forks_on_each_store_have_what_was_there_and_go_on_to_each() {
    let mut place = StoreFolder::new().await;
    for from in STORES {
        let source = format!("bounded-{from}");
        let boundary = place.full_session(from, &source).await;
        let before = Snapshot::of(&mut place, from, &source).await;
        let branch = id_of(&place.ask("branch", &source, json!({"entry": boundary})).await);
        let after = Snapshot::of(&mut place, from, &branch).await;
        let first = before.names("checkpoints/001-")[0];
        let pasted = before.names("files/paste-");
        let mut expected = vec![first, "checkpoints/index.md", before.names("content/")[0], "events.jsonl"];
        expected.push("files/a/early.md");
        // Pastes in other chats existed, too.
        expected.extend(&pasted[..3]);
        expected.extend(["plan-history.jsonl", "plan.md", "research/early.bin"]);
        expected.extend(Some("session.db").filter(|_| from == "local"));
        expected.push("workspace.yaml");
        assert_eq!(after.names(""), expected, "{from}: no other chats, and nothing that came later");
        for name in expected.iter().filter(|name| {
            let changed = ["checkpoints/index.md", "events.jsonl", "plan-history.jsonl", "plan.md", "session.db"];
            !changed.contains(*name) && **name != "workspace.yaml"
        }) {
            assert_eq!(after.files[*name], before.files[*name], "{from}: {name}");
        }
        assert_eq!((after.text("plan.md").as_str(), before.text("plan.md").as_str()), ("early plan", "late plan"));
        for name in ["plan-history.jsonl", "events.jsonl", "checkpoints/index.md", "workspace.yaml"] {
            let text = after.text(name).replace("\"leftOut\":[\"checkpoints/002", "").replace("files/late.md", "");
            assert!(!text.contains("late") && !text.contains("002-"), "{from}: {name}: {text}");
        }
        let log = after.text("events.jsonl");
        let info = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let info = info.into_iter().rfind(|line| line["customType"] == "grove.info").unwrap()["data"].clone();
        let marked = if from == "local" { json!(["session.db"]) } else { Value::Null };
        assert_eq!(info["asOfNow"], marked, "{from}: {info}");
        assert_eq!(info["leftOut"].as_array().unwrap().len(), 3, "a checkpoint, a file, a paste: {info}");
        let source_place = place.fs(from).location(&format!("{source}/files/paste-")).unwrap();
        assert!(!log.contains(&source_place), "{from}: {log}");
        for to in STORES {
            let before = Snapshot::of(&mut place, from, &branch).await;
            let fork = id_of(&place.ask("fork", &branch, json!({"store": to})).await);
            place.must_be_forked((from, &branch), (to, &fork), &before).await;
        }
    }
}

#[tokio::test]
async fn todos_are_read_where_there_is_a_database_and_go_with_forks_through_any_store() {
    let mut place = StoreFolder::new().await;
    let boundary = place.full_session("local", "s").await;
    let todos = |answer: Value| answer["todos"].clone();
    assert_eq!(todos(place.ask("workspace/todos", "s", json!({})).await), expected_todos());
    let branch = id_of(&place.ask("branch", "s", json!({"entry": boundary})).await);
    place.chats(&branch).await;
    assert_eq!(todos(place.ask("workspace/todos", &branch, json!({})).await), expected_todos());
    for through in STORES {
        let there = id_of(&place.ask("fork", "s", json!({"store": through})).await);
        place.chats(&there).await;
        // A store that is no folder of this machine keeps the file, and has no tables to read.
        let shown = if through == "local" { expected_todos() } else { json!([]) };
        assert_eq!(todos(place.ask("workspace/todos", &there, json!({})).await), shown, "{through}");
        let back = id_of(&place.ask("fork", &there, json!({"store": "local"})).await);
        place.chats(&back).await;
        assert_eq!(todos(place.ask("workspace/todos", &back, json!({})).await), expected_todos(), "{through}");
        // They are its own.
        let database = LocalDatabase::of(place.fs("local").as_ref(), &back).unwrap();
        assert!(Todos::of(&database).remove("c").await.unwrap());
        assert_eq!(todos(place.ask("workspace/todos", "s", json!({})).await), expected_todos());
    }
}
