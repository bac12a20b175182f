//! Drafts, and their first message.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use grove_sessions::management::{Management, ManagementError, NewSession, NoTrustPrompt, SessionsEvent};
use grove_sessions::provider::SendOptions;
use grove_sessions::session::{SessionStatus, SessionWorkspace};
use grove_sessions::{Session, SubscriptionItem};
use tokio::sync::Notify;

use crate::provider::{TestProvider, ids, manage};

fn workspace() -> SessionWorkspace {
    SessionWorkspace::new("file:///work/app", "app")
}

async fn create(management: &Management, provider: &TestProvider) -> Result<Session, ManagementError> {
    management.create_new_session(&provider.id, &workspace()).await
}

async fn send(management: &Management, session: &Session, query: &str) -> Result<Session, ManagementError> {
    management.send_and_create_chat(session.id(), SendOptions::new(query), &NoTrustPrompt).await
}

#[tokio::test]
async fn a_new_session_is_looked_at_and_is_not_listed() {
    let a = Arc::new(TestProvider::new("a"));
    let (management, _driver, _handles) = manage([a.clone()]);
    let new = create(&management, &a).await.unwrap();
    assert_eq!((new.status(), management.sessions().len()), (SessionStatus::Untitled, 0));
    assert_eq!(management.new_session().as_ref(), Some(&new));
    assert_eq!(management.active_session().unwrap().session(), &new);
    assert_eq!(management.session_by_id(new.id()).as_ref(), Some(&new));
}

#[tokio::test]
async fn a_second_draft_drops_the_first_through_its_own_provider_once_it_is_there() {
    let (a, b) = (Arc::new(TestProvider::new("a")), Arc::new(TestProvider::new("b")));
    let (management, _driver, _handles) = manage([a.clone(), b.clone()]);
    let first = create(&management, &a).await.unwrap();
    b.failing.store(true, Ordering::Relaxed);
    assert!(create(&management, &b).await.is_err());
    assert_eq!((management.new_session().as_ref(), a.drafts()), (Some(&first), 1), "a failure leaves the first");
    b.failing.store(false, Ordering::Relaxed);
    let second = create(&management, &b).await.unwrap();
    assert_eq!((management.new_session(), a.drafts(), b.drafts()), (Some(second), 0, 1));
    assert_eq!(a.calls(), [format!("create {}", first.id()), format!("drop {}", first.id())]);
}

#[tokio::test]
async fn unsetting_drops_the_draft_and_shows_the_form() {
    let a = Arc::new(TestProvider::new("a"));
    let (management, _driver, _handles) = manage([a.clone()]);
    create(&management, &a).await.unwrap();
    management.unset_new_session().await;
    assert_eq!((management.new_session(), management.active_session(), a.drafts()), (None, None, 0));
    management.unset_new_session().await;
}

#[tokio::test]
async fn a_draft_is_there_again_when_the_form_is_opened_again() {
    let a = Arc::new(TestProvider::new("a"));
    let other = a.add("1").session();
    let (management, _driver, _handles) = manage([a.clone()]);
    let new = create(&management, &a).await.unwrap();
    management.open_session(other.resource()).unwrap();
    management.open_new_session_view();
    assert_eq!(management.active_session().unwrap().session(), &new);
}

#[tokio::test]
async fn a_draft_that_its_provider_loses_is_forgotten() {
    let a = Arc::new(TestProvider::new("a"));
    let listed = a.add("1").session();
    let (management, _driver, handles) = manage([a.clone()]);
    create(&management, &a).await.unwrap();
    a.lose_drafts();
    // It was never listed, so the list does not change.
    assert_eq!((management.new_session(), management.active_session()), (None, None));
    assert_eq!(management.sessions(), [listed]);
    create(&management, &a).await.unwrap();
    a.lose_drafts();
    for _ in 0..5000 {
        a.announcer.session_types();
    }
    assert_eq!(management.new_session(), None, "even where what it told of it was lost");
    create(&management, &a).await.unwrap();
    drop(handles);
    assert_eq!((management.new_session(), management.active_session()), (None, None));
}

