//! What each event changes, and that what does not fit changes nothing.

use grove_core::*;

use crate::random;
use crate::scene::*;

/// Applies `event` to the main chat at time 99, without asking whether it is allowed.
fn applied(scene: &Scene, event: ChatEvent) -> Scene {
    let mut after = scene.clone();
    after.session.apply(&Event { at: Timestamp(99), change: Change::Chat("s1".into(), main(), event) });
    after
}

/// The event changes nothing here.
fn ignored(scene: &Scene, event: ChatEvent) {
    assert_eq!(applied(scene, event.clone()).session, scene.session, "{event:?}");
}

fn text_of(scene: &Scene) -> Vec<&str> {
    let text = |part| match part {
        &Part::Text(TextPart { ref content, .. }) | &Part::Reasoning { ref content, .. } => Some(content.as_str()),
        _ => None,
    };
    scene.active().parts().iter().filter_map(text).collect()
}

#[test]
fn turn_started_begins_a_turn_only_where_none_runs() {
    let begin = |id: &str| ChatEvent::TurnStarted { turn: id.into(), message: Message::user("go") };
    let scene = applied(&Scene::ready(), begin("t1"));
    let active = scene.active();
    assert_eq!((&active.id, &active.message), (&turn(), &Message::user("go")));
    assert_eq!((active.started_at, active.parts(), &active.usage), (Timestamp(99), &[][..], &None));
    assert_eq!((scene.session.modified_at, scene.chat().modified_at), (Timestamp(99), Timestamp(99)));
    ignored(&scene, begin("t2"));
}

#[test]
fn part_added_appends_the_part() {
    let content = ContentRef { id: "sha".into(), size: 70_000, mime_type: Some("text/plain".into()) };
    let body = ChatEvent::PartAdded { turn: turn(), part: Part::Content(content.clone()) };
    let problem = ErrorInfo::new("tool", "went wrong");
    let error = ChatEvent::PartAdded { turn: turn(), part: Part::Error(problem.clone()) };
    let scene = Scene::reported([whole("w"), body, error]);
    let text = TextPart { id: "w".into(), content: "whole".into(), delivery: Delivery::Whole };
    assert_eq!(scene.active().parts(), [Part::Text(text), Part::Content(content), Part::Error(problem)]);
    ignored(&Scene::ready(), whole("w"));
}

#[test]
fn text_and_reasoning_deltas_append_to_their_part() {
    let reports = [streamed("x"), thought("y"), says("x", "a"), thinks("y", "b"), says("x", "c"), thinks("y", "d")];
    let scene = Scene::reported(reports);
    assert_eq!(text_of(&scene), ["ac", "bd"]);
    for stray in [says("z", "a"), thinks("z", "a"), says("y", "a"), thinks("x", "a")] {
        ignored(&scene, stray);
    }
    let moved = applied(&scene, says("x", "!"));
    assert_eq!(moved.session.modified_at, scene.session.modified_at, "a delta is no new moment of the session");
}

#[test]
fn a_tool_call_begins_streaming_and_gathers_its_input() {
    let scene = Scene::reported([started("c1"), writes("c1", "l"), writes("c1", "s")]);
    let call = scene.call("c1");
    assert_eq!((call.name.as_str(), call.display_name.as_str()), ("shell", "Run a command"));
    assert_eq!((call.kind, call.language.as_deref()), (Some(ToolKind::Terminal), Some("sh")));
    assert_eq!((call.input.as_deref(), &call.status, call.ready_rank), (Some("ls"), &ToolCallStatus::Streaming, None));
    ignored(&scene, started("c1"));
    ignored(&scene, writes("c9", "x"));
}

#[test]
fn a_ready_call_has_its_last_names_its_whole_input_and_its_rank() {
    let mut scene = Scene::reported([started("c1"), started("c2"), writes("c1", "half")]);
    scene.report(ready("c2", Gate::Follows)).unwrap();
    let renamed = ChatEvent::ToolCallReady {
        turn: turn(),
        call: NewToolCall { display_name: "List files".into(), kind: None, language: None, ..new_call("c1") },
        invocation_message: "Listing".into(),
        input: None,
        gate: Gate::None,
    };
    scene.report(renamed).unwrap();
    let call = scene.call("c1");
    assert_eq!((call.display_name.as_str(), call.invocation_message.as_str()), ("List files", "Listing"));
    assert_eq!((call.kind, &call.language, &call.input), (None, &None, &None));
    assert_eq!((&call.status, call.ready_rank), (&ToolCallStatus::Running, Some(1)));
    assert_eq!((scene.status_of("c2"), scene.call("c2").ready_rank), (&ToolCallStatus::Ready, Some(0)));
    ignored(&scene, ready("c1", Gate::None));
    ignored(&scene, ready("c9", Gate::None));
}

