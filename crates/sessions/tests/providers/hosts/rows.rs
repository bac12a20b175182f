//! The source of each property of a row.

use std::sync::Arc;

use grove_sessions::grouping::{GroupKey, GroupLocation, group};
use grove_sessions::management::{NoTrustPrompt, TrustPrompt, TrustQuestion};
use grove_sessions::provider::{ProviderEnvironment, SendOptions};
use grove_sessions::session::SessionStatus;
use grove_sessions::{Management, ProviderError, Registry, Session, SessionsProvider};
use serde_json::json;

use super::harness::*;

#[tokio::test]
async fn this_host_and_others_are_told_apart_by_id_order_and_labels() {
    let host = TestHost::start().await;
    let (here, there) = (host.here().await, host.there("dev-box").await);
    assert_eq!((here.id().as_str(), here.order(), &*here.label()), ("local-agent-host", -1, "Grove"));
    assert!(there.id().as_str().starts_with("agenthost-127.0.0.1__"), "{}", there.id());
    assert_eq!((there.order(), &*there.label()), (0, "dev-box"));
    assert_eq!(here.environment(), ProviderEnvironment::ThisHost);
    assert_eq!(there.environment(), ProviderEnvironment::OtherHost("dev-box".into()));
    let types = |provider: &dyn SessionsProvider| -> Vec<(String, String)> {
        let types = provider.session_types().into_iter();
        types.map(|offered| (offered.id.to_string(), offered.label.to_string())).collect()
    };
    let pairs = |all: [(&str, &str); 2]| all.map(|(id, label)| (id.to_owned(), label.to_owned())).to_vec();
    assert_eq!(types(here.as_ref()), pairs([("scripted", "Scripted"), ("other", "Other")]));
    assert_eq!(types(there.as_ref()), pairs([("scripted", "Scripted [dev-box]"), ("other", "Other [dev-box]")]));
}

#[tokio::test]
async fn the_list_alone_tells_what_a_row_says() {
    let host = TestHost::start().await;
    let client = host.client().await;
    create(&client, "scripted:/1", "/srv/my%20app").await;
    let (here, there) = (host.here().await, host.there("dev-box").await);
    let row = session(&here, "scripted:/1").await;
    assert_eq!(row.id().as_str(), "local-agent-host:agent-host-scripted:/1");
    assert_eq!((row.provider_id(), row.session_type().as_str()), (here.id(), "scripted"));
    assert_eq!((row.status(), row.is_archived(), row.loading()), (SessionStatus::Completed, false, false));
    assert!(row.created_at().0 > 0 && row.updated_at() >= row.created_at());
    assert_eq!((row.chats().len(), row.main_chat().resource().scheme()), (1, "agent-host-ahp-chat"));
    let can = row.capabilities();
    assert!(can.supports_multiple_chats && can.supports_fork && can.supports_rename && can.supports_delete);
    let workspace = row.workspace().unwrap();
    assert_eq!((&*workspace.label, workspace.uri.as_str()), ("my app", "file:///srv/my%20app"));
    assert!(workspace.requires_workspace_trust && workspace.host.is_none());
    let far = session(&there, "scripted:/1").await;
    assert_eq!(&*far.workspace().unwrap().label, "my app [dev-box]");
    assert_eq!(far.metadata().text("remoteAgentHost"), Some("dev-box"));
    assert_ne!(far.resource(), row.resource(), "two hosts may have sessions of one name");
}

#[tokio::test]
async fn what_comes_goes_and_changes_on_the_host_is_told_once() {
    let host = TestHost::start().await;
    let client = host.client().await;
    let provider = host.here().await;
    let mut events = provider.subscribe();
    create(&client, "scripted:/1", "/srv/app").await;
    create(&client, "scripted:/2", "/srv/app").await;
    until_listed(&provider, &["scripted:/1", "scripted:/2"]).await;
    dispose(&client, "scripted:/1").await;
    until_listed(&provider, &["scripted:/2"]).await;
    let told = told(&mut events);
    let count = |what: &str| told.iter().filter(|told| *told == what).count();
    assert_eq!(count("added agent-host-scripted:/1") + count("added agent-host-scripted:/2"), 2, "{told:?}");
    assert_eq!(count("removed agent-host-scripted:/1"), 1, "{told:?}");
}

#[tokio::test]
async fn a_running_session_says_which_tool_runs_and_then_when_its_turn_ended() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let tool = json!({"tool": {"name": "make", "output": "ok", "permission": "shell", "input": "make test"}});
    let row = sent(&provider, script(json!([tool, {"title": "Build it"}]))).await;
    until("a question", || row.status() == SessionStatus::NeedsInput).await;
    until("a description", || row.description().is_some()).await;
    assert!(row.last_turn_end().is_none());
    approve(&host.endpoint(), provider.host().host_uri(row.main_chat().resource()).unwrap()).await;
    until("the turn's end", || row.status() == SessionStatus::Completed).await;
    until("its time", || row.last_turn_end().is_some()).await;
    until("no description", || row.description().is_none()).await;
    until("the title", || &*row.title() == "Build it").await;
    assert!(row.last_turn_end().unwrap() >= row.created_at());
}

