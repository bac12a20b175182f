//! The call that updates of a tool call give.

use grove_agents::{AgentEvent, PermissionPrompt};
use serde_json::json;

use super::super::ReportTranslation;
use super::super::tests::{TURN, session_with, translated};
use super::*;

fn update() -> ToolUpdate {
    ToolUpdate::of("c".into())
}

fn titled(title: &str) -> ToolUpdate {
    ToolUpdate { title: Some(title.to_owned()), ..update() }
}

fn gave(text: &str) -> Option<AccumulatedOutput> {
    Some(AccumulatedOutput { text: text.to_owned(), pieces: vec![] })
}

fn asks(update: ToolUpdate) -> ToolUpdate {
    let request = PermissionRequest {
        id: "r".into(),
        kind: PermissionKind::Shell,
        path: None,
        full_command_text: Some("ls".to_owned()),
        intention: None,
        title: None,
        options: vec![],
        edits: vec![],
        editable: false,
    };
    ToolUpdate { permission: Some(PermissionPrompt::new(request, tokio::sync::oneshot::channel().0)), ..update }
}

/// The call after these updates, with an answer to each permission request.
fn after(updates: Vec<ToolUpdate>) -> ToolCall {
    let mut session = session_with(vec![]);
    for update in updates {
        let ReportTranslation { commands, .. } = translated(AgentEvent::Tool(Box::new(update)), &session);
        for command in commands {
            advance(&mut session, None, command, Timestamp(1)).unwrap();
        }
    }
    session.chats[0].active.as_ref().unwrap().tool_call(&"c".into()).unwrap().clone()
}

fn approve(session: &mut Session) {
    let question = PermissionTarget::Request("r".into());
    let verdict = Decision::Approved.into();
    let command = ClientCommand::ResolvePermission {
        chat: "main".into(),
        turn: TURN.into(),
        question,
        verdict,
        answered_by: None,
    };
    advance(session, None, HostCommand::from(command), Timestamp(1)).unwrap();
}

#[test]
fn a_call_that_was_never_announced_begins_with_whatever_is_said_of_it() {
    let call = after(vec![ToolUpdate { stage: Some(ToolStage::Completed), output: gave("x"), ..titled("ls") }]);
    assert_eq!(call.invocation_message, "ls");
    let ToolCallStatus::Completed(result) = call.status else { panic!("{:?}", call.status) };
    assert_eq!((result.success, result.output.as_deref()), (true, Some("x")));
}

#[test]
fn a_call_may_ask_before_it_is_announced() {
    let call = after(vec![asks(titled("ls"))]);
    assert!(matches!(call.status, ToolCallStatus::PendingConfirmation(_)));
    assert_eq!(call.invocation_message, "ls");
}

#[test]
fn a_call_may_ask_while_it_runs() {
    let running = ToolUpdate { stage: Some(ToolStage::Running), ..titled("bash") };
    let call = after(vec![running, asks(titled("ls"))]);
    assert!(matches!(call.status, ToolCallStatus::PendingConfirmation(_)));
    assert_eq!(call.invocation_message, "ls");
}

#[test]
fn a_call_that_lacks_its_command_waits_for_it_and_keeps_its_title() {
    let bare = ToolUpdate { stage: Some(ToolStage::Pending), ..titled("Terminal") };
    assert_eq!(after(vec![bare]).status, ToolCallStatus::Streaming);
    let bare = ToolUpdate { stage: Some(ToolStage::Pending), ..titled("Terminal") };
    let call = after(vec![bare, ToolUpdate { input: Some("{}".into()), ..update() }]);
    assert_eq!((call.status, call.invocation_message.as_str()), (ToolCallStatus::Running, "Terminal"));
    assert_eq!(call.extra.unwrap_or_default().get("title"), None, "the place where it waited is empty");
}

#[test]
fn a_call_that_gets_its_title_later_has_that_title() {
    let bare = ToolUpdate { stage: Some(ToolStage::Pending), ..titled("Terminal") };
    let call = after(vec![bare, titled("ls"), ToolUpdate { stage: Some(ToolStage::Running), ..update() }]);
    assert_eq!((call.status, call.invocation_message.as_str()), (ToolCallStatus::Running, "ls"));
}

#[test]
fn what_is_said_later_of_a_running_call_takes_the_place_of_what_was_said() {
    let running = || ToolUpdate { stage: Some(ToolStage::Running), output: gave("a"), ..titled("bash") };
    let call = after(vec![running(), ToolUpdate { input: Some("ls".into()), ..titled("ls") }]);
    assert_eq!((call.invocation_message.as_str(), call.input.as_deref()), ("ls", Some("ls")));
    assert_eq!(call.output.unwrap().text, "a", "its output is said again");
    let call = after(vec![running(), update()]);
    assert_eq!((call.invocation_message.as_str(), call.output.unwrap().text.as_str()), ("bash", "a"));
}

#[test]
fn an_update_without_a_status_changes_only_what_it_says() {
    let running = ToolUpdate { stage: Some(ToolStage::Running), input: Some("ls".into()), ..titled("ls") };
    let call = after(vec![running, ToolUpdate { output: gave("a"), ..update() }]);
    assert_eq!((call.status, call.input.as_deref()), (ToolCallStatus::Running, Some("ls")));
}

#[test]
fn a_result_without_output_is_what_was_put_out_before() {
    let running = ToolUpdate { stage: Some(ToolStage::Running), output: gave("a"), ..titled("ls") };
    let call = after(vec![running, ToolUpdate { stage: Some(ToolStage::Failed), ..update() }]);
    let ToolCallStatus::Completed(result) = call.status else { panic!("{:?}", call.status) };
    assert_eq!((result.success, result.output.as_deref()), (false, Some("a")));
}

