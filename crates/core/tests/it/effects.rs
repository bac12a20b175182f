//! The effect of each event; an event that does not fit changes nothing.

use grove_core::*;

use crate::random;
use crate::scene::*;

/// Applies `event` to the main chat at time 99, without validation.
fn applied(scene: &Scene, event: ChatEvent) -> Scene {
    let mut after = scene.clone();
    after.session.apply(&Event { at: Timestamp(99), change: Change::Chat("s1".into(), main(), event) });
    after
}

/// Asserts that the event changes nothing here.
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
    let begin = |id: &str| turn_started(id, None, None);
    let scene = applied(&Scene::ready(), begin("t1"));
    assert!(!scene.chat().is_read, "there is something to read");
    let active = scene.active();
    assert_eq!((&active.id, &active.message), (&turn(), &Message::user("go")));
    assert_eq!((active.started_at, active.parts(), &active.usage), (Timestamp(99), &[][..], &None));
    assert_eq!((scene.session.modified_at, scene.chat().modified_at), (Timestamp(99), Timestamp(99)));
    ignored(&scene, begin("t2"));
}

fn turn_started(id: &str, started_at: Option<u64>, queued: Option<&str>) -> ChatEvent {
    ChatEvent::TurnStarted {
        turn: id.into(),
        message: Message::user("go"),
        started_at: started_at.map(Timestamp),
        queued: queued.map(Into::into),
    }
}

#[test]
fn a_turn_that_was_a_waiting_message_takes_it_from_where_it_waited() {
    let scene = ["p1", "p2"].iter().fold(Scene::ready(), |scene, id| {
        let scene = applied(&scene, ChatEvent::QueuedSet(pending(id, id)));
        applied(&scene, ChatEvent::SteeringSet(pending("p3", "left")))
    });
    assert_eq!(applied(&scene, turn_started("t1", None, Some("p1"))).waiting(), ["p2"]);
    let steered = applied(&scene, turn_started("t1", None, Some("p3")));
    assert_eq!((&steered.chat().steering, steered.waiting()), (&None, vec!["p1", "p2"]));
}