#[test]
fn a_gate_holds_a_ready_or_running_call_until_its_own_request_is_answered() {
    let confirmed = |call: &str, request: &str, decision| ChatEvent::ToolCallConfirmed {
        turn: turn(),
        call: call.into(),
        request: request.into(),
        decision,
    };
    let scene = Scene::reported(asking("c1", "r1"));
    assert_eq!(*scene.status_of("c1"), ToolCallStatus::PendingConfirmation(permission("r1")));
    assert!(scene.active().waits_for_person() && scene.active().knows_request(&"r1".into()));
    for stray in [gated("c1", "r2"), gated("c9", "r2"), confirmed("c1", "r9", Decision::Approved)] {
        ignored(&scene, stray);
    }
    ignored(&scene, confirmed("c9", "r1", Decision::Approved));
    let approved = applied(&scene, confirmed("c1", "r1", Decision::Approved));
    assert_eq!(*approved.status_of("c1"), ToolCallStatus::Running);
    let denied = applied(&scene, confirmed("c1", "r1", Decision::Denied));
    assert_eq!(*denied.status_of("c1"), ToolCallStatus::Cancelled(CancelReason::Denied));
    assert!(!denied.active().waits_for_person() && denied.active().knows_request(&"r1".into()));
    ignored(&denied, confirmed("c1", "r1", Decision::Approved));
}

#[test]
fn a_running_call_completes_or_has_its_result_held_back() {
    let scene = Scene::reported(running("c1"));
    assert_eq!(*applied(&scene, completed("c1")).status_of("c1"), ToolCallStatus::Completed(success()));
    let held = applied(&scene, result_gated("c1"));
    assert_eq!(*held.status_of("c1"), ToolCallStatus::PendingResultConfirmation(success()));
    ignored(&held, completed("c1"));
    ignored(&scene, result_confirmed("c1", Decision::Approved));

    let shortened = ToolResult { output: Some("a".into()), ..success() };
    let given = ChatEvent::ToolCallResultConfirmed {
        turn: turn(),
        call: "c1".into(),
        result: shortened.clone(),
        decision: Decision::Approved,
    };
    assert_eq!(*applied(&held, given).status_of("c1"), ToolCallStatus::Completed(shortened));
    let withheld = applied(&held, result_confirmed("c1", Decision::Denied));
    assert_eq!(*withheld.status_of("c1"), ToolCallStatus::Cancelled(CancelReason::ResultDenied));
}

#[test]
fn usage_replaces_what_was_reported_before() {
    let used = |tokens| ChatEvent::UsageReported {
        turn: turn(),
        usage: Usage { input_tokens: Some(tokens), ..Usage::default() },
    };
    let scene = Scene::reported([used(1), used(2)]);
    assert_eq!(scene.active().usage.as_ref().unwrap().input_tokens, Some(2));
}

#[test]
fn a_question_is_a_part_that_keeps_its_first_answer() {
    let answered = |response| ChatEvent::InputAnswered { turn: turn(), request: "q1".into(), response };
    let scene = Scene::reported([asked("q1")]);
    ignored(&scene, asked("q1"));
    let yes = InputResponse::Accept { text: "this".into() };
    let after = applied(&scene, answered(yes.clone()));
    let kept = InputRequest { id: "q1".into(), question: "Which one?".into(), response: Some(yes) };
    assert_eq!(after.active().parts(), [Part::InputRequest(kept)]);
    ignored(&after, answered(InputResponse::Decline));
    ignored(&Scene::in_turn(), answered(InputResponse::Decline));
}

#[test]
fn the_three_ends_of_a_turn_keep_its_parts_and_say_how_it_ended() {
    let error = ErrorInfo::new("agent", "broke");
    let scene = Scene::reported([streamed("x"), says("x", "a"), started("c1")]);
    let ends = [
        (ended(), Outcome::Complete, ChatStatus::Idle),
        (ChatEvent::TurnCancelled { turn: turn() }, Outcome::Cancelled, ChatStatus::Idle),
        (ChatEvent::TurnFailed { turn: turn(), error: error.clone() }, Outcome::Error, ChatStatus::Error),
    ];
    for (end, outcome, status) in ends {
        let after = applied(&scene, end.clone());
        assert!(after.chat().active.is_none());
        let finished = after.last_turn();
        assert_eq!((finished.outcome, after.chat().status()), (outcome, status));
        assert_eq!((finished.started_at, finished.ended_at), (scene.active().started_at, Timestamp(99)));
        assert_eq!(finished.parts[..2], scene.active().parts()[..], "a call that was cut off stays as it was");
        let errors: Vec<_> = finished.parts[2..].iter().collect();
        match outcome {
            Outcome::Error => assert_eq!(errors, [&Part::Error(error.clone())]),
            Outcome::Complete | Outcome::Cancelled => assert!(errors.is_empty()),
        }
        assert_eq!(after.session.modified_at, Timestamp(99));
        ignored(&after, end);
    }
}

#[test]
fn an_event_of_another_turn_changes_nothing() {
    let scene = Scene::ready().after(start("t2"));
    let mut events = vec![streamed("x"), says("x", "a"), thinks("x", "a"), asked("q1"), ended()];
    events.extend(asking("c1", "r1"));
    events.extend([completed("c1"), ChatEvent::UsageReported { turn: turn(), usage: Usage::default() }]);
    events.extend([
        ChatEvent::TurnCancelled { turn: turn() },
        ChatEvent::TurnFailed { turn: turn(), error: ErrorInfo::new("agent", "late") },
    ]);
    for event in events {
        ignored(&scene, event);
    }
}

