//! The host's session while its first message is on its way, and right after that.

use std::sync::Arc;

use grove_sessions::SessionsProvider;
use grove_sessions::provider::SendOptions;
use grove_sessions::providers::hosts::HostProvider;
use grove_sessions::session::{SessionStatus, SessionWorkspace};
use serde_json::json;
use tokio::task::JoinHandle;

use super::foreign::provider_of;
use super::harness::*;
use super::independent::IndependentHost;

const OTHER: &str = "ahp-session:/other";

/// Sends the first message of a session whose agent never becomes ready. Returns the host's URI of it, once its
/// provider knows it.
async fn stalled(host: &IndependentHost, provider: &Arc<HostProvider>) -> (JoinHandle<String>, String) {
    host.stall();
    let draft = provider.create_new_session(&SessionWorkspace::new("file:///srv/app", "app")).await.unwrap();
    let sending = tokio::spawn({
        let (provider, draft) = (provider.clone(), draft.id().clone());
        async move { provider.send_and_create_chat(&draft, SendOptions::new("hello")).await.unwrap_err().to_string() }
    });
    until("the session", || host.sessions().len() == 1).await;
    let made = host.sessions().remove(0);
    // Later events arrive later.
    host.create(OTHER);
    session(provider, OTHER).await;
    (sending, made)
}

#[tokio::test]
async fn a_session_that_its_host_took_back_while_it_was_sent_is_not_listed() {
    let host = IndependentHost::start(&["1.0.0"]).await;
    let provider = provider_of(host.endpoint.clone());
    until("its agent", || provider.session_types().len() == 1).await;
    let mut events = provider.subscribe();
    let (sending, made) = stalled(&host, &provider).await;
    host.dispose(&made);
    let why = soon("the end of sending", sending).await.unwrap();
    assert!(why.contains("removed the session"), "{why}");
    assert_eq!(listed(&provider), [OTHER], "no other list has to come before it goes");
    let made = provider.host().here(&made);
    let told = told(&mut events);
    assert!(!told.iter().any(|told| told.contains(made.as_str())), "nobody hears of it: {told:?}");
}

#[tokio::test]
async fn a_session_whose_agent_does_not_start_is_taken_back_and_never_listed() {
    let host = IndependentHost::start(&["1.0.0"]).await;
    let provider = provider_of(host.endpoint.clone());
    until("its agent", || provider.session_types().len() == 1).await;
    let mut events = provider.subscribe();
    let (sending, made) = stalled(&host, &provider).await;
    let error = json!({"errorType": "agent", "message": "there is no key for its model"});
    host.say(&made, json!({"type": "session/creationFailed", "error": error}));
    let why = soon("the end of sending", sending).await.unwrap();
    assert!(why.contains("there is no key for its model"), "{why}");
    assert_eq!((host.sessions(), listed(&provider)), (vec![OTHER.to_owned()], vec![OTHER.to_owned()]));
    let made = provider.host().here(&made);
    let told = told(&mut events);
    assert!(!told.iter().any(|told| told.contains(made.as_str())), "nobody hears of it: {told:?}");
}

#[tokio::test]
async fn a_session_that_was_just_sent_stays_listed_until_a_host_that_lists_late_lists_it() {
    let host = IndependentHost::start(&["1.0.0"]).await;
    let provider = provider_of(host.endpoint.clone());
    until("its agent", || provider.session_types().len() == 1).await;
    provider.listed().await;
    host.list_late();
    let row = sent(&provider, SendOptions::new("hello")).await;
    let host_uri = provider.host().host_uri(row.resource()).unwrap().to_owned();
    let mut events = provider.subscribe();
    host.list_another(OTHER);
    session(&provider, OTHER).await;
    assert_eq!(listed(&provider).len(), 2, "it is not gone: the list never had it");
    until("the turn's end", || row.status() == SessionStatus::Completed).await;
    host.list_now();
    host.dispose(OTHER);
    until_listed(&provider, &[&host_uri]).await;
    let told = told(&mut events);
    let is_flicker = |told: &String| told.ends_with(row.id().local()) && !told.starts_with("changed");
    assert!(!told.iter().any(is_flicker), "it neither went nor came again: {told:?}");
    host.dispose(&host_uri);
    until_listed(&provider, &[]).await;
}

#[tokio::test]
async fn a_session_that_was_never_listed_goes_with_the_first_list_of_the_next_connection() {
    let host = IndependentHost::start(&["1.0.0"]).await;
    let provider = provider_of(host.endpoint.clone());
    until("its agent", || provider.session_types().len() == 1).await;
    provider.listed().await;
    host.list_late();
    sent(&provider, SendOptions::new("hello")).await;
    assert_eq!(listed(&provider).len(), 1);
    provider.reach(host.endpoint.clone());
    until_listed(&provider, &[]).await;
}
