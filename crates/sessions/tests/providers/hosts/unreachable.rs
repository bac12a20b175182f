//! A host that disconnects and comes back.

use std::sync::Arc;

use grove_core::Timestamp;
use grove_sessions::provider::Availability;
use grove_sessions::providers::hosts::{
    CachedSessionList, HostIdentity, HostOptions, HostProvider, InMemorySessionListCache, SessionListCache,
};
use grove_sessions::session::SessionStatus;
use grove_sessions::{ProviderError, SessionsProvider};
use grove_wire::ahp::{SessionSummary, status};
use serde_json::json;

use super::harness::*;

fn is_away(provider: &HostProvider) -> bool {
    matches!(provider.availability(), Availability::Away { .. })
}

#[tokio::test]
async fn sessions_stay_listed_while_their_host_is_away_and_what_needs_it_goes() {
    let host = TestHost::start().await;
    let client = host.client().await;
    create(&client, "scripted:/1", "/srv/app").await;
    create(&client, "scripted:/2", "/srv/app").await;
    let provider = host.there("dev-box").await;
    until_listed(&provider, &["scripted:/1", "scripted:/2"]).await;
    let draft = provider.create_new_session(&workspace(&provider, "/srv/app").await).await.unwrap();
    let mut events = provider.subscribe();

    host.shut();
    until("the loss", || is_away(&provider)).await;
    assert_eq!(listed(&provider), ["scripted:/1", "scripted:/2"]);
    assert!(provider.session_types().is_empty());
    let told_away = told(&mut events);
    assert!(told_away.contains(&"types".to_owned()) && told_away.contains(&"availability".to_owned()), "{told_away:?}");
    let removed: Vec<_> = told_away.iter().filter(|told| told.starts_with("removed")).collect();
    assert_eq!(removed, [&format!("removed {}", draft.id().local())], "the new session alone");
    let row = session(&provider, "scripted:/1").await;
    let refused = provider.archive_session(row.id()).await.unwrap_err();
    assert!(matches!(refused, ProviderError::Away { .. }), "{refused}");
    assert!(refused.to_string().starts_with("dev-box cannot be reached"), "{refused}");
    let disposed = provider.send_and_create_chat(draft.id(), script(json!([]))).await;
    assert!(disposed.is_err());

    host.open();
    until("the return", || provider.availability() == Availability::Ready).await;
    until("session types", || provider.session_types().len() == 2).await;
    let gone = provider.send_and_create_chat(draft.id(), script(json!([]))).await;
    assert!(matches!(gone, Err(ProviderError::UnknownSession(_))), "a draft does not outlive the connection: {gone:?}");
    let client = host.client().await;
    dispose(&client, "scripted:/1").await;
    until_listed(&provider, &["scripted:/2"]).await;
}

#[tokio::test]
async fn what_changed_meanwhile_is_told_after_the_next_list() {
    let host = TestHost::start().await;
    let client = host.client().await;
    create(&client, "scripted:/1", "/srv/app").await;
    create(&client, "scripted:/2", "/srv/app").await;
    let provider = host.here().await;
    until_listed(&provider, &["scripted:/1", "scripted:/2"]).await;
    let list_cache = session(&provider, "scripted:/2").await;
    host.shut();
    until("the loss", || is_away(&provider)).await;
    let mut events = provider.subscribe();
    // Another endpoint of the host, which the provider does not have.
    host.open();
    let client = host.client().await;
    dispose(&client, "scripted:/1").await;
    create(&client, "scripted:/3", "/srv/app").await;
    until_listed(&provider, &["scripted:/2", "scripted:/3"]).await;
    let told = told(&mut events);
    assert_eq!(told.iter().filter(|told| told.starts_with("removed")).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|told| told.starts_with("added")).count(), 1, "{told:?}");
    assert_eq!(session(&provider, "scripted:/2").await, list_cache, "the same session, not another of its name");
}

