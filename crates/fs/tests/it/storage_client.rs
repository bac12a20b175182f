//! The calls and answers of a storage client on the wire.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use grove_fs::rpc::wire::SessionFsMethod;
use grove_fs::rpc::{
    CallError, Limits, Remote, RemoteCalls, StorageCapabilities, StorageClientConfig, StorageClientConfigError,
};
use grove_fs::{BadName, BadPath, Conventions, FsError, MemoryFs, Removal, RpcFs, SessionFs, StorageClient};
use serde_json::{Value, json};

use crate::support::{Files, InProcess, at_storage_client, config};

fn storage_client(binary: bool) -> StorageClient {
    let storage_client =
        StorageClient::new(Conventions::Posix, StorageCapabilities { binary, ..StorageCapabilities::default() });
    storage_client.add("s1", Arc::new(MemoryFs::default()));
    storage_client
}

#[tokio::test]
async fn values_are_wrapped_and_errors_have_one_of_two_codes() {
    let storage_client = storage_client(true);
    let enoent = |path: &str| json!({"code": "ENOENT", "message": format!("{path}: no such file or folder (ENOENT)")});
    let unknown = |message: &str| json!({"code": "UNKNOWN", "message": message});
    for (method, params, expected) in [
        ("readFile", json!({"path": "/a"}), json!({"content": "", "error": enoent("a")})),
        ("readFileBytes", json!({"path": "/a"}), json!({"content": "", "error": enoent("a")})),
        ("writeFile", json!({"path": "/state/a", "content": "one", "mode": 384}), Value::Null),
        ("writeFile", json!({"path": "/state/a", "content": "two", "mode": null}), Value::Null),
        ("appendFile", json!({"path": "/state/deep/b", "content": "ä"}), Value::Null),
        ("writeFileBytes", json!({"path": "/state/bytes", "content": "/wA="}), Value::Null),
        ("readFile", json!({"path": "/state/a"}), json!({"content": "two"})),
        ("readFileBytes", json!({"path": "/state/bytes"}), json!({"content": "/wA="})),
        ("exists", json!({"path": "/state/a"}), json!({"exists": true})),
        ("exists", json!({"path": "/gone"}), json!({"exists": false})),
        ("exists", json!({"path": "/../a"}), json!({"exists": false})),
        ("exists", json!({"path": "relative"}), json!({"exists": false})),
        ("readdir", json!({"path": "/state"}), json!({"entries": ["a", "bytes", "deep"]})),
        ("readdir", json!({"path": "/gone"}), json!({"entries": [], "error": enoent("gone")})),
        (
            "readdirWithTypes",
            json!({"path": "/state/"}),
            json!({"entries": [
                {"name": "a", "type": "file"},
                {"name": "bytes", "type": "file"},
                {"name": "deep", "type": "directory"},
            ]}),
        ),
        ("mkdir", json!({"path": "/state/x/y", "recursive": true, "mode": 448}), Value::Null),
        ("mkdir", json!({"path": "/state/z"}), Value::Null),
        ("mkdir", json!({"path": "/state/no/y"}), enoent("state/no/y")),
        ("mkdir", json!({"path": "/state/z"}), unknown("state/z: it exists already")),
        ("rename", json!({"src": "/state/a", "dest": "/state/c"}), Value::Null),
        ("rename", json!({"src": "/state/a", "dest": "/state/d"}), enoent("state/a")),
        ("rm", json!({"path": "/state/a"}), enoent("state/a")),
        ("rm", json!({"path": "/state/a", "force": true}), Value::Null),
        ("rm", json!({"path": "/state", "recursive": true, "force": false}), Value::Null),
        ("readFile", json!({"path": "a"}), json!({"content": "", "error": unknown("a: the path must be absolute")})),
    ] {
        let mut params = params;
        params["sessionId"] = "s1".into();
        let answer = storage_client.answer(&format!("sessionFs.{method}"), params.clone()).await.unwrap();
        assert_eq!(answer, expected, "{method} {params}");
    }
}

#[tokio::test]
async fn a_stat_has_every_field_also_where_it_failed() {
    let storage_client = storage_client(false);
    let stat = async |path: &str| {
        let mut answer =
            storage_client.answer("sessionFs.stat", json!({"sessionId": "s1", "path": path})).await.unwrap();
        let times = ["mtime", "birthtime"].map(|name| answer[name].take().as_str().unwrap().to_owned());
        assert!(times.iter().all(|time| time.parse::<jiff::Timestamp>().is_ok() && time.len() == 24), "{times:?}");
        answer
    };
    storage_client
        .answer("sessionFs.writeFile", json!({"sessionId": "s1", "path": "/a/b", "content": "ä"}))
        .await
        .unwrap();
    let found = |file, folder, size| json!({"isFile": file, "isDirectory": folder, "size": size, "mtime": null, "birthtime": null});
    assert_eq!(stat("/a/b").await, found(true, false, 2));
    assert_eq!(stat("/a").await, found(false, true, 0));
    assert_eq!(stat("/").await, found(false, true, 0));
    assert_eq!(stat("/gone").await["error"]["code"], "ENOENT");
}

