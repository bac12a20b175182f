//! Answers that hold for later requests are remembered with the session.

use grove_core::*;

use crate::scene::*;

/// A request for a command, with answers for this time and for all times.
fn about(id: &str, command: &str) -> PermissionRequest {
    let option = |id: &str, allows, lasting| PermissionOption { id: id.into(), label: id.into(), allows, lasting };
    PermissionRequest {
        full_command_text: Some(command.into()),
        options: vec![
            option("once", true, false),
            option("always", true, true),
            option("not now", false, false),
            option("never", false, true),
        ],
        ..permission(id)
    }
}

fn choosing(option: &str) -> Verdict {
    let decision = match option {
        "once" | "always" => Decision::Approved,
        _ => Decision::Denied,
    };
    Verdict { option: Some(option.into()), ..decision.into() }
}

/// Asks for permission in a call of its own, answers it, and returns the resulting changes.
fn answered(scene: &mut Scene, request: PermissionRequest, verdict: Verdict) -> Vec<Change> {
    let id = request.id.clone();
    let call = format!("call of {id}");
    for event in [started(&call), ready(&call, Gate::Follows), gated_by(&call, request)] {
        scene.report(event).unwrap();
    }
    scene.act(resolve_with(id.as_str(), verdict)).unwrap()
}

/// The remembered answers with their subjects.
fn remembered(scene: &Scene) -> Vec<(&str, &str)> {
    let known = &scene.session.details.remembered;
    known.iter().map(|known| (known.about.as_str(), known.option.id.as_str())).collect()
}

#[test]
fn a_lasting_answer_is_remembered_behind_its_own_echo() {
    let mut scene = Scene::in_turn();
    let changes = answered(&mut scene, about("r1", "ls"), choosing("always"));
    assert!(matches!(&changes[0], Change::Chat(_, _, ChatEvent::ToolCallConfirmed { .. })), "{changes:?}");
    let told = SessionEvent::DetailsChanged(Box::new(scene.session.details.clone()));
    assert_eq!(session_events(&changes)[0], told);
    let [known] = &scene.session.details.remembered[..] else { panic!("{:?}", scene.session.details) };
    assert_eq!(
        *known,
        RememberedPermission {
            kind: PermissionKind::Shell,
            about: "ls".into(),
            option: about("r1", "ls").options.remove(1)
        }
    );
    assert!(known.answers(&about("r2", "ls")));
    assert!(!known.answers(&about("r2", "ls -a")), "nobody but the agent knows what resembles it");
    assert!(!known.answers(&PermissionRequest { kind: PermissionKind::Read, ..about("r2", "ls") }));
}

#[test]
fn an_answer_is_remembered_once_and_the_newest_counts() {
    let mut scene = Scene::in_turn();
    for (request, command, option) in
        [("r1", "ls", "always"), ("r2", "make", "never"), ("r3", "ls", "always"), ("r4", "ls", "never")]
    {
        answered(&mut scene, about(request, command), choosing(option));
    }
    assert_eq!(remembered(&scene), [("make", "never"), ("ls", "never")]);
    answered(&mut scene, about("r5", "ls"), choosing("once"));
    assert_eq!(remembered(&scene), [("make", "never"), ("ls", "never")], "for this time only, so the other stands");
}

#[test]
fn what_is_known_of_a_session_otherwise_stays_when_an_answer_is_remembered() {
    let warned = SessionDetails { warnings: vec!["Two agents work here".into()], ..SessionDetails::default() };
    let mut scene = Scene::in_turn().after_host(SessionEvent::DetailsChanged(Box::new(warned.clone())));
    answered(&mut scene, about("r1", "ls"), choosing("always"));
    let remembered = scene.session.details.remembered.clone();
    assert_eq!(remembered.len(), 1);
    assert_eq!(scene.session.details, SessionDetails { remembered, ..warned });
}

