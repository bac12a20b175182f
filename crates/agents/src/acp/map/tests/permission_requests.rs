//! Permission requests, and the answers to them.

use super::*;

fn asked(call: Value) -> (PermissionRequest, ToolUpdate) {
    let params = json!({"sessionId": "s", "toolCall": call, "options": [
        {"optionId": "a", "name": "Yes", "kind": "allow_once"},
        {"optionId": "A", "name": "Always", "kind": "allow_always"},
        {"optionId": "r", "name": "No", "kind": "reject_once"},
        {"optionId": "R", "name": "Never", "kind": "reject_always"},
        {"optionId": "x", "name": "Perhaps", "kind": "defer"},
    ]});
    let asked = permission(params, "q".into(), oneshot::channel().0).unwrap();
    assert_eq!((&*asked.session.0, asked.offered.len()), ("s", 4), "of the fifth nobody knows whether it allows");
    let mut update = asked.update;
    (update.permission.take().unwrap().request, *update)
}

#[test]
fn a_permission_request_tells_of_its_call_too() {
    let (request, update) = asked(json!({
        "toolCallId": "c", "title": "List", "kind": "execute", "status": "pending", "rawInput": {"command": "ls"},
    }));
    assert_eq!((update.call.as_str(), update.title.as_deref()), ("c", Some("List")));
    assert_eq!((update.stage, update.input.as_deref()), (Some(ToolStage::Pending), Some(r#"{"command":"ls"}"#)));
    assert_eq!((request.id.as_str(), request.kind), ("q", PermissionKind::Shell));
    assert_eq!((request.title.as_deref(), request.full_command_text.as_deref()), (Some("List"), Some("ls")));
    assert!(!request.editable);
}

#[test]
fn a_tools_name_and_its_options_are_one_line_and_change_no_other_text() {
    let forged = "Read\n? Allow Bash?\u{202e}\u{1b}[2J\u{9b}";
    let (_, update) = asked(json!({"toolCallId": "c", "name": forged, "title": "a\u{2066}b\r\nc\u{1b}[2J"}));
    assert_eq!(update.name.as_deref(), Some("Read ? Allow Bash?[2J"));
    assert_eq!(update.title.as_deref(), Some("ab\nc[2J"), "a command may have several lines");
    let option = json!({"optionId": "o", "name": forged, "kind": "allow_once"});
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": [option]});
    let mut asked = permission(params, "q".into(), oneshot::channel().0).unwrap();
    let request = asked.update.permission.take().unwrap().request;
    assert_eq!(request.options[0].label, "Read ? Allow Bash?[2J");
}

#[test]
fn all_four_kinds_of_answer_are_offered() {
    let (request, _) = asked(json!({"toolCallId": "c"}));
    let option = |id: &str, label: &str, allows: bool, lasting: bool| PermissionOption {
        id: id.to_owned(),
        label: label.to_owned(),
        allows,
        lasting,
    };
    let wanted = [
        option("a", "Yes", true, false),
        option("A", "Always", true, true),
        option("r", "No", false, false),
        option("R", "Never", false, true),
    ];
    assert_eq!(request.options, wanted);
}

#[test]
fn what_is_asked_follows_from_the_kind_of_tool() {
    for (said, kind) in [
        ("execute", PermissionKind::Shell),
        ("edit", PermissionKind::Write),
        ("delete", PermissionKind::Write),
        ("move", PermissionKind::Write),
        ("read", PermissionKind::Read),
        ("search", PermissionKind::Read),
        ("fetch", PermissionKind::Url),
        ("think", PermissionKind::Mcp),
        ("switch_mode", PermissionKind::Mcp),
        ("other", PermissionKind::Mcp),
    ] {
        assert_eq!(asked(json!({"toolCallId": "c", "kind": said})).0.kind, kind, "{said}");
    }
    assert_eq!(asked(json!({"toolCallId": "c"})).0.kind, PermissionKind::Mcp);
}

#[test]
fn the_command_that_is_asked_about_can_be_taken_for_no_other() {
    let command = |input: Value| asked(json!({"toolCallId": "c", "rawInput": input})).0.full_command_text;
    assert_eq!(command(json!({"command": "a b"})).as_deref(), Some("a b"));
    assert_eq!(command(json!({"cmd": "a b"})).as_deref(), Some("a b"));
    let words = json!({"command": ["/bin/sh", "-c", "echo 'x' && ls", ""]});
    assert_eq!(command(words).as_deref(), Some(r"/bin/sh -c 'echo '\''x'\'' && ls' ''"));
    assert_eq!(command(json!({"commands": ["a", "b"]})).as_deref(), Some("a\nb"));
    for none in [json!({}), json!({"command": ["a", 1]}), json!({"command": ""}), json!("a")] {
        assert_eq!(command(none.clone()), None, "{none}");
    }
}

#[test]
fn the_path_or_address_that_is_asked_about_is_found() {
    let path = |call: Value| {
        let mut said = json!({"toolCallId": "c"});
        said.as_object_mut().unwrap().extend(call.as_object().unwrap().clone());
        asked(said).0.path
    };
    assert_eq!(path(json!({"locations": [{"path": "/a"}], "rawInput": {"path": "/b"}})).as_deref(), Some("/a"));
    for name in ["path", "file_path", "filePath", "notebook_path"] {
        assert_eq!(path(json!({"locations": [], "rawInput": {name: "/b"}})).as_deref(), Some("/b"), "{name}");
    }
    assert_eq!(path(json!({"kind": "fetch", "rawInput": {"url": "https://x"}})).as_deref(), Some("https://x"));
    assert_eq!(path(json!({"kind": "read", "rawInput": {"url": "https://x"}})), None);
}

#[test]
fn a_permission_request_that_lacks_something_says_what() {
    let whole = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []});
    assert!(permission(whole.clone(), "q".into(), oneshot::channel().0).is_ok());
    for name in ["sessionId", "toolCall", "options"] {
        let mut params = whole.clone();
        params.as_object_mut().unwrap().remove(name);
        let error = permission(params, "q".into(), oneshot::channel().0).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
    let error = permission(json!(7), "q".into(), oneshot::channel().0).unwrap_err();
    assert!(error.contains("sessionId"), "{error}");
}

fn chosen(offered: &[(&str, acp::PermissionOptionKind)], verdict: Option<Verdict>) -> Option<String> {
    let offered: Vec<_> = offered
        .iter()
        .map(|(id, kind)| acp::PermissionOption::new(acp::PermissionOptionId::new(*id), *id, *kind))
        .collect();
    match outcome(&offered, verdict.as_ref()) {
        acp::RequestPermissionOutcome::Selected(selected) => Some(selected.option_id.to_string()),
        acp::RequestPermissionOutcome::Cancelled => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_verdict_chooses_the_mildest_option_of_its_decision() {
    use acp::PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let all = [("A", AllowAlways), ("R", RejectAlways), ("a", AllowOnce), ("r", RejectOnce)];
    let choose = |decision: Decision| chosen(&all, Some(decision.into()));
    assert_eq!(choose(Decision::Approved).as_deref(), Some("a"));
    assert_eq!(choose(Decision::Denied).as_deref(), Some("r"));
    let lasting = [("A", AllowAlways), ("R", RejectAlways)];
    assert_eq!(chosen(&lasting, Some(Decision::Approved.into())).as_deref(), Some("A"));
    assert_eq!(chosen(&lasting, Some(Decision::Denied.into())).as_deref(), Some("R"));
}

#[test]
fn the_option_that_the_person_chose_is_chosen() {
    use acp::PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
    let all = [("a", AllowOnce), ("A", AllowAlways), ("r", RejectOnce)];
    let named = |decision: Decision, id: &str| {
        let verdict = Verdict { option: Some(id.to_owned()), ..decision.into() };
        chosen(&all, Some(verdict))
    };
    assert_eq!(named(Decision::Approved, "A").as_deref(), Some("A"));
    assert_eq!(named(Decision::Approved, "gone").as_deref(), Some("a"));
    assert_eq!(named(Decision::Denied, "A").as_deref(), Some("r"), "never one of the opposite decision");
}

#[test]
fn a_verdict_without_a_fitting_option_cancels() {
    use acp::PermissionOptionKind::{AllowOnce, RejectOnce};
    assert_eq!(chosen(&[("a", AllowOnce)], Some(Decision::Denied.into())), None);
    assert_eq!(chosen(&[("r", RejectOnce)], Some(Decision::Approved.into())), None);
    assert_eq!(chosen(&[("a", AllowOnce)], None), None, "the turn was cancelled");
}

// The end.
