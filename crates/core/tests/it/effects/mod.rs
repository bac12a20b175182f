//! The effect of each event; an event that does not fit changes nothing.

mod session;
mod tool_calls;

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

fn waiting_call() -> ToolCall {
    Scene::reported(running("c1")).call("c1").clone()
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
    let answered = |outcome, answers| ChatEvent::InputAnswered {
        turn: turn(),
        request: "q1".into(),
        outcome,
        answers,
        answered_by: None,
    };
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
        answered_by: None,
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
