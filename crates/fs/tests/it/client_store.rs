//! All sessions of a storage client as one store, its connections, ranges and databases.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_fs::rpc::{CallError, Limits, ReconnectingCalls, Remote, RemoteCalls, StorageCapabilities};
use grove_fs::storage_client::NoHandler;
use grove_fs::temp_files::{TempFilePolicy, TempFiles};
use grove_fs::workspace::database::{Cell, DatabaseError, Statement};
use grove_fs::workspace::{Todo, TodoStatus, Todos};
use grove_fs::{Backend, ClientStore, Conventions, FsError, LocalFs, MemoryFs, Removal, SessionFs, StorageClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Files, InProcess, config};

/// A storage client with two sessions, and every call that it got.
#[derive(Debug)]
struct Recorder {
    storage_client: Arc<StorageClient>,
    calls: Mutex<Vec<(String, Value)>>,
}

#[async_trait]
impl RemoteCalls for Recorder {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.calls.lock().unwrap().push((method.to_owned(), params.clone()));
        InProcess(self.storage_client.clone()).call(method, params).await
    }
}

fn store(capabilities: StorageCapabilities) -> (ClientStore, Arc<Recorder>, [MemoryFs; 2]) {
    let files = [MemoryFs::default(), MemoryFs::default()];
    let storage_client = StorageClient::new(Conventions::Posix, capabilities);
    for (id, files) in ["s1", "s2"].into_iter().zip(&files) {
        storage_client.begin(id, Some(Arc::new(files.clone()))).unwrap();
    }
    let recorder = Arc::new(Recorder { storage_client: Arc::new(storage_client), calls: Mutex::default() });
    let mut config = config(Conventions::Posix, Files::Text);
    config.capabilities = capabilities;
    let remote = Remote::new(recorder.clone(), Limits::default());
    (ClientStore::new(Arc::new(remote), config).unwrap(), recorder, files)
}

#[tokio::test]
async fn the_first_part_of_a_path_is_the_session_and_never_reaches_the_provider_as_a_path() {
    let (store, recorder, files) = store(StorageCapabilities::default());
    assert_eq!(store.backend(), Backend::Rpc);
    store.append_file("s1/events.jsonl", b"one\n").await.unwrap();
    store.write_file("s2/files/a.md", b"two").await.unwrap();
    assert_eq!(files[0].read_file("state/events.jsonl").await.unwrap(), b"one\n");
    assert_eq!(files[1].read_file("state/files/a.md").await.unwrap(), b"two");
    assert_eq!(store.read_range("s1/events.jsonl", 1, 2).await.unwrap(), b"ne");
    assert_eq!(store.readdir("s2").await.unwrap(), ["files"]);
    assert!(!store.exists("s1/files").await.unwrap());
    store.rename("s2/files/a.md", "s2/files/b.md").await.unwrap();
    assert_eq!(store.location("s2/files/b.md").unwrap(), "/state/files/b.md");
    assert_eq!(store.initial_cwd().as_deref(), Some("/work"));
    for (method, params) in &*recorder.calls.lock().unwrap() {
        for path in ["path", "src", "dest"].into_iter().filter_map(|name| params[name].as_str()) {
            assert!(path == "/state" || path.starts_with("/state/"), "{method} {params}");
        }
        assert!(["s1", "s2"].contains(&params["sessionId"].as_str().unwrap()), "{method} {params}");
    }
}

#[tokio::test]
async fn what_a_provider_cannot_do_over_sessions_is_an_empty_list_or_an_error_of_its_own() {
    let (store, recorder, _) = store(StorageCapabilities::default());
    store.write_file("s1/a", b"one").await.unwrap();
    assert_eq!(store.readdir("").await.unwrap(), [""; 0]);
    store.stat("").await.unwrap();
    let across = |path: &str| FsError::AcrossSessions { path: path.to_owned() };
    assert_eq!(store.rename("s1/a", "s2/a").await.unwrap_err(), across("s1/a"));
    assert_eq!(store.rename("s1", "s1~1").await.unwrap_err(), across("s1"));
    assert_eq!(across("s1/a").code(), "EXDEV");
    assert_eq!(store.write_file("s1", b"").await.unwrap_err(), FsError::IsADirectory { path: "s1".into() });
    store.tmpdir().unwrap_err();
    store.rm("", Removal::Everything).await.unwrap_err();
    // A session's folder is emptied; another session's stays.
    store.write_file("s2/a", b"two").await.unwrap();
    store.rm("s1", Removal::Everything).await.unwrap();
    assert!(!store.exists("s1/a").await.unwrap());
    assert!(store.exists("s2/a").await.unwrap());
    let refused = store.read_file("s3/a").await.unwrap_err();
    assert!(refused.to_string().contains("No session found for sessionId: s3"), "{refused}");
    assert_eq!(refused.path(), "s3/a");
    assert!(recorder.calls.lock().unwrap().iter().all(|(_, params)| params["path"] != ""));
}

