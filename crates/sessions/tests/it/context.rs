//! The context keys, under their names for clients.

use std::sync::Arc;

use grove_sessions::management::{ContextKeys, ContextValue, Management, NoTrustPrompt, row_context};
use grove_sessions::provider::{ProviderEnvironment, SendOptions};
use grove_sessions::session::Repository;

use crate::provider::{TestProvider, manage};

fn flag(management: &Management, name: &str) -> bool {
    match management.view().context.get(name) {
        Some(ContextValue::Flag(flag)) => flag,
        other => panic!("{name} is {other:?}"),
    }
}

fn text(management: &Management, name: &str) -> String {
    match management.view().context.get(name) {
        Some(ContextValue::Text(text)) => text.to_string(),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn without_a_session_only_the_form_for_a_new_one_is_true() {
    let (management, _driver, _handles) = manage([]);
    assert_eq!(management.view().context, ContextKeys::default());
    assert!(flag(&management, "isNewChatSession"));
    assert_eq!(management.view().context.get("unheardOf"), None);
}

#[tokio::test]
async fn is_new_chat_session_holds_until_something_was_sent() {
    let a = Arc::new(TestProvider::new("a"));
    let session = a.add("1").session();
    let (management, _driver, _handles) = manage([a.clone()]);
    management.open_session(session.resource()).unwrap();
    assert!(!flag(&management, "isNewChatSession"));
    management.open_new_session_view();
    assert!(flag(&management, "isNewChatSession"));
    let new = management.create_new_session_in(&"file:///work".into(), Default::default()).await.unwrap();
    assert!(flag(&management, "isNewChatSession"), "a session that was not sent is no established one");
    management.send_and_create_chat(new.id(), SendOptions::new("go"), &NoTrustPrompt).await.unwrap();
    assert!(!flag(&management, "isNewChatSession"));
}

#[test]
fn active_session_provider_id_and_type_are_the_sessions_own() {
    let a = Arc::new(TestProvider::new("a"));
    let session = a.add("1").session();
    let (management, _driver, _handles) = manage([a]);
    assert_eq!(text(&management, "activeSessionProviderId"), "");
    management.open_session(session.resource()).unwrap();
    assert_eq!(text(&management, "activeSessionProviderId"), "a");
    assert_eq!(text(&management, "activeSessionType"), "agent");
}

#[test]
fn is_active_session_background_provider_means_that_a_host_runs_it() {
    let kinds = [
        (ProviderEnvironment::ThisHost, true),
        (ProviderEnvironment::OtherHost("dev-box".into()), true),
        (ProviderEnvironment::History, false),
        (ProviderEnvironment::Cloud, false),
    ];
    for (environment, expected) in kinds {
        let a = Arc::new(TestProvider { environment: environment.clone(), ..TestProvider::new("a") });
        let session = a.add("1").session();
        let (management, _driver, _handles) = manage([a]);
        management.open_session(session.resource()).unwrap();
        assert_eq!(flag(&management, "isActiveSessionBackgroundProvider"), expected, "{environment:?}");
    }
}

#[test]
fn is_active_session_archived_follows_the_session() {
    let a = Arc::new(TestProvider::new("a"));
    let source = a.add("1");
    source.update_main_chat(|chat| chat.is_archived = true);
    let (management, _driver, _handles) = manage([a]);
    management.open_session(source.session().resource()).unwrap();
    assert!(flag(&management, "isActiveSessionArchived"));
    source.update_main_chat(|chat| chat.is_archived = false);
    assert!(!flag(&management, "isActiveSessionArchived"));
}

#[test]
fn active_session_supports_multi_chat_is_the_sessions_own_capability() {
    let a = Arc::new(TestProvider::new("a"));
    let (several, single) = (a.add("1"), a.add("2"));
    single.update(|state| state.capabilities.supports_multiple_chats = false);
    let (management, _driver, _handles) = manage([a]);
    management.open_session(several.session().resource()).unwrap();
    assert!(flag(&management, "activeSessionSupportsMultiChat"));
    management.open_session(single.session().resource()).unwrap();
    assert!(!flag(&management, "activeSessionSupportsMultiChat"));
}

#[tokio::test]
async fn active_session_has_git_repository_is_told_when_it_changes() {
    let a = Arc::new(TestProvider::new("a"));
    let source = a.add("1");
    let (management, driver, _handles) = manage([a]);
    let running = tokio::spawn(driver.run());
    management.open_session(source.session().resource()).unwrap();
    let mut key = management.observe(|view| view.context.get("activeSessionHasGitRepository"));
    assert_eq!(key.get(), Some(ContextValue::Flag(false)));
    source.update(|state| {
        if let Some(workspace) = &mut state.workspace {
            Arc::make_mut(workspace).repositories.push(Repository::new("file:///work/app"));
        }
    });
    assert_eq!(key.changed().await, Some(Some(ContextValue::Flag(true))));
    drop(management);
    running.await.unwrap();
}

#[test]
fn chat_session_provider_id_belongs_to_each_row() {
    let (a, b) = (TestProvider::new("a"), TestProvider::new("b"));
    for (provider, id) in [(a, "a"), (b, "b")] {
        let session = provider.add("1").session();
        assert_eq!(row_context(&session), [("chatSessionProviderId", ContextValue::Text(id.into()))]);
    }
}
