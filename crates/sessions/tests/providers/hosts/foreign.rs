//! Hosts of every supported version, ours and one that is not ours.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use grove_client::{Ahp, Client, Endpoint, Options};
use grove_sessions::SessionsProvider;
use grove_sessions::provider::{Availability, ReadState, SendOptions};
use grove_sessions::providers::hosts::{HostIdentity, HostProvider};
use grove_sessions::session::SessionStatus;
use grove_wire::ahp::{ResponsePart, version};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::harness::*;
use super::independent::IndependentHost;

pub(super) fn provider_of(endpoint: Endpoint) -> Arc<HostProvider> {
    let identity = HostIdentity::other_host("elsewhere:1", "elsewhere").unwrap();
    let (provider, driver) = HostProvider::new(identity, endpoint, options());
    tokio::spawn(driver.run());
    Arc::new(provider)
}

/// The texts of a chat's turns once there are so many, as another client sees them.
async fn said(endpoint: &Endpoint, chat: &str, count: usize) -> Vec<String> {
    let dialect = Ahp { versions: vec![version::CURRENT, version::OLDEST], ..Ahp::default() };
    let client = soon("a client", Client::connect(endpoint.clone(), dialect, Options::default())).await.unwrap();
    let mut chat = client.subscribe(chat).await.unwrap();
    let turns = chat.until(|state| {
        let chat = state.chat()?;
        (chat.turns.len() >= count).then(|| chat.turns.clone())
    });
    let text = |parts: &[ResponsePart]| -> String {
        let texts = parts.iter().filter_map(|part| match part {
            ResponsePart::Markdown(part) => Some(part.content.as_str()),
            _ => None,
        });
        texts.collect()
    };
    soon("its turns", turns).await.unwrap().iter().map(|turn| text(&turn.response_parts)).collect()
}

#[tokio::test]
async fn a_host_that_is_not_ours_is_listed_used_and_followed_in_both_versions() {
    for version in ["1.0.0", "0.9.0"] {
        let host = IndependentHost::start(&[version]).await;
        host.create("ahp-session:/a");
        let provider = provider_of(host.endpoint.clone());
        until_listed(&provider, &["ahp-session:/a"]).await;
        until("its agent", || provider.session_types().len() == 1).await;
        assert_eq!(&*provider.session_types()[0].label, "Parrot [elsewhere]", "{version}");
        let mut events = provider.subscribe();

        let row = sent(&provider, SendOptions::new("hello there")).await;
        assert_eq!(&*row.workspace().unwrap().label, "elsewhere");
        let chat = provider.host().host_uri(row.main_chat().resource()).unwrap().to_owned();
        assert!(chat.starts_with("ahp-chat:/"), "the host names its chats: {chat}");
        assert_eq!(said(&host.endpoint, &chat, 1).await, ["hello there"], "{version}");
        until("the turn's end", || row.status() == SessionStatus::Completed && row.last_turn_end().is_some()).await;
        let main = row.main_chat().resource().clone();
        provider.send_request(row.id(), &main, SendOptions::new("and again")).await.unwrap();
        assert_eq!(said(&host.endpoint, &chat, 2).await, ["hello there", "and again"], "{version}");

        provider.archive_session(row.id()).await.unwrap();
        until("the archive", || row.is_archived()).await;
        provider.unarchive_session(row.id()).await.unwrap();
        until("no archive", || !row.is_archived()).await;
        for (read, is_read) in [(ReadState::Read, true), (ReadState::Unread, false)] {
            provider.set_read(row.id(), read).await.unwrap();
            until("the mark", || row.is_read() == is_read).await;
        }
        // The host and other clients act, too.
        host.say("ahp-session:/a", json!({"type": "session/titleChanged", "title": "Theirs"}));
        let theirs = session(&provider, "ahp-session:/a").await;
        until("their title", || &*theirs.title() == "Theirs").await;
        provider.rename_chat(theirs.id(), theirs.main_chat().resource(), "Ours").await.unwrap();
        until("our title", || &*theirs.title() == "Ours").await;
        host.create("ahp-session:/b");
        session(&provider, "ahp-session:/b").await;
        host.dispose("ahp-session:/b");
        provider.delete_session(theirs.id()).await.unwrap();
        until("two less", || provider.sessions() == std::slice::from_ref(&row)).await;

        let told = told(&mut events);
        let count = |verb: &str| told.iter().filter(|told| told.starts_with(verb)).count();
        assert_eq!((count("added"), count("replaced"), count("removed")), (2, 1, 2), "{version}: {told:?}");
    }
}

#[tokio::test]
async fn a_question_of_a_host_that_is_not_ours_is_answered_from_here() {
    let host = IndependentHost::start(&["1.0.0"]).await;
    let provider = provider_of(host.endpoint.clone());
    until("its agent", || provider.session_types().len() == 1).await;
    let row = sent(&provider, SendOptions::new("please run")).await;
    until("a question", || row.status() == SessionStatus::NeedsInput).await;
    until("what it is about", || row.description() == Some("Running make".into())).await;
    approve(&host.endpoint, provider.host().host_uri(row.main_chat().resource()).unwrap()).await;
    until("the turn's end", || row.status() == SessionStatus::Completed).await;
    until("no description", || row.description().is_none()).await;
}

