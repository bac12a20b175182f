//! Sessions with several chats.

use grove_sessions::providers::hosts::HostProvider;
use grove_sessions::session::{Session, SessionStatus};
use grove_sessions::{ProviderError, SessionsProvider};
use serde_json::{Value, json};

use super::harness::*;

fn tool() -> Value {
    json!({"tool": {"name": "make", "output": "ok", "permission": "shell", "input": "make test"}})
}

/// A session whose main chat has a message.
async fn begun(provider: &HostProvider) -> Session {
    let row = sent(provider, script(json!([{"say": "one"}]))).await;
    until("the turn's end", || row.status() == SessionStatus::Completed && row.last_turn_end().is_some()).await;
    row
}

/// Creates another chat in it.
async fn chat(provider: &HostProvider, row: &Session, steps: Value) -> grove_sessions::Chat {
    soon("another chat", provider.send_and_create_chat(row.id(), script(steps))).await.unwrap();
    row.chats().pop().unwrap()
}

#[tokio::test]
async fn every_chat_of_a_running_session_says_what_it_does_and_when_it_ended() {
    let host = TestHost::start().await;
    let provider = host.here().await;
    let row = begun(&provider).await;
    let main = row.main_chat();
    let first_end = main.last_turn_end();
    let second = chat(&provider, &row, json!([tool()])).await;
    until("a question", || second.status() == SessionStatus::NeedsInput && second.description().is_some()).await;
    assert_eq!((row.status(), main.status()), (SessionStatus::NeedsInput, SessionStatus::Completed));
    assert_eq!(
        (row.description(), main.last_turn_end()),
        (None, first_end),
        "what the second does is not the main chat's"
    );
    approve(&host.endpoint(), provider.host().host_uri(second.resource()).unwrap()).await;
    until("its end", || second.status() == SessionStatus::Completed && second.last_turn_end().is_some()).await;
    until("no description", || second.description().is_none()).await;
    until("the latest end", || row.last_turn_end() == second.last_turn_end()).await;
    assert!(row.last_turn_end() > first_end && main.last_turn_end() == first_end);
    assert_eq!((row.status(), row.chat_error()), (SessionStatus::Completed, None));
    let third = chat(&provider, &row, json!([{"fail": "it broke"}])).await;
    until("the error", || row.chat_error().as_ref() == Some(third.resource())).await;
    assert_eq!(row.status(), SessionStatus::Completed, "the main chat did not fail");
}

#[tokio::test]
async fn a_session_that_is_opened_tells_of_all_its_chats_what_no_list_says() {
    let host = TestHost::start().await;
    let maker = host.here().await;
    let made = begun(&maker).await;
    maker.set_model(made.id(), "scripted").await.unwrap();
    let second = chat(&maker, &made, json!([{"say": "two"}])).await;
    until("its end", || second.status() == SessionStatus::Completed).await;
    // A later client has seen nothing of the turns.
    let provider = host.here().await;
    let row = session(&provider, provider.host().host_uri(made.resource()).unwrap()).await;
    let known = row.chat(second.resource()).unwrap();
    assert_eq!((known.last_turn_end(), known.model_id()), (None, None));
    let opened = provider.open(row.id()).unwrap();
    until("the turn's end", || known.last_turn_end().is_some()).await;
    assert_eq!(known.model_id().as_deref(), Some("scripted"));
    assert_eq!(row.last_turn_end(), known.last_turn_end());
    // A chat that appears while it is open is subscribed to as well.
    let third = chat(&maker, &made, json!([tool()])).await;
    until("the third chat", || row.chat(third.resource()).is_some_and(|chat| chat.description().is_some())).await;
    drop(opened);
    assert!(maker.delete_chat(made.id(), third.resource()).await.unwrap());
    until("one less", || row.chats().len() == 2).await;
    until("rest", || row.status() == SessionStatus::Completed && known.last_turn_end().is_some()).await;
}

#[tokio::test]
async fn a_chat_is_renamed_for_everybody_and_the_session_keeps_its_name() {
    let host = TestHost::start().await;
    let (provider, other) = (host.here().await, host.there("box").await);
    let row = begun(&provider).await;
    let second = chat(&provider, &row, json!([{"say": "two"}])).await;
    let title = row.title();
    provider.rename_chat(row.id(), second.resource(), "Review").await.unwrap();
    assert_eq!((&*second.title(), row.title()), ("Review", title));
    let host_uri = provider.host().host_uri(row.resource()).unwrap().to_owned();
    let seen = session(&other, &host_uri).await;
    until("the name elsewhere", || seen.chats().len() == 2 && &*seen.chats()[1].title() == "Review").await;
    // Subscribers of the session are notified, too.
    let client = host.client().await;
    let mut subscribed = client.subscribe(&host_uri).await.unwrap();
    other.rename_chat(seen.id(), seen.chats()[1].resource(), "Again").await.unwrap();
    let named = subscribed.until(|state| (state.session()?.chats[1].title == "Again").then_some(()));
    soon("the name in the session's state", named).await.unwrap();
    until("the name here", || &*second.title() == "Again").await;
    let unknown = provider.rename_chat(row.id(), &"agent-host-ahp-chat:/no".into(), "x").await;
    assert!(matches!(unknown, Err(ProviderError::UnknownChat { .. })));
}