#[tokio::test]
async fn a_call_that_makes_no_sense_fails_alone() {
    let storage_client = storage_client(false);
    for (method, params, code, message) in [
        ("sessionFs.chmod", json!({"sessionId": "s1", "path": "/a"}), -32601, "Unhandled method sessionFs.chmod"),
        ("readFile", json!({"sessionId": "s1", "path": "/a"}), -32601, "Unhandled method readFile"),
        // The client did not offer binary files.
        (
            "sessionFs.readFileBytes",
            json!({"sessionId": "s1", "path": "/a"}),
            -32601,
            "Unhandled method sessionFs.readFileBytes",
        ),
        ("sessionFs.readFile", json!({"sessionId": "s2", "path": "/a"}), -32603, "No session found for sessionId: s2"),
        (
            "sessionFs.rm",
            json!({"sessionId": "", "path": "/", "recursive": true}),
            -32603,
            "No session found for sessionId: ",
        ),
        ("sessionFs.readFile", json!({"path": "/a"}), -32602, "Invalid params: missing field `sessionId`"),
        ("sessionFs.readFile", json!(null), -32602, "Invalid params: invalid type: null, expected struct PathParams"),
    ] {
        let expected = CallError::Refused { code, message: message.to_owned() };
        assert_eq!(storage_client.answer(method, params).await, Err(expected));
    }
    let write = json!({"sessionId": "s1", "path": "/a", "content": "x"});
    assert_eq!(storage_client.answer("sessionFs.writeFile", write).await, Ok(Value::Null));
    storage_client.remove("s1");
    storage_client.answer("sessionFs.readFile", json!({"sessionId": "s1", "path": "/a"})).await.unwrap_err();
}

#[tokio::test]
async fn sessions_of_one_provider_have_their_own_files_and_locks() {
    let config = config(Conventions::Posix, Files::Text);
    let storage_client = Arc::new(StorageClient::new(Conventions::Posix, config.capabilities));
    let remote = Arc::new(Remote::new(Arc::new(InProcess(Arc::clone(&storage_client))), Limits::default()));
    let session = |id: &str| {
        storage_client.add(id, Arc::new(MemoryFs::default()));
        RpcFs::new(Arc::clone(&remote), id, config.clone()).unwrap()
    };
    let (one, two) = (session("one"), session("two"));
    one.append_text("events.jsonl", "1\n").await.unwrap();
    two.append_text("events.jsonl", "2\n").await.unwrap();
    assert_eq!(one.read_text("events.jsonl").await.unwrap(), "1\n");
    assert_eq!(two.read_text("events.jsonl").await.unwrap(), "2\n");
    assert_eq!(one.lock_key("events.jsonl").unwrap(), "one:/state/events.jsonl");
    assert_eq!(two.lock_key("events.jsonl").unwrap(), "two:/state/events.jsonl");
    assert_eq!(one.session_state_path().as_deref(), Some("/state"));
    assert_eq!(one.initial_cwd().as_deref(), Some("/work"));
    assert_eq!(one.tmpdir().unwrap().location("spill").unwrap(), "/state/temp/spill");
}

