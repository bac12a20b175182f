//! The provider of other tools' sessions.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use grove_core::Timestamp;
use grove_history::StoreRoot;
use grove_history::catalog::{Catalog, CatalogFilter};
use grove_sessions::provider::{ProviderEnvironment, ProviderEvent, ReadState, SendOptions};
use grove_sessions::providers::history::{HistoryDriver, HistoryProvider};
use grove_sessions::session::{FileOperation, Interactivity, SessionState, SessionStatus};
use grove_sessions::{ProviderError, SessionId, SessionsProvider};
use grove_transcript::TranscriptSource;
use proptest::prelude::*;
use serde_json::json;
use tokio::sync::{broadcast, watch};

/// A home directory in which Claude Code, the Copilot CLI and VS Code were used.
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
        let root = |source, product: &str, folder: &str| StoreRoot {
            source,
            product: product.to_owned(),
            folder: self.path().join(folder),
        };
        let roots = vec![
            root(TranscriptSource::Claude, "Claude Code", "claude"),
            root(TranscriptSource::CopilotCli, "Copilot CLI", "copilot"),
            root(TranscriptSource::VsCode, "Code", "code"),
        ];
        self.catalog.scan(&grove_history::catalog::ScanRequest { roots, keep: None }, &mut |_| {}).unwrap();
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

    fn provider(&self, source: TranscriptSource) -> HistoryProvider {
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
        assert_eq!(provider.environment(), ProviderEnvironment::History);
        assert!(provider.session_types().is_empty() && provider.browse_actions().is_empty());
    }
}

#[test]
fn a_row_says_what_the_tool_knew() {
    let home = Home::new();
    home.claude("s1", "Fix the build\nplease");
    home.copilot("c1");
    home.scan();
    let provider = home.provider(TranscriptSource::Claude);
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

    let provider = home.provider(TranscriptSource::CopilotCli);
    provider.refresh().unwrap();
    let row = provider.sessions().remove(0);
    assert_eq!(row.metadata().text("repositoryNwo"), Some("acme/site"));
    let github = row.github_info().unwrap();
    assert_eq!((&*github.owner, &*github.repo), ("acme", "site"));
    assert_eq!(row.workspace().unwrap().repositories[0].detail.as_deref(), Some("main"));
}