#[tokio::test]
async fn what_a_host_had_is_shown_before_the_first_list_and_goes_after_it() {
    let list_cache = Arc::new(InMemorySessionListCache::default());
    let options = || HostOptions { list_cache: list_cache.clone(), ..options() };
    let identity = || HostIdentity::other_host("dev-box", "dev-box").unwrap();
    let host = TestHost::start().await;
    let client = host.client().await;
    create(&client, "scripted:/1", "/srv/app").await;
    create(&client, "scripted:/2", "/srv/app").await;
    let provider = host.provider(identity(), options()).await;
    until_listed(&provider, &["scripted:/1", "scripted:/2"]).await;
    let running = session(&provider, "scripted:/2").await;
    let main = running.main_chat().resource().clone();
    provider.send_request(running.id(), &main, script(json!([{"hang": true}]))).await.unwrap();
    let is_running = |row: &SessionSummary| row.status & status::IN_PROGRESS != 0;
    until("a kept list", || list_cache.newer(None).is_some_and(|list| list.sessions.iter().any(is_running))).await;
    assert_eq!(provider.seen_at(), None, "it is there");
    drop(provider);
    dispose(&client, "scripted:/1").await;
    drop(client);
    host.shut();

    let (provider, driver) = HostProvider::new(identity(), host.endpoint(), options());
    assert_eq!(listed(&provider), ["scripted:/1", "scripted:/2"], "before anything was connected");
    let row = session(&provider, "scripted:/2").await;
    assert_eq!((row.status(), &*row.workspace().unwrap().label), (SessionStatus::Completed, "app [dev-box]"));
    assert_eq!(provider.seen_at(), list_cache.newer(None).map(|list| list.at));
    let refused = provider.delete_session(row.id()).await;
    assert!(matches!(refused, Err(ProviderError::Away { .. })), "{refused:?}");
    tokio::spawn(driver.run());
    until("the attempt", || is_away(&provider)).await;
    assert_eq!(listed(&provider), ["scripted:/1", "scripted:/2"], "only a list tells what is gone");
    host.open();
    until_listed(&provider, &["scripted:/2"]).await;
    assert_eq!(session(&provider, "scripted:/2").await, row, "the row that was remembered is the host's");
}

#[tokio::test]
async fn what_somebody_else_saw_of_a_host_that_is_away_takes_the_place_of_what_was_seen_before() {
    let list_cache = Arc::new(InMemorySessionListCache::default());
    let host = TestHost::start().await;
    let client = host.client().await;
    create(&client, "scripted:/1", "/srv/app").await;
    create(&client, "scripted:/2", "/srv/app").await;
    let identity = HostIdentity::other_host("dev-box", "dev-box").unwrap();
    let provider = host.provider(identity, HostOptions { list_cache: list_cache.clone(), ..options() }).await;
    until_listed(&provider, &["scripted:/1", "scripted:/2"]).await;
    drop(client);
    host.shut();
    until("the loss", || is_away(&provider)).await;
    let seen = list_cache.newer(None).unwrap();
    assert_eq!(provider.seen_at(), Some(seen.at));
    let one = |uri: &str| seen.sessions.iter().find(|row| row.resource == uri).unwrap().clone();
    let three = SessionSummary { resource: "scripted:/3".to_owned(), ..one("scripted:/2") };
    let other = SessionSummary { title: "fixed".to_owned(), ..one("scripted:/2") };
    let later = Timestamp(seen.at.0 + 1);
    let mut cut = CachedSessionList::new(later, [&other, &three]);
    cut.is_whole = false;
    list_cache.keep(cut);
    until_listed(&provider, &["scripted:/1", "scripted:/2", "scripted:/3"]).await;
    assert_eq!(&*session(&provider, "scripted:/2").await.title(), "fixed");
    list_cache.keep(CachedSessionList::new(Timestamp(later.0 + 1), [&other]));
    until_listed(&provider, &["scripted:/2"]).await;
    assert_eq!(provider.seen_at(), Some(Timestamp(later.0 + 1)));
    host.open();
    until_listed(&provider, &["scripted:/1", "scripted:/2"]).await;
    assert_eq!(provider.seen_at(), None);
}

#[tokio::test]
async fn a_host_that_is_reached_in_another_way_keeps_its_rows() {
    let (host, other) = (TestHost::start().await, TestHost::start().await);
    create(&host.client().await, "scripted:/1", "/srv/app").await;
    let provider = host.there("dev-box").await;
    until_listed(&provider, &["scripted:/1"]).await;
    let row = session(&provider, "scripted:/1").await;
    let mut events = provider.subscribe();
    // The host is gone, so it is dropped.
    other.shut();
    provider.reach(other.endpoint());
    until("the loss", || is_away(&provider)).await;
    assert_eq!(listed(&provider), ["scripted:/1"]);
    provider.reach(host.endpoint());
    until("the return", || provider.availability() == Availability::Ready && provider.seen_at().is_none()).await;
    assert_eq!(session(&provider, "scripted:/1").await, row);
    let told = told(&mut events);
    assert!(!told.iter().any(|told| told.starts_with("added") || told.starts_with("removed")), "{told:?}");
}
