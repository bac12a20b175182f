//! The properties of a session and its chats.

use std::sync::Arc;

use grove_core::Timestamp;
use grove_sessions::session::{
    ChatFileChange, ChatState, FileOperation, GitHubInfo, Interactivity, Mode, SessionStatus, SessionStatus::*,
};
use grove_sessions::{SessionSource, Uri};

use crate::provider::TestProvider;

fn source() -> Arc<SessionSource> {
    TestProvider::new("p").make("s", "/work/app")
}

fn chat(name: &str, change: impl FnOnce(&mut ChatState)) -> Arc<ChatState> {
    let mut chat = ChatState::untitled(name, Timestamp(0));
    change(&mut chat);
    Arc::new(chat)
}

fn with_statuses(statuses: &[SessionStatus]) -> Arc<SessionSource> {
    let source = source();
    source.update_main_chat(|main| main.status = statuses[0]);
    for (number, status) in statuses.iter().enumerate().skip(1) {
        let more = chat(&format!("chat:/{number}"), |chat| chat.status = *status);
        source.update(|state| state.more_chats.push(more));
    }
    source
}

#[test]
fn waiting_goes_before_running_and_both_before_the_main_chat() {
    let cases: &[(&[SessionStatus], SessionStatus)] = &[
        (&[Completed, InProgress], InProgress),
        (&[InProgress, NeedsInput], NeedsInput),
        (&[NeedsInput, InProgress], NeedsInput),
        (&[Error, InProgress], InProgress),
        (&[Completed, Error], Completed),
        (&[Error, Completed], Error),
        (&[Untitled], Untitled),
    ];
    for (chats, expected) in cases {
        assert_eq!(with_statuses(chats).session().status(), *expected, "{chats:?}");
    }
}

#[test]
fn a_failure_in_a_later_chat_is_told_on_its_own() {
    let failed = with_statuses(&[Completed, Completed, Error, Error]).session();
    assert_eq!((failed.status(), failed.chat_error()), (Completed, Some("chat:/2".into())));
    assert_eq!(with_statuses(&[Error, Completed]).session().chat_error(), None, "the status tells of the main chat");
}

#[test]
fn most_properties_come_from_the_main_chat() {
    let source = source();
    let change = ChatFileChange {
        uri: "file:///a".into(),
        original_uri: None,
        operation: FileOperation::Created,
        insertions: 3,
        deletions: 0,
    };
    let info = GitHubInfo { owner: "acme".into(), repo: "site".into(), pull_request: None };
    let mode = Mode { id: "plan".into(), kind: "agent".into() };
    source.update_main_chat(|main| {
        main.title = "Main".into();
        main.changes = vec![change.clone()].into();
        main.model_id = Some("m".into());
        main.mode = Some(mode.clone());
        main.loading = true;
        main.is_archived = true;
        main.description = Some("Running `ls`".into());
        main.github_info = Some(Arc::new(info.clone()));
    });
    source.update(|state| state.more_chats.push(chat("chat:/2", |chat| chat.title = "Other".into())));
    let session = source.session();
    assert_eq!(&*session.title(), "Main");
    assert_eq!(&*session.changes(), [change]);
    assert_eq!(session.model_id().as_deref(), Some("m"));
    assert_eq!(session.mode(), Some(mode));
    assert!(session.loading() && session.is_archived());
    assert_eq!(session.description(), Some("Running `ls`".into()));
    assert_eq!(session.github_info().as_deref(), Some(&info));
    let main = session.main_chat();
    assert!(main.loading() && main.github_info().is_some(), "a chat has them, too");
    assert_eq!(session.chats().len(), 2);
}

