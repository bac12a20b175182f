//! Workspace trust.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use grove_sessions::management::{Management, ManagementError, NoTrustPrompt, TrustPrompt, TrustQuestion};
use grove_sessions::provider::SendOptions;
use grove_sessions::{InMemoryState, Registry, Session, Trust};

use crate::provider::{TestProvider, manage};

/// A person who always gives the same answer, and counts the questions.
#[derive(Debug)]
struct Person {
    says: Option<Trust>,
    asked: AtomicUsize,
}

impl Person {
    fn who_says(says: Option<Trust>) -> Self {
        Self { says, asked: AtomicUsize::new(0) }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl TrustPrompt for Person {
    async fn ask(&self, question: &TrustQuestion) -> Option<Trust> {
        assert_eq!(question.workspace.uri.as_str(), "file:///work/app");
        self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        self.says
    }
}

fn careful(id: &str) -> Arc<TestProvider> {
    Arc::new(TestProvider { requires_trust: true, ..TestProvider::new(id) })
}

async fn send(management: &Management, session: &Session, ask: &dyn TrustPrompt) -> Result<Session, ManagementError> {
    management.send_and_create_chat(session.id(), SendOptions::new("go"), ask).await
}

#[tokio::test]
async fn a_folder_that_needs_trust_is_asked_for_once() {
    let a = careful("a");
    let (one, two) = (a.add("1").session(), a.add("2").session());
    let state_store = Arc::new(InMemoryState::default());
    let registry = Registry::new();
    let _handle = registry.register(a.clone()).unwrap();
    let (management, _driver) = Management::new(registry.clone(), state_store.clone()).unwrap();
    let person = Person::who_says(Some(Trust::Trusted));
    send(&management, &one, &person).await.unwrap();
    send(&management, &two, &person).await.unwrap();
    let main = one.main_chat().resource().clone();
    management.send_request(one.id(), &main, SendOptions::new("on"), &person).await.unwrap();
    assert_eq!(person.asked(), 1);
    let (later, _driver) = Management::new(registry, state_store).unwrap();
    send(&later, &two, &NoTrustPrompt).await.unwrap();
}

#[tokio::test]
async fn a_refusal_is_kept_and_can_be_taken_back() {
    let a = careful("a");
    let session = a.add("1").session();
    let (management, _driver, _handles) = manage([a.clone()]);
    let person = Person::who_says(Some(Trust::Refused));
    for _ in 0..2 {
        let refused = send(&management, &session, &person).await.unwrap_err();
        assert!(matches!(refused, ManagementError::Untrusted(_)), "{refused}");
    }
    assert_eq!((person.asked(), a.calls().len()), (1, 0));
    management.set_trust(a.id.clone(), "file:///work/app".into(), Trust::Trusted).unwrap();
    send(&management, &session, &NoTrustPrompt).await.unwrap();
}

#[tokio::test]
async fn who_does_not_answer_is_asked_again() {
    let a = careful("a");
    let session = a.add("1").session();
    let (management, _driver, _handles) = manage([a.clone()]);
    let person = Person::who_says(None);
    for _ in 0..2 {
        let refused = send(&management, &session, &person).await.unwrap_err();
        assert!(matches!(refused, ManagementError::TrustUnanswered(_)), "{refused}");
    }
    assert_eq!((person.asked(), a.calls().len()), (2, 0));
}

#[tokio::test]
async fn two_messages_at_once_ask_once() {
    let a = careful("a");
    let (one, two) = (a.add("1").session(), a.add("2").session());
    let (management, _driver, _handles) = manage([a]);
    let person = Person::who_says(Some(Trust::Trusted));
    let (first, second) = tokio::join!(send(&management, &one, &person), send(&management, &two, &person));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(person.asked(), 1);
}

/// A person who never answers.
#[derive(Debug)]
struct Asleep;

#[async_trait]
impl TrustPrompt for Asleep {
    async fn ask(&self, _: &TrustQuestion) -> Option<Trust> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn who_never_answers_holds_up_nobody_who_sends_elsewhere_or_later() {
    let (a, b) = (careful("a"), careful("b"));
    let (in_a, in_b) = (a.add("1").session(), b.add("1").session());
    let (management, _driver, _handles) = manage([a, b]);
    let person = Person::who_says(Some(Trust::Trusted));
    tokio::select! {
        biased;
        _ = send(&management, &in_a, &Asleep) => panic!("nobody answered"),
        sent = send(&management, &in_b, &person) => assert!(sent.is_ok()),
    }
    send(&management, &in_a, &person).await.unwrap();
    assert_eq!(person.asked(), 2);
}

#[tokio::test]
async fn the_same_folder_of_another_provider_is_another_folder() {
    let (a, b) = (careful("a"), careful("b"));
    let (in_a, in_b) = (a.add("1").session(), b.add("1").session());
    let (management, _driver, _handles) = manage([a, b]);
    let person = Person::who_says(Some(Trust::Trusted));
    send(&management, &in_a, &person).await.unwrap();
    send(&management, &in_b, &person).await.unwrap();
    assert_eq!(person.asked(), 2);
}

#[tokio::test]
async fn a_folder_that_needs_no_trust_is_not_asked_for() {
    let a = Arc::new(TestProvider::new("a"));
    let session = a.add("1").session();
    let (management, _driver, _handles) = manage([a]);
    send(&management, &session, &NoTrustPrompt).await.unwrap();
}
