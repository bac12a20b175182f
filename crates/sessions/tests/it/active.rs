//! The active session, chat and provider.

use std::sync::Arc;

use grove_sessions::management::{Management, ManagementError, NoTrustPrompt};
use grove_sessions::provider::{Announcer, SendOptions};
use grove_sessions::session::Interactivity;
use grove_sessions::{
    InMemoryState, PersistentState, ProviderId, Registry, SessionSource, SessionsProvider, StateChange, StateStore,
    StateStoreError, Uri,
};
use tokio::sync::Notify;

use crate::provider::{TestProvider, manage};

/// A provider with a session of three chats.
fn three_chats() -> (Arc<TestProvider>, Arc<SessionSource>, [Uri; 3]) {
    let provider = Arc::new(TestProvider::new("a"));
    let source = provider.add("1");
    let chats = [
        source.session().main_chat().resource().clone(),
        provider.add_chat(&source, "second"),
        provider.add_chat(&source, "third"),
    ];
    (provider, source, chats)
}

/// Runs the other tasks until a condition holds. Everything happens in one thread, so a limit on turns is one on work.
async fn until(holds: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if holds() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it does not come");
}

fn active_chat(management: &Management) -> Uri {
    management.active_session().unwrap().active_chat().resource().clone()
}

#[test]
fn the_first_chat_is_active_until_another_is_opened() {
    let (provider, source, chats) = three_chats();
    let (management, _driver, _handles) = manage([provider]);
    let session = source.session();
    assert_eq!(management.active_session(), None);
    management.open_session(session.resource()).unwrap();
    assert_eq!(active_chat(&management), chats[0]);
    management.open_chat(session.id(), &chats[1]).unwrap();
    assert_eq!(active_chat(&management), chats[1]);
    management.open_session(session.resource()).unwrap();
    assert_eq!(active_chat(&management), chats[1], "it is looked at already");
}

#[test]
fn a_session_opens_with_the_chat_that_was_last_open() {
    let (provider, source, chats) = three_chats();
    let other = provider.add("2").session();
    let (management, _driver, _handles) = manage([provider]);
    let session = source.session();
    management.open_chat(session.id(), &chats[1]).unwrap();
    management.open_session(other.resource()).unwrap();
    management.open_session(session.resource()).unwrap();
    assert_eq!(active_chat(&management), chats[1]);
    management.open_session(other.resource()).unwrap();
    source.update(|state| state.more_chats.retain(|chat| chat.resource != chats[1]));
    management.open_session(session.resource()).unwrap();
    assert_eq!(active_chat(&management), chats[0], "the one that was last open is gone");
}

#[tokio::test]
async fn an_active_chat_that_goes_gives_way_to_the_last_one_shown() {
    let (provider, source, chats) = three_chats();
    let (management, driver, _handles) = manage([provider]);
    let running = tokio::spawn(driver.run());
    management.open_chat(source.session().id(), &chats[1]).unwrap();
    let mut chat =
        management.observe(|view| view.active_session.as_ref().map(|active| active.active_chat().resource().clone()));
    assert_eq!(chat.get().as_ref(), Some(&chats[1]));
    source.update(|state| state.more_chats.retain(|chat| chat.resource != chats[1]));
    assert_eq!(chat.changed().await, Some(Some(chats[2].clone())));
    source.update_chat(&chats[2], |chat| chat.interactivity = Interactivity::Hidden);
    assert_eq!(chat.changed().await, Some(Some(chats[0].clone())), "a hidden chat is never active");
    drop(management);
    running.await.unwrap();
}

#[test]
fn a_chat_that_is_hidden_or_unknown_cannot_be_opened() {
    let (provider, source, chats) = three_chats();
    source.update_chat(&chats[1], |chat| chat.interactivity = Interactivity::Hidden);
    let (management, _driver, _handles) = manage([provider]);
    for chat in [&chats[1], &Uri::from("chat:/none")] {
        let refused = management.open_chat(source.session().id(), chat).unwrap_err();
        assert!(matches!(refused, ManagementError::UnknownChat { .. }), "{refused}");
    }
    assert_eq!(management.active_session(), None);
}