#[test]
fn a_provider_whose_paths_depend_on_something_is_refused() {
    let parse = |text: &str| serde_json::from_str::<StorageClientConfig>(text);
    let told =
        r#"{"initialCwd":"/proj","sessionStatePath":"/state","conventions":"posix","capabilities":{"sqlite":true}}"#;
    let told = parse(told).unwrap();
    assert_eq!(told.capabilities, StorageCapabilities { sqlite: true, ..StorageCapabilities::default() });
    assert_eq!(told.check(), Ok(()));
    parse(r#"{"initialCwd":"/proj","sessionStatePath":"/state","conventions":"vms"}"#).unwrap_err();
    parse(r#"{"initialCwd":"/proj","conventions":"posix"}"#).unwrap_err();
    let relative = StorageClientConfig { initial_cwd: "proj".to_owned(), ..told.clone() };
    assert!(matches!(relative.check(), Err(StorageClientConfigError::InitialCwd { .. })));
    let windows = StorageClientConfig { conventions: Conventions::Windows, initial_cwd: r"C:\proj".to_owned(), ..told };
    assert!(matches!(windows.check(), Err(StorageClientConfigError::SessionStatePath { .. })));
}

#[tokio::test]
async fn what_windows_cannot_have_is_refused_where_the_provider_is_windows() {
    let store = at_storage_client(Arc::new(MemoryFs::default()), Conventions::Windows, Files::Bytes);
    assert_eq!(store.location("files/a.md").unwrap(), r"C:\state\files\a.md");
    let separator = FsError::BadPath { path: r"a\..\b".to_owned(), reason: BadPath::Separator };
    assert_eq!(store.write_file(r"a\..\b", b"x").await.unwrap_err(), separator);
    let reserved = FsError::BadName { path: "a/nul".to_owned(), reason: BadName::Reserved };
    assert_eq!(store.write_file("a/nul", b"x").await.unwrap_err(), reserved);
}

/// The calls as they would be sent.
#[derive(Debug)]
struct Recording {
    calls: Mutex<Vec<Value>>,
    inner: InProcess,
}

#[async_trait]
impl RemoteCalls for Recording {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.calls.lock().unwrap().push(json!([method, params.clone()]));
        self.inner.call(method, params).await
    }
}

#[tokio::test]
async fn every_call_carries_its_session_and_has_the_shape_of_the_wire() {
    let config = config(Conventions::Posix, Files::Bytes);
    let storage_client = StorageClient::new(Conventions::Posix, config.capabilities);
    storage_client.add("s1", Arc::new(MemoryFs::default()));
    let recording = Arc::new(Recording { calls: Mutex::default(), inner: InProcess(Arc::new(storage_client)) });
    let calls: Arc<dyn RemoteCalls> = Arc::clone(&recording) as _;
    let store = RpcFs::new(Arc::new(Remote::new(calls, Limits::default())), "s1", config).unwrap();

    store.mkdir("files").await.unwrap();
    store.append_text("log", "one\n").await.unwrap();
    store.write_text("plan.md", "plan").await.unwrap();
    store.write_file("bytes", &[255]).await.unwrap();
    store.read_file("bytes").await.unwrap();
    store.exists("plan.md").await.unwrap();
    store.readdir("").await.unwrap();
    store.rename("plan.md", "old.md").await.unwrap();
    store.rm("old.md", Removal::Everything).await.unwrap();
    store.rm("log", Removal::One).await.unwrap();

    let mut calls = recording.calls.lock().unwrap().clone();
    let mut methods: Vec<_> = calls.iter().map(|call| call[0].as_str().unwrap().to_owned()).collect();
    // A file is written under a temporary name first, which is never the same twice.
    for call in &mut calls {
        for name in ["path", "src"] {
            if call[1][name].as_str().is_some_and(|path| path.ends_with(".tmp")) {
                call[1][name] = "/state/TEMPORARY".into();
            }
        }
    }
    let path = |path: &str| json!({"sessionId": "s1", "path": path});
    let write = |path: &str, content: &str| json!({"sessionId": "s1", "path": path, "content": content, "mode": 384});
    let rename = |src: &str, dest: &str| json!({"sessionId": "s1", "src": src, "dest": dest});
    let rm = |path: &str, recursive| json!({"sessionId": "s1", "path": path, "recursive": recursive, "force": false});
    let expected = [
        json!(["sessionFs.mkdir", {"sessionId": "s1", "path": "/state/files", "recursive": true, "mode": 448}]),
        json!(["sessionFs.appendFile", write("/state/log", "one\n")]),
        json!(["sessionFs.writeFile", write("/state/TEMPORARY", "plan")]),
        json!(["sessionFs.rename", rename("/state/TEMPORARY", "/state/plan.md")]),
        json!(["sessionFs.writeFileBytes", write("/state/TEMPORARY", "/w==")]),
        json!(["sessionFs.rename", rename("/state/TEMPORARY", "/state/bytes")]),
        json!(["sessionFs.stat", path("/state/bytes")]),
        json!(["sessionFs.readFileBytes", path("/state/bytes")]),
        json!(["sessionFs.exists", path("/state/plan.md")]),
        json!(["sessionFs.readdirWithTypes", path("/state")]),
        json!(["sessionFs.rename", rename("/state/plan.md", "/state/old.md")]),
        json!(["sessionFs.rm", rm("/state/old.md", true)]),
        json!(["sessionFs.stat", path("/state/log")]),
        json!(["sessionFs.rm", rm("/state/log", false)]),
    ];
    assert_eq!(calls, expected);
    methods.retain(|method| SessionFsMethod::named(method).is_none());
    assert_eq!(methods, [""; 0]);
}

#[tokio::test]
async fn ranges_of_a_file_that_did_not_change_cost_one_reading() {
    let config = config(Conventions::Posix, Files::Text);
    let storage_client = StorageClient::new(Conventions::Posix, config.capabilities);
    storage_client.add("s1", Arc::new(MemoryFs::default()));
    let recording = Arc::new(Recording { calls: Mutex::default(), inner: InProcess(Arc::new(storage_client)) });
    let calls: Arc<dyn RemoteCalls> = Arc::clone(&recording) as _;
    let store = RpcFs::new(Arc::new(Remote::new(calls, Limits::default())), "s1", config).unwrap();
    let readings = || recording.calls.lock().unwrap().iter().filter(|call| call[0] == "sessionFs.readFile").count();
    store.append_text("log", "0123456789").await.unwrap();
    for at in 0..10 {
        assert_eq!(store.read_range("log", at, 1).await.unwrap(), at.to_string().as_bytes());
    }
    assert_eq!(readings(), 1);
    store.append_text("log", "x").await.unwrap();
    assert_eq!(store.read_range("log", 10, 5).await.unwrap(), b"x");
    assert_eq!(readings(), 2);
}
