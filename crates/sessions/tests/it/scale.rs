//! Ten thousand sessions over five providers. The tests count the work, which is the same on every machine;
//! `bench/sessions` measures its time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use grove_sessions::grouping::group;
use grove_sessions::management::SessionsEvent;
use grove_sessions::{Session, SessionSource, SubscriptionItem};

use crate::provider::{TestProvider, manage};

const PROVIDERS: usize = 5;
const SESSIONS: usize = 10_000;
const FOLDERS: usize = 40;

fn many() -> (Vec<Arc<TestProvider>>, Vec<Arc<SessionSource>>) {
    let providers: Vec<_> = (0..PROVIDERS).map(|number| Arc::new(TestProvider::new(&format!("p{number}")))).collect();
    let mut sources = Vec::new();
    for number in 0..SESSIONS {
        let provider = &providers[number % PROVIDERS];
        let source = provider.make(&format!("session-{number}"), &format!("/work/project-{}", number % FOLDERS));
        provider.add_source(&source);
        sources.push(source);
    }
    (providers, sources)
}

fn lists(providers: &[Arc<TestProvider>]) -> Vec<usize> {
    providers.iter().map(|provider| provider.lists.load(Ordering::Relaxed)).collect()
}

#[test]
fn every_provider_is_listed_once_however_often_somebody_looks() {
    let (providers, sources) = many();
    let (management, _driver, _handles) = manage(providers.clone());
    assert_eq!(management.sessions().len(), SESSIONS);
    for source in sources.iter().step_by(1_000) {
        let session = source.session();
        assert_eq!(management.session(session.resource()).as_ref(), Some(&session));
        assert_eq!(management.session_by_id(session.id()).as_ref(), Some(&session));
        assert_eq!(management.session_of_chat(session.main_chat().resource()).as_ref(), Some(&session));
        assert_eq!(management.sessions().len(), SESSIONS);
        assert_eq!(management.new_viewer().sessions().len(), SESSIONS);
    }
    assert_eq!(lists(&providers), [1; PROVIDERS]);
}

#[test]
fn a_change_among_ten_thousand_is_one_event_of_one_row_and_lists_nothing() {
    let (providers, sources) = many();
    let (management, _driver, _handles) = manage(providers.clone());
    let (before, mut events) = management.subscribe();
    let (changed, gone, new) = (sources[5_000].session(), sources[0].session(), providers[0].make("new", "/work/new"));
    let mut told = |what: &str| -> [Vec<Session>; 3] {
        management.view();
        let Some(SubscriptionItem::Event(SessionsEvent::Sessions(change))) = events.try_next() else {
            panic!("{what} is told")
        };
        assert_eq!(events.try_next(), None, "{what} is told once");
        [change.added.clone(), change.removed.clone(), change.changed.clone()]
    };
    for number in 0..20 {
        providers[0].change(changed.id(), &format!("title {number}"));
        assert_eq!(told("a change"), [vec![], vec![], vec![changed.clone()]]);
    }
    providers[0].remove(gone.id());
    assert_eq!(told("a removal"), [vec![], vec![gone], vec![]]);
    providers[0].add_source(&new);
    assert_eq!(told("an addition"), [vec![new.session()], vec![], vec![]]);
    assert_eq!(management.sessions().len(), before.len());
    assert_eq!(lists(&providers), [1; PROVIDERS]);
}

#[test]
fn many_changes_that_nobody_took_in_cost_one_list_of_their_provider_alone() {
    let (providers, sources) = many();
    let (management, _driver, _handles) = manage(providers.clone());
    let (_, mut events) = management.subscribe();
    let changed = sources[0].session();
    // More than a provider's channel holds for slow listeners.
    for number in 0..5_000 {
        providers[0].change(changed.id(), &number.to_string());
    }
    assert_eq!(management.sessions().len(), SESSIONS);
    let Some(SubscriptionItem::Event(SessionsEvent::Sessions(change))) = events.try_next() else {
        panic!("it is told")
    };
    assert_eq!((change.added.len(), change.removed.len(), &*change.changed), (0, 0, &[changed][..]));
    assert_eq!(lists(&providers), [2, 1, 1, 1, 1]);
}

/// All lists share the one state that the provider made: lists and groups cost a handle for each session, and no copy.
#[test]
fn ten_thousand_sessions_are_held_once_for_all_who_list_them() {
    let (providers, sources) = many();
    let (management, _driver, _handles) = manage(providers);
    let (listed, _events) = management.subscribe();
    let groups = group(management.new_viewer().sessions());
    assert_eq!((listed.len(), groups.len()), (SESSIONS, FOLDERS));
    let grouped = groups.iter().flat_map(|group| &group.sessions);
    let mut is_made: Vec<_> = sources.iter().map(|source| Arc::as_ptr(&source.session().state())).collect();
    is_made.sort_unstable();
    for shown in [listed.iter().collect::<Vec<_>>(), grouped.collect()] {
        let mut is_shown: Vec<_> = shown.iter().map(|session| Arc::as_ptr(&session.state())).collect();
        is_shown.sort_unstable();
        assert!(is_shown == is_made, "a state was copied");
    }
}