#[tokio::test]
async fn a_session_that_was_just_sent_runs_whatever_a_list_from_before_says() {
    let host = IndependentHost::start(&["1.0.0"]).await;
    let provider = provider_of(host.endpoint.clone());
    until("its agent", || provider.session_types().len() == 1).await;
    host.hold_back_the_list();
    let row = sent(&provider, SendOptions::new("please run")).await;
    assert_eq!(row.status(), SessionStatus::InProgress, "the list does not know of the turn");
    let mut status = row.observe(|state| state.status());
    assert_eq!(soon("another status", status.changed()).await, Some(SessionStatus::NeedsInput));
    approve(&host.endpoint, provider.host().host_uri(row.main_chat().resource()).unwrap()).await;
    until("the turn's end", || row.status() == SessionStatus::Completed && row.last_turn_end().is_some()).await;
    host.tell_the_list();
    session(&provider, provider.host().host_uri(row.resource()).unwrap()).await;
    until("rest", || row.status() == SessionStatus::Completed && row.description().is_none()).await;
}

#[tokio::test]
async fn a_host_that_is_too_old_is_explained_and_connected_once_it_was_brought_up_to_date() {
    let host = IndependentHost::start(&["0.4.0"]).await;
    let provider = provider_of(host.endpoint.clone());
    until("the refusal", || matches!(provider.availability(), Availability::Incompatible { .. })).await;
    let Availability::Incompatible { message } = provider.availability() else { panic!("it became compatible") };
    assert!(message.contains("0.4.0") && message.contains("up to date"), "{message}");
    let refused = provider.create_new_session(&grove_sessions::session::SessionWorkspace::new("file:///", "x")).await;
    assert!(refused.unwrap_err().to_string().contains("0.4.0"), "every request fails with the reason");
    host.upgrade(&["0.9.0"]);
    until("a connection", || provider.availability() == Availability::Ready).await;
}

/// An endpoint of a host at which clients seem to offer only these versions.
async fn offering(host: &TestHost, versions: &'static [&'static str]) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::tcp(&format!("ws://{}/", listener.local_addr().unwrap()), None).unwrap();
    let (url, token) = host.way();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (url, token) = (url.clone(), token.clone());
            tokio::spawn(async move {
                let mut near = tokio_tungstenite::accept_async(stream).await.unwrap();
                let mut request = url.into_client_request().unwrap();
                request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
                let (mut far, _) = tokio_tungstenite::connect_async(request).await.unwrap();
                loop {
                    let carried = tokio::select! {
                        message = near.next() => match message {
                            Some(Ok(message)) => far.send(narrowed(message, versions)).await,
                            Some(Err(_)) | None => return,
                        },
                        message = far.next() => match message {
                            Some(Ok(message)) => near.send(message).await,
                            Some(Err(_)) | None => return,
                        },
                    };
                    if carried.is_err() {
                        return;
                    }
                }
            });
        }
    });
    endpoint
}

fn narrowed(message: Message, versions: &[&str]) -> Message {
    let Message::Text(text) = &message else { return message };
    let mut value: Value = serde_json::from_str(text).unwrap();
    if value["method"] != "initialize" {
        return message;
    }
    value["params"]["protocolVersions"] = json!(versions);
    Message::text(value.to_string())
}

#[tokio::test]
async fn grove_is_used_alike_in_0_9_and_in_1_0() {
    for versions in [&["0.9.0"], &["1.0.0"]] {
        let host = TestHost::start().await;
        let provider = provider_of(offering(&host, versions).await);
        until("its agents", || provider.session_types().len() == 2).await;
        let row = sent(&provider, script(json!([{"say": "hi"}, {"title": "Named"}]))).await;
        until("the turn's end", || row.status() == SessionStatus::Completed && &*row.title() == "Named").await;
        provider.archive_session(row.id()).await.unwrap();
        until("the archive", || row.is_archived()).await;
        provider.unarchive_session(row.id()).await.unwrap();
        provider.set_read(row.id(), ReadState::Unread).await.unwrap();
        until("the mark", || !row.is_read()).await;
        let tool = json!({"tool": {"name": "make", "output": "ok", "permission": "shell"}});
        let main = row.main_chat().resource().clone();
        provider.send_request(row.id(), &main, script(json!([tool]))).await.unwrap();
        until("a question", || row.status() == SessionStatus::NeedsInput).await;
        approve(&host.endpoint(), provider.host().host_uri(&main).unwrap()).await;
        until("the end of that", || row.status() == SessionStatus::Completed).await;
        provider.send_and_create_chat(row.id(), script(json!([{"say": "two"}]))).await.unwrap();
        assert_eq!(row.chats().len(), 2, "{versions:?}");
        provider.delete_session(row.id()).await.unwrap();
        assert!(provider.sessions().is_empty(), "{versions:?}");
    }
}

#[tokio::test]
async fn grove_says_which_versions_it_speaks_to_one_that_speaks_none_of_them() {
    let host = TestHost::start().await;
    let provider = provider_of(offering(&host, &["0.8.0"]).await);
    until("the refusal", || matches!(provider.availability(), Availability::Incompatible { .. })).await;
    let Availability::Incompatible { message } = provider.availability() else { panic!("it became compatible") };
    assert!(message.contains("^1.0.0") && message.contains("^0.9.0"), "{message}");
}
