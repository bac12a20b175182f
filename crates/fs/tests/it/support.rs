//! Every backend, and a storage client without a connection.

use std::sync::Arc;

use async_trait::async_trait;
use grove_fs::rpc::{CallError, Limits, Remote, RemoteCalls, StorageCapabilities, StorageClientConfig};
use grove_fs::{Confined, Conventions, LocalFs, MemoryFs, RpcFs, SessionFs, StorageClient};
use serde_json::Value;

/// A store under test.
pub(crate) struct StoreUnderTest {
    pub(crate) name: &'static str,
    pub(crate) store: Arc<dyn SessionFs>,
    pub(crate) files: Files,
    /// Removed with the store.
    _folder: Option<tempfile::TempDir>,
}

/// The content that a store accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    Bytes,
    Text,
}

/// Calls that a storage client in this process answers.
#[derive(Debug)]
pub(crate) struct InProcess(pub(crate) Arc<StorageClient>);

#[async_trait]
impl RemoteCalls for InProcess {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        // As on a connection: calls and answers are text.
        let params = serde_json::from_str(&params.to_string()).unwrap();
        let answer = self.0.answer(method, params).await?;
        Ok(serde_json::from_str(&answer.to_string()).unwrap())
    }
}

pub(crate) fn config(conventions: Conventions, files: Files) -> StorageClientConfig {
    let (initial_cwd, session_state_path) = match conventions {
        Conventions::Posix => ("/work", "/state"),
        Conventions::Windows => (r"C:\work", r"C:\state"),
    };
    StorageClientConfig {
        initial_cwd: initial_cwd.to_owned(),
        session_state_path: session_state_path.to_owned(),
        conventions,
        capabilities: StorageCapabilities { binary: files == Files::Bytes, ..StorageCapabilities::default() },
    }
}

/// A session at a storage client that keeps it in a store.
pub(crate) fn at_storage_client(store: Arc<dyn SessionFs>, conventions: Conventions, files: Files) -> RpcFs {
    at_storage_client_with(store, config(conventions, files))
}

/// The same at a client with this configuration.
pub(crate) fn at_storage_client_with(store: Arc<dyn SessionFs>, config: StorageClientConfig) -> RpcFs {
    let storage_client = StorageClient::new(config.conventions, config.capabilities);
    storage_client.add("s1", store);
    let remote = Remote::new(Arc::new(InProcess(Arc::new(storage_client))), Limits::default());
    RpcFs::new(Arc::new(remote), "s1", config).unwrap()
}

/// One store of each kind, empty. The session's folder exists, as a host creates it first.
pub(crate) fn every_backend() -> Vec<StoreUnderTest> {
    let (posix, windows) = (Conventions::Posix, Conventions::Windows);
    let memory = || Arc::new(MemoryFs::default());
    let mut subjects = Vec::new();
    let mut add = |name, store: Arc<dyn SessionFs>, files, folder| {
        subjects.push(StoreUnderTest { name, store, files, _folder: folder });
    };
    let local = |make: &dyn Fn(LocalFs) -> Arc<dyn SessionFs>| {
        let folder = tempfile::tempdir().unwrap();
        (make(LocalFs::new(folder.path().join("root"))), Some(folder))
    };
    let (store, folder) = local(&|store| Arc::new(store));
    add("local", store, Files::Bytes, folder);
    let (store, folder) = local(&|store| store.without_links());
    add("local, without links", store, Files::Bytes, folder);
    add("memory", memory(), Files::Bytes, None);
    add("rpc, text", Arc::new(at_storage_client(memory(), posix, Files::Text)), Files::Text, None);
    add("rpc, binary", Arc::new(at_storage_client(memory(), posix, Files::Bytes)), Files::Bytes, None);
    add("rpc, windows", Arc::new(at_storage_client(memory(), windows, Files::Bytes)), Files::Bytes, None);
    let mut ranges = config(posix, Files::Bytes);
    ranges.capabilities.ranges = true;
    add("rpc, ranges", Arc::new(at_storage_client_with(memory(), ranges)), Files::Bytes, None);
    let (store, folder) = local(&|store| Arc::new(at_storage_client(Arc::new(store), posix, Files::Text)));
    add("rpc, text, local", store, Files::Text, folder);
    let (store, folder) = local(&|store| Arc::new(at_storage_client(store.without_links(), posix, Files::Bytes)));
    add("rpc, binary, local", store, Files::Bytes, folder);
    subjects
}

/// The store of this name.
pub(crate) fn backend(name: &str) -> StoreUnderTest {
    every_backend().into_iter().find(|subject| subject.name == name).unwrap()
}

/// A view of each store.
pub(crate) fn every_confined() -> Vec<(StoreUnderTest, Confined)> {
    let view = |subject: StoreUnderTest| {
        let view = Confined::new(subject.store.as_ref(), "files").unwrap();
        (subject, view)
    };
    every_backend().into_iter().map(view).collect()
}
