//! Drafts, and their way to the host.

use std::collections::HashSet;

use grove_sessions::provider::ProviderEvent;
use grove_sessions::session::{SessionStatus, SessionWorkspace};
use grove_sessions::{ProviderError, SessionId, SessionsProvider};
use serde_json::json;

use super::harness::*;

#[tokio::test]
async fn a_new_session_is_not_listed_before_its_first_message() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let workspace = workspace(&provider, "/srv/app").await;
    let mut events = provider.subscribe();
    let draft = provider.create_new_session(&workspace).await.unwrap();
    let second = provider.create_new_session(&workspace).await.unwrap();
    assert_ne!(draft.id(), second.id(), "several may wait at once");
    assert_eq!((draft.status(), &*draft.title()), (SessionStatus::Untitled, "New Session"));
    assert_eq!(draft.session_type().as_str(), "scripted");
    assert_eq!(draft.metadata().text("workingDirectoryPath"), Some("/srv/app"));
    assert!(provider.sessions().is_empty() && told(&mut events).is_empty());
    provider.delete_new_session(second.id()).await.unwrap();
    let gone = provider.send_and_create_chat(second.id(), script(json!([]))).await;
    assert!(matches!(gone, Err(ProviderError::UnknownSession(_))), "{gone:?}");
}

#[tokio::test]
async fn the_hosts_session_takes_the_place_of_the_new_one_and_no_moment_has_both() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let workspace = workspace(&provider, "/srv/app").await;
    let draft = provider.create_new_session(&workspace).await.unwrap();
    let mut events = provider.subscribe();
    let watched = tokio::spawn({
        let (provider, mut events) = (provider.clone(), provider.subscribe());
        async move {
            // A row that was added and neither removed nor replaced is listed; there may never be two.
            let mut rows: HashSet<SessionId> = HashSet::new();
            while let Ok(event) = events.recv().await {
                match event {
                    ProviderEvent::Sessions(change) => {
                        rows.extend(change.added.iter().map(|session| session.id().clone()));
                        change.removed.iter().for_each(|session| _ = rows.remove(session.id()));
                    }
                    ProviderEvent::SessionReplacement(replaced) => {
                        assert!(rows.remove(replaced.from.id()) && rows.insert(replaced.to.id().clone()));
                        return rows;
                    }
                    ProviderEvent::SessionTypes | ProviderEvent::Availability => {}
                }
                assert!(rows.len() <= 1 && provider.sessions().len() <= 1, "{rows:?}");
            }
            rows
        }
    });
    let options = script(json!([{"say": "hello"}]));
    let sent = soon("the first message", provider.send_and_create_chat(draft.id(), options)).await.unwrap();
    let rows = soon("the replacement", watched).await.unwrap();
    assert_eq!(rows, HashSet::from([sent.id().clone()]));
    let told = told(&mut events);
    assert_eq!(told[0], format!("added {}", draft.id().local()));
    assert_eq!(told.iter().filter(|told| told.starts_with("replaced")).count(), 1, "{told:?}");
    assert_eq!(provider.sessions(), std::slice::from_ref(&sent));
    assert_ne!(sent.id(), draft.id());
    assert!(sent.id().local().starts_with("agent-host-scripted:/"), "{}", sent.id());
    assert_eq!(&*sent.workspace().unwrap().label, "app");
    until("the turn's end", || sent.status() == SessionStatus::Completed).await;
    let again = provider.send_and_create_chat(draft.id(), script(json!([]))).await;
    assert!(matches!(again, Err(ProviderError::UnknownSession(_))), "{again:?}");
}

#[tokio::test]
async fn the_type_can_be_changed_before_the_first_message_only() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let workspace = workspace(&provider, "/").await;
    let draft = provider.create_new_session(&workspace).await.unwrap();
    provider.set_model(draft.id(), "scripted").await.unwrap();
    let other = provider.set_session_type(draft.id(), &"other".into()).await.unwrap();
    assert_eq!((other.session_type().as_str(), other.model_id()), ("other", None));
    let unknown = provider.set_session_type(draft.id(), &"nobody".into()).await;
    assert!(matches!(unknown, Err(ProviderError::UnknownSessionType(_))));
    let sent = provider.send_and_create_chat(draft.id(), script(json!([{"say": "hi"}]))).await.unwrap();
    assert_eq!(sent.session_type().as_str(), "other");
    let late = provider.set_session_type(sent.id(), &"scripted".into()).await;
    assert!(matches!(late, Err(ProviderError::AlreadySent(_))), "{late:?}");
    let offered = provider.session_types_of(sent.id());
    assert_eq!(offered.iter().map(|offered| offered.id.as_str()).collect::<Vec<_>>(), ["other"]);
}

#[tokio::test]
async fn the_chosen_model_goes_with_the_first_message() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let workspace = workspace(&provider, "/").await;
    let draft = provider.create_new_session(&workspace).await.unwrap();
    let unknown = provider.set_model(draft.id(), "gpt-9").await.unwrap_err();
    assert!(unknown.to_string().contains("choose one of scripted,"), "{unknown}");
    provider.set_model(draft.id(), "scripted").await.unwrap();
    assert_eq!(draft.model_id().as_deref(), Some("scripted"));
    let sent = provider.send_and_create_chat(draft.id(), script(json!([{"say": "hi"}]))).await.unwrap();
    assert_eq!(sent.model_id().as_deref(), Some("scripted"));
    let client = host.client().await;
    let host_uri = provider.host().host_uri(sent.resource()).unwrap().to_owned();
    let mut session = client.subscribe(&host_uri).await.unwrap();
    let chat = soon("a chat", session.until(|state| state.session()?.default_chat.clone())).await.unwrap();
    let mut chat = client.subscribe(&chat).await.unwrap();
    let turn = soon("the turn", chat.until(|state| state.chat()?.turns.first().cloned())).await.unwrap();
    assert_eq!(turn.message.model.unwrap().id, "scripted");
}

#[tokio::test]
async fn what_could_not_be_sent_is_a_new_session_again() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let nowhere = SessionWorkspace::new("ftp://nowhere", "nowhere");
    let draft = provider.create_new_session(&nowhere).await.unwrap();
    let mut events = provider.subscribe();
    let refused = provider.send_and_create_chat(draft.id(), script(json!([]))).await;
    assert!(matches!(refused, Err(ProviderError::Refused(_))), "{refused:?}");
    let id = draft.id().local();
    assert_eq!(told(&mut events), [format!("added {id}"), format!("removed {id}")]);
    assert!(provider.sessions().is_empty());
    assert_eq!((draft.status(), &*draft.title(), draft.loading()), (SessionStatus::Untitled, "New Session", false));
    provider.set_session_type(draft.id(), &"other".into()).await.unwrap();
}
