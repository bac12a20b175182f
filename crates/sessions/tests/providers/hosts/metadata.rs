//! The metadata of a session's workspace, for every way in which a session is created.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_client::{Ahp, Client};
use grove_sessions::providers::hosts::{HostIdentity, HostOptions, HostProvider, InMemorySessionListCache};
use grove_sessions::session::SessionStatus;
use grove_sessions::{Session, SessionsProvider};
use grove_wire::x_grove::{NewSessionResult, TreeResult};
use serde_json::{Value, json};

use super::harness::*;

/// A worktree, and the expected metadata of a session in it.
struct MetadataFixture {
    source: PathBuf,
    fix: PathBuf,
    _folder: tempfile::TempDir,
}

impl MetadataFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (source, fix) = worktree(folder.path());
        Self { source, fix, _folder: folder }
    }

    fn fix(&self) -> String {
        self.fix.display().to_string()
    }

    /// Asserts that the metadata of a session is complete, with the host if that is another one.
    async fn is_said(&self, what: &str, session: &Session, host: Option<&str>) {
        let path = |path: &Path| Some(path.display().to_string());
        let expected = [
            ("workingDirectoryPath", path(&self.fix)),
            ("worktreePath", path(&self.fix)),
            ("repositoryPath", path(&self.source)),
            ("repositoryNwo", Some("acme/site".to_owned())),
            ("branch", Some("fix".to_owned())),
            ("remoteAgentHost", host.map(ToOwned::to_owned)),
        ];
        let is_so = || {
            let metadata = session.metadata();
            expected.iter().all(|(key, value)| metadata.text(key) == value.as_deref())
        };
        until(&format!("{what}: {expected:?}"), is_so).await;
        let workspace = session.workspace().unwrap();
        assert_eq!(workspace.host.as_deref(), host, "{what}");
        assert_eq!(workspace.repositories[0].identity.as_deref(), Some("github.com/acme/site"), "{what}");
    }
}

async fn ask<R: serde::de::DeserializeOwned>(client: &Client<Ahp>, method: &str, params: Value) -> R {
    client.request_raw(method, &params).await.unwrap()
}

