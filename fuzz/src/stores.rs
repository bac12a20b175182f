//! The fuzz bodies of a session's storage.

use std::path::{Component, Path};
use std::sync::Arc;

use grove_fs::rpc::wire::SessionFsMethod;
use grove_fs::rpc::{CallError, Limits, Remote, RemoteCalls, StorageCapabilities, StorageClientConfig};
use grove_fs::workspace::database::Statement;
use grove_fs::{Conventions, FileKind, MemoryFs, RelativeName, Removal, RpcFs, SessionFs, StorageClient};
use grove_storage::ClientStorageRegister;
use serde_json::Value;

/// Any text as the name of a file: it is refused, or stays in its folder. Errors about it can be shown.
pub fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let name = match RelativeName::parse(text) {
        Ok(name) => name,
        Err(error) => {
            assert_eq!((error.code(), error.path()), ("EINVAL", text));
            assert!(error.to_string().chars().all(|character| !character.is_control()), "{error}");
            return;
        }
    };
    assert_eq!(name.as_str(), text);
    let path = Path::new("/folder").join(text);
    let (root, below) = (path.components().take(2), path.components().skip(2));
    assert!(root.eq(Path::new("/folder").components()));
    assert!(below.clone().all(|part| matches!(part, Component::Normal(_))), "{text:?}");
    assert_eq!(below.count(), name.parts().count());
    assert!(name.parts().all(|part| RelativeName::parse(part).is_ok()), "{text:?}");
}

/// Any lines as a host's calls, and as a storage client's answers.
///
/// Each call is answered, or refused alone, and the resulting files can be listed and read. Each answer gives a value
/// or an error.
pub fn provider(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let store = MemoryFs::default();
        let provider =
            StorageClient::new(Conventions::Posix, StorageCapabilities { binary: true, sqlite: true, ranges: true });
        provider.add("s1", Arc::new(store.clone()));
        let mut answers = Vec::new();
        for line in text.lines() {
            let Ok(call) = serde_json::from_str::<Value>(line) else { continue };
            let method = call["method"].as_str().unwrap_or_default();
            let answer = provider.answer(method, call["params"].clone()).await;
            let is_known = SessionFsMethod::named(method).is_some();
            assert!(is_known || matches!(answer, Err(CallError::Refused { code: -32601, .. })), "{line}");
            answers.push(call);
            answers.extend(answer);
        }
        everything_can_be_read(&store).await;
        answers_are_understood_or_refused(answers).await;
    });
}

async fn everything_can_be_read(store: &MemoryFs) {
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in store.readdir_with_types(&folder).await.expect("a folder") {
            let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            match entry.kind {
                FileKind::Folder => folders.push(path),
                FileKind::File | FileKind::Other => drop(store.read_file(&path).await.expect("a file")),
            }
        }
    }
}

/// A storage client with arbitrary answers.
#[derive(Debug)]
struct Anything(Value);

#[async_trait::async_trait]
impl RemoteCalls for Anything {
    async fn call(&self, _: &str, _: Value) -> Result<Value, CallError> {
        Ok(self.0.clone())
    }
}

async fn answers_are_understood_or_refused(answers: Vec<Value>) {
    let both = answers.into_iter().take(8).flat_map(|answer| [true, false].map(|ranges| (answer.clone(), ranges)));
    for (answer, ranges) in both {
        let config = StorageClientConfig {
            initial_cwd: "/".to_owned(),
            session_state_path: "/state".to_owned(),
            conventions: Conventions::Posix,
            capabilities: StorageCapabilities { binary: true, sqlite: true, ranges },
        };
        let remote = Remote::new(Arc::new(Anything(answer)), Limits::default());
        let store = RpcFs::new(Arc::new(remote), "s1", config).expect("a store");
        let database = store.database("").expect("a database");
        database.query(Statement::query("SELECT 1")).await.ok();
        database.transaction(vec![Statement::query("SELECT 1")]).await.ok();
        let names = store.readdir("d").await.unwrap_or_default();
        assert!(names.iter().all(|name| !name.contains('/') && name != ".."), "{names:?}");
        for result in [
            store.read_range("f", 0, 10).await.map(drop),
            store.stat("f").await.map(drop),
            store.exists("f").await.map(drop),
            store.write_file("f", b"x").await,
            store.append_file("f", &[255]).await,
            store.rm("f", Removal::One).await,
            store.rename("f", "g").await,
        ] {
            assert!(result.is_ok() || result.is_err_and(|error| error.path() == "f"));
        }
    }
}

/// Any bytes as a register of client-stored sessions: valid lines survive a round trip.
pub fn register(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = MemoryFs::default();
        store.write_file("register", data).await.expect("room");
        let mut written = Vec::new();
        for _ in 0..2 {
            ClientStorageRegister::open(Arc::new(store.clone()), "register").await.expect("a register");
            written.push(store.read_file("register").await.expect("a file"));
        }
        assert_eq!(written[0], written[1]);
        assert!(written[0].is_empty() || written[0].ends_with(b"\n"));
    });
}