#[tokio::test]
async fn the_new_chat_of_a_message_is_followed_while_it_is_sent() {
    let gate = Arc::new(Notify::new());
    let provider = Arc::new(TestProvider { gate: Some(gate.clone()), ..TestProvider::new("a") });
    let session = provider.add("1").session();
    let (management, _driver, _handles) = manage([provider]);
    management.open_session(session.resource()).unwrap();
    let send = management.send_and_create_chat(session.id(), SendOptions::new("more"), &NoTrustPrompt);
    let look = async {
        until(|| session.chats().len() == 2).await;
        assert_eq!(active_chat(&management), *session.chats()[1].resource(), "before the send has ended");
        gate.notify_one();
    };
    let (sent, ()) = tokio::join!(send, look);
    sent.unwrap();
    assert_eq!(active_chat(&management), *session.chats()[1].resource());
}

#[tokio::test]
async fn a_chat_opened_while_another_is_sent_stays_open() {
    let gate = Arc::new(Notify::new());
    let provider = Arc::new(TestProvider { gate: Some(gate.clone()), ..TestProvider::new("a") });
    let session = provider.add("1").session();
    let main = session.main_chat().resource().clone();
    let (management, _driver, _handles) = manage([provider]);
    management.open_session(session.resource()).unwrap();
    let send = management.send_and_create_chat(session.id(), SendOptions::new("more"), &NoTrustPrompt);
    let look = async {
        until(|| session.chats().len() == 2).await;
        management.open_chat(session.id(), &main).unwrap();
        gate.notify_one();
    };
    let (sent, ()) = tokio::join!(send, look);
    sent.unwrap();
    assert_eq!(active_chat(&management), main);
}

#[tokio::test]
async fn a_message_elsewhere_leaves_the_view_alone() {
    let provider = Arc::new(TestProvider::new("a"));
    let (looked_at, other) = (provider.add("1").session(), provider.add("2").session());
    let (management, _driver, _handles) = manage([provider]);
    management.open_session(looked_at.resource()).unwrap();
    management.send_and_create_chat(other.id(), SendOptions::new("more"), &NoTrustPrompt).await.unwrap();
    assert_eq!(management.active_session().unwrap().session(), &looked_at);
}

#[test]
fn the_active_session_follows_the_one_that_takes_its_place() {
    let provider = Arc::new(TestProvider::new("a"));
    let temporary = provider.add("temporary").session();
    let (management, _driver, _handles) = manage([provider.clone()]);
    management.open_session(temporary.resource()).unwrap();
    let kept = provider.make("kept", "/work/app");
    provider.replace(temporary.id(), &kept);
    assert_eq!(management.active_session().unwrap().session(), &kept.session());
    assert_eq!(active_chat(&management), *kept.session().main_chat().resource());
}

#[test]
fn a_session_that_took_a_place_and_went_unseen_is_not_looked_at() {
    let provider = Arc::new(TestProvider { announcer: Announcer::with_capacity(2), ..TestProvider::new("a") });
    let temporary = provider.add("temporary").session();
    let (management, _driver, _handles) = manage([provider.clone()]);
    management.open_session(temporary.resource()).unwrap();
    let kept = provider.make("kept", "/work/app");
    provider.announcer.availability();
    provider.replace(temporary.id(), &kept);
    provider.remove(kept.session().id());
    assert_eq!((management.active_session(), management.sessions()), (None, vec![]));
}

#[test]
fn an_active_session_that_goes_or_is_put_away_gives_way_to_the_form_for_a_new_one() {
    let provider = Arc::new(TestProvider::new("a"));
    let (one, two) = (provider.add("1"), provider.add("2"));
    let (management, _driver, _handles) = manage([provider.clone()]);
    management.open_session(one.session().resource()).unwrap();
    provider.remove(one.session().id());
    assert_eq!(management.active_session(), None);

    management.open_session(two.session().resource()).unwrap();
    two.update_main_chat(|chat| chat.is_archived = true);
    assert_eq!(management.active_session(), None);
    management.open_session(two.session().resource()).unwrap();
    assert!(management.active_session().is_some(), "what is opened from the archive stays");
    management.open_new_session_view();
    assert_eq!(management.active_session(), None);
}

/// A provider with two types, and an active session of the second.
fn second_type(gate_create: Option<Arc<Notify>>) -> (Arc<TestProvider>, Arc<SessionSource>) {
    let provider = Arc::new(TestProvider { gate_create, ..TestProvider::new("a") });
    provider.set_types(&["agent", "other"]);
    let source = provider.make("1", "/work/site");
    source.update(|state| state.session_type = "other".into());
    provider.add_source(&source);
    (provider, source)
}

