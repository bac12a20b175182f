//! Refused reports of agents and of the host.

use super::*;

#[test]
fn the_host_stops_only_a_turn_that_runs() {
    check(vec![host_wants(Scene::ready(), stop(), Rejection::TurnNotActive(TURN.into()), NOT_ACTIVE)]);
}

#[test]
fn what_persons_do_and_what_follows_from_chats_is_not_reported() {
    let confirmed = ChatEvent::ToolCallConfirmed {
        turn: turn(),
        call: "c1".into(),
        request: "r1".into(),
        verdict: Decision::Approved.into(),
        answer: None,
    };
    let answered = ChatEvent::InputAnswered {
        turn: turn(),
        request: "q1".into(),
        outcome: InputOutcome::Declined,
        answers: Answers::new(),
        answered_by: None,
    };
    let drafted = ChatEvent::InputAnswerChanged {
        turn: turn(),
        request: "q1".into(),
        question: QUESTION.into(),
        answer: Some(draft("th")),
    };
    let call = Scene::reported(running("c9")).call("c9").clone();
    let question = InputRequest::ask("q9".into(), "?");
    let again =
        ChatEvent::TurnStarted { turn: turn(), message: Message::user("again"), started_at: None, queued: None };
    let events = [
        again,
        confirmed,
        answered,
        drafted,
        ChatEvent::ChatReadChanged(true),
        ChatEvent::ChatArchivedChanged(true),
        ChatEvent::ChatTitleChanged("x".into()),
        ChatEvent::SteeringSet(pending("p1", "left")),
        ChatEvent::SteeringRemoved("p1".into()),
        ChatEvent::QueuedSet(pending("p1", "later")),
        ChatEvent::QueuedRemoved("p1".into()),
        ChatEvent::QueueReordered(vec![]),
        ChatEvent::DraftChanged(None),
        ChatEvent::PartAdded { turn: turn(), part: Part::ToolCall(Box::new(call)) },
        ChatEvent::PartAdded { turn: turn(), part: Part::InputRequest(question) },
    ];
    let given = Scene::reported(asking("c1", "r1").into_iter().chain([asked("q1")]));
    check(
        events
            .into_iter()
            .map(|event| agent_reports(given.clone(), event, Rejection::NotPermitted, NOT_YOURS))
            .collect(),
    );

    let row = given.session.catalogue[0].clone();
    let mirrored = [
        SessionEvent::ChatRowChanged(ChatRow { title: "other".into(), ..row.clone() }),
        SessionEvent::InputNeededSet(given.session.input_needed[0].clone()),
        SessionEvent::InputNeededRemoved { chat: main(), request: "r1".into() },
        SessionEvent::ChatAdded(ChatRow { chat: "side".into(), ..row }),
        SessionEvent::ChatRemoved(main()),
    ];
    let host = |event| host_wants(given.clone(), EventReport::Session(event), Rejection::NotPermitted, NOT_YOURS);
    check(mirrored.into_iter().map(host).collect());
}

#[test]
fn a_creation_that_failed_does_not_become_ready() {
    let ready = EventReport::Session(SessionEvent::Ready);
    check(vec![host_wants(Scene::failed(), ready, creation_failed(), CREATION_FAILED)]);
}

#[test]
fn a_report_for_a_turn_that_does_not_run_is_refused() {
    let not_active = || Rejection::TurnNotActive(TURN.into());
    let mut events = vec![streamed("x"), whole("x"), thought("x"), says("x", "a"), thinks("x", "a"), started("c1")];
    events.extend([writes("c1", "l"), ready("c1", Gate::None), gated("c1", "r1"), completed("c1")]);
    events.extend([result_gated("c1"), result_confirmed("c1", Decision::Approved), asked("q1"), ended()]);
    events.extend([
        ChatEvent::UsageReported { turn: turn(), usage: Usage::default() },
        put_out("c1", "half"),
        restated("c1", None, ConfirmationReason::NotNeeded),
        cancelled(),
        failed("late"),
    ]);
    for given in [Scene::ready(), Scene::in_turn().after(cancel(TURN)), Scene::ready().after(start("t2"))] {
        check(
            events.iter().map(|event| agent_reports(given.clone(), event.clone(), not_active(), NOT_ACTIVE)).collect(),
        );
    }
}