#[test]
fn a_row_says_what_its_session_changed_and_what_came_of_it() {
    let home = Home::new();
    home.claude("s1", "Fix it");
    let path = home.path().join("claude/-srv-app/s1.jsonl");
    let call = |id: &str, name: &str, input: serde_json::Value| {
        let said = json!({"type": "assistant", "uuid": id, "sessionId": "s1", "message": {"id": id, "role": "assistant",
            "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}});
        let result = json!({"type": "user", "uuid": format!("{id}r"), "sessionId": "s1", "message": {"role": "user",
            "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]}});
        format!("{said}\n{result}\n")
    };
    let mut log = fs::read_to_string(&path).unwrap();
    log += &call("c1", "Write", json!({"file_path": "/srv/app/my file.rs", "content": "1\n2\n"}));
    log += &call("c2", "Edit", json!({"file_path": "/srv/app/a.rs", "old_string": "x", "new_string": "y\nz"}));
    let tree = json!({"type": "worktree-state", "sessionId": "s1", "worktreeSession": {"originalCwd": "/srv/app",
        "worktreePath": "/srv/app.worktrees/fix", "worktreeBranch": "fix", "originalBranch": "main"}});
    let pull = json!({"type": "pr-link", "sessionId": "s1", "prUrl": "https://github.com/acme/site/pull/7",
        "prRepository": "acme/site"});
    log += &format!("{tree}\n{pull}\n");
    fs::write(&path, &log).unwrap();
    home.scan();
    let provider = home.provider(TranscriptSource::Claude);
    provider.refresh().unwrap();
    let row = provider.sessions().remove(0);
    let changes = row.changes();
    let told: Vec<_> = changes.iter().map(|it| (it.uri.as_str(), it.operation, it.insertions, it.deletions)).collect();
    let expected = [
        ("file:///srv/app/my%20file.rs", FileOperation::Created, 2, 0),
        ("file:///srv/app/a.rs", FileOperation::Modified, 2, 1),
    ];
    assert_eq!(told, expected);
    let github = row.github_info().unwrap();
    assert_eq!((&*github.owner, &*github.repo), ("acme", "site"));
    assert_eq!(github.pull_request.as_ref().map(|pull| pull.number), Some(7));
    assert_eq!(row.metadata().text("pullRequestUrl"), Some("https://github.com/acme/site/pull/7"));
    let workspace = row.workspace().unwrap();
    let repository = &workspace.repositories[0];
    assert_eq!(repository.base_branch_name.as_deref(), Some("main"));
    assert_eq!(repository.uri.as_str(), "file:///srv/app");
    assert_eq!(repository.working_directory.as_ref().map(|it| it.as_str()), Some("file:///srv/app.worktrees/fix"));

    // Unchanged sessions are not read again, and changed ones are announced.
    provider.refresh().unwrap();
    assert!(Arc::ptr_eq(&provider.sessions()[0].changes(), &changes));
    log += &call("c3", "Edit", json!({"file_path": "/srv/app/a.rs", "old_string": "1", "new_string": "2"}));
    fs::write(&path, &log).unwrap();
    home.scan();
    provider.refresh().unwrap();
    assert_eq!(row.changes()[1].insertions, 3);
}

#[test]
fn a_row_says_that_the_last_turn_failed_and_what_the_tool_called_the_session() {
    let home = Home::new();
    home.copilot("c1");
    let path = home.path().join("copilot/c1/events.jsonl");
    let event = |id: &str, kind: &str, data: serde_json::Value| {
        let at = "2026-02-01T00:00:01.000Z";
        format!("{}\n", json!({"id": id, "type": kind, "timestamp": at, "parentId": "e1", "data": data}))
    };
    let mut log = fs::read_to_string(&path).unwrap();
    log += &event("e2", "session.title_changed", json!({"title": "Look around"}));
    log += &event("e3", "session.error", json!({"errorType": "quota", "message": "no more today"}));
    fs::write(&path, &log).unwrap();
    home.scan();
    let provider = home.provider(TranscriptSource::CopilotCli);
    provider.refresh().unwrap();
    let row = provider.sessions().remove(0);
    assert_eq!((row.status(), &*row.title()), (SessionStatus::Error, "Look around"));
    assert!(row.is_read() && !row.is_archived() && !row.loading());
    assert_eq!((row.mode().is_none(), row.description(), row.chats().len()), (true, None, 1));
    assert_eq!((row.session_type().as_str(), row.icon().as_str()), ("copilot-cli", "history"));
}

#[test]
fn a_row_says_on_which_machine_its_folder_lies() {
    let home = Home::new();
    let folder = home.path().join("code/workspaceStorage/h1");
    fs::create_dir_all(folder.join("chatSessions")).unwrap();
    let workspace = json!({"folder": "vscode-remote://ssh-remote%2Bdevbox/home/u/app"});
    fs::write(folder.join("workspace.json"), workspace.to_string()).unwrap();
    let request = json!({"requestId": "r", "message": {"text": "Look"}, "response": [{"value": "Yes."}]});
    let session = json!({"version": 3, "sessionId": "a", "creationDate": 1, "requests": [request]});
    fs::write(folder.join("chatSessions/a.json"), session.to_string()).unwrap();
    home.scan();
    let provider = home.provider(TranscriptSource::VsCode);
    provider.refresh().unwrap();
    let row = provider.sessions().remove(0);
    let metadata = row.metadata();
    assert_eq!(metadata.text("remoteAgentHost"), Some("ssh-remote+devbox"));
    assert_eq!(metadata.text("workingDirectoryPath"), Some("/home/u/app"));
    let workspace = row.workspace().unwrap();
    assert_eq!((&*workspace.label, workspace.requires_workspace_trust), ("app [ssh-remote+devbox]", false));
}

#[tokio::test]
async fn what_the_catalog_learns_is_told() {
    let home = Home::new();
    home.claude("s1", "one");
    home.scan();
    let provider = Arc::new(home.provider(TranscriptSource::Claude));
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
    let provider = home.provider(TranscriptSource::Claude);
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
        provider
            .create_new_session(&grove_sessions::session::SessionWorkspace::new("file:///", "x"))
            .await
            .unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, ProviderError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("continue it first"), "{error}");
    }
    assert_eq!(provider.sessions().len(), 1, "it stays listed");
}

/// A change of a tool's files, or a read of the list.
#[derive(Clone, Debug)]
enum HistoryStep {
    /// A session appears, or an existing log grows by a turn.
    Grow(usize),
    /// Another file replaces it.
    Change(usize),
    Go(usize),
    Scan,
    Refresh,
    /// Applies the announced events.
    Listen,
}

fn step() -> impl Strategy<Value = HistoryStep> {
    prop_oneof![
        4 => (0..SLOTS).prop_map(HistoryStep::Grow),
        2 => (0..SLOTS).prop_map(HistoryStep::Change),
        2 => (0..SLOTS).prop_map(HistoryStep::Go),
        3 => Just(HistoryStep::Scan),
        3 => Just(HistoryStep::Refresh),
        1 => Just(HistoryStep::Listen),
    ]
}

const SLOTS: usize = 6;

/// Session files that appear, grow, change and disappear.
struct Files {
    home: Home,
    /// Counts the writes, so that no two files are alike.
    written: u64,
}

impl Files {
    /// Each two files belong to one session, which is shown under two names.
    fn path(&self, slot: usize) -> PathBuf {
        self.home.path().join(format!("claude/project-{}/s{}.jsonl", slot / 3, slot % 3))
    }

    fn turn(&mut self, slot: usize) -> String {
        self.written += 1;
        let (number, session) = (self.written, format!("s{}", slot % 3));
        let at = format!("2026-01-01T00:00:{:02}.{:03}Z", number / 1_000, number % 1_000);
        let line = |kind: &str, id: &str, content: serde_json::Value| {
            let message = json!({"id": format!("{id}{number}"), "role": kind, "content": content});
            let line = json!({"type": kind, "uuid": format!("{id}{number}"), "sessionId": session, "cwd": "/srv/app",
                "timestamp": at, "message": message});
            format!("{line}\n")
        };
        let input = json!({"file_path": format!("/srv/app/{}", number % 4), "content": "x\n".repeat(slot + 1)});
        line("user", "u", json!(format!("Message {number}")))
            + &line(
                "assistant",
                "a",
                json!([{"type": "tool_use", "id": format!("c{number}"), "name": "Write", "input": input}]),
            )
            + &line("user", "r", json!([{"type": "tool_result", "tool_use_id": format!("c{number}"), "content": "ok"}]))
    }

    fn write(&self, slot: usize, text: &str) {
        let path = self.path(slot);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        // The clock need not have advanced since the last read.
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + self.written)).unwrap();
    }

    /// Moves it out of the store, and keeps it, so that no later file gets its inode number.
    fn go(&mut self, slot: usize) {
        self.written += 1;
        let away = self.home.path().join(format!("away-{}", self.written));
        if self.path(slot).exists() {
            fs::rename(self.path(slot), away).unwrap();
        }
    }
}

type States = BTreeMap<SessionId, Arc<SessionState>>;

/// Applies the announced events. A session that is added twice, or removed or changed without having been added, is an
/// error.
fn listen(known: &mut States, events: &mut broadcast::Receiver<ProviderEvent>) {
    while let Ok(event) = events.try_recv() {
        let ProviderEvent::Sessions(change) = event else { continue };
        for session in &change.removed {
            assert!(known.remove(session.id()).is_some(), "{session:?} was removed and not there");
        }
        for session in &change.added {
            let before = known.insert(session.id().clone(), session.state());
            assert!(before.is_none(), "{session:?} was added and there already");
        }
        for session in &change.changed {
            // If an announced session is gone meanwhile, a later event announces that.
            let before = known.insert(session.id().clone(), session.state());
            assert!(before.is_some(), "{session:?} changed and was not there");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_scans_find_the_list_is_the_catalogs_and_what_was_told_comes_to_it(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let mut files = Files { home: Home::new(), written: 0 };
        let provider = files.home.provider(TranscriptSource::Claude);
        let (mut known, mut events) = (States::new(), provider.subscribe());
        let all = steps.into_iter().chain([HistoryStep::Scan, HistoryStep::Refresh, HistoryStep::Listen]);
        for step in all {
            match step {
                HistoryStep::Grow(slot) => {
                    let turn = files.turn(slot);
                    files.write(slot, &turn);
                }
                HistoryStep::Change(slot) => {
                    files.go(slot);
                    let turn = files.turn(slot);
                    files.write(slot, &turn);
                }
                HistoryStep::Go(slot) => files.go(slot),
                HistoryStep::Scan => files.home.scan(),
                HistoryStep::Refresh => {
                    provider.refresh().unwrap();
                    let filter = CatalogFilter { source: Some("claude".to_owned()), ..CatalogFilter::default() };
                    let entries = files.home.catalog.list(&filter, None, 100).unwrap().entries;
                    let changes = files.home.catalog.changes(&entries).unwrap();
                    let catalogs: Vec<_> = entries
                        .iter()
                        .zip(&changes)
                        .map(|(entry, changes)| {
                            let sum = changes.files.values().map(|change| change.insertions).sum::<u64>();
                            (format!("history-claude:{}", entry.id), entry.title().to_owned(), changes.files.len(), sum)
                        })
                        .collect();
                    let listed: Vec<_> = provider
                        .sessions()
                        .iter()
                        .map(|row| {
                            let changes = row.changes();
                            let sum = changes.iter().map(|change| change.insertions).sum::<u64>();
                            (row.id().to_string(), row.title().to_string(), changes.len(), sum)
                        })
                        .collect();
                    prop_assert_eq!(listed, catalogs);
                }
                HistoryStep::Listen => {
                    listen(&mut known, &mut events);
                    let listed = provider.sessions();
                    let states: States = listed.iter().map(|row| (row.id().clone(), row.state())).collect();
                    prop_assert_eq!(states.len(), listed.len(), "a session is listed twice");
                    prop_assert_eq!(&known, &states);
                }
            }
        }
        // Every file is a session.
        let there = (0..SLOTS).filter(|slot| files.path(*slot).exists()).count();
        prop_assert_eq!(known.len(), there);
    }
}