#[test]
fn a_diff_stays_where_the_end_of_its_call_brings_a_result_and_no_content() {
    let edit = || ToolOutputPart::Edit { path: "/w/a".into(), before: Some("1\n".into()), after: Some("2\n".into()) };
    for text in ["", "Applied"] {
        let output = Some(AccumulatedOutput { text: text.to_owned(), pieces: vec![edit()] });
        let running = ToolUpdate { stage: Some(ToolStage::Running), output, ..titled("edit") };
        let more = ToolUpdate { result_text: Some("half".to_owned()), ..update() };
        let result_text = Some("The file was updated".to_owned());
        let done = ToolUpdate { stage: Some(ToolStage::Completed), result_text, ..update() };
        let call = after(vec![running, more, done]);
        let ToolCallStatus::Completed(result) = call.status else { panic!("{:?}", call.status) };
        assert!(matches!(&result.attached[..], [ToolAttachment::Edit(change)] if change.added == 1), "{result:?}");
        let expected = if text.is_empty() { "The file was updated" } else { text };
        assert_eq!(result.output.as_deref(), Some(expected));
    }
}

#[test]
fn the_words_of_a_result_are_shown_where_a_call_has_put_out_nothing_else() {
    let said = |text: &str| Some(text.to_owned());
    let running = ToolUpdate { stage: Some(ToolStage::Running), result_text: said("a"), ..titled("ls") };
    let done = ToolUpdate { stage: Some(ToolStage::Completed), result_text: said("ab"), ..update() };
    let call = after(vec![running, done]);
    let ToolCallStatus::Completed(result) = call.status else { panic!("{:?}", call.status) };
    assert_eq!(result.output.as_deref(), Some("ab"));
}

#[test]
fn what_comes_after_the_end_changes_nothing() {
    let done = || ToolUpdate { stage: Some(ToolStage::Completed), output: gave("a"), ..titled("ls") };
    let late = ToolUpdate { stage: Some(ToolStage::Running), output: gave("b"), ..titled("late") };
    assert_eq!(after(vec![done(), late]), after(vec![done()]));
}

#[test]
fn an_agent_that_does_not_wait_for_its_answer_has_decided_by_itself() {
    let done = ToolUpdate { stage: Some(ToolStage::Completed), output: gave("a"), ..update() };
    let call = after(vec![asks(titled("ls")), done]);
    assert!(matches!(call.status, ToolCallStatus::Completed(_)));
    assert_eq!(call.confirmed.unwrap().by, ConfirmationReason::Setting);
    let call = after(vec![asks(titled("ls")), ToolUpdate { stage: Some(ToolStage::Failed), ..update() }]);
    assert!(matches!(call.status, ToolCallStatus::Cancelled(c) if c.reason == CancelReason::Skipped));
}

#[test]
fn members_of_what_else_is_said_are_merged_one_by_one() {
    let said = |value: serde_json::Value| Some(value.as_object().cloned().unwrap());
    let first = ToolUpdate { extra: said(json!({"acp": {"a": 1, "b": 1}})), ..titled("x") };
    let call =
        after(vec![first, ToolUpdate { extra: said(json!({"acp": {"b": 2}})), input: Some("1".into()), ..update() }]);
    assert_eq!(call.extra, said(json!({"acp": {"a": 1, "b": 2}})));
}

#[test]
fn an_edit_is_stored_on_both_sides_and_its_lines_are_counted() {
    let pieces = vec![ToolOutputPart::Edit {
        path: "/w/a".into(),
        before: Some("1\n2\n3\n".into()),
        after: Some("1\n3\n4\n5\n".into()),
    }];
    let output = Some(AccumulatedOutput { text: String::new(), pieces });
    let done = ToolUpdate { stage: Some(ToolStage::Completed), output, ..titled("edit") };
    let report = translated(AgentEvent::Tool(Box::new(done)), &session_with(vec![]));
    assert_eq!(report.store.len(), 2);
    let last = report.commands.last();
    let Some(Command::Agent(EventReport::Chat { event: ChatEvent::ToolCallCompleted { result, .. }, .. })) = last
    else {
        panic!("{:?}", report.commands);
    };
    let [ToolAttachment::Edit(change)] = &result.attached[..] else { panic!("{:?}", result.attached) };
    assert_eq!((change.added, change.removed), (2, 1));
    assert_eq!(
        (&change.before.as_ref().unwrap().id, &change.after.as_ref().unwrap().id),
        (&report.store[0].0, &report.store[1].0)
    );
}

#[test]
fn the_output_of_a_running_call_is_bounded_to_its_end() {
    let long = format!("{}é", "x".repeat(9_000));
    let running = ToolUpdate { stage: Some(ToolStage::Running), output: gave(&long), ..titled("ls") };
    let text = after(vec![running]).output.unwrap().text;
    assert!(text.len() <= 4_096 && text.ends_with("xé"));
}

#[test]
fn a_call_goes_on_after_its_answer() {
    let mut session = session_with(vec![]);
    for update in [asks(titled("ls")), ToolUpdate { stage: Some(ToolStage::Completed), output: gave("a"), ..update() }]
    {
        let report = translated(AgentEvent::Tool(Box::new(update)), &session);
        for command in report.commands {
            advance(&mut session, None, command, Timestamp(1)).unwrap();
        }
        if session.chats[0].active.as_ref().unwrap().waits_for_person() {
            approve(&mut session);
        }
    }
    let call = session.chats[0].active.as_ref().unwrap().tool_call(&"c".into()).unwrap().clone();
    assert_eq!(call.confirmed.unwrap().by, ConfirmationReason::Person);
}
