use proptest::prelude::*;

use super::*;

const SEEN: Attendance = Attendance { is_attended: true, is_read: true };
const UNSEEN: Attendance = Attendance { is_attended: false, is_read: false };
/// 2026-03-01 at noon UTC.
const NOON: u64 = 1_772_366_400_000;
const HOUR: u64 = 60 * 60 * 1_000;

fn notice(kind: NoticeKind, at: u64) -> Notice {
    Notice {
        kind,
        session: "s".into(),
        uri: "ahp-session:/s".to_owned(),
        chat: "main".into(),
        title: "title".to_owned(),
        text: None,
        at,
    }
}

fn asked(request: &str, at: u64) -> Happening {
    Happening::Asked { request: request.into(), notice: notice(NoticeKind::Waiting, at) }
}

fn answered(request: &str) -> Happening {
    Happening::Answered { session: "s".into(), chat: "main".into(), request: request.into() }
}

fn phone(quiet: Option<&str>) -> NoticeTarget {
    let quiet = quiet.map(|quiet| quiet.parse().unwrap());
    NoticeTarget { id: TargetId::Device("phone".to_owned()), events: KindSet::ALL, quiet }
}

/// The number of times that somebody is told, and of closings.
fn count(steps: &[Step]) -> (usize, usize) {
    let told = steps.iter().filter(|step| matches!(step, Step::Tell(..))).count();
    (told, steps.len() - told)
}

#[test]
fn a_question_that_is_answered_at_once_is_not_told() {
    let mut planner = Planner::default();
    planner.note(asked("a", NOON), NOON, false);
    assert_eq!(planner.next(), Some(NOON + 3_000));
    assert_eq!(planner.due(NOON + 2_999, &[phone(None)], |_| UNSEEN), []);
    planner.note(answered("a"), NOON + 2_999, false);
    assert_eq!(planner.next(), None);
    assert_eq!(planner.due(NOON + HOUR, &[phone(None)], |_| UNSEEN), []);
}

#[test]
fn a_question_is_told_once_and_closed_by_its_answer() {
    let mut planner = Planner::default();
    planner.note(asked("a", NOON), NOON, false);
    planner.note(asked("b", NOON + 1_000), NOON + 1_000, false);
    let steps = planner.due(NOON + 3_000, &[phone(None)], |_| UNSEEN);
    assert_eq!(count(&steps), (1, 0), "both questions are one notification: {steps:?}");
    // The draft of an answer says again that a question waits.
    planner.note(asked("a", NOON), NOON + 4_000, false);
    assert_eq!(planner.due(NOON + HOUR, &[phone(None)], |_| UNSEEN), []);
    planner.note(answered("a"), NOON + HOUR, false);
    assert_eq!(planner.due(NOON + HOUR, &[phone(None)], |_| UNSEEN), []);
    planner.note(answered("b"), NOON + HOUR, false);
    let closed = planner.due(NOON + HOUR, &[phone(None)], |_| UNSEEN);
    let id = TargetId::Device("phone".to_owned());
    assert_eq!(closed, [Step::Close(id, "s".into(), NoticeKind::Waiting)]);
}

#[test]
fn a_person_who_has_the_session_open_has_a_while_to_answer() {
    let mut planner = Planner::default();
    planner.note(asked("a", NOON), NOON, true);
    assert_eq!(planner.due(NOON + 19_999, &[phone(None)], |_| SEEN), []);
    assert_eq!(count(&planner.due(NOON + 20_000, &[phone(None)], |_| SEEN)), (1, 0));
}

#[test]
fn the_end_of_a_turn_is_told_unless_somebody_has_read_it_or_goes_on() {
    let ended = |planner: &mut Planner| planner.note(Happening::Ended(notice(NoticeKind::Finished, NOON)), NOON, false);
    let told = |planner: &mut Planner, attendance| count(&planner.due(NOON + HOUR, &[phone(None)], |_| attendance));
    let mut planner = Planner::default();
    ended(&mut planner);
    assert_eq!(told(&mut planner, UNSEEN), (1, 0));
    let mut planner = Planner::default();
    ended(&mut planner);
    assert_eq!(told(&mut planner, SEEN), (0, 0));
    for settled in [
        Happening::Read("s".into()),
        Happening::Began { session: "s".into(), chat: "main".into() },
        Happening::Removed("s".into()),
    ] {
        let mut planner = Planner::default();
        ended(&mut planner);
        planner.note(settled, NOON, false);
        assert_eq!(told(&mut planner, UNSEEN), (0, 0));
    }
    let mut planner = Planner::default();
    ended(&mut planner);
    planner.note(Happening::Began { session: "s".into(), chat: "another".into() }, NOON, false);
    assert_eq!(told(&mut planner, UNSEEN), (1, 0));
}