#[test]
fn deltas_go_to_the_newest_part_of_their_kind_and_ids_are_not_used_twice() {
    let closed = |part: &str| Rejection::PartClosed(part.into());
    let unknown = |part: &str| Rejection::UnknownPart(part.into());
    let written = || Scene::reported([streamed("x1"), streamed("x2"), thought("y1"), thought("y2"), whole("w")]);
    let duplicate = "the turn has a part of this id already";
    check(vec![
        agent_reports(written(), says("x1", "a"), closed("x1"), "part x1 accepts no more text"),
        agent_reports(written(), thinks("y1", "a"), closed("y1"), "part y1 accepts no more text"),
        agent_reports(written(), says("w", "a"), closed("w"), "part w accepts no more text"),
        agent_reports(written(), says("y2", "a"), closed("y2"), "part y2 accepts no more text"),
        agent_reports(written(), thinks("x2", "a"), closed("x2"), "part x2 accepts no more text"),
        agent_reports(written(), says("z", "a"), unknown("z"), "the turn has no part z"),
        agent_reports(written(), thinks("z", "a"), unknown("z"), "the turn has no part z"),
        agent_reports(written(), streamed("x1"), Rejection::DuplicatePart, duplicate),
        agent_reports(written(), thought("x1"), Rejection::DuplicatePart, duplicate),
        agent_reports(Scene::reported([started("c1")]), started("c1"), Rejection::DuplicatePart, duplicate),
        agent_reports(Scene::reported([asked("q1")]), asked("q1"), Rejection::DuplicatePart, duplicate),
        agent_reports(Scene::reported(asking("c1", "r1")), asked("r1"), Rejection::DuplicatePart, duplicate),
    ]);
}

#[test]
fn a_tool_call_takes_only_the_steps_that_its_state_allows() {
    let begun = || Scene::reported([started("c1")]);
    let runs = || Scene::reported(running("c1"));
    let waits = || Scene::reported(asking("c1", "r1"));
    let done = || runs().after_report(completed("c1"));
    let denied = || waits().after(resolve("r1", Decision::Denied));
    let past = "tool call c1 has its input already";
    let cannot_ask = "tool call c1 cannot ask for permission now";
    let not_running = "tool call c1 is not running";
    let no_result = "tool call c1 has no pending result";
    let problem = |problem| tool_call("c1", problem);
    let approved = || result_confirmed("c1", Decision::Approved);
    let again = |call: &str| restated(call, None, ConfirmationReason::NotNeeded);
    let mut cases = vec![
        agent_reports(runs(), writes("c1", "l"), problem("has its input already"), past),
        agent_reports(runs(), ready("c1", Gate::None), problem("has its input already"), past),
        agent_reports(done(), ready("c1", Gate::None), problem("has its input already"), past),
        agent_reports(begun(), gated("c1", "r2"), problem("cannot ask for permission now"), cannot_ask),
        agent_reports(waits(), gated("c1", "r2"), problem("cannot ask for permission now"), cannot_ask),
        agent_reports(done(), gated("c1", "r2"), problem("cannot ask for permission now"), cannot_ask),
        agent_reports(begun(), completed("c1"), problem("is not running"), not_running),
        agent_reports(waits(), completed("c1"), problem("is not running"), not_running),
        agent_reports(denied(), completed("c1"), problem("is not running"), not_running),
        agent_reports(done(), completed("c1"), problem("is not running"), not_running),
        agent_reports(done(), result_gated("c1"), problem("is not running"), not_running),
        agent_reports(begun(), put_out("c1", "half"), problem("is not running"), not_running),
        agent_reports(done(), put_out("c1", "half"), problem("is not running"), not_running),
        agent_reports(begun(), again("c1"), problem("is not running"), not_running),
        agent_reports(waits(), again("c1"), problem("is not running"), not_running),
        agent_reports(done(), again("c1"), problem("is not running"), not_running),
        agent_reports(runs(), approved(), problem("has no pending result"), no_result),
        agent_reports(done(), approved(), problem("has no pending result"), no_result),
        agent_reports(
            Scene::reported(asking("c1", "r1").into_iter().chain(running("c2"))),
            gated("c2", "r1"),
            Rejection::AlreadyAnswered("r1".into()),
            "r1 has been answered already",
        ),
    ];
    let strangers = [
        writes("c9", "l"),
        ready("c9", Gate::None),
        gated("c9", "r1"),
        completed("c9"),
        put_out("c9", "half"),
        again("c9"),
        result_gated("c9"),
        result_confirmed("c9", Decision::Denied),
    ];
    cases.extend(
        strangers.map(|event| {
            agent_reports(Scene::in_turn(), event, tool_call("c9", "is unknown"), "tool call c9 is unknown")
        }),
    );
    check(cases);
}

#[test]
fn a_call_that_is_told_of_again_has_the_name_that_it_began_with() {
    let renamed: [fn(&mut NewToolCall); 5] = [
        |call| call.name = "other".into(),
        |call| call.display_name = "Other".into(),
        |call| call.kind = Some(ToolKind::Edit),
        |call| call.language = None,
        |call| call.client = Some("client".into()),
    ];
    let cases = renamed.into_iter().flat_map(|rename| {
        let mut made_ready = ready("c1", Gate::None);
        let mut said_anew = restated("c1", None, ConfirmationReason::NotNeeded);
        if let ChatEvent::ToolCallReady { call, .. } = &mut made_ready {
            rename(call);
        }
        if let ChatEvent::ToolCallRestated { restated, .. } = &mut said_anew {
            rename(&mut restated.call);
        }
        let problem = || tool_call("c1", "has changed its name");
        [
            agent_reports(Scene::reported([started("c1")]), made_ready, problem(), "tool call c1 has changed its name"),
            agent_reports(Scene::reported(running("c1")), said_anew, problem(), "tool call c1 has changed its name"),
        ]
    });
    check(cases.collect());
}