#[tokio::test]
async fn the_first_message_lists_the_session_under_its_first_line() {
    let a = Arc::new(TestProvider::new("a"));
    let (management, _driver, _handles) = manage([a.clone()]);
    let new = create(&management, &a).await.unwrap();
    let (_, mut events) = management.subscribe();
    let sent = send(&management, &new, "Fix the build\nplease").await.unwrap();
    assert_eq!((sent.status(), &*sent.title()), (SessionStatus::InProgress, "Fix the build"));
    assert_eq!((management.new_session(), ids(&management.sessions())), (None, vec![sent.id().to_string()]));
    assert_eq!(management.active_session().unwrap().session(), &sent);
    assert!(
        matches!(events.try_next(), Some(SubscriptionItem::Event(SessionsEvent::Sessions(change))) if change.added == [new])
    );
    let chat = sent.main_chat().resource().clone();
    let told = SessionsEvent::Sent { session: sent, chat, is_new_session: true };
    assert_eq!(events.try_next(), Some(SubscriptionItem::Event(told)));
}

#[tokio::test]
async fn a_session_that_takes_the_drafts_place_is_one_row_and_is_looked_at() {
    let a = Arc::new(TestProvider { replaces: true, ..TestProvider::new("a") });
    let (management, _driver, _handles) = manage([a.clone()]);
    let new = create(&management, &a).await.unwrap();
    let kept = send(&management, &new, "go").await.unwrap();
    assert_ne!(kept.id(), new.id());
    assert_eq!(management.sessions(), std::slice::from_ref(&kept));
    let active = management.active_session().unwrap();
    assert_eq!((active.session(), active.active_chat().resource()), (&kept, kept.main_chat().resource()));
    assert_eq!(management.new_session(), None);
}

#[tokio::test]
async fn a_message_that_is_refused_leaves_no_row() {
    let a = Arc::new(TestProvider::new("a"));
    let (management, _driver, _handles) = manage([a.clone()]);
    let new = create(&management, &a).await.unwrap();
    a.failing.store(true, Ordering::Relaxed);
    let refused = send(&management, &new, "go").await.unwrap_err();
    assert_eq!(refused.to_string(), "a says no");
    assert!(management.sessions().is_empty());
    assert_eq!(management.active_session(), None);
}

#[tokio::test]
async fn a_draft_that_could_not_be_sent_can_be_sent_again() {
    let a = Arc::new(TestProvider { refuses_early: true, ..TestProvider::new("a") });
    let (management, _driver, _handles) = manage([a.clone()]);
    let new = create(&management, &a).await.unwrap();
    a.failing.store(true, Ordering::Relaxed);
    assert!(send(&management, &new, "go").await.is_err());
    assert_eq!(management.new_session().as_ref(), Some(&new));
    a.failing.store(false, Ordering::Relaxed);
    send(&management, &new, "go").await.unwrap();
    assert_eq!(management.new_session(), None);
}