#[tokio::test]
async fn a_session_that_is_put_away_gives_way_to_a_new_one_like_it() {
    let (provider, source) = second_type(None);
    let first = Arc::new(TestProvider { order: -1, ..TestProvider::new("first") });
    let (management, driver, _handles) = manage([first.clone(), provider.clone()]);
    let driver = tokio::spawn(driver.run());
    let earlier = management
        .create_new_session(&first.id, &grove_sessions::session::SessionWorkspace::new("file:///work/app", "app"))
        .await
        .unwrap();
    management.open_session(source.session().resource()).unwrap();
    let mut new = management.observe(|view| view.new_session.clone());
    assert_eq!(new.get(), Some(earlier));
    source.update_main_chat(|chat| chat.is_archived = true);
    let draft = new.changed().await.flatten().unwrap();
    assert_eq!((draft.provider_id(), draft.session_type().as_str()), (&provider.id, "other"));
    assert_eq!(draft.workspace().unwrap().uri.as_str(), "file:///work/site");
    assert_eq!(management.active_session().unwrap().session(), &draft);
    assert!(management.view().context.is_new_chat_session);
    assert_eq!(management.sessions().len(), 1, "it is not listed");
    until(|| first.drafts() == 0).await;
    drop((new, management));
    driver.await.unwrap();
}

#[tokio::test]
async fn where_no_new_session_can_be_made_the_form_stays_empty() {
    let (provider, source) = second_type(None);
    let (management, driver, _handles) = manage([provider.clone()]);
    let driver = tokio::spawn(driver.run());
    management.open_session(source.session().resource()).unwrap();
    let mut active = management.observe(|view| view.active_session.is_some());
    provider.failing.store(true, std::sync::atomic::Ordering::Relaxed);
    source.update_main_chat(|chat| chat.is_archived = true);
    assert_eq!(active.changed().await, Some(false));
    until(|| !provider.calls().is_empty()).await;
    assert_eq!((management.active_session(), management.new_session()), (None, None));
    // It is not retried automatically.
    provider.failing.store(false, std::sync::atomic::Ordering::Relaxed);
    management.open_new_session_view();
    tokio::task::yield_now().await;
    assert_eq!((provider.calls(), management.new_session()), (vec![], None));
    drop((active, management));
    driver.await.unwrap();
}

#[tokio::test]
async fn whoever_looks_elsewhere_before_the_new_session_is_there_is_left_alone() {
    let gate = Arc::new(Notify::new());
    let (provider, source) = second_type(Some(gate.clone()));
    let other = provider.add("2").session();
    let (management, driver, _handles) = manage([provider.clone()]);
    let driver = tokio::spawn(driver.run());
    management.open_session(source.session().resource()).unwrap();
    source.update_main_chat(|chat| chat.is_archived = true);
    until(|| provider.drafts() > 0).await;
    management.open_session(other.resource()).unwrap();
    gate.notify_one();
    until(|| provider.drafts() == 0).await;
    assert_eq!(management.active_session().unwrap().session(), &other);
    assert_eq!(management.new_session(), None);
    drop(management);
    driver.await.unwrap();
}

#[test]
fn the_active_provider_is_the_kept_one_while_it_is_there_else_the_first() {
    let registry = Registry::new();
    let state_store = Arc::new(InMemoryState::default());
    let (management, _driver) = Management::new(registry.clone(), state_store.clone()).unwrap();
    assert_eq!(management.active_provider_id(), None);
    let _a = registry.register(Arc::new(TestProvider::new("a"))).unwrap();
    assert_eq!(management.active_provider_id().unwrap().as_str(), "a", "the only one");
    let b = registry.register(Arc::new(TestProvider::new("b"))).unwrap();
    let _c = registry.register(Arc::new(TestProvider { order: -1, ..TestProvider::new("c") })).unwrap();
    assert_eq!(management.active_provider_id().unwrap().as_str(), "c", "the first in order");
    management.set_active_provider(&ProviderId::new("b").unwrap()).unwrap();
    assert_eq!(management.active_provider_id().unwrap().as_str(), "b");
    let refused = management.set_active_provider(&ProviderId::new("z").unwrap()).unwrap_err();
    assert!(matches!(refused, ManagementError::UnknownProvider(_)));
    drop(b);
    assert_eq!(management.active_provider_id().unwrap().as_str(), "c");
    let _b = registry.register(Arc::new(TestProvider::new("b"))).unwrap();
    assert_eq!(management.active_provider_id().unwrap().as_str(), "b", "it came back");

    let (later, _driver) = Management::new(registry, state_store).unwrap();
    assert_eq!(later.active_provider_id().unwrap().as_str(), "b", "it is kept");
}

