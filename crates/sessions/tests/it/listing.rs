//! One list of all sessions, and the provider of each action.

use std::sync::Arc;

use grove_sessions::management::{ManagementError, NewSession, SessionsEvent};
use grove_sessions::provider::{BrowseOutcome, BrowseRequest, ReadState, SessionsChange, SessionsProvider};
use grove_sessions::{SessionId, Subscription, SubscriptionItem, Uri};

use crate::provider::{TestProvider, ids, manage};

fn next(events: &mut Subscription<SessionsEvent>) -> Option<SessionsEvent> {
    match events.try_next()? {
        SubscriptionItem::Event(event) => Some(event),
        SubscriptionItem::Reset => panic!("nothing was lost"),
    }
}

/// The next change of the list: ids that were added, removed, changed.
fn change(events: &mut Subscription<SessionsEvent>) -> Option<[Vec<String>; 3]> {
    match next(events)? {
        SessionsEvent::Sessions(change) => Some([ids(&change.added), ids(&change.removed), ids(&change.changed)]),
        other => panic!("{other:?}"),
    }
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn sessions_types_and_folders_follow_the_order_of_providers() {
    let a = Arc::new(TestProvider::new("a"));
    let b = Arc::new(TestProvider { order: -1, ..TestProvider::new("b") });
    let c = Arc::new(TestProvider::new("c"));
    a.add("1");
    b.add("2");
    a.add("3");
    c.add("4");
    a.set_types(&["x", "y"]);
    b.set_types(&["y", "z"]);
    c.set_types(&["x"]);
    let (management, _driver, _handles) = manage([a, b, c]);
    assert_eq!(ids(&management.sessions()), ["b:2", "a:1", "a:3", "c:4"], "equal ones as they were registered");
    let types = management.all_session_types();
    assert_eq!(types.iter().map(|t| t.id.as_str()).collect::<Vec<_>>(), ["y", "z", "x"]);
    let folder = Uri::from("file:///work/app");
    let offered = management.session_types_for_folder(&folder).await;
    let offered: Vec<_> = offered.iter().map(|(provider, offered)| format!("{provider} {}", offered.id)).collect();
    assert_eq!(offered, ["b y", "b z", "a x", "a y", "c x"]);
    // The first provider that knows the folder and has the type creates the session.
    for (session_type, provider) in [(None, "b"), (Some("z"), "b"), (Some("x"), "a")] {
        let wanted = NewSession { session_type: session_type.map(Into::into), ..NewSession::default() };
        let new = management.create_new_session_in(&folder, wanted).await.unwrap();
        assert_eq!(new.provider_id().as_str(), provider, "{session_type:?}");
    }
}

#[tokio::test]
async fn a_folder_gives_each_type_of_each_provider_that_knows_it() {
    let a = Arc::new(TestProvider::new("a"));
    let b = Arc::new(TestProvider { order: -1, folders: "ssh://b/".into(), ..TestProvider::new("b") });
    a.set_types(&["x", "y"]);
    b.set_types(&["x"]);
    let (management, _driver, _handles) = manage([a, b]);
    let of = async |folder: &str| {
        let found = management.session_types_for_folder(&folder.into()).await;
        found.iter().map(|(provider, session_type)| format!("{provider} {}", session_type.id)).collect::<Vec<_>>()
    };
    assert_eq!(of("file:///work").await, ["a x", "a y"]);
    assert_eq!(of("ssh://b/work").await, ["b x"]);
    assert!(of("other:///").await.is_empty());
}

#[test]
fn what_a_provider_tells_is_told_on() {
    let a = Arc::new(TestProvider::new("a"));
    let (management, _driver, _handles) = manage([a.clone()]);
    let (sessions, mut events) = management.subscribe();
    assert!(sessions.is_empty());
    let one = a.add("1").session();
    a.change(one.id(), "new");
    a.remove(one.id());
    a.set_types(&["x"]);
    assert!(management.sessions().is_empty());
    assert_eq!(change(&mut events), Some([list(&["a:1"]), vec![], vec![]]));
    assert_eq!(change(&mut events), Some([vec![], vec![], list(&["a:1"])]));
    assert_eq!(change(&mut events), Some([vec![], list(&["a:1"]), vec![]]));
    assert_eq!(next(&mut events), Some(SessionsEvent::SessionTypes));
    assert_eq!(next(&mut events), None);
}

#[test]
fn a_provider_brings_its_sessions_and_takes_them_along() {
    let (a, b) = (Arc::new(TestProvider::new("a")), Arc::new(TestProvider::new("b")));
    a.add("1");
    b.add("2");
    let (management, _driver, _handles) = manage([a]);
    let (_, mut events) = management.subscribe();
    let handle = management.registry().register(b.clone()).unwrap();
    assert_eq!(ids(&management.sessions()), ["a:1", "b:2"]);
    assert_eq!(change(&mut events), Some([list(&["b:2"]), vec![], vec![]]));
    assert_eq!(next(&mut events), Some(SessionsEvent::SessionTypes), "types of a folder may be others now");
    drop(handle);
    assert_eq!(ids(&management.sessions()), ["a:1"]);
    assert_eq!(change(&mut events), Some([vec![], list(&["b:2"]), vec![]]));
    b.add("3");
    assert_eq!(ids(&management.sessions()), ["a:1"], "nobody listens to it any more");
}

#[test]
fn a_provider_that_is_registered_again_brings_back_what_was_hidden() {
    let (a, b) = (Arc::new(TestProvider::new("a")), Arc::new(TestProvider::new("b")));
    a.add("1");
    let kept = b.add("2").session();
    let gone = b.add("3").session();
    let (management, _driver, mut handles) = manage([a, b.clone()]);
    management.open_session(kept.resource()).unwrap();
    let (_, mut events) = management.subscribe();
    drop(handles.pop());
    assert_eq!(ids(&management.sessions()), ["a:1"]);
    assert_eq!(management.session(kept.resource()), None);
    assert_eq!(change(&mut events), Some([vec![], list(&["b:2", "b:3"]), vec![]]));
    assert_eq!(b.calls(), Vec::<String>::new(), "hidden is not deleted");
    b.remove(gone.id());
    b.change(kept.id(), "meanwhile");
    while next(&mut events).is_some() {}
    handles.push(management.registry().register(b).unwrap());
    assert_eq!(ids(&management.sessions()), ["a:1", "b:2"]);
    assert_eq!(management.session(kept.resource()), Some(kept.clone()), "the same session, not another of its name");
    assert_eq!(change(&mut events), Some([list(&["b:2"]), vec![], vec![]]));
    assert_eq!(&*kept.title(), "meanwhile");
}

#[test]
fn a_session_takes_anothers_place_without_a_second_row() {
    let a = Arc::new(TestProvider::new("a"));
    let temporary = a.add("temporary").session();
    let other = a.add("other").session();
    let (management, _driver, _handles) = manage([a.clone()]);
    management.open_session(other.resource()).unwrap();
    let (_, mut events) = management.subscribe();

    let kept = a.make("kept", "/work/app");
    a.replace(temporary.id(), &kept);
    // A provider may announce the new one on its own as well.
    a.announcer.sessions(SessionsChange::added([kept.session()]));
    assert_eq!(ids(&management.sessions()), ["a:kept", "a:other"], "it stands where the old one stood");
    assert!(matches!(next(&mut events), Some(SessionsEvent::SessionReplacement(_))));
    assert_eq!(change(&mut events), Some([vec![], list(&["a:temporary"]), list(&["a:kept"])]));
    assert_eq!(change(&mut events), Some([vec![], vec![], list(&["a:kept"])]));
    assert_eq!(management.active_session().unwrap().session(), &other);

    let again = a.make("kept", "/work/app");
    a.replace(kept.session().id(), &again);
    assert_eq!(ids(&management.sessions()), ["a:kept", "a:other"]);
    assert!(matches!(next(&mut events), Some(SessionsEvent::SessionReplacement(_))));
    assert_eq!(change(&mut events), Some([vec![], vec![], list(&["a:kept"])]), "equal ids: nothing is removed");
    assert_eq!(management.sessions()[0], again.session());
    assert_eq!(next(&mut events), None);
}

#[test]
fn a_session_that_was_announced_before_it_takes_a_place_is_one_row() {
    let a = Arc::new(TestProvider::new("a"));
    let temporary = a.add("temporary").session();
    let kept = a.add("kept");
    let (management, _driver, _handles) = manage([a.clone()]);
    a.remove(kept.session().id());
    a.replace(temporary.id(), &kept);
    a.announcer.sessions(SessionsChange::removed([temporary]));
    assert_eq!(ids(&management.sessions()), ["a:kept"]);
}

#[test]
fn a_change_of_an_unheard_session_is_settled_by_the_providers_list() {
    let a = Arc::new(TestProvider::new("a"));
    let (management, _driver, _handles) = manage([a.clone()]);
    let gone = a.make("gone", "/work/app");
    a.announcer.sessions(SessionsChange::changed([gone.session()]));
    assert!(management.sessions().is_empty(), "it is in no list");
    a.announcer.sessions(SessionsChange::removed([gone.session()]));
    assert!(management.sessions().is_empty());
    let unheard = a.make("unheard", "/work/app");
    a.add_silently(&unheard);
    a.announcer.sessions(SessionsChange::changed([unheard.session()]));
    assert_eq!(ids(&management.sessions()), ["a:unheard"]);
}

#[test]
fn a_session_that_is_not_its_providers_by_id_is_left_out() {
    let (a, b) = (Arc::new(TestProvider::new("a")), TestProvider::new("b"));
    let (management, _driver, _handles) = manage([a.clone()]);
    a.add_source(&b.make("1", "/work/app"));
    let own = a.add("2").session();
    a.replace(own.id(), &b.make("3", "/work/app"));
    assert!(management.sessions().is_empty());
}

#[test]
fn a_session_is_found_by_its_uri_its_id_and_its_chats() {
    let a = Arc::new(TestProvider::new("a"));
    let source = a.add("1");
    let chat = a.add_chat(&source, "second");
    let (management, _driver, _handles) = manage([a.clone()]);
    let session = source.session();
    assert_eq!(management.session(session.resource()).as_ref(), Some(&session));
    assert_eq!(management.session_by_id(session.id()).as_ref(), Some(&session));
    assert_eq!(management.session_of_chat(&chat).as_ref(), Some(&session));
    assert_eq!(management.session_of_chat(session.main_chat().resource()).as_ref(), Some(&session));
    assert_eq!(management.session(&"a:/2".into()), None);
    a.remove(session.id());
    assert_eq!(management.session(session.resource()), None);
}

#[test]
fn of_two_sessions_at_one_uri_the_first_providers_is_found() {
    let a = Arc::new(TestProvider::new("a"));
    let b = Arc::new(TestProvider { order: -1, ..TestProvider::new("b") });
    let (in_a, in_b) = (a.make_at("1", "same:/uri"), b.make_at("1", "same:/uri"));
    a.add_source(&in_a);
    b.add_source(&in_b);
    let (management, _driver, _handles) = manage([a, b.clone()]);
    assert_eq!(management.session(&"same:/uri".into()), Some(in_b.session()));
    b.remove(in_b.session().id());
    assert_eq!(management.session(&"same:/uri".into()), Some(in_a.session()));
}

#[tokio::test]
async fn every_action_goes_to_the_provider_that_the_id_names() {
    let (a, b) = (Arc::new(TestProvider::new("a")), Arc::new(TestProvider::new("b")));
    let session = b.add("x:1").session();
    a.add("x:1");
    let (management, _driver, _handles) = manage([a.clone(), b.clone()]);
    let (id, chat) = (session.id(), session.main_chat().resource().clone());
    management.rename_chat(id, &chat, "Better").await.unwrap();
    management.set_model(id, "m2").await.unwrap();
    management.set_read(id, ReadState::Unread).await.unwrap();
    assert_eq!((&*session.title(), session.model_id().as_deref(), session.is_read()), ("Better", Some("m2"), false));
    management.archive_session(id).await.unwrap();
    assert!(session.is_archived());
    management.unarchive_session(id).await.unwrap();
    assert!(!session.is_archived());
    assert_eq!(management.session_types(id).unwrap(), b.session_types());
    management.delete_session(id).await.unwrap();
    let calls = ["rename", "model", "read", "archive", "unarchive", "delete"].map(|call| format!("{call} b:x:1"));
    assert_eq!((a.calls(), b.calls()), (vec![], calls.to_vec()));
    assert_eq!(ids(&management.sessions()), ["a:x:1"]);
}

#[tokio::test]
async fn what_is_not_there_is_said_by_name() {
    let a = Arc::new(TestProvider::new("a"));
    let session = a.add("1").session();
    let (management, _driver, _handles) = manage([a]);
    let id = |text| SessionId::parse(text).unwrap();
    let error = management.archive_session(&id("z:1")).await.unwrap_err();
    assert!(matches!(&error, ManagementError::UnknownProvider(provider) if provider == "z"), "{error}");
    let error = management.archive_session(&id("a:2")).await.unwrap_err();
    assert!(matches!(error, ManagementError::UnknownSession(_)), "{error}");
    let error = management.rename_chat(session.id(), &"chat:/none".into(), "x").await.unwrap_err();
    assert!(matches!(error, ManagementError::UnknownChat { .. }), "{error}");
    let error = management.open_session(&"a:/2".into()).unwrap_err();
    assert!(matches!(error, ManagementError::UnknownResource(_)), "{error}");
}

#[tokio::test]
async fn a_batch_is_deleted_past_an_error_which_is_given() {
    let (a, b) = (Arc::new(TestProvider::new("a")), Arc::new(TestProvider::new("b")));
    let of = |provider: &TestProvider, name: &str| provider.add(name).session().id().clone();
    let batch = [of(&a, "1"), of(&b, "2"), of(&a, "3"), of(&b, "4")];
    a.failing.store(true, std::sync::atomic::Ordering::Relaxed);
    let (management, _driver, _handles) = manage([a.clone(), b.clone()]);
    let (_, mut events) = management.subscribe();
    let done = management.delete_sessions(&batch).await;
    assert_eq!(done.deleted, [batch[1].clone(), batch[3].clone()]);
    assert_eq!(done.first_error.unwrap().to_string(), "a says no");
    assert_eq!(a.calls(), ["delete a:1", "delete a:3"]);
    assert_eq!(ids(&management.sessions()), ["a:1", "a:3"]);
    let mut deleted = Vec::new();
    while let Some(event) = next(&mut events) {
        if let SessionsEvent::SessionDeleted(id) = event {
            deleted.push(id);
        }
    }
    assert_eq!(deleted, done.deleted, "each is told");
}

#[tokio::test]
async fn the_picker_has_the_browse_actions_of_all_providers() {
    let a = Arc::new(TestProvider::new("a"));
    let b = Arc::new(TestProvider { folders: "ssh://b/".into(), ..TestProvider::new("b") });
    let (management, _driver, _handles) = manage([a, b.clone()]);
    let actions = management.browse_actions();
    let shown = |action: &grove_sessions::management::PickerAction| {
        format!("{}: {}", action.provider_label, action.action.label)
    };
    assert_eq!(actions.iter().map(shown).collect::<Vec<_>>(), ["Provider a: Folders", "Provider b: Folders"]);
    let action = &actions[1].action;
    let request = |chosen: Option<Uri>| BrowseRequest { action: action.id.clone(), chosen, query: None };
    let BrowseOutcome::Offered(offers) = management.browse(&action.provider_id, &request(None)).await.unwrap() else {
        panic!("there is something to choose")
    };
    let chosen = management.browse(&action.provider_id, &request(Some(offers[0].uri.clone()))).await.unwrap();
    assert!(matches!(chosen, BrowseOutcome::Chosen(workspace) if workspace.uri.as_str() == "ssh://b/work/app"));
}

#[test]
fn who_listens_too_slowly_is_told_to_list_anew() {
    let a = Arc::new(TestProvider::new("a"));
    let session = a.add("1").session();
    let (management, _driver, _handles) = manage([a.clone()]);
    let (_, mut events) = management.subscribe();
    for number in 0..1100 {
        a.change(session.id(), &number.to_string());
        management.view();
    }
    assert_eq!(events.try_next(), Some(SubscriptionItem::Reset));
    assert_eq!(events.try_next(), None, "what was left is older than the list");
    a.add("2");
    assert_eq!(ids(&management.sessions()), ["a:1", "a:2"]);
    assert!(matches!(events.try_next(), Some(SubscriptionItem::Event(SessionsEvent::Sessions(_)))));
}

#[test]
fn a_provider_that_told_too_much_is_listed_anew() {
    let a = Arc::new(TestProvider::new("a"));
    let [kept, changed, gone] = ["kept", "changed", "gone"].map(|name| a.add(name).session());
    let (management, _driver, _handles) = manage([a.clone()]);
    let (_, mut events) = management.subscribe();
    a.remove(gone.id());
    a.change(changed.id(), "new title");
    a.add("new");
    for _ in 0..5000 {
        a.announcer.availability();
    }
    assert_eq!(ids(&management.sessions()), ["a:kept", "a:changed", "a:new"]);
    let expected = [list(&["a:new"]), list(&["a:gone"]), list(&["a:changed"])];
    assert_eq!(change(&mut events), Some(expected), "the one that did not change is not told");
    assert_eq!(&*kept.title(), "kept");
}

#[tokio::test]
async fn a_listener_hears_of_changes_while_the_driver_runs() {
    let a = Arc::new(TestProvider::new("a"));
    let (management, driver, _handles) = manage([a.clone()]);
    let running = tokio::spawn(driver.run());
    let (_, mut events) = management.subscribe();
    a.add("1");
    assert!(matches!(events.next().await, Some(SubscriptionItem::Event(SessionsEvent::Sessions(_)))));
    let b = Arc::new(TestProvider::new("b"));
    let handle = management.registry().register(b.clone()).unwrap();
    assert_eq!(events.next().await, Some(SubscriptionItem::Event(SessionsEvent::SessionTypes)));
    b.add("2");
    assert!(matches!(events.next().await, Some(SubscriptionItem::Event(SessionsEvent::Sessions(_)))));
    drop(handle);
    assert!(matches!(events.next().await, Some(SubscriptionItem::Event(SessionsEvent::Sessions(_)))));
    drop(management);
    running.await.unwrap();
    while events.next().await.is_some() {}
}