#[tokio::test]
async fn a_session_that_somebody_has_open_tells_more_than_its_row() {
    let host = TestHost::start().await;
    let other = host.here().await;
    let done = sent(&other, script(json!([{"say": "hi"}]))).await;
    until("the turn's end", || done.status() == SessionStatus::Completed).await;
    // A later client has seen nothing of the turn.
    let provider = host.here().await;
    let row = session(&provider, provider.host().host_uri(done.resource()).unwrap()).await;
    assert_eq!(row.last_turn_end(), None);
    let opened = provider.open(row.id()).unwrap();
    until("the last turn's end", || row.last_turn_end().is_some()).await;
    drop(opened);
    pass(std::time::Duration::from_secs(1)).await;
    assert!(row.last_turn_end().is_some(), "what is known stays");
    assert!(provider.open(&"local-agent-host:agent-host-scripted:/no".to_owned().try_into().unwrap()).is_none());
}

#[tokio::test]
async fn an_agent_that_a_connected_host_gets_is_offered_and_one_that_it_loses_is_not() {
    let host = TestHost::start().await;
    let provider = host.there("dev-box").await;
    create(&host.client().await, "other:/1", "/srv/app").await;
    let row = session(&provider, "other:/1").await;
    let can = row.capabilities();
    let draft = provider.create_new_session(&workspace(&provider, "/srv/app").await).await.unwrap();
    let labels =
        || -> Vec<String> { provider.session_types().iter().map(|offered| offered.label.to_string()).collect() };
    let mut events = provider.subscribe();
    let mut told_types = || told(&mut events).iter().filter(|told| *told == "types").count();

    let third = Named { id: "third", display_name: "Third" };
    host.host.add_agent(Arc::new(third)).await.unwrap();
    until("a third type", || labels() == ["Scripted [dev-box]", "Other [dev-box]", "Third [dev-box]"]).await;
    provider.set_session_type(draft.id(), &"third".into()).await.unwrap();
    assert_eq!(told_types(), 1);

    host.host.remove_agent(&"other".into()).await.unwrap();
    until("two types", || labels() == ["Scripted [dev-box]", "Third [dev-box]"]).await;
    let gone = provider.set_session_type(draft.id(), &"other".into()).await;
    assert!(matches!(gone, Err(ProviderError::UnknownSessionType(_))), "{gone:?}");
    assert_eq!((draft.session_type().as_str(), told_types()), ("third", 1));
    assert_eq!(listed(&provider), ["other:/1"], "what it did stays");
    assert_eq!(row.capabilities(), can);
}

#[tokio::test]
async fn the_same_repository_on_two_hosts_is_two_groups() {
    let folder = tempfile::tempdir().unwrap();
    let (site, fix) = worktree(folder.path());
    let (near, far) = (TestHost::start().await, TestHost::start().await);
    create(&near.client().await, "scripted:/1", &site.display().to_string()).await;
    for (name, place) in [("scripted:/1", &site), ("scripted:/2", &fix), ("scripted:/3", &site)] {
        create(&far.client().await, name, &place.display().to_string()).await;
    }
    let (here, there) = (near.here().await, far.there("dev-box").await);
    until_listed(&here, &["scripted:/1"]).await;
    until_listed(&there, &["scripted:/1", "scripted:/2", "scripted:/3"]).await;
    let registry = Registry::new();
    let _registered = (registry.register(there.clone()).unwrap(), registry.register(here.clone()).unwrap());
    let (management, _driver) = Management::new(registry, Arc::new(grove_sessions::InMemoryState::default())).unwrap();
    until("the repositories", || management.sessions().iter().all(|session| session.github_info().is_some())).await;
    let sessions = management.sessions();
    assert_eq!((sessions.len(), sessions[0].provider_id()), (4, here.id()), "this host comes first");
    let groups = group(sessions);
    let shown: Vec<_> = groups.iter().map(|group| (group.heading(), group.sessions.len())).collect();
    // The worktree is grouped with its repository, and most sessions give its name.
    assert_eq!(shown, [("site".to_owned(), 1), ("site [dev-box]".to_owned(), 3)]);
    let keys: Vec<_> = groups.into_iter().map(|group| group.key.unwrap()).collect();
    let place = GroupLocation::Repository("github.com/acme/site".into());
    assert_eq!(keys, [None, Some("dev-box".into())].map(|host| GroupKey { host, place: place.clone() }));
}

