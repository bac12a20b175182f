//! Registers a cloud in a running management, uses it, and unregisters it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::sync::Arc;
use std::time::Duration;

use grove_example_cloud_provider::CloudProvider;
use grove_example_cloud_provider::cloud::{Cloud, Progress, Task};
use grove_sessions::grouping::group;
use grove_sessions::management::{NewSession, NoTrustPrompt, SessionsEvent};
use grove_sessions::provider::SendOptions;
use grove_sessions::session::SessionStatus;
use grove_sessions::{InMemoryState, Management, Registry, SubscriptionItem, Uri};

fn task(prompt: &str) -> Task {
    Task {
        repository: ("acme".into(), "site".into()),
        prompt: prompt.into(),
        reference: None,
        progress: Progress::Queued,
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_is_plugged_in_used_and_taken_out_while_a_management_runs() {
    let registry = Registry::new();
    let (management, driver) = Management::new(registry.clone(), Arc::new(InMemoryState::default())).unwrap();
    tokio::spawn(driver.run());
    let (before, mut events) = management.subscribe();
    assert!(before.is_empty());

    let cloud = Cloud::new(&[("acme", "site")]);
    // Another user started this one, on the cloud's own page.
    cloud.start(task("Their task")).await.unwrap();
    let provider = Arc::new(CloudProvider::new(cloud.clone()).unwrap());
    let registration = registry.register(provider.clone()).unwrap();
    let following = tokio::spawn(provider.run());
    let added = loop {
        match events.next().await.unwrap() {
            SubscriptionItem::Event(SessionsEvent::Sessions(change)) => break change.added.clone(),
            SubscriptionItem::Event(_) | SubscriptionItem::Reset => {}
        }
    };
    assert_eq!(&*added[0].title(), "Their task");

    let repository = Uri::from("https://github.com/acme/site");
    let draft = management.create_new_session_in(&repository, NewSession::default()).await.unwrap();
    assert_eq!(management.sessions().len(), 1, "a new session is not listed");
    let sent = management.send_and_create_chat(draft.id(), SendOptions::new("Fix the build"), &NoTrustPrompt).await;
    let session = sent.unwrap();
    assert_eq!((session.status(), session.loading()), (SessionStatus::InProgress, true));
    assert_ne!(session.id(), draft.id(), "the cloud's session replaced it");
    let context = management.view().context.clone();
    assert!(!context.is_active_session_background_provider, "a cloud is no host");

    let mut status = session.observe(|state| state.status());
    while status.get() != SessionStatus::Completed {
        tokio::time::timeout(Duration::from_secs(5), status.changed()).await.unwrap().unwrap();
    }
    let info = session.github_info().unwrap();
    assert_eq!((&*info.owner, &*info.repo, info.pull_request.as_ref().unwrap().number), ("acme", "site", 2));
    assert_eq!(session.metadata().text("owner"), Some("acme"));
    assert_eq!(management.sessions().len(), 2, "nothing is there twice");
    let groups = group(management.sessions());
    assert_eq!((groups.len(), &*groups[0].label), (1, "site"));

    let refused = management.archive_session(session.id()).await.unwrap_err();
    assert!(refused.to_string().contains("Example Cloud cannot archive sessions"), "{refused}");
    management.delete_session(session.id()).await.unwrap();
    assert_eq!(cloud.tasks().borrow().len(), 1);

    registration.unregister();
    following.abort();
    assert!(management.sessions().is_empty());
    assert!(management.active_session().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_the_cloud_refuses_leaves_the_new_session_as_it_was() {
    let cloud = Cloud::new(&[("acme", "site")]);
    let registry = Registry::new();
    let (management, _driver) = Management::new(registry.clone(), Arc::new(InMemoryState::default())).unwrap();
    let provider = Arc::new(CloudProvider::new(cloud.clone()).unwrap());
    let _registration = registry.register(provider).unwrap();
    for _ in 0..1_000 {
        cloud.start(task("x")).await.unwrap();
    }
    let repository = Uri::from("https://github.com/acme/site");
    let draft = management.create_new_session_in(&repository, NewSession::default()).await.unwrap();
    let refused = management.send_and_create_chat(draft.id(), SendOptions::new("x"), &NoTrustPrompt).await.unwrap_err();
    assert!(refused.to_string().contains("delete some of them"), "{refused}");
    assert_eq!(management.new_session().as_ref().map(|new| new.was_sent()), Some(false));
    assert!(management.sessions().is_empty(), "and it is not listed");
}
