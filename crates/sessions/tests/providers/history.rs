//! What other tools left, as a provider.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grove_core::Timestamp;
use grove_history::catalog::{Catalog, Scan};
use grove_history::{Root, Source};
use grove_sessions::provider::{Environment, ProviderEvent, ReadState, SendOptions};
use grove_sessions::providers::history::{HistoryDriver, HistoryProvider};
use grove_sessions::session::{Interactivity, SessionStatus};
use grove_sessions::{ProviderError, SessionsProvider};
use serde_json::json;
use tokio::sync::watch;

/// A home in which Claude Code and Codex were used.
struct Home {
    folder: tempfile::TempDir,
    catalog: Arc<Catalog>,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Arc::new(Catalog::open(&folder.path().join("history.db")).unwrap());
        Self { folder, catalog }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn scan(&self) {
        let root = |source, product: &str, folder: &str| Root {
            source,
            product: product.to_owned(),
            folder: self.path().join(folder),
        };
        let roots =
            vec![root(Source::Claude, "Claude Code", "claude"), root(Source::CopilotCli, "Copilot CLI", "copilot")];
        self.catalog.scan(&Scan { roots, keep: None }, &mut |_| {}).unwrap();
    }

    fn claude(&self, id: &str, said: &str) {
        let folder = self.path().join("claude/-srv-app");
        fs::create_dir_all(&folder).unwrap();
        let user = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": id, "cwd": "/srv/app",
            "gitBranch": "fix", "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": said}});
        let answer = json!({"type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": id, "cwd": "/srv/app",
            "timestamp": "2026-01-01T00:00:05.000Z", "message": {"id": "m", "role": "assistant", "model": "claude-opus-4",
            "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}});
        fs::write(folder.join(format!("{id}.jsonl")), format!("{user}\n{answer}\n")).unwrap();
    }

    fn copilot(&self, id: &str) {
        let folder = self.path().join("copilot").join(id);
        fs::create_dir_all(&folder).unwrap();
        let at = "2026-02-01T00:00:00.000Z";
        let context = json!({"cwd": "/srv/site", "branch": "main", "repository": "acme/site"});
        let start = json!({"id": "e0", "type": "session.start", "timestamp": at, "parentId": null,
            "data": {"sessionId": id, "version": 1, "startTime": at, "context": context}});
        let said = json!({"id": "e1", "type": "user.message", "timestamp": at, "parentId": "e0",
            "data": {"content": "Look"}});
        fs::write(folder.join("events.jsonl"), format!("{start}\n{said}\n")).unwrap();
    }

    fn provider(&self, source: Source) -> HistoryProvider {
        HistoryProvider::new(source, self.catalog.clone()).unwrap()
    }
}

#[test]
fn each_tool_has_a_provider_of_its_own() {
    let home = Home::new();
    let all = HistoryProvider::of_all_tools(&home.catalog).unwrap();
    let ids: Vec<&str> = all.iter().map(|provider| provider.id().as_str()).collect();
    let expected = ["vs-code", "copilot-cli", "claude", "codex", "pi", "gemini", "opencode"];
    assert_eq!(ids, expected.map(|source| format!("history-{source}")));
    for provider in all {
        assert_eq!(provider.environment(), Environment::History);
        assert!(provider.session_types().is_empty() && provider.browse_actions().is_empty());
    }
}

#[test]
fn a_row_says_what_the_tool_knew() {
    let home = Home::new();
    home.claude("s1", "Fix the build\nplease");
    home.copilot("c1");
    home.scan();
    let provider = home.provider(Source::Claude);
    provider.refresh().unwrap();
    let row = provider.sessions().remove(0);
    assert_eq!((row.id().as_str(), row.resource().as_str()), ("history-claude:claude.s1", "claude:/claude.s1"));
    assert!(row.title().starts_with("Fix the build"), "{}", row.title());
    assert_eq!((row.status(), row.is_read()), (SessionStatus::Completed, true));
    assert_eq!(row.model_id().as_deref(), Some("claude-opus-4"));
    assert_eq!(row.created_at(), Timestamp(1_767_225_600_000));
    assert_eq!(
        (row.updated_at(), row.last_turn_end()),
        (Timestamp(1_767_225_605_000), Some(Timestamp(1_767_225_605_000)))
    );
    assert_eq!(row.metadata().text("workingDirectoryPath"), Some("/srv/app"));
    assert_eq!(row.metadata().text("branch"), Some("fix"));
    assert_eq!(&*row.workspace().unwrap().label, "app");
    assert_eq!(row.main_chat().interactivity(), Interactivity::ReadOnly);
    assert_eq!(row.capabilities(), Default::default());

    let provider = home.provider(Source::CopilotCli);
    provider.refresh().unwrap();
    let row = provider.sessions().remove(0);
    assert_eq!(row.metadata().text("repositoryNwo"), Some("acme/site"));
    let github = row.github_info().unwrap();
    assert_eq!((&*github.owner, &*github.repo), ("acme", "site"));
    assert_eq!(row.workspace().unwrap().repositories[0].detail.as_deref(), Some("main"));
}

#[tokio::test]
async fn what_the_catalog_learns_is_told() {
    let home = Home::new();
    home.claude("s1", "one");
    home.scan();
    let provider = Arc::new(home.provider(Source::Claude));
    let mut events = provider.subscribe();
    let (scanned, changed) = watch::channel(0);
    let driver = tokio::spawn(HistoryDriver { providers: vec![provider.clone()], changed }.run());
    let mut next = async || loop {
        let told = tokio::time::timeout(Duration::from_secs(20), events.recv()).await.unwrap().unwrap();
        if let ProviderEvent::Sessions(change) = told {
            break (change.added.len(), change.removed.len(), change.changed.len());
        }
    };
    assert_eq!(next().await, (1, 0, 0));
    home.claude("s2", "two");
    home.scan();
    scanned.send_replace(1);
    assert_eq!(next().await, (1, 0, 0));
    fs::remove_file(home.path().join("claude/-srv-app/s1.jsonl")).unwrap();
    home.claude("s2", "another two");
    home.scan();
    scanned.send_replace(2);
    assert_eq!(next().await, (0, 1, 1));
    assert_eq!(provider.sessions().len(), 1);
    drop(scanned);
    driver.await.unwrap();
}

#[tokio::test]
async fn whatever_would_change_one_is_refused_with_the_way_out() {
    let home = Home::new();
    home.claude("s1", "one");
    home.scan();
    let provider = home.provider(Source::Claude);
    provider.refresh().unwrap();
    let row = provider.sessions().remove(0);
    let (id, chat) = (row.id(), row.main_chat().resource().clone());
    let send = || SendOptions::new("go on");
    let refused = [
        provider.rename_chat(id, &chat, "x").await.unwrap_err(),
        provider.set_model(id, "x").await.unwrap_err(),
        provider.archive_session(id).await.unwrap_err(),
        provider.unarchive_session(id).await.unwrap_err(),
        provider.delete_session(id).await.unwrap_err(),
        provider.delete_chat(id, &chat).await.unwrap_err(),
        provider.set_read(id, ReadState::Unread).await.unwrap_err(),
        provider.set_session_type(id, &"claude".into()).await.unwrap_err(),
        provider.send_and_create_chat(id, send()).await.unwrap_err(),
        provider.send_request(id, &chat, send()).await.unwrap_err(),
        provider.create_new_session(&grove_sessions::session::Workspace::new("file:///", "x")).await.unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, ProviderError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("continue it first"), "{error}");
    }
    assert_eq!(provider.sessions().len(), 1, "it stays listed");
}