#[test]
fn a_turn_has_the_start_that_was_claimed_and_ends_as_much_later_as_it_took() {
    let begun = applied(&Scene::ready(), turn_started("t1", Some(5_000), None));
    assert_eq!((begun.active().started_at, begun.chat().modified_at), (Timestamp(5_000), Timestamp(5_000)));
    assert_eq!((begun.session.modified_at, begun.chat().touched_at), (Timestamp(99), Timestamp(99)));
    let told = applied(&begun, lasting(ended(), 30));
    assert_eq!((told.last_turn().ended_at, told.chat().modified_at), (Timestamp(5_030), Timestamp(5_030)));
    let measured = applied(&begun, ended());
    assert_eq!(measured.last_turn().ended_at, Timestamp(5_000), "without a word of it, the host's clock counts");
    let last = applied(&Scene::ready(), turn_started("t1", Some(u64::MAX), None));
    assert_eq!(applied(&last, lasting(ended(), 30)).last_turn().ended_at, Timestamp(u64::MAX));
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
fn a_ready_call_keeps_its_names_and_has_its_whole_input_and_its_rank() {
    let mut scene = Scene::reported([started("c1"), started("c2"), writes("c1", "half")]);
    scene.report(ready("c2", Gate::Follows)).unwrap();
    let named = |call| ChatEvent::ToolCallReady {
        turn: turn(),
        call,
        invocation_message: "Listing".into(),
        input: None,
        gate: Gate::None,
    };
    let renamed = NewToolCall { display_name: "List files".into(), kind: None, language: None, ..new_call("c1") };
    scene.report(named(renamed)).unwrap_err();
    scene.report(named(new_call("c1"))).unwrap();
    let call = scene.call("c1");
    assert!(new_call("c1").is(call));
    assert_eq!((call.invocation_message.as_str(), &call.input), ("Listing", &None));
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
        verdict: Verdict::from(decision),
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
    assert_eq!(*denied.status_of("c1"), ToolCallStatus::Cancelled(CancelReason::Denied.into()));
    assert!(!denied.active().waits_for_person() && denied.active().knows_request(&"r1".into()));
    ignored(&denied, confirmed("c1", "r1", Decision::Approved));
}

#[test]
fn a_call_says_why_it_may_run_and_a_new_question_takes_that_back() {
    let scene = Scene::reported(running("c1")).after_report(put_out("c1", "half"));
    assert_eq!(scene.call("c1").confirmed, Some(Confirmation { by: ConfirmationReason::NotNeeded, option: None }));
    let request = PermissionRequest { intention: Some("Tidy up".into()), ..permission("r1") };
    let asked = scene.after_report(gated_by("c1", request));
    let call = asked.call("c1");
    assert_eq!((&call.confirmed, &call.output, call.intention.as_deref()), (&None, &None, Some("Tidy up")));
    let again = asked.after(resolve("r1", Decision::Approved));
    assert_eq!(again.call("c1").confirmed, Some(Confirmation { by: ConfirmationReason::Person, option: None }));
}

#[test]
fn a_call_that_is_restated_keeps_what_was_announced_first() {
    let restated = |message: &str, input: &str| {
        let gated = ToolCallGate {
            call: "c1".into(),
            request: permission_with_options("r1"),
            invocation_message: Some(message.into()),
            input: Some(input.into()),
        };
        Scene::reported(running("c1")).after_report(ChatEvent::ToolCallGated { turn: turn(), gated: Box::new(gated) })
    };
    assert_eq!(restated("Running ls", "ls").call("c1").announced, None, "the same again is no change");
    let scene = restated("Running rm", "rm");
    let call = scene.call("c1");
    let first = Invocation { message: "Running ls".into(), input: Some("ls".into()) };
    assert_eq!((call.invocation_message.as_str(), call.input.as_deref()), ("Running rm", Some("rm")));
    assert_eq!(call.announced.as_deref(), Some(&first));

    let edited = Verdict { edited_input: Some("rm -i".into()), ..Decision::Approved.into() };
    let scene = scene.after(resolve_with("r1", edited));
    let call = scene.call("c1");
    assert_eq!((call.input.as_deref(), call.announced.as_deref()), (Some("rm -i"), Some(&first)));
}

#[test]
fn a_running_call_that_is_restated_keeps_its_name_and_loses_its_output_and_the_chosen_option() {
    let option = permission_with_options("r1").options.remove(0);
    let chosen = Verdict { option: Some(option.id.clone()), ..Decision::Approved.into() };
    let scene = Scene::reported(asking_with_options("c1", "r1"));
    let scene = scene.after(resolve_with("r1", chosen)).after_report(put_out("c1", "half"));
    let before = scene.call("c1").clone();
    assert_eq!(before.confirmed, Some(Confirmation { by: ConfirmationReason::Person, option: Some(option) }));
    let after = applied(&scene, restated("c1", None, ConfirmationReason::Person));
    let expected = ToolCall {
        invocation_message: "Running it".into(),
        confirmed: Some(Confirmation { by: ConfirmationReason::Person, option: None }),
        output: None,
        announced: Some(Box::new(Invocation { message: "Running ls".into(), input: Some("ls".into()) })),
        ..before
    };
    assert_eq!(*after.call("c1"), expected, "and its input, where no other is said");
    assert_eq!(
        applied(&after, restated("c1", Some("rm"), ConfirmationReason::Person)).call("c1").input.as_deref(),
        Some("rm")
    );

    ignored(&Scene::reported([started("c1")]), restated("c1", None, ConfirmationReason::Person));
    ignored(&Scene::reported(asking("c1", "r1")), restated("c1", None, ConfirmationReason::Person));
    ignored(&applied(&scene, completed("c1")), restated("c1", None, ConfirmationReason::Person));
    ignored(&scene, restated("c9", None, ConfirmationReason::Person));
}

#[test]
fn how_long_a_call_ran_is_measured_from_where_it_was_allowed_to_its_end() {
    let ends_after = |mut scene: Scene, who: &Actor, milliseconds: u64| {
        // The next command is one later.
        scene.now += milliseconds - 1;
        scene.by(who, Command::Report { chat: main(), event: completed("c1") }).unwrap();
        (scene.call("c1").ran_ms, scene.call("c1").running_since)
    };
    let asked = || {
        let mut scene = Scene::reported(asking("c1", "r1"));
        scene.now += 60_000;
        scene.after(resolve("r1", Decision::Approved))
    };
    assert_eq!(ends_after(asked(), &Actor::Agent, 2_500), (Some(2_500), None), "a person's time is not the call's");
    assert_eq!(ends_after(Scene::reported(running("c1")), &Actor::Agent, 70), (Some(70), None));
    // What the host ends was cut off, and nobody knows when.
    assert_eq!(ends_after(Scene::reported(running("c1")), &Actor::Host, 70), (None, None));
    let mut scene = Scene::reported(running("c1"));
    scene.now += 9;
    let scene = scene.after_report(result_gated("c1"));
    assert_eq!(scene.call("c1").ran_ms, Some(10), "before a person looks at the result");
    let scene = scene.after(confirm_result("c1", Decision::Approved));
    assert_eq!(scene.call("c1").ran_ms, Some(10));
}

#[test]
fn what_an_agent_says_of_a_call_beyond_its_name_stays_until_it_says_something_else() {
    let saying = |mut event: ChatEvent, value: Option<&str>| {
        let said = value.map(|value| extra("place", value));
        match &mut event {
            ChatEvent::ToolCallStarted { call, .. } | ChatEvent::ToolCallReady { call, .. } => call.extra = said,
            ChatEvent::ToolCallRestated { restated, .. } => restated.call.extra = said,
            other => panic!("{other:?} says nothing of a call"),
        }
        event
    };
    let again = || restated("c1", None, ConfirmationReason::NotNeeded);
    let scene = Scene::reported([saying(started("c1"), Some("a")), ready("c1", Gate::None)]);
    assert_eq!(scene.call("c1").extra, Some(extra("place", "a")));
    assert_eq!(applied(&scene, again()).call("c1").extra, Some(extra("place", "a")));
    assert_eq!(applied(&scene, saying(again(), Some("b"))).call("c1").extra, Some(extra("place", "b")));
    let changed = Scene::reported([saying(started("c1"), Some("a")), saying(ready("c1", Gate::None), Some("b"))]);
    assert_eq!(changed.call("c1").extra, Some(extra("place", "b")));
}

#[test]
fn an_input_that_is_not_there_is_not_edited_and_a_refusal_edits_nothing() {
    let mut ready = ready("c1", Gate::Follows);
    if let ChatEvent::ToolCallReady { input, .. } = &mut ready {
        *input = None;
    }
    let edited = |decision| Verdict { edited_input: Some("rm".into()), ..Verdict::from(decision) };
    let without = Scene::reported([started("c1"), ready, gated_by("c1", permission_with_options("r1"))]);
    assert_eq!(without.after(resolve_with("r1", edited(Decision::Approved))).call("c1").input, None);
    let refused = Scene::reported(asking_with_options("c1", "r1"));
    let refused = refused.after(resolve_with("r1", edited(Decision::Denied)));
    assert_eq!(refused.call("c1").input.as_deref(), Some("ls"));
}

#[test]
fn what_a_running_call_puts_out_is_replaced_and_gives_way_to_its_result() {
    let scene = Scene::reported(running("c1"));
    let scene = applied(&applied(&scene, put_out("c1", "ha")), put_out("c1", "half"));
    assert_eq!(scene.call("c1").output, Some(output("half")));
    for end in [completed("c1"), result_gated("c1")] {
        let over = applied(&scene, end);
        assert_eq!(over.call("c1").output, None);
        ignored(&over, put_out("c1", "late"));
    }
    assert_eq!(applied(&scene, ended()).last_turn().parts, scene.active().parts(), "a call that was cut off keeps it");
    ignored(&scene, put_out("c9", "x"));
    ignored(&Scene::reported([started("c1")]), put_out("c1", "early"));
}

#[test]
fn a_call_belongs_to_the_client_that_it_was_handed_to() {
    let scene = Scene::reported(handed_to("client", "c1"));
    assert_eq!(scene.call("c1").client, Some("client".into()));
    assert_eq!(*scene.status_of("c1"), ToolCallStatus::Running);
    assert_eq!(scene.chat().status(), ChatStatus::InProgress, "nobody is asked");
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
    assert_eq!(*withheld.status_of("c1"), ToolCallStatus::Cancelled(CancelReason::ResultDenied.into()));
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
fn usage_that_is_brought_up_to_date_keeps_what_was_not_said_again() {
    let cost = |amount: u64| Cost { amount: amount.into(), currency: "USD".into() };
    let known = Usage {
        input_tokens: Some(1),
        output_tokens: Some(2),
        model: Some("small".into()),
        cache_read_tokens: Some(3),
        cache_write_tokens: Some(4),
        reasoning_tokens: Some(5),
        context: Some(ContextUsage { used: 6, size: 7 }),
        cost: Some(cost(8)),
    };
    assert_eq!(known.updated(Usage::default()), known);
    assert_eq!(Usage::default().updated(known.clone()), known);
    let more = Usage { cost: Some(cost(9)), output_tokens: Some(0), ..Usage::default() };
    assert_eq!(known.updated(more), Usage { cost: Some(cost(9)), output_tokens: Some(0), ..known });
}

#[test]
fn a_question_is_a_part_that_keeps_its_first_answer() {
    let answered = |outcome, answers| ChatEvent::InputAnswered { turn: turn(), request: "q1".into(), outcome, answers };
    let declined = || answered(InputOutcome::Declined, Answers::new());
    let scene = Scene::reported([asked("q1")]);
    ignored(&scene, asked("q1"));
    let after = applied(&scene, answered(InputOutcome::Accepted, answers(Answer::text("this"))));
    let kept = InputRequest {
        answers: answers(Answer::text("this")),
        outcome: Some(InputOutcome::Accepted),
        ..InputRequest::ask("q1".into(), "Which one?")
    };
    assert_eq!(after.active().parts(), [Part::InputRequest(kept)]);
    ignored(&after, declined());
    ignored(&after, answer_changed(Some(draft("late"))));
    ignored(&Scene::in_turn(), declined());
    ignored(&Scene::in_turn(), answer_changed(Some(draft("early"))));
}

fn answer_changed(answer: Option<Answer>) -> ChatEvent {
    ChatEvent::InputAnswerChanged { turn: turn(), request: "q1".into(), question: QUESTION.into(), answer }
}

#[test]
fn answers_are_drafted_taken_back_and_kept_where_the_end_does_not_replace_them() {
    let scene = applied(&Scene::reported([asked("q1")]), answer_changed(Some(draft("th"))));
    assert_eq!(scene.input("q1").answers, answers(draft("th")));
    assert_eq!(applied(&scene, answer_changed(None)).input("q1").answers, Answers::new());
    let end = |answers| ChatEvent::InputAnswered {
        turn: turn(),
        request: "q1".into(),
        outcome: InputOutcome::Cancelled,
        answers,
    };
    assert_eq!(applied(&scene, end(Answers::new())).input("q1").answers, answers(draft("th")));
    let replaced = applied(&scene, end(answers(Answer::text("this"))));
    assert_eq!(replaced.input("q1").answers, answers(Answer::text("this")));
}

#[test]
fn the_answer_in_words_is_that_of_the_only_question() {
    let response = |answer| InputResponse { outcome: InputOutcome::Accepted, answers: answers(answer) };
    assert_eq!(response(Answer::text("this")).text(), Some("this"));
    assert_eq!(response(draft("th")).text(), None);
    assert_eq!(response(Answer::Submitted(AnswerValue::YesOrNo(true))).text(), None);
}

#[test]
fn a_chat_is_unread_from_a_turn_or_a_question_until_somebody_says_otherwise() {
    let read = |scene: &Scene| applied(scene, ChatEvent::ChatReadChanged(true));
    let scene = read(&Scene::in_turn());
    assert!(scene.chat().is_read);
    assert!(!applied(&scene, asked("q1")).chat().is_read);
    for quiet in [streamed("x"), started("c1"), ended(), ChatEvent::ChatArchivedChanged(true)] {
        assert!(applied(&scene, quiet.clone()).chat().is_read, "{quiet:?}");
    }
    let archived = applied(&scene, ChatEvent::ChatArchivedChanged(true));
    assert!(archived.chat().is_archived);
    assert!(!applied(&archived, ChatEvent::ChatArchivedChanged(false)).chat().is_archived);
}

#[test]
fn the_three_ends_of_a_turn_keep_its_parts_and_say_how_it_ended() {
    let error = ErrorInfo::new("agent", "broke");
    let scene = Scene::reported([streamed("x"), says("x", "a"), started("c1")]);
    let ends = [
        (ended(), Outcome::Complete, ChatStatus::Idle),
        (cancelled(), Outcome::Cancelled, ChatStatus::Idle),
        (failed("broke"), Outcome::Error, ChatStatus::Error),
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
    events.extend([put_out("c1", "x"), answer_changed(Some(draft("th"))), cancelled(), failed("late")]);
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

/// Such a part cannot be reported, but a log may hold one.
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
    let encodings = EncodingCache::default();
    assert_eq!(&*encodings.get_or_encode(0, || "first".into()), "first");
    assert_eq!(&*encodings.get_or_encode(0, || "second".into()), "first");
    assert_eq!(&*encodings.get_or_encode(1, || "other".into()), "other");
    assert_eq!(&*encodings.get_or_encode(EncodingCache::SLOTS, || "nowhere".into()), "nowhere");
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

#[test]
fn a_fork_shows_what_it_began_with_and_a_side_chat_only_knows_it() {
    let mut scene = Scene::in_turn();
    scene.report(ended()).unwrap();
    let turns = scene.session.chats[0].turns.clone();
    let began = |scene: &Scene, kind: OriginKind| {
        let mut scene = scene.clone();
        let changes = scene.host(fork_chat("side", kind.clone(), turns.clone())).unwrap();
        assert!(matches!(&changes[1], Change::Chat(_, _, ChatEvent::TurnsInherited { .. })), "{changes:?}");
        // The written event says where the turns are, and not what is in them.
        let Change::Chat(_, _, written) = &changes[1] else { panic!("{changes:?}") };
        let read: ChatEvent = serde_json::from_str(&serde_json::to_string(written).unwrap()).unwrap();
        let nothing = ChatEvent::TurnsInherited { origin: origin(kind), turns: vec![], older: true };
        assert_eq!(read, nothing);
        scene.session.chat(&"side".into()).unwrap().clone()
    };
    let fork = began(&scene, OriginKind::Fork);
    assert_eq!((&fork.turns, fork.has_older_turns), (&turns, true));
    let side = began(&scene, OriginKind::Side { selection: None });
    assert_eq!((side.turns.len(), side.has_older_turns), (0, false));
}
