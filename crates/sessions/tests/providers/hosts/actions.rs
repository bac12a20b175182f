//! Actions on sessions of a host, visible to all clients.

use std::sync::Arc;

use grove_host::{Config, Folders};
use grove_sessions::provider::{AttachedContext, BrowseOutcome, BrowseRequest, ReadState, SendOptions};
use grove_sessions::session::SessionStatus;
use grove_sessions::{ProviderError, SessionsProvider};
use serde_json::json;

use super::harness::*;

#[tokio::test]
async fn renaming_archiving_and_reading_are_seen_by_every_client() {
    let host = TestHost::start().await;
    create(&host.client().await, "scripted:/1", "/srv/app").await;
    let (provider, other) = (host.here().await, host.there("box").await);
    let (row, seen) = (session(&provider, "scripted:/1").await, session(&other, "scripted:/1").await);
    let main = row.main_chat();
    provider.rename_chat(row.id(), main.resource(), "Mine").await.unwrap();
    until("the title", || &*seen.title() == "Mine" && &*row.title() == "Mine").await;
    provider.rename_chat(row.id(), main.resource(), "Mine").await.unwrap();
    let unknown = provider.rename_chat(row.id(), &"agent-host-ahp-chat:/no".into(), "x").await;
    assert!(matches!(unknown, Err(ProviderError::UnknownChat { .. })));

    for is_archived in [true, false] {
        match is_archived {
            true => provider.archive_session(row.id()).await.unwrap(),
            false => provider.unarchive_session(row.id()).await.unwrap(),
        }
        until("the archive", || seen.is_archived() == is_archived && row.is_archived() == is_archived).await;
    }
    for (read, is_read) in [(ReadState::Unread, false), (ReadState::Read, true), (ReadState::Read, true)] {
        provider.set_read(row.id(), read).await.unwrap();
        until("the mark", || seen.is_read() == is_read && row.is_read() == is_read).await;
    }
}

#[tokio::test]
async fn a_deleted_session_is_gone_for_everybody_and_does_not_come_back() {
    let host = TestHost::start().await;
    create(&host.client().await, "scripted:/1", "/srv/app").await;
    let (provider, other) = (host.here().await, host.there("box").await);
    let row = session(&provider, "scripted:/1").await;
    session(&other, "scripted:/1").await;
    let mut events = provider.subscribe();
    provider.delete_session(row.id()).await.unwrap();
    assert!(provider.sessions().is_empty());
    until_listed(&other, &[]).await;
    assert_eq!(told(&mut events), ["removed agent-host-scripted:/1"]);
    let again = provider.delete_session(row.id()).await;
    assert!(matches!(again, Err(ProviderError::UnknownSession(_))), "{again:?}");
}

#[tokio::test]
async fn chats_come_and_go_and_the_main_one_stays_while_there_are_others() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let row = sent(&provider, script(json!([{"say": "one"}]))).await;
    until("the turn's end", || row.status() == SessionStatus::Completed).await;
    let same = provider.send_and_create_chat(row.id(), script(json!([{"say": "two"}]))).await.unwrap();
    assert_eq!(same.id(), row.id());
    assert_eq!(row.chats().len(), 2);
    let (main, second) = (row.chats()[0].resource().clone(), row.chats()[1].resource().clone());
    assert!(!provider.delete_chat(row.id(), &"agent-host-ahp-chat:/no".into()).await.unwrap(), "there is none");
    let refused = provider.delete_chat(row.id(), &main).await;
    assert!(matches!(refused, Err(ProviderError::Refused(_))), "{refused:?}");
    until("the second turn's end", || row.chats()[1].status() == SessionStatus::Completed).await;
    assert!(provider.delete_chat(row.id(), &second).await.unwrap());
    assert_eq!(row.chats().len(), 1);
    assert!(provider.delete_chat(row.id(), &main).await.unwrap(), "the session goes with its last chat");
    assert!(provider.sessions().is_empty());
}

#[tokio::test]
async fn what_is_sent_while_a_turn_runs_waits_for_its_end() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let row = sent(&provider, script(json!([{"say": "slow", "chunks": 4, "delayMs": 100}]))).await;
    let main = row.main_chat().resource().clone();
    provider.send_request(row.id(), &main, script(json!([{"title": "Later"}]))).await.unwrap();
    until("the queued message's turn", || &*row.title() == "Later").await;
    until("its end", || row.status() == SessionStatus::Completed).await;
    provider.send_request(row.id(), &main, script(json!([{"title": "Last"}]))).await.unwrap();
    until("a third turn", || &*row.title() == "Last").await;
}

