//! Deleting chats, and sending in them.

use std::sync::Arc;

use grove_sessions::management::{ManagementError, NoTrustPrompt, SessionsEvent};
use grove_sessions::provider::{AttachedContext, SendError, SendOptions, SupportedAttachments};
use grove_sessions::session::{Interactivity, SessionStatus};
use grove_sessions::{Subscription, SubscriptionItem};

use crate::provider::{TestProvider, ids, manage};

fn all(events: &mut Subscription<SessionsEvent>) -> Vec<SessionsEvent> {
    let mut told = Vec::new();
    while let Some(SubscriptionItem::Event(event)) = events.try_next() {
        told.push(event);
    }
    told
}

#[tokio::test]
async fn a_chat_that_is_unknown_is_not_deleted_and_nothing_is_told() {
    let a = Arc::new(TestProvider::new("a"));
    let session = a.add("1").session();
    let (management, _driver, _handles) = manage([a.clone()]);
    let (_, mut events) = management.subscribe();
    assert!(!management.delete_chat(session.id(), &"chat:/none".into()).await.unwrap());
    assert_eq!((all(&mut events), a.calls()), (vec![], vec![]));
}

#[tokio::test]
async fn the_main_chat_stays_while_there_are_others_and_the_last_takes_the_session() {
    let a = Arc::new(TestProvider::new("a"));
    let source = a.add("1");
    let session = source.session();
    let main = session.main_chat().resource().clone();
    let second = a.add_chat(&source, "second");
    let (management, _driver, _handles) = manage([a.clone()]);
    let (_, mut events) = management.subscribe();

    let refused = management.delete_chat(session.id(), &main).await.unwrap_err();
    assert!(matches!(refused, ManagementError::MainChat(_)));
    assert!(refused.to_string().contains("delete those first"), "{refused}");
    assert_eq!((all(&mut events), session.chats().len()), (vec![], 2));

    assert!(management.delete_chat(session.id(), &second).await.unwrap());
    let told = all(&mut events);
    assert!(
        matches!(&told[0], SessionsEvent::Sessions(change) if change.removed.is_empty() && change.changed.len() == 1)
    );
    assert_eq!(told[1], SessionsEvent::ChatDeleted { session: session.id().clone(), chat: second });

    assert!(management.delete_chat(session.id(), &main).await.unwrap());
    assert!(management.sessions().is_empty());
    assert_eq!(all(&mut events).last(), Some(&SessionsEvent::SessionDeleted(session.id().clone())));
}

#[tokio::test]
async fn a_further_chat_is_begun_where_the_session_supports_several_and_only_there() {
    let several = Arc::new(TestProvider::new("a"));
    let single = Arc::new(TestProvider { several_chats: false, ..TestProvider::new("b") });
    let (in_several, in_single) = (several.add("1").session(), single.add("1").session());
    let (management, _driver, _handles) = manage([several, single.clone()]);
    let send = async |session: &grove_sessions::Session| {
        management.send_and_create_chat(session.id(), SendOptions::new("more"), &NoTrustPrompt).await
    };
    assert_eq!(send(&in_several).await.unwrap().chats().len(), 2);
    let refused = send(&in_single).await.unwrap_err();
    assert!(matches!(refused, ManagementError::SingleChat(_)), "{refused}");
    assert_eq!(single.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_attached_and_not_taken_is_refused_before_it_is_sent() {
    let files_only = SupportedAttachments { files: true, ..SupportedAttachments::default() };
    let a = Arc::new(TestProvider { attachments: files_only, ..TestProvider::new("a") });
    let session = a.add("1").session();
    let (management, _driver, _handles) = manage([a.clone()]);
    let with = |attached| SendOptions { query: "look".into(), attached_context: vec![attached] };
    let folder = with(AttachedContext::Folder { uri: "file:///x".into() });
    let refused = management.send_and_create_chat(session.id(), folder, &NoTrustPrompt).await.unwrap_err();
    assert!(matches!(refused, ManagementError::Send(SendError::AttachmentNotTaken(_))), "{refused}");
    assert!(a.calls().is_empty() && session.chats().len() == 1);
    let file = with(AttachedContext::File { uri: "file:///x".into() });
    management.send_and_create_chat(session.id(), file, &NoTrustPrompt).await.unwrap();
    assert_eq!(a.calls(), ["send a:1"]);
}

#[tokio::test]
async fn a_message_goes_to_a_chat_that_is_there() {
    let a = Arc::new(TestProvider::new("a"));
    let source = a.add("1");
    let (second, hidden) = (a.add_chat(&source, "second"), a.add_chat(&source, "hidden"));
    source.update_chat(&hidden, |chat| chat.interactivity = Interactivity::Hidden);
    let session = source.session();
    let (management, _driver, _handles) = manage([a.clone()]);
    management.open_session(session.resource()).unwrap();
    let (_, mut events) = management.subscribe();
    management.send_request(session.id(), &second, SendOptions::new("on"), &NoTrustPrompt).await.unwrap();
    assert_eq!(session.chat(&second).unwrap().status(), SessionStatus::InProgress);
    let sent = SessionsEvent::Sent { session: session.clone(), chat: second, is_new_session: false };
    assert_eq!(all(&mut events), [sent]);
    let active = management.active_session().unwrap().active_chat();
    assert_eq!(active.resource(), session.main_chat().resource(), "the chat that is looked at stays");
    let refused = management.send_request(session.id(), &hidden, SendOptions::new("on"), &NoTrustPrompt).await;
    assert!(matches!(refused, Err(ManagementError::UnknownChat { .. })));
}

#[tokio::test]
async fn nothing_is_sent_to_a_session_that_was_put_away() {
    let a = Arc::new(TestProvider::new("a"));
    let source = a.add("1");
    source.update_main_chat(|chat| chat.is_archived = true);
    let session = source.session();
    let (management, _driver, _handles) = manage([a.clone()]);
    let main = session.main_chat().resource().clone();
    let new_chat = management.send_and_create_chat(session.id(), SendOptions::new("x"), &NoTrustPrompt).await;
    let same_chat = management.send_request(session.id(), &main, SendOptions::new("x"), &NoTrustPrompt).await;
    for refused in [new_chat, same_chat] {
        assert!(matches!(refused, Err(ManagementError::Archived(_))));
    }
    assert!(a.calls().is_empty());
    assert_eq!(ids(&management.sessions()), ["a:1"]);
}
