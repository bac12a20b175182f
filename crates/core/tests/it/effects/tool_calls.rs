//! The effect of events of tool calls.

use super::*;

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
        answer: None,
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
            hook: None,
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
    let ends_after = |mut scene: Scene, by: fn(EventReport) -> Command, milliseconds: u64| {
        // The next command is one later.
        scene.now += milliseconds - 1;
        scene.by(by(EventReport::Chat { chat: main(), event: completed("c1") })).unwrap();
        (scene.call("c1").ran_ms, scene.call("c1").running_since)
    };
    let asked = || {
        let mut scene = Scene::reported(asking("c1", "r1"));
        scene.now += 60_000;
        scene.after(resolve("r1", Decision::Approved))
    };
    assert_eq!(ends_after(asked(), Command::Agent, 2_500), (Some(2_500), None), "a person's time is not the call's");
    assert_eq!(ends_after(Scene::reported(running("c1")), Command::Agent, 70), (Some(70), None));
    // What the host ends was cut off, and nobody knows when.
    assert_eq!(ends_after(Scene::reported(running("c1")), |report| Command::Host(report.into()), 70), (None, None));
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
        answer: None,
    };
    assert_eq!(*applied(&held, given).status_of("c1"), ToolCallStatus::Completed(shortened));
    let withheld = applied(&held, result_confirmed("c1", Decision::Denied));
    assert_eq!(*withheld.status_of("c1"), ToolCallStatus::Cancelled(CancelReason::ResultDenied.into()));
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