#[tokio::test]
async fn the_session_that_was_last_open_is_opened_again_once_it_is_listed() {
    let provider = Arc::new(TestProvider::new("a"));
    let session = provider.add("1").session();
    let state_store = Arc::new(InMemoryState::default());
    let registry = Registry::new();
    let handle = registry.register(provider.clone()).unwrap();
    let (management, _driver) = Management::new(registry, state_store.clone()).unwrap();
    management.open_session(session.resource()).unwrap();
    drop((management, handle));

    let registry = Registry::new();
    let (management, _driver) = Management::new(registry.clone(), state_store.clone()).unwrap();
    assert_eq!(management.restore(), None, "its provider is not there yet");
    let _handle = registry.register(provider.clone()).unwrap();
    assert_eq!(management.restore(), Some(session.clone()));
    assert_eq!(management.active_session().unwrap().session(), &session);
    assert_eq!(management.restore(), None, "something is looked at");

    let later = management.new_viewer();
    provider.archive_session(session.id()).await.unwrap();
    assert_eq!(later.restore(), None, "an archived session is not restored");
    let kept = provider.make("kept", "/work/app");
    provider.replace(session.id(), &kept);
    management.view();
    assert_eq!(state_store.recall().unwrap().last_session.as_ref(), Some(kept.session().id()));
}

/// A state store whose disk is full.
#[derive(Debug)]
struct Broken;

impl StateStore for Broken {
    fn recall(&self) -> Result<PersistentState, StateStoreError> {
        Ok(PersistentState::default())
    }

    fn remember(&self, _: StateChange) -> Result<(), StateStoreError> {
        Err(StateStoreError::Failed("the disk is full".into()))
    }
}

#[test]
fn what_cannot_be_kept_can_be_looked_at_but_is_not_promised() {
    let provider = Arc::new(TestProvider::new("a"));
    let session = provider.add("1").session();
    let registry = Registry::new();
    let _handle = registry.register(provider.clone()).unwrap();
    let (management, _driver) = Management::new(registry, Arc::new(Broken)).unwrap();
    management.open_session(session.resource()).unwrap();
    assert_eq!(management.active_session().unwrap().session(), &session);
    let refused = management.set_active_provider(&provider.id).unwrap_err();
    assert!(refused.to_string().contains("the disk is full"));
}

#[tokio::test]
async fn each_viewer_has_a_view_of_its_own_over_one_list() {
    let (provider, source, chats) = three_chats();
    let other = provider.add("2");
    let (one, driver, _handles) = manage([provider]);
    let driver = tokio::spawn(driver.run());
    let two = one.new_viewer();
    one.open_session(source.session().resource()).unwrap();
    assert_eq!(two.active_session(), None);
    assert!(two.view().context.is_new_chat_session);
    let mut seen = two.observe(|view| view.active_session.is_some());
    two.open_session(other.session().resource()).unwrap();
    assert_eq!(seen.changed().await, Some(true));
    one.open_chat(source.session().id(), &chats[2]).unwrap();
    assert_eq!(active_chat(&one), chats[2]);
    assert_eq!(two.active_session().unwrap().session(), &other.session());
    // Persistent choices are shared.
    let id = source.session().provider_id().clone();
    two.set_active_provider(&id).unwrap();
    assert_eq!(one.active_provider_id(), Some(id));
    // The driver runs as long as there is a viewer.
    drop(one);
    assert_eq!(two.sessions().len(), 2);
    drop(two);
    driver.await.unwrap();
}

#[tokio::test]
async fn the_new_session_of_a_viewer_is_nobody_elses() {
    let (one, _driver, _handles) = manage([Arc::new(TestProvider::new("a"))]);
    let two = one.new_viewer();
    let provider = ProviderId::new("a").unwrap();
    let workspace = grove_sessions::session::SessionWorkspace::new("file:///work/app", "app");
    let draft = one.create_new_session(&provider, &workspace).await.unwrap();
    assert_eq!((one.new_session(), two.new_session()), (Some(draft.clone()), None));
    assert!(two.session_by_id(draft.id()).is_none());
    let other = two.create_new_session(&provider, &workspace).await.unwrap();
    two.unset_new_session().await;
    assert_ne!(other.id(), draft.id());
    assert_eq!(one.new_session(), Some(draft.clone()));
    one.send_and_create_chat(draft.id(), SendOptions::new("go"), &NoTrustPrompt).await.unwrap();
    assert_eq!(two.active_session(), None);
}