#[test]
fn in_quiet_hours_nobody_is_told_and_afterwards_what_still_waits() {
    let night = phone(Some("22:00-07:00 UTC"));
    let (evening, morning) = (NOON + 11 * HOUR, NOON + 19 * HOUR);
    let mut planner = Planner::default();
    planner.note(asked("a", evening), evening, false);
    assert_eq!(planner.due(evening + 3_000, std::slice::from_ref(&night), |_| UNSEEN), []);
    assert_eq!(planner.next(), Some(morning));
    assert_eq!(planner.due(morning - 1, std::slice::from_ref(&night), |_| UNSEEN), []);
    assert_eq!(count(&planner.due(morning, std::slice::from_ref(&night), |_| UNSEEN)), (1, 0));

    let mut planner = Planner::default();
    planner.note(asked("a", evening), evening, false);
    planner.due(evening + 3_000, std::slice::from_ref(&night), |_| UNSEEN);
    planner.note(answered("a"), evening + HOUR, false);
    assert_eq!(planner.due(morning, &[night], |_| UNSEEN), []);
    assert_eq!(planner.next(), None);
}

#[test]
fn each_party_has_its_own_events_and_quiet_hours() {
    let webhook = NoticeTarget { id: TargetId::Webhook, events: KindSet::ALL, quiet: None };
    let deaf = NoticeTarget { id: TargetId::Device("deaf".to_owned()), events: KindSet::NONE, quiet: None };
    let targets = [webhook, deaf, phone(Some("00:00-23:59 UTC"))];
    let mut planner = Planner::default();
    planner.note(asked("a", NOON), NOON, false);
    let steps = planner.due(NOON + 3_000, &targets, |_| UNSEEN);
    assert!(matches!(steps.as_slice(), [Step::Tell(TargetId::Webhook, _)]), "{steps:?}");
}

#[test]
fn a_party_is_not_told_more_often_than_its_rate_and_nothing_is_lost() {
    let mut planner = Planner::default();
    let (mut told, mut now) = (0, NOON);
    for number in 0..40_u64 {
        let mut one = notice(NoticeKind::Waiting, now);
        one.session = format!("s{number}").as_str().into();
        planner.note(Happening::Asked { request: "a".into(), notice: one }, now, false);
        now += 3_000;
        told += count(&planner.due(now, &[phone(None)], |_| UNSEEN)).0;
    }
    assert_eq!(told, MAX_RATE);
    told += count(&planner.due(now + 2 * millis(RATE_TIME), &[phone(None)], |_| UNSEEN)).0;
    assert_eq!(told, 40);
}

proptest! {
    /// Whatever happens in whichever order: the plan is bounded, and who is told was not told the same twice in a row
    /// without a reason.
    #[test]
    fn the_plan_is_bounded_and_ends(steps in prop::collection::vec((0..8_u8, 0..4_u8, 0..30_000_u64), 0..200)) {
        let mut planner = Planner::default();
        let (mut now, mut asked_count, mut told) = (NOON, 0, 0);
        for (what, which, later) in steps {
            now += later;
            let name = format!("r{which}");
            match what {
                0..=2 => {
                    asked_count += 1;
                    planner.note(asked(&name, now), now, which == 0);
                }
                3 => planner.note(answered(&name), now, false),
                4 => {
                    asked_count += 1;
                    planner.note(Happening::Ended(notice(NoticeKind::Failed, now)), now, false);
                }
                5 => planner.note(Happening::Read("s".into()), now, false),
                _ => told += count(&planner.due(now, &[phone(None)], |_| UNSEEN)).0,
            }
            prop_assert!(planner.open.len() <= 2);
        }
        told += count(&planner.due(now + HOUR, &[phone(None)], |_| UNSEEN)).0;
        prop_assert!(told <= asked_count);
        prop_assert!(planner.next().is_none_or(|next| next > now));
    }
}