#[test]
fn waiting_messages_are_set_removed_and_put_in_order() {
    let queued = |id: &str| ChatEvent::QueuedSet(pending(id, id));
    let scene = ["p1", "p2", "p3"].iter().fold(Scene::ready(), |scene, id| applied(&scene, queued(id)));
    assert_eq!(scene.waiting(), ["p1", "p2", "p3"]);
    let order = vec!["p3".into(), "unknown".into(), "p1".into()];
    assert_eq!(applied(&scene, ChatEvent::QueueReordered(order)).waiting(), ["p3", "p1", "p2"]);
    assert_eq!(applied(&scene, ChatEvent::QueuedRemoved("p2".into())).waiting(), ["p1", "p3"]);
    ignored(&scene, ChatEvent::QueuedRemoved("p9".into()));

    let steered = applied(&scene, ChatEvent::SteeringSet(pending("p9", "left")));
    assert_eq!(steered.chat().steering, Some(pending("p9", "left")));
    ignored(&steered, ChatEvent::SteeringRemoved("p1".into()));
    assert_eq!(applied(&steered, ChatEvent::SteeringRemoved("p9".into())).session, scene.session);

    let drafted = applied(&scene, ChatEvent::DraftChanged(Some(Message::user("half"))));
    assert_eq!(drafted.chat().draft, Some(Message::user("half")));
    assert_eq!(applied(&drafted, ChatEvent::DraftChanged(None)).session, scene.session);
}

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

    let row = ChatRow { status: ChatStatus::Error, ..before.catalogue[0].clone() };
    assert_eq!(applied(SessionEvent::ChatRowChanged(row.clone())).catalogue, vec![row.clone()]);
    assert_eq!(applied(SessionEvent::ChatRowChanged(ChatRow { chat: "side".into(), ..row })), before);

    let needed = InputNeeded {
        request: "r1".into(),
        chat: main(),
        turn: turn(),
        about: InputSubject::ToolConfirmation("c1".into()),
    };
    let mut session = applied(SessionEvent::InputNeededSet(needed.clone()));
    assert_eq!(session.input_needed, vec![needed.clone()]);
    let again = InputNeeded { about: InputSubject::Question, ..needed };
    for (event, left) in [
        (SessionEvent::InputNeededSet(again.clone()), vec![again.clone()]),
        (SessionEvent::InputNeededRemoved("r9".into()), vec![again]),
        (SessionEvent::InputNeededRemoved("r1".into()), vec![]),
    ] {
        session.apply(&Event { at: now, change: Change::Session("s1".into(), event) });
        assert_eq!(session.input_needed, left);
    }
}

#[test]
fn another_chat_moves_its_own_time_and_not_the_sessions() {
    let mut scene = Scene::ready();
    scene.session.chats.push(Chat::new("side".into(), Timestamp(1)));
    let before = scene.session.modified_at;
    let begin = ChatEvent::TurnStarted { turn: turn(), message: Message::user("go") };
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

/// Nobody can report such a part, but a log may hold one.
#[test]
fn a_call_that_arrives_waiting_is_waited_for_until_it_is_answered() {
    let call = ToolCall { status: ToolCallStatus::PendingConfirmation(permission("r1")), ..waiting_call() };
    let scene = applied(&Scene::in_turn(), ChatEvent::PartAdded { turn: turn(), part: Part::ToolCall(Box::new(call)) });
    assert_eq!(scene.chat().status(), ChatStatus::InputNeeded);
    let mut scene = scene;
    scene.act(resolve("r1", Decision::Approved)).unwrap();
    assert_eq!((scene.status_of("c1"), scene.chat().status()), (&ToolCallStatus::Running, ChatStatus::InProgress));
}

fn waiting_call() -> ToolCall {
    Scene::reported(running("c1")).call("c1").clone()
}

#[test]
fn a_shared_turn_replaces_its_equal_and_no_other() {
    let mut chat = Scene::reported([ended()]).chat().clone();
    let copy = std::sync::Arc::new(Turn::clone(&chat.turns[0]));
    chat.share(copy.clone());
    assert!(std::sync::Arc::ptr_eq(&chat.turns[0], &copy));
    let stranger = std::sync::Arc::new(Turn { id: "t9".into(), ..Turn::clone(&copy) });
    chat.share(stranger);
    assert_eq!(chat.turns, [copy]);
}

#[test]
fn an_encoding_is_made_once_and_kept_with_the_turn() {
    let encodings = Encodings::default();
    assert_eq!(&*encodings.get_or_encode(0, || "first".into()), "first");
    assert_eq!(&*encodings.get_or_encode(0, || "second".into()), "first");
    assert_eq!(&*encodings.get_or_encode(1, || "other".into()), "other");
    assert_eq!(&*encodings.get_or_encode(Encodings::SLOTS, || "nowhere".into()), "nowhere");
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