#[tokio::test]
async fn the_repository_of_a_folder_is_known_of_all_its_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join(".git");
    std::fs::create_dir_all(&git).unwrap();
    std::fs::write(git.join("HEAD"), "ref: refs/heads/fix\n").unwrap();
    std::fs::write(git.join("config"), "[remote \"origin\"]\n\turl = git@github.com:acme/site.git\n").unwrap();
    let host = TestHost::start().await;
    let client = host.client().await;
    let path = folder.path().canonicalize().unwrap();
    create(&client, "scripted:/1", &path.display().to_string()).await;
    create(&client, "scripted:/2", &path.display().to_string()).await;
    let provider = host.here().await;
    for name in ["scripted:/1", "scripted:/2"] {
        let row = session(&provider, name).await;
        until("the repository", || row.github_info().is_some()).await;
        assert_eq!(&*row.workspace().unwrap().label, "site");
    }
    let row = session(&provider, "scripted:/1").await;
    let _opened = provider.open(row.id()).unwrap();
    until("the branch", || {
        let workspace = row.workspace().unwrap();
        workspace.repositories.first().is_some_and(|repository| repository.detail.as_deref() == Some("fix"))
    })
    .await;
}

#[tokio::test]
async fn branch_base_branch_and_pull_request_arrive_with_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let (source, fix) = worktree(folder.path());
    let host = TestHost::start().await;
    let client = host.client().await;
    create(&client, "scripted:/1", &fix.display().to_string()).await;
    for provider in [host.here().await, host.there("dev-box").await] {
        let row = session(&provider, "scripted:/1").await;
        let pull = |row: &Session| row.github_info()?.pull_request.as_ref().map(|pull| pull.number);
        until("the pull request", || pull(&row) == Some(7)).await;
        let workspace = row.workspace().unwrap();
        let repository = &workspace.repositories[0];
        assert_eq!((repository.detail.as_deref(), repository.base_branch_name.as_deref()), (Some("fix"), Some("main")));
        assert_eq!(repository.base_branch_protected, None, "nobody knows");
        assert_eq!(repository.identity.as_deref(), Some("github.com/acme/site"));
        assert_eq!(repository.uri.as_str(), format!("file://{}", source.display()));
        assert_eq!(repository.working_directory.as_ref().unwrap().as_str(), format!("file://{}", fix.display()));
    }
}

#[tokio::test]
async fn a_pull_request_that_a_turn_made_and_a_branch_that_it_switched_to_arrive_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (source, fix) = worktree(folder.path());
    let host = TestHost::start().await;
    let provider = host.here().await;
    let workspace = workspace(&provider, &fix.display().to_string()).await;
    let draft = provider.create_new_session(&workspace).await.unwrap();
    let made = "https://github.com/acme/site/pull/8";
    let tool = json!({"tool": {"name": "shell", "input": "gh pr create", "output": made, "permission": "shell"}});
    let row =
        soon("the first message", provider.send_and_create_chat(draft.id(), script(json!([tool])))).await.unwrap();
    until("a question", || row.status() == SessionStatus::NeedsInput).await;
    std::fs::write(source.join(".git/worktrees/fix/HEAD"), "ref: refs/heads/other\n").unwrap();
    approve(&host.endpoint(), provider.host().host_uri(row.main_chat().resource()).unwrap()).await;
    until("the pull request", || {
        let info = row.github_info();
        info.and_then(|info| info.pull_request.clone()).is_some_and(|pull| pull.uri.as_str() == made)
    })
    .await;
    assert_eq!(row.workspace().unwrap().repositories[0].detail.as_deref(), Some("other"));
}

#[tokio::test]
async fn management_sends_through_a_host_and_looks_at_what_came_of_it() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let registry = Registry::new();
    let _registered = registry.register(provider.clone()).unwrap();
    let (management, driver) = Management::new(registry, Arc::new(grove_sessions::InMemoryState::default())).unwrap();
    tokio::spawn(driver.run());
    let workspace = workspace(&provider, "/srv/app").await;
    let draft = management.create_new_session(provider.id(), &workspace).await.unwrap();
    let untrusted = management.send_and_create_chat(draft.id(), SendOptions::new("hi"), &NoTrustPrompt).await;
    assert!(untrusted.is_err(), "a folder must be trusted first");
    let sent =
        management.send_and_create_chat(draft.id(), script(json!([{"say": "hi"}])), &TrustEveryFolder).await.unwrap();
    assert_eq!(management.sessions(), std::slice::from_ref(&sent));
    until("the turn's end", || sent.status() == SessionStatus::Completed).await;
    assert!(management.delete_chat(sent.id(), sent.main_chat().resource()).await.unwrap());
    assert!(management.sessions().is_empty());
}

#[derive(Debug)]
struct TrustEveryFolder;

#[async_trait::async_trait]
impl TrustPrompt for TrustEveryFolder {
    async fn ask(&self, _question: &TrustQuestion) -> Option<grove_sessions::Trust> {
        Some(grove_sessions::Trust::Trusted)
    }
}