#[test]
fn times_are_the_latest_of_all_chats_and_read_means_all_of_them() {
    let source = source();
    source.update_main_chat(|main| (main.updated_at, main.last_turn_end) = (Timestamp(5), None));
    let session = source.session();
    assert_eq!((session.updated_at(), session.last_turn_end(), session.is_read()), (Timestamp(5), None, true));
    source.update(|state| {
        state.more_chats.push(chat("chat:/2", |chat| {
            (chat.updated_at, chat.last_turn_end, chat.is_read) = (Timestamp(9), Some(Timestamp(8)), false);
        }));
    });
    let expected = (Timestamp(9), Some(Timestamp(8)), false);
    assert_eq!((session.updated_at(), session.last_turn_end(), session.is_read()), expected);
}

#[test]
fn what_never_changes_is_known_at_once() {
    let source = source();
    let session = source.session();
    assert_eq!((session.id().as_str(), session.provider_id().as_str()), ("p:s", "p"));
    assert_eq!((session.resource().as_str(), session.created_at()), ("p:/s", Timestamp(1)));
    assert_eq!((session.session_type().as_str(), session.icon().as_str()), ("agent", "robot"));
    assert_eq!(&*session.workspace().unwrap().label, "app");
    assert!(session.capabilities().supports_multiple_chats);
}

#[tokio::test]
async fn a_property_is_told_when_it_changes_and_only_then() {
    let source = source();
    let session = source.session();
    let mut title = session.observe(|state| state.title());
    let mut status = session.observe(|state| state.status());
    assert_eq!((&*title.get(), status.get()), ("s", Completed));
    assert!(source.update_main_chat(|main| main.status = InProgress));
    assert!(!source.update_main_chat(|main| main.status = InProgress), "nothing differs");
    assert_eq!(status.changed().await, Some(InProgress));
    assert!(source.update_main_chat(|main| main.title = "t".into()));
    assert_eq!(title.changed().await.as_deref(), Some("t"), "the other change is not told here");
    drop(source);
    assert_eq!((title.changed().await, status.changed().await), (None, None));
    assert_eq!(&*session.title(), "t", "what was last said stays");
}

#[tokio::test]
async fn a_change_that_nobody_waited_for_is_told_later() {
    let source = source();
    let mut title = source.session().observe(|state| state.title());
    source.update_main_chat(|main| main.title = "one".into());
    source.update_main_chat(|main| main.title = "two".into());
    assert_eq!((&*title.get(), title.changed().await.as_deref()), ("two", Some("two")));
}

#[tokio::test]
async fn a_chat_that_is_gone_keeps_what_it_last_said() {
    let source = source();
    source.update(|state| state.more_chats.push(chat("chat:/2", |chat| chat.title = "first".into())));
    let resource = Uri::from("chat:/2");
    let chat = source.session().chat(&resource).unwrap();
    let mut title = chat.observe(|chat| chat.title.clone());
    source.update_chat(&resource, |chat| chat.title = "second".into());
    assert_eq!(title.changed().await.as_deref(), Some("second"));
    assert_eq!((&*chat.title(), chat.exists()), ("second", true));
    source.update(|state| state.more_chats.clear());
    assert_eq!((&*title.get(), chat.exists()), ("second", false));
    assert!(!source.update_chat(&resource, |chat| chat.title = "third".into()));
}

#[test]
fn putting_a_session_away_makes_its_chats_read_only_and_leaves_hidden_ones_hidden() {
    let source = source();
    source.update(|state| {
        state.more_chats.push(chat("chat:/hidden", |chat| chat.interactivity = Interactivity::Hidden));
    });
    let kinds = || source.session().chats().iter().map(|chat| chat.interactivity()).collect::<Vec<_>>();
    assert_eq!(kinds(), [Interactivity::Full, Interactivity::Hidden]);
    source.update_main_chat(|main| main.is_archived = true);
    assert_eq!(kinds(), [Interactivity::ReadOnly, Interactivity::Hidden]);
}

#[test]
fn a_state_survives_being_written() {
    let source = with_statuses(&[Completed, Error]);
    let state = source.session().state();
    let written = serde_json::to_string(&*state).unwrap();
    assert_eq!(serde_json::from_str::<grove_sessions::SessionState>(&written).unwrap(), *state);
}
