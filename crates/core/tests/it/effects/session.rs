//! The effect of events of sessions and of the root.

use super::*;

#[test]
fn each_event_of_a_session_changes_its_own_field_and_only_some_move_its_time() {
    let before = Scene::creating().session;
    let applied = |event: SessionEvent| {
        let mut after = before.clone();
        after.apply(&Event { at: Timestamp(99), change: Change::Session("s1".into(), event) });
        after
    };
    let error = ErrorInfo::new("agentStart", "no such program");
    let changed = |change: fn(&mut Session)| {
        let mut expected = before.clone();
        change(&mut expected);
        expected
    };
    let now = Timestamp(99);
    assert_eq!(applied(SessionEvent::Ready), changed(|session| session.lifecycle = Lifecycle::Ready));
    assert_eq!(applied(SessionEvent::CreationFailed(error.clone())).lifecycle, Lifecycle::CreationFailed(error));
    assert_eq!(applied(SessionEvent::ReadChanged(false)), changed(|session| session.is_read = false));
    assert_eq!(applied(SessionEvent::ArchivedChanged(true)), changed(|session| session.is_archived = true));
    let titled = applied(SessionEvent::TitleChanged("Name".into()));
    assert_eq!((titled.title.as_str(), titled.modified_at), ("Name", now));
    let modelled = applied(SessionEvent::ModelChanged("large".into()));
    assert_eq!((modelled.model, modelled.modified_at), (Some("large".into()), now));
    assert_eq!(applied(SessionEvent::Listed), before);
    let details = SessionDetails { warnings: vec!["Two agents work here".into()], ..SessionDetails::default() };
    let known = applied(SessionEvent::DetailsChanged(Box::new(details.clone())));
    assert_eq!(known, Session { details, ..before.clone() }, "all of them, and nothing else");

    let row = ChatRow { status: ChatStatus::Error, ..before.catalogue[0].clone() };
    assert_eq!(applied(SessionEvent::ChatRowChanged(row.clone())).catalogue, vec![row.clone()]);
    assert_eq!(applied(SessionEvent::ChatRowChanged(ChatRow { chat: "side".into(), ..row })), before);

    let needed = InputNeeded {
        request: "r1".into(),
        chat: main(),
        turn: turn(),
        about: InputSubject::ToolConfirmation(Box::new(waiting_call())),
    };
    let mut session = applied(SessionEvent::InputNeededSet(needed.clone()));
    assert_eq!(session.input_needed, vec![needed.clone()]);
    let question = InputRequest::ask("r1".into(), "Which one?");
    let again = InputNeeded { about: InputSubject::Question(Box::new(question)), ..needed };
    let elsewhere = InputNeeded { chat: "side".into(), ..again.clone() };
    let removed = |chat: ChatId, request: &str| SessionEvent::InputNeededRemoved { chat, request: request.into() };
    for (event, left) in [
        (SessionEvent::InputNeededSet(again.clone()), vec![again.clone()]),
        (SessionEvent::InputNeededSet(elsewhere.clone()), vec![again.clone(), elsewhere.clone()]),
        (removed("side".into(), "r1"), vec![again.clone()]),
        (removed(main(), "r9"), vec![again]),
        (removed(main(), "r1"), vec![]),
    ] {
        session.apply(&Event { at: now, change: Change::Session("s1".into(), event) });
        assert_eq!(session.input_needed, left);
    }
}

#[test]
fn chats_clients_and_settings_come_change_and_go() {
    let mut session = Scene::ready().session;
    let mut apply = |event| {
        session.apply(&Event { at: Timestamp(99), change: Change::Session("s1".into(), event) });
        session.clone()
    };
    let before = apply(SessionEvent::Listed);
    let row = ChatRow { title: "Aside".into(), is_read: false, ..Chat::new("side".into(), Timestamp(7)).row() };
    let added = apply(SessionEvent::ChatAdded(row.clone()));
    assert_eq!(
        added.chats[1],
        Chat { title: "Aside".into(), is_read: false, ..Chat::new("side".into(), Timestamp(7)) }
    );
    assert_eq!(added.catalogue[1], row);
    let again = ChatRow { title: "Another".into(), ..row };
    assert_eq!(apply(SessionEvent::ChatAdded(again)), added, "a chat is added once");
    assert_eq!(apply(SessionEvent::ChatRemoved(main())), added, "the main chat stays");
    assert_eq!(apply(SessionEvent::ChatRemoved("side".into())), before);
    assert_eq!(apply(SessionEvent::ChatRemoved("side".into())), before);

    let renamed = ActiveClient { display_name: Some("Mine".into()), ..taking_part("client") };
    assert_eq!(apply(SessionEvent::ActiveClientSet(taking_part("client"))).active_clients, [taking_part("client")]);
    assert_eq!(apply(SessionEvent::ActiveClientSet(renamed.clone())).active_clients, [renamed]);
    assert_eq!(apply(SessionEvent::ActiveClientRemoved("client".into())), before);

    let values = |session: Session| session.config.unwrap().values;
    let changed = |name, value, replace| SessionEvent::ConfigChanged { values: extra(name, value), replace };
    let both = Extra::from_iter([("mode".to_owned(), "auto".into()), ("depth".to_owned(), "2".into())]);
    apply(changed("mode", "auto", false));
    assert_eq!(values(apply(changed("depth", "2", false))), both);
    assert_eq!(values(apply(changed("depth", "3", true))), extra("depth", "3"));
    assert_eq!(session.modified_at, before.modified_at, "none of this moves the session on");
}

