//! Changes of files in the Agent Host Protocol: who may change which, and what is said to others.

use std::path::Path;

use grove_core::Scope;
use grove_host::Config;
use grove_host::audit::{AuditAction, AuditOutcome};
use grove_testkit::host::TOKEN;
use grove_work::file_uri;
use serde_json::{Value, json};

use crate::audit::MemoryAudit;
use crate::harness::TestHost;
use crate::scopes::Scoped;
use crate::tokens::TokenHost;

const ROOT: &str = "ahp-root://";

fn about(path: &Path) -> Value {
    json!({"channel": ROOT, "uri": file_uri(path)})
}

fn with(mut params: Value, more: Value) -> Value {
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

fn asks(path: &Path) -> Value {
    with(about(path), json!({"write": true}))
}

fn writes(path: &Path, data: &str) -> Value {
    with(about(path), json!({"data": data, "encoding": "utf-8"}))
}

/// A host with a session that works in the folder `work` of this place.
async fn host_in(place: &Path) -> TestHost {
    std::fs::create_dir(place.join("work")).unwrap();
    let host = TestHost::start(Config::default()).await;
    let create = json!({"channel": "scripted:/s", "workingDirectories": [file_uri(&place.join("work"))]});
    host.ahp("owner").await.ask("createSession", create).await.unwrap();
    host
}

#[tokio::test]
async fn a_file_is_changed_by_the_connection_that_asked_for_it_and_with_the_version_that_it_has() {
    let place = tempfile::tempdir().unwrap();
    let host = host_in(place.path()).await;
    let file = place.path().join("work/a.txt");
    let mut client = host.ahp("a").await;
    let code = |answer: Result<Value, grove_wire::jsonrpc::ErrorObject>| answer.unwrap_err().code;

    let error = client.ask("resourceWrite", writes(&file, "1")).await.unwrap_err();
    let request = json!({"request": {"channel": ROOT, "uri": file_uri(&file), "write": true}});
    assert_eq!((error.code, error.data), (-32009, Some(request)));
    client.ask("resourceRequest", asks(&file)).await.unwrap();
    assert_eq!(client.ask("resourceWrite", writes(&file, "1")).await.unwrap(), json!({}));
    assert_eq!(code(host.ahp("b").await.ask("resourceWrite", writes(&file, "2")).await), -32009, "another connection");
    let beside = place.path().join("work/b.txt");
    assert_eq!(code(client.ask("resourceWrite", writes(&beside, "2")).await), -32009);

    client.ask("resourceRequest", asks(&place.path().join("work"))).await.unwrap();
    let etag = client.ask("resourceResolve", about(&file)).await.unwrap()["etag"].clone();
    let expecting = |data: &str| with(writes(&file, data), json!({"ifMatch": etag}));
    client.ask("resourceWrite", expecting("2")).await.unwrap();
    assert_eq!(code(client.ask("resourceWrite", expecting("3")).await), -32011);
    let once = with(writes(&file, "3"), json!({"createOnly": true}));
    assert_eq!(code(client.ask("resourceWrite", once).await), -32010);
    let bytes = with(about(&beside), json!({"data": "/wD+", "encoding": "base64"}));
    client.ask("resourceWrite", bytes).await.unwrap();
    let appended = with(writes(&beside, "x"), json!({"mode": "append"}));
    client.ask("resourceWrite", appended).await.unwrap();
    assert_eq!(std::fs::read(&beside).unwrap(), [0xff, 0, 0xfe, b'x']);
    assert_eq!(
        code(client.ask("resourceWrite", with(writes(&file, "!"), json!({"encoding": "base64"}))).await),
        -32602
    );

    let folder = place.path().join("work/new/deep");
    client.ask("resourceMkdir", about(&folder)).await.unwrap();
    let places =
        |from: &Path, to: &Path| json!({"channel": ROOT, "source": file_uri(from), "destination": file_uri(to)});
    client.ask("resourceCopy", places(&file, &folder.join("copy"))).await.unwrap();
    client.ask("resourceMove", places(&folder, &place.path().join("work/moved"))).await.unwrap();
    assert_eq!(std::fs::read_to_string(place.path().join("work/moved/copy")).unwrap(), "2");
    let new = place.path().join("work/moved");
    assert_eq!(code(client.ask("resourceDelete", about(&new)).await), -32602, "it is not empty");
    client.ask("resourceDelete", with(about(&new), json!({"recursive": true}))).await.unwrap();
    assert_eq!(code(client.ask("resourceDelete", about(&new)).await), -32008);
    for path in [place.path().join("work"), place.path().join("outside"), "/proc/self/comm".into(), "/".into()] {
        let delete = with(about(&path), json!({"recursive": true}));
        assert_eq!(code(client.ask("resourceDelete", delete).await), -32009, "{}", path.display());
    }
}

#[tokio::test]
async fn files_that_decide_what_runs_are_changed_with_the_scope_approve_alone() {
    let place = tempfile::tempdir().unwrap();
    let host = host_in(place.path()).await;
    let (work, hook) = (place.path().join("work"), place.path().join("work/.git/hooks/pre-commit"));
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(".git/hooks", work.join("link")).unwrap();
    let mut reader = Scoped::ahp(&host, &[Scope::Read, Scope::Folders]).await;
    reader.must_lack(Scope::Prompt, "resourceRequest", asks(&work)).await;
    reader.must_lack(Scope::Prompt, "resourceWrite", writes(&work.join("a"), "x")).await;
    reader.ask("resourceRequest", with(about(&work), json!({"read": true}))).await.unwrap();

    let mut prompter = Scoped::ahp(&host, &[Scope::Read, Scope::Prompt, Scope::Folders]).await;
    prompter.ask("resourceRequest", asks(&work)).await.unwrap();
    prompter.ask("resourceWrite", writes(&work.join("a"), "x")).await.unwrap();
    for path in [&hook, &work.join("link/pre-commit"), &work.join(".claude"), &work.join("AGENTS/../.mcp.json")] {
        let error = prompter.ask("resourceWrite", writes(path, "x")).await.unwrap_err();
        let text = error["message"].as_str().unwrap();
        let is_told = text.contains("needs the scope `approve`") || text.contains("outside the folders");
        assert!(error["code"] == -32009 && is_told, "{}: {error}", path.display());
    }
    let error = prompter.ask("resourceRequest", asks(&hook)).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("needs the scope `approve`"), "{error}");
    assert!(!hook.exists());

    let all = [Scope::Read, Scope::Prompt, Scope::Folders, Scope::Approve];
    let mut approver = Scoped::ahp(&host, &all).await;
    approver.ask("resourceRequest", asks(&hook)).await.unwrap();
    approver.ask("resourceWrite", writes(&hook, "x")).await.unwrap();
    assert!(hook.exists());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_file_is_recorded_with_its_path() {
    let host = TokenHost::start().await.with_remote_clients();
    let audit = MemoryAudit::of(&host.host);
    let mut client = host.client(TOKEN, "owner").await;
    let (one, other) = (Path::new("/none/a"), Path::new("/none/b"));
    client.ask("resourceWrite", writes(one, "secret")).await.unwrap_err();
    let moved = json!({"channel": ROOT, "source": file_uri(one), "destination": file_uri(other)});
    client.ask("resourceMove", moved).await.unwrap_err();
    client.ask("resourceRequest", asks(one)).await.unwrap_err();
    client.ask("resourceRead", about(one)).await.unwrap_err();
    let records = audit.take();
    let found: Vec<_> = records
        .iter()
        .filter(|record| record.action == AuditAction::Change)
        .map(|record| (record.operation.as_str(), record.detail.as_deref().unwrap(), record.outcome))
        .collect();
    assert_eq!(
        found,
        [
            ("resourceWrite", "file:///none/a", AuditOutcome::Refused),
            ("resourceMove", "file:///none/a → file:///none/b", AuditOutcome::Refused),
            ("resourceRequest", "file:///none/a", AuditOutcome::Refused),
        ]
    );
    assert!(!format!("{records:?}").contains("secret"));
}