async fn both(host: &TestHost) -> [(Arc<HostProvider>, Option<&'static str>); 2] {
    [(host.here().await, None), (host.there("dev-box").await, Some("dev-box"))]
}

#[tokio::test]
async fn a_new_session_says_where_it_works_before_and_after_its_first_message() {
    let place = MetadataFixture::new();
    let host = TestHost::start().await;
    for (provider, name) in both(&host).await {
        let workspace = workspace(&provider, &place.fix()).await;
        let draft = provider.create_new_session(&workspace).await.unwrap();
        assert_eq!(draft.metadata().text("workingDirectoryPath"), Some(&*place.fix()));
        assert_eq!(draft.metadata().text("remoteAgentHost"), name);
        assert_eq!(draft.workspace().unwrap().host.as_deref(), name);
        let sending = provider.send_and_create_chat(draft.id(), script(json!([{"say": "hi"}])));
        let row = soon("the first message", sending).await.unwrap();
        place.is_said("what was sent", &row, name).await;
    }
}

#[tokio::test]
async fn a_plain_checkout_is_no_worktree_and_a_plain_folder_no_repository() {
    let place = MetadataFixture::new();
    let plain = tempfile::tempdir().unwrap();
    std::fs::write(place.source.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let host = TestHost::start().await;
    let client = host.client().await;
    create(&client, "scripted:/1", &place.source.display().to_string()).await;
    create(&client, "scripted:/2", &plain.path().display().to_string()).await;
    let provider = host.there("dev-box").await;
    let row = session(&provider, "scripted:/1").await;
    until("the branch", || row.metadata().text("branch") == Some("main")).await;
    let metadata = row.metadata();
    assert_eq!(metadata.text("repositoryPath"), Some(&*place.source.display().to_string()));
    assert_eq!(metadata.text("worktreePath"), None);
    let row = session(&provider, "scripted:/2").await;
    assert!(row.workspace().unwrap().repositories.is_empty());
    assert_eq!(row.metadata().text("remoteAgentHost"), Some("dev-box"));
}

#[tokio::test]
async fn a_fork_and_a_branch_work_where_their_parent_does() {
    let place = MetadataFixture::new();
    let host = TestHost::start().await;
    let provider = host.here().await;
    let workspace = workspace(&provider, &place.fix()).await;
    let draft = provider.create_new_session(&workspace).await.unwrap();
    let sending = provider.send_and_create_chat(draft.id(), script(json!([{"say": "hi"}])));
    let parent = soon("the first message", sending).await.unwrap();
    until("the turn's end", || parent.status() == SessionStatus::Completed).await;
    let client = host.client().await;
    let channel = provider.host().host_uri(parent.resource()).unwrap().to_owned();
    let fork: NewSessionResult = ask(&client, "x-grove/fork", json!({"channel": channel})).await;
    let tree: TreeResult = ask(&client, "x-grove/tree", json!({"channel": channel, "filter": "user-only"})).await;
    let branch = json!({"channel": channel, "entry": tree.rows[0].id});
    let branch: NewSessionResult = ask(&client, "x-grove/branch", branch).await;
    assert_ne!(fork.session, branch.session);
    for (provider, name) in both(&host).await {
        for (what, made) in [("the parent", &channel), ("the fork", &fork.session), ("the branch", &branch.session)] {
            place.is_said(what, &session(&provider, made).await, name).await;
        }
    }
}

#[tokio::test]
async fn an_imported_session_says_where_it_works() {
    let place = MetadataFixture::new();
    let host = TestHost::start().await;
    let client = host.client().await;
    let about = json!({"id": "brought", "title": "Brought along", "workingDirectory": place.fix(), "createdAt": 1_000,
        "modifiedAt": 2_000});
    let begun: Value = ask(&client, "x-grove/import/begin", about).await;
    let log = [
        json!({"type": "session", "version": 3, "id": "brought", "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": place.fix()}),
        json!({"type": "message", "id": "a1", "parentId": null, "timestamp": "2026-01-01T00:00:01.000Z",
            "message": {"role": "user", "content": "hello", "timestamp": 1}}),
    ];
    let log: String = log.iter().map(|line| format!("{line}\n")).collect();
    let put =
        json!({"import": begun["import"], "path": "events.jsonl", "offset": 0, "data": BASE64_STANDARD.encode(log)});
    let _: Value = ask(&client, "x-grove/import/put", put).await;
    let committed: Value = ask(&client, "x-grove/import/commit", json!({"import": begun["import"]})).await;
    for (provider, name) in both(&host).await {
        let row = session(&provider, committed["session"].as_str().unwrap()).await;
        place.is_said("what was imported", &row, name).await;
        assert_eq!((&*row.title(), row.created_at().0, row.updated_at().0), ("Brought along", 1_000, 2_000));
    }
}

#[tokio::test]
async fn a_session_that_is_remembered_says_where_it_worked() {
    let place = MetadataFixture::new();
    let list_cache = Arc::new(InMemorySessionListCache::default());
    let options = || HostOptions { list_cache: list_cache.clone(), ..options() };
    let identity = || HostIdentity::other_host("dev-box", "dev-box").unwrap();
    let host = TestHost::start().await;
    create(&host.client().await, "scripted:/1", &place.fix()).await;
    let provider = host.provider(identity(), options()).await;
    place.is_said("what is there", &session(&provider, "scripted:/1").await, Some("dev-box")).await;
    host.shut();
    until("the loss", || provider.seen_at().is_some()).await;
    let (again, _driver) = HostProvider::new(identity(), host.endpoint(), options());
    place.is_said("what was there", &session(&again, "scripted:/1").await, Some("dev-box")).await;
}