#[test]
fn a_session_without_settings_gets_none_by_a_change() {
    let mut session = Session { config: None, ..Scene::ready().session };
    let before = session.clone();
    let changed = SessionEvent::ConfigChanged { values: extra("mode", "auto"), replace: true };
    session.apply(&Event { at: Timestamp(99), change: Change::Session("s1".into(), changed) });
    assert_eq!(session, before);
}

#[test]
fn another_chat_moves_its_own_time_and_not_the_sessions() {
    let mut scene = Scene::ready();
    scene.session.chats.push(Chat::new("side".into(), Timestamp(1)));
    let before = scene.session.modified_at;
    let begin = turn_started(TURN, None, None);
    scene.session.apply(&Event { at: Timestamp(99), change: Change::Chat("s1".into(), "side".into(), begin) });
    assert_eq!(scene.session.chat(&"side".into()).unwrap().modified_at, Timestamp(99));
    assert_eq!((scene.session.modified_at, scene.chat().active.is_some()), (before, false));
}

#[test]
fn sessions_come_and_go_in_the_state_and_the_root_takes_what_it_is_told() {
    let mut state = State::default();
    let at = |at, change| Event { at: Timestamp(at), change };
    let created = || SessionEvent::Created(Box::new(random::new_session()));
    apply(&mut state, &at(5, Change::Session("s1".into(), created())));
    let session = &state.sessions[&"s1".into()];
    assert_eq!(session, &Session::new(&random::new_session(), Timestamp(5)));
    assert_eq!((session.title.as_str(), &session.lifecycle), (Session::UNTITLED, &Lifecycle::Creating));

    let before = state.clone();
    apply(&mut state, &at(6, Change::Session("s1".into(), created())));
    apply(&mut state, &at(6, Change::Session("s2".into(), SessionEvent::Ready)));
    apply(&mut state, &at(6, Change::Chat("s1".into(), "side".into(), ended())));
    assert_eq!(state, before, "what is there is not made again, and what is not there is left alone");

    apply(&mut state, &at(7, Change::Session("s1".into(), SessionEvent::Ready)));
    assert_eq!(state.sessions[&"s1".into()].lifecycle, Lifecycle::Ready);
    apply(&mut state, &at(8, Change::Session("s1".into(), SessionEvent::Removed)));
    assert!(state.sessions.is_empty());

    apply(&mut state, &at(9, Change::Root(RootEvent::AgentsChanged(vec![random::agent()]))));
    apply(&mut state, &at(9, Change::Root(RootEvent::ActiveSessionsChanged(3))));
    assert_eq!((state.root.agents, state.root.active_sessions), (vec![random::agent()], 3));
}

#[test]
fn a_session_ignores_events_of_another() {
    let scene = Scene::in_turn();
    let mut session = scene.session.clone();
    for change in [
        Change::Session("s2".into(), SessionEvent::TitleChanged("Theirs".into())),
        Change::Chat("s2".into(), main(), ended()),
        Change::Root(RootEvent::ActiveSessionsChanged(1)),
    ] {
        session.apply(&Event { at: Timestamp(99), change });
    }
    assert_eq!(session, scene.session);
}

#[test]
fn a_copy_with_the_newest_turns_differs_in_nothing_but_the_older_ones_and_says_so() {
    let mut scene = Scene::ready();
    for id in ["t1", "t2", "t3"] {
        scene.act(start(id)).unwrap();
        scene.act(cancel(id)).unwrap();
    }
    let session = scene.after(start("t4")).after(enqueue("p1")).session;
    for kept in 0..5usize {
        let mut expected = session.clone();
        expected.chats[0].turns.drain(..3usize.saturating_sub(kept));
        expected.chats[0].has_older_turns = kept < 3;
        assert_eq!(session.with_newest_turns(kept), expected, "{kept}");
    }
}