#[tokio::test]
async fn temporary_files_are_their_session_s_own() {
    let (store, ..) = store(StorageCapabilities::default());
    let one = store.session_store("s1").unwrap();
    let temp = TempFiles::new(&*one, TempFilePolicy::Removed).unwrap().register("txt").unwrap();
    assert!(temp.shown.starts_with("/state/temp/"), "{}", temp.shown);
    assert_eq!(one.lock_key("a").unwrap(), "s1:/state/a");
    let key = store.lock_key("s2/a").unwrap();
    assert!(key.ends_with(":s2:/state/a") && key == store.clone().lock_key("s2/a").unwrap(), "{key}");
    let (other, ..) = self::store(StorageCapabilities::default());
    assert_ne!(other.lock_key("s2/a").unwrap(), key, "another client's session of the same id");
}

/// Calls that wait until they are released.
#[derive(Debug, Default)]
struct Slow(Notify);

#[async_trait]
impl RemoteCalls for Slow {
    async fn call(&self, _: &str, _: Value) -> Result<Value, CallError> {
        self.0.notified().await;
        Ok(json!({"exists": true}))
    }
}

#[tokio::test(start_paused = true)]
async fn calls_go_to_the_connection_of_the_moment() {
    let board = Arc::new(ReconnectingCalls::default());
    let ask = async |board: &ReconnectingCalls| board.call("sessionFs.exists", json!({})).await;
    assert_eq!(ask(&board).await.unwrap_err(), CallError::Disconnected);
    let slow = Arc::new(Slow::default());
    board.connect(slow.clone());
    assert!(board.is_connected());
    let waiting = tokio::spawn({
        let board = board.clone();
        async move { board.call("sessionFs.exists", json!({})).await }
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    board.disconnect();
    assert_eq!(waiting.await.unwrap().unwrap_err(), CallError::Disconnected, "nobody will answer it");
    board.connect(slow.clone());
    slow.0.notify_one();
    assert_eq!(ask(&board).await.unwrap(), json!({"exists": true}));
}

#[tokio::test]
async fn a_log_is_read_in_ranges_where_the_provider_offers_them() {
    let (store, recorder, files) = store(StorageCapabilities { ranges: true, ..StorageCapabilities::default() });
    files[0].write_file("state/log", &vec![b'x'; 3 << 20]).await.unwrap();
    assert_eq!(store.read_range("s1/log", (3 << 20) - 2, 100).await.unwrap(), b"xx");
    assert_eq!(store.read_range("s1/log", 9 << 20, 100).await.unwrap(), b"");
    let missing = store.read_range("s1/none", 0, 1).await.unwrap_err();
    assert_eq!(missing, FsError::NotFound { path: "s1/none".into() });
    let calls = std::mem::take(&mut *recorder.calls.lock().unwrap());
    assert!(calls.iter().all(|(method, _)| method != "sessionFs.readFile"), "{calls:?}");
    let wanted = json!({"sessionId": "s1", "path": "/state/log", "offset": 3_145_726, "length": 100});
    assert_eq!(calls[0], ("sessionFs.readFileRange".into(), wanted));
    let mut lines = store.read_lines("s1/log", 4 << 20).await.unwrap();
    assert_eq!(lines.next().await.unwrap().unwrap().bytes.len(), 3 << 20);
    // A client that offers no ranges is not asked for them.
    let (plain, recorder, files) = self::store(StorageCapabilities::default());
    files[0].write_file("state/log", b"text").await.unwrap();
    assert_eq!(plain.read_range("s1/log", 1, 2).await.unwrap(), b"ex");
    assert!(recorder.calls.lock().unwrap().iter().all(|(method, _)| method != "sessionFs.readFileRange"));
}

#[tokio::test]
async fn todos_go_through_the_provider_s_database() {
    let folder = tempfile::tempdir().unwrap();
    let capabilities = StorageCapabilities { sqlite: true, ..StorageCapabilities::default() };
    let storage_client = StorageClient::new(Conventions::Posix, capabilities);
    storage_client.add("s1", Arc::new(LocalFs::new(folder.path())));
    storage_client.add("s2", Arc::new(MemoryFs::default()));
    let mut config = config(Conventions::Posix, Files::Text);
    config.capabilities = capabilities;
    let remote = Remote::new(Arc::new(InProcess(Arc::new(storage_client))), Limits::default());
    let store = ClientStore::new(Arc::new(remote), config).unwrap();
    let database = store.database("s1").unwrap();
    let todos = Todos::of(&*database);
    assert_eq!(todos.list().await.unwrap(), []);
    assert!(!folder.path().join("session.db").exists(), "looking makes none");
    let todo = |id: &str, depends_on: &[&str]| Todo {
        id: id.into(),
        title: format!("the {id}"),
        description: None,
        status: TodoStatus::Blocked,
        depends_on: depends_on.iter().map(|id| (*id).to_owned()).collect(),
    };
    todos.put(&todo("a", &[])).await.unwrap();
    todos.put(&todo("b", &["a"])).await.unwrap();
    assert_eq!(todos.list().await.unwrap(), [todo("a", &[]), todo("b", &["a"])]);
    assert!(folder.path().join("session.db").exists());
    let rows = database.query(Statement::query("SELECT 1 AS n, 0.5 AS r, NULL AS z")).await.unwrap();
    assert_eq!(rows.rows, [[Cell::Integer(1), Cell::Real(0.5), Cell::Null]]);
    let wrong = database.query(Statement::query("SELECT nothing")).await.unwrap_err();
    assert!(matches!(&wrong, DatabaseError::Sql { reason } if reason.contains("nothing")), "{wrong}");
    let bad = Statement::run("INSERT INTO todos VALUES (:id)").with("id", Cell::Blob(vec![1]));
    assert!(matches!(database.query(bad).await, Err(DatabaseError::Unexpected { .. })));
    let failed = database.transaction(vec![Statement::run("DELETE FROM todos"), Statement::run("nonsense")]).await;
    assert!(matches!(failed, Err(DatabaseError::Sql { .. })), "{failed:?}");
    assert_eq!(todos.list().await.unwrap().len(), 2, "all or nothing");
    // If the session's store has none, the call alone fails.
    let none = store.database("s2").unwrap();
    assert!(none.query(Statement::query("SELECT 1")).await.unwrap_err().to_string().contains("no database"));
    assert!(store.exists("s2").await.is_ok());
    assert!(self::store(StorageCapabilities::default()).0.database("s1").is_none(), "it says that it has none");
}

#[tokio::test]
async fn a_session_without_a_handler_is_not_begun() {
    let storage_client = StorageClient::new(Conventions::Posix, StorageCapabilities::default());
    assert_eq!(storage_client.begin("s1", None).unwrap_err(), NoHandler { session: "s1".into() });
    let asked = storage_client.answer("sessionFs.exists", json!({"sessionId": "s1", "path": "/a"})).await;
    assert!(asked.unwrap_err().to_string().contains("No session found"));
    storage_client.begin("s1", Some(Arc::new(MemoryFs::default()))).unwrap();
    storage_client.answer("sessionFs.exists", json!({"sessionId": "s1", "path": "/a"})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn syncing_waits_for_what_was_begun_before() {
    #[derive(Debug)]
    struct SlowAppends(InProcess);
    #[async_trait]
    impl RemoteCalls for SlowAppends {
        async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
            if method == "sessionFs.appendFile" {
                tokio::time::sleep(Duration::from_secs(40)).await;
            }
            self.0.call(method, params).await
        }
    }
    let storage_client = StorageClient::new(Conventions::Posix, StorageCapabilities::default());
    storage_client.add("s1", Arc::new(MemoryFs::default()));
    let calls = SlowAppends(InProcess(Arc::new(storage_client)));
    let remote = Remote::new(Arc::new(calls), Limits { call: Duration::from_secs(60), ..Limits::default() });
    let store = ClientStore::new(Arc::new(remote), config(Conventions::Posix, Files::Text)).unwrap();
    let late = store.append_file("s1/log", b"one").await.unwrap_err();
    assert!(matches!(late, FsError::TimedOut { .. }), "{late}");
    store.sync("s1/log").await.unwrap();
    assert_eq!(store.read_file("s1/log").await.unwrap(), b"one");
}