#[tokio::test]
async fn attachments_arrive_with_the_message() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let attached_context = vec![
        AttachedContext::File { uri: "file:///srv/a.rs".into() },
        AttachedContext::Folder { uri: "file:///srv/src".into() },
        AttachedContext::Selection { uri: "file:///srv/b.rs".into(), first_line: 1, last_line: 2, text: "x".into() },
        AttachedContext::Image { media_type: "image/png".into(), data: Arc::from([137_u8, 80, 78, 71]) },
    ];
    let options = SendOptions { attached_context, ..script(json!([{"say": "seen"}])) };
    let row = sent(&provider, options).await;
    let client = host.client().await;
    let chat = provider.host().host_uri(row.main_chat().resource()).unwrap().to_owned();
    let mut chat = client.subscribe(&chat).await.unwrap();
    let message = chat.until(|state| {
        let chat = state.chat()?;
        chat.turns.first().map(|turn| turn.message.clone())
    });
    let message = serde_json::to_value(soon("the turn", message).await.unwrap()).unwrap();
    let kinds: Vec<&str> =
        message["attachments"].as_array().unwrap().iter().map(|it| it["displayKind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["document", "directory", "selection", "image"]);
}

#[tokio::test]
async fn the_chosen_model_of_a_session_goes_with_what_is_sent_next() {
    let host = TestHost::start().await;
    create(&host.client().await, "scripted:/1", "/srv/app").await;
    let provider = host.here().await;
    let row = session(&provider, "scripted:/1").await;
    assert!(provider.set_model(row.id(), "no such").await.is_err());
    provider.set_model(row.id(), "scripted").await.unwrap();
    assert_eq!(row.model_id().as_deref(), Some("scripted"));
    let main = row.main_chat().resource().clone();
    provider.send_request(row.id(), &main, script(json!([{"say": "hi"}]))).await.unwrap();
    let client = host.client().await;
    let mut chat = client.subscribe(provider.host().host_uri(&main).unwrap()).await.unwrap();
    let turn = soon("the turn", chat.until(|state| state.chat()?.turns.first().cloned())).await.unwrap();
    assert_eq!(turn.message.model.unwrap().id, "scripted");
}

#[tokio::test]
async fn folders_of_the_host_are_looked_for_by_their_names() {
    let home = tempfile::tempdir().unwrap();
    for folder in ["app", "api", ".hidden", "site/src"] {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    std::fs::write(home.path().join("a-file"), "").unwrap();
    let real = home.path().canonicalize().unwrap();
    let roots = grove_work_roots(&real);
    let config = Config {
        folders: Folders { default_directory: Some(real.clone()), roots, ..Folders::default() },
        ..Config::default()
    };
    let host = TestHost::with(config).await;
    let provider = host.there("dev-box").await;
    let actions = provider.browse_actions();
    assert_eq!((&*actions[0].label, &actions[0].provider_id), ("Folders", provider.id()));
    let browse = async |query: Option<&str>| {
        let request =
            BrowseRequest { action: actions[0].id.clone(), chosen: None, query: query.map(ToOwned::to_owned) };
        match provider.browse(&request).await.unwrap() {
            BrowseOutcome::Offered(offers) => offers,
            BrowseOutcome::Nothing => Vec::new(),
            BrowseOutcome::Chosen(workspace) => panic!("{workspace:?}"),
        }
    };
    let labels = |offers: &[grove_sessions::provider::BrowseOffer]| -> Vec<String> {
        offers.iter().map(|offer| offer.label.to_string()).collect()
    };
    assert_eq!(labels(&browse(None).await), ["api", "app", "site"]);
    assert_eq!(labels(&browse(Some("AP")).await), ["api", "app"]);
    assert_eq!(labels(&browse(Some("site/")).await), ["src"]);
    assert!(browse(Some("nowhere/x")).await.is_empty());
    let offer = browse(Some("app")).await.remove(0);
    let request = BrowseRequest { action: actions[0].id.clone(), chosen: Some(offer.uri), query: None };
    let BrowseOutcome::Chosen(workspace) = provider.browse(&request).await.unwrap() else {
        panic!("nothing was chosen")
    };
    assert_eq!(&*workspace.label, "app [dev-box]");
    assert!(workspace.requires_workspace_trust);
    let file = format!("file://{}/a-file", real.display());
    assert_eq!(provider.resolve_workspace(&file.as_str().into()).await.unwrap(), None, "a file is no workspace");
    assert_eq!(provider.resolve_workspace(&"https://example.org".into()).await.unwrap(), None);
}

fn grove_work_roots(folder: &std::path::Path) -> grove_work::Roots {
    grove_work::Roots { browse: vec![folder.to_owned()], ..grove_work::Roots::default() }
}