#[test]
fn nothing_is_remembered_of_an_answer_for_this_time_of_a_setting_or_about_nothing() {
    let by_setting = |option| Verdict { by: ConfirmationReason::Setting, ..choosing(option) };
    let nothing = |text: Option<&str>| PermissionRequest {
        full_command_text: text.map(Into::into),
        path: None,
        title: None,
        ..about("r1", "")
    };
    for (request, verdict) in [
        (about("r1", "ls"), choosing("once")),
        (about("r1", "ls"), choosing("not now")),
        (about("r1", "ls"), Decision::Approved.into()),
        (about("r1", "ls"), by_setting("always")),
        (about("r1", "ls"), by_setting("never")),
        (nothing(None), choosing("always")),
        (nothing(Some("")), choosing("always")),
    ] {
        let mut scene = Scene::in_turn();
        let changes = answered(&mut scene, request, verdict.clone());
        assert_eq!(scene.session.details, SessionDetails::default(), "{verdict:?}");
        let tells = |event: &SessionEvent| matches!(event, SessionEvent::DetailsChanged(_));
        assert!(!session_events(&changes).iter().any(tells), "{changes:?}");
    }
}

#[test]
fn an_answer_to_something_very_long_is_not_remembered() {
    for (bytes, is_remembered) in [(MAX_REMEMBERED_SUBJECT_BYTES, true), (MAX_REMEMBERED_SUBJECT_BYTES + 1, false)] {
        let mut scene = Scene::in_turn();
        answered(&mut scene, about("r1", &"x".repeat(bytes)), choosing("always"));
        assert_eq!(scene.session.details.remembered.len(), usize::from(is_remembered), "{bytes} bytes");
    }
}

#[test]
fn an_answer_is_about_the_command_else_the_path_else_the_question() {
    let request = |command: Option<&str>, path: Option<&str>, title: Option<&str>| PermissionRequest {
        kind: PermissionKind::Write,
        full_command_text: command.map(Into::into),
        path: path.map(Into::into),
        title: title.map(Into::into),
        ..permission("r1")
    };
    for (request, subject) in [
        (request(Some("ls"), Some("/a"), Some("May I?")), Some("ls")),
        (request(None, Some("/a"), Some("May I?")), Some("/a")),
        (request(None, None, Some("May I?")), Some("May I?")),
        (request(None, None, None), None),
    ] {
        assert_eq!(RememberedPermission::subject(&request), subject);
    }
}

#[test]
fn leave_for_a_command_that_was_not_said_is_leave_for_no_other() {
    let mut scene = Scene::in_turn();
    let bare = PermissionRequest {
        kind: PermissionKind::Shell,
        full_command_text: None,
        path: Some("/work".into()),
        title: Some("Run a command".into()),
        ..about("r1", "")
    };
    answered(&mut scene, bare, choosing("always"));
    assert_eq!(remembered(&scene), []);
}

#[test]
fn past_the_bound_the_oldest_answer_is_forgotten() {
    let option = about("r", "").options.remove(1);
    let known = |number: usize| RememberedPermission {
        kind: PermissionKind::Shell,
        about: format!("command {number}"),
        option: option.clone(),
    };
    let full = SessionDetails {
        remembered: (0..MAX_REMEMBERED_PERMISSIONS).map(known).collect(),
        ..SessionDetails::default()
    };
    let given = || Scene::in_turn().after_host(SessionEvent::DetailsChanged(Box::new(full.clone())));

    let mut scene = given();
    answered(&mut scene, about("r1", "one more"), choosing("always"));
    let left = remembered(&scene);
    assert_eq!(left.len(), MAX_REMEMBERED_PERMISSIONS);
    assert_eq!((left[0].0, left[MAX_REMEMBERED_PERMISSIONS - 1].0), ("command 1", "one more"));

    let mut scene = given();
    answered(&mut scene, about("r1", "command 7"), choosing("never"));
    let left = remembered(&scene);
    assert_eq!(left.len(), MAX_REMEMBERED_PERMISSIONS);
    assert_eq!(
        (left[0].0, left[MAX_REMEMBERED_PERMISSIONS - 1]),
        ("command 0", ("command 7", "never")),
        "nothing had to go"
    );
}