#[tokio::test]
async fn a_draft_whose_sender_went_away_can_be_sent_again() {
    let a = Arc::new(TestProvider { gate_first: Some(Arc::new(Notify::new())), ..TestProvider::new("a") });
    let (management, _driver, _handles) = manage([a.clone()]);
    let new = create(&management, &a).await.unwrap();
    tokio::select! {
        biased;
        _ = send(&management, &new, "go") => panic!("nobody lets it through"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(management.new_session().as_ref(), Some(&new));
}

#[tokio::test]
async fn the_type_can_be_changed_until_the_first_message() {
    let a = Arc::new(TestProvider::new("a"));
    a.set_types(&["agent", "other"]);
    let (management, _driver, _handles) = manage([a.clone()]);
    let new = create(&management, &a).await.unwrap();
    let changed = management.set_session_type(new.id(), &"other".into()).await.unwrap();
    assert_eq!((changed.session_type().as_str(), management.new_session()), ("other", Some(changed)));
    let unknown = management.set_session_type(new.id(), &"none".into()).await.unwrap_err();
    assert!(matches!(unknown, ManagementError::UnknownSessionType { .. }), "{unknown}");
    send(&management, &new, "go").await.unwrap();
    let late = management.set_session_type(new.id(), &"agent".into()).await.unwrap_err();
    assert!(matches!(late, ManagementError::AlreadySent(_)), "{late}");
    assert_eq!(new.session_type().as_str(), "other");
}

#[tokio::test]
async fn a_new_session_in_a_folder_is_the_first_providers_that_fits() {
    let a = Arc::new(TestProvider { folders: "ssh://a/".into(), ..TestProvider::new("a") });
    let (b, c) = (Arc::new(TestProvider::new("b")), Arc::new(TestProvider::new("c")));
    c.set_types(&["agent", "special"]);
    let (management, _driver, _handles) = manage([a.clone(), b, c.clone()]);
    let folder = "file:///work/app".into();
    let new = management.create_new_session_in(&folder, NewSession::default()).await.unwrap();
    assert_eq!(new.provider_id().as_str(), "b");
    let special = NewSession { session_type: Some("special".into()), ..NewSession::default() };
    let new = management.create_new_session_in(&folder, special).await.unwrap();
    assert_eq!((new.provider_id().as_str(), new.session_type().as_str()), ("c", "special"));

    let of =
        |id: &str| NewSession { provider_id: Some(grove_sessions::ProviderId::new(id).unwrap()), session_type: None };
    let refused = management.create_new_session_in(&folder, of("a")).await.unwrap_err();
    assert!(matches!(refused, ManagementError::NotItsFolder { .. }), "{refused}");
    let refused = management.create_new_session_in(&folder, of("z")).await.unwrap_err();
    assert!(matches!(refused, ManagementError::UnknownProvider(_)), "{refused}");
    let refused = management.create_new_session_in(&"none:///".into(), NewSession::default()).await.unwrap_err();
    assert!(matches!(refused, ManagementError::NobodysFolder(_)), "{refused}");
    assert_eq!(management.new_session(), Some(new), "a refusal leaves the draft");
}

#[tokio::test]
async fn a_host_that_goes_away_keeps_its_rows_and_loses_its_types_and_drafts() {
    let a = Arc::new(TestProvider::new("a"));
    for name in ["1", "2"] {
        a.add(name);
    }
    let (management, _driver, _handles) = manage([a.clone()]);
    create(&management, &a).await.unwrap();
    let (_, mut events) = management.subscribe();
    a.go_away();
    assert_eq!(ids(&management.sessions()), ["a:1", "a:2"]);
    assert_eq!((management.all_session_types(), management.new_session()), (vec![], None));
    assert_eq!(events.try_next(), Some(SubscriptionItem::Event(SessionsEvent::Availability(a.id.clone()))));
    assert_eq!(events.try_next(), Some(SubscriptionItem::Event(SessionsEvent::SessionTypes)));
    assert_eq!(events.try_next(), None);
    a.come_back(&["2", "3"]);
    assert_eq!(ids(&management.sessions()), ["a:2", "a:3"], "what is gone there is gone here once it was listed");
    assert_eq!(management.all_session_types().len(), 1);
}

#[tokio::test]
async fn what_is_done_can_be_done_on_any_thread() {
    let a = Arc::new(TestProvider::new("a"));
    let (management, _driver, _handles) = manage([a.clone()]);
    let management = Arc::new(management);
    let done = tokio::spawn(async move {
        let new = create(&management, &a).await.unwrap();
        send(&management, &new, "go").await.unwrap();
        management.delete_session(new.id()).await.unwrap();
        management.unset_new_session().await;
        management.sessions().len()
    });
    assert_eq!(done.await.unwrap(), 0);
}
