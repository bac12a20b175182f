//! Updates of tool calls, merged into the known call.
//!
//! Agents report their calls in any order: some request permission before they report the call, some start with a call
//! without its command, some only send changes. So every update is compared with the current call, and becomes the
//! steps that lead from there to the reported state. Late updates change nothing.

use bytes::Bytes;
use grove_agents::{AccumulatedOutput, ToolOutputPart, ToolStage, ToolUpdate};
use grove_core::*;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

use super::ReportTranslator;

/// The member that holds the title of a call that has not started to run.
const TITLE: &str = "title";
/// The depth to which objects are merged member by member; below, the newer value replaces the older.
const MERGED_DEPTH: usize = 8;
/// The time for comparing the lines of an edit; past it, the count is rough.
const DIFF_TIMEOUT: Duration = Duration::from_millis(100);

pub(super) fn upsert(update: &mut ToolUpdate, active: &ActiveTurn, out: &mut ReportTranslator<'_>) {
    let turn = &active.id;
    let known = active.tool_call(&update.call);
    let waiting_title = known.and_then(|call| call.extra.as_ref()?.get(TITLE)?.as_str().map(ToOwned::to_owned));
    let title = update.title.take().filter(|title| !title.is_empty());
    let call = match known {
        Some(known) => NewToolCall { extra: merged(known.extra.as_ref(), update.extra.take()), ..known.names() },
        None => begin(update),
    };
    let ran = match known.map(|call| &call.status) {
        None | Some(ToolCallStatus::Streaming) => {
            let extra = call.extra.clone();
            // An update of an existing call would be lost if it were not reported now.
            let adds =
                known.is_some_and(|known| call.extra != known.extra || title.is_some() && title != waiting_title);
            let says_more = adds
                || update.permission.is_some()
                || update.output.is_some()
                || update.result_text.is_some()
                || update.input.is_some()
                || !matches!(update.stage, None | Some(ToolStage::Pending));
            if known.is_none() {
                // The title of a call without content is shown when the call says what it does.
                let waiting = title.clone().filter(|_| !says_more);
                let extra = with_title(extra.clone(), waiting);
                out.chat(ChatEvent::ToolCallStarted {
                    turn: turn.clone(),
                    call: NewToolCall { extra, ..call.clone() },
                });
            }
            if !says_more {
                return;
            }
            let invocation_message = title.or(waiting_title).unwrap_or_else(|| call.display_name.clone());
            let input = update.input.take();
            out.chat(ChatEvent::ToolCallReady {
                turn: turn.clone(),
                call: NewToolCall { extra: without_title(extra), ..call.clone() },
                invocation_message: invocation_message.clone(),
                input: input.clone(),
                gate: if update.permission.is_some() { Gate::Follows } else { Gate::None },
            });
            ask(update, turn, &call, invocation_message.clone(), input, out);
            StartedCall { title: invocation_message, restated: false }
        }
        Some(ToolCallStatus::Running) => {
            let Some(known) = known else { return };
            let said = title.unwrap_or_else(|| known.invocation_message.clone());
            let input = update.input.take().filter(|input| known.input.as_ref() != Some(input));
            if update.permission.is_some() {
                ask(update, turn, &call, said.clone(), input, out);
                StartedCall { title: said, restated: false }
            } else if said != known.invocation_message || input.is_some() || call.extra != known.extra {
                let confirmed =
                    known.confirmed.as_ref().map_or(ConfirmationReason::NotNeeded, |confirmed| confirmed.by);
                let restated =
                    InvocationUpdate { call: call.clone(), invocation_message: said.clone(), input, confirmed };
                out.chat(ChatEvent::ToolCallRestated { turn: turn.clone(), restated: Box::new(restated) });
                StartedCall { title: said, restated: true }
            } else {
                StartedCall { title: said, restated: false }
            }
        }
        // The agent does not wait for an answer any longer: the call continues, or is dropped.
        Some(ToolCallStatus::PendingConfirmation(pending)) => {
            let verdict = match update.stage {
                Some(ToolStage::Completed) => Verdict { by: ConfirmationReason::Setting, ..Decision::Approved.into() },
                Some(ToolStage::Failed) => {
                    Verdict { by: ConfirmationReason::Setting, skipped: true, ..Decision::Denied.into() }
                }
                Some(ToolStage::Pending | ToolStage::Running) | None => return,
            };
            let over = verdict.decision == Decision::Denied;
            // It withdraws its request, which nobody has decided: the host does.
            let resolve = ClientCommand::ResolvePermission {
                chat: out.place.chat.id.clone(),
                turn: turn.clone(),
                question: PermissionTarget::Request(pending.id.clone()),
                verdict,
            };
            out.command(Command::Host(resolve.into()));
            if over {
                return;
            }
            StartedCall {
                title: known.map(|call| call.invocation_message.clone()).unwrap_or_default(),
                restated: false,
            }
        }
        Some(
            ToolCallStatus::Ready
            | ToolCallStatus::PendingResultConfirmation(_)
            | ToolCallStatus::Completed(_)
            | ToolCallStatus::Cancelled(_),
        ) => return,
    };
    go_on(update, turn, &call, known, ran, out);
}

/// A call that runs, or is waiting for permission.
struct StartedCall {
    title: String,
    /// Its output so far must be repeated.
    restated: bool,
}

/// Translates a call's output and its end.
fn go_on(
    update: &mut ToolUpdate,
    turn: &TurnId,
    call: &NewToolCall,
    known: Option<&ToolCall>,
    ran: StartedCall,
    out: &mut ReportTranslator<'_>,
) {
    let success = match update.stage {
        Some(ToolStage::Completed) => true,
        Some(ToolStage::Failed) => false,
        // A call that waits for permission has no output yet.
        Some(ToolStage::Pending | ToolStage::Running) | None if update.permission.is_some() => return,
        Some(ToolStage::Pending | ToolStage::Running) | None => {
            let before = known.and_then(|call| call.output.as_ref());
            let output = match (update.output.take(), update.result_text.take()) {
                (Some(gave), _) => Some(running_output(gave, out)),
                (None, Some(text)) if !before.is_some_and(shows_more_than_text) => {
                    Some(running_output(AccumulatedOutput { text, pieces: Vec::new() }, out))
                }
                (None, _) => before.cloned(),
            };
            if let Some(output) = output.filter(|output| ran.restated || before != Some(output)) {
                out.chat(ChatEvent::ToolCallOutput { turn: turn.clone(), call: call.id.clone(), output });
            }
            return;
        }
    };
    let (output, attached) = match update.output.take() {
        Some(gave) => {
            let attached = attach(gave.pieces, out);
            (Some(gave.text).filter(|text| !text.is_empty()), attached)
        }
        // Output that the update does not mention stays: above all a diff is not removed by a result.
        None => {
            let before = known.and_then(|call| call.output.clone());
            let before = before.unwrap_or(ToolOutput { text: String::new(), pieces: None, attached: Vec::new() });
            let result_text = update.result_text.take();
            let text = match shows_more_than_text(&before) && !before.text.is_empty() {
                true => Some(before.text),
                false => result_text.or(Some(before.text)),
            };
            (text.filter(|text| !text.is_empty()), before.attached)
        }
    };
    let extra = update.structured.take().map(|structured| {
        let mut extra = Extra::new();
        extra.insert("structuredContent".to_owned(), structured.into());
        extra
    });
    let result = ToolResult { success, past_tense_message: ran.title, output, attached, extra };
    let result = out.bounded(turn, result);
    out.chat(ChatEvent::ToolCallCompleted { turn: turn.clone(), call: call.id.clone(), result, run: None });
}

/// Says whether a call shows edits or bytes, which a text cannot replace.
fn shows_more_than_text(output: &ToolOutput) -> bool {
    !output.attached.is_empty()
}

fn begin(update: &mut ToolUpdate) -> NewToolCall {
    let named = update.name.take().filter(|name| !name.is_empty());
    let display_name = named.clone().unwrap_or_else(|| label(update.kind).to_owned());
    NewToolCall {
        id: update.call.clone(),
        name: named.unwrap_or_else(|| "tool".to_owned()),
        display_name,
        kind: update.kind,
        language: (update.kind == Some(ToolKind::Terminal)).then(|| "shellscript".to_owned()),
        client: None,
        extra: update.extra.take(),
    }
}

fn label(kind: Option<ToolKind>) -> &'static str {
    match kind {
        Some(ToolKind::Terminal) => "Run a command",
        Some(ToolKind::Read) => "Read",
        Some(ToolKind::Edit) => "Edit",
        Some(ToolKind::Delete) => "Delete",
        Some(ToolKind::Move) => "Move",
        Some(ToolKind::Search) => "Search",
        Some(ToolKind::Think) => "Think",
        Some(ToolKind::Fetch) => "Fetch",
        Some(ToolKind::SwitchMode) => "Switch the mode",
        None => "Use a tool",
    }
}

fn ask(
    update: &mut ToolUpdate,
    turn: &TurnId,
    call: &NewToolCall,
    invocation_message: String,
    input: Option<String>,
    out: &mut ReportTranslator<'_>,
) {
    if let Some(asked) = &mut update.permission {
        // The permission request shows the edits.
        let pieces = update.output.take().map(|gave| gave.pieces).unwrap_or_default();
        asked.request.edits = attach(pieces, out).into_iter().filter_map(edit).collect();
        let gated = ToolCallGate {
            call: call.id.clone(),
            request: asked.request.clone(),
            invocation_message: Some(invocation_message),
            input,
        };
        out.chat(ChatEvent::ToolCallGated { turn: turn.clone(), gated: Box::new(gated) });
    }
}

/// The output of a running call: its end, which is the interesting part while it grows.
fn running_output(gave: AccumulatedOutput, out: &mut ReportTranslator<'_>) -> ToolOutput {
    let most = out.place.limits.preview_bytes;
    let text = match gave.text.len() > most {
        true => gave.text[gave.text.ceil_char_boundary(gave.text.len() - most)..].to_owned(),
        false => gave.text,
    };
    ToolOutput { text, pieces: None, attached: attach(gave.pieces, out) }
}

fn attach(pieces: Vec<ToolOutputPart>, out: &mut ReportTranslator<'_>) -> Vec<ToolAttachment> {
    let attach = |piece| match piece {
        ToolOutputPart::Bytes { mime_type, bytes } => {
            ToolAttachment::Content(out.content(Bytes::from(bytes), Some(mime_type)))
        }
        ToolOutputPart::Edit { path, before, after } => {
            let (added, removed) = compare(before.as_deref(), after.as_deref());
            let mut side = |text: String| out.content(Bytes::from(text), Some("text/plain".to_owned()));
            let (before, after) = (before.map(&mut side), after.map(&mut side));
            ToolAttachment::Edit(FileChange { path, before, after, added, removed })
        }
    };
    pieces.into_iter().map(attach).collect()
}

fn edit(attached: ToolAttachment) -> Option<FileChange> {
    match attached {
        ToolAttachment::Edit(change) => Some(change),
        ToolAttachment::Content(_) => None,
    }
}

/// The numbers of added and of removed lines.
fn compare(before: Option<&str>, after: Option<&str>) -> (u64, u64) {
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(before, after);
    diff.iter_all_changes().fold((0, 0), |(added, removed), change| match change.tag() {
        ChangeTag::Insert => (added + 1, removed),
        ChangeTag::Delete => (added, removed + 1),
        ChangeTag::Equal => (added, removed),
    })
}

/// Merges new metadata of a call into the known ones, member by member.
fn merged(known: Option<&Extra>, said: Option<Extra>) -> Option<Extra> {
    let Some(said) = said else { return known.cloned() };
    let mut merged = known.cloned().unwrap_or_default();
    merge(&mut merged, said, MERGED_DEPTH);
    Some(merged)
}

fn merge(known: &mut Extra, said: Extra, depth: usize) {
    for (name, value) in said {
        match (known.get_mut(&name), value) {
            (Some(serde_json::Value::Object(mine)), serde_json::Value::Object(said)) if depth > 0 => {
                merge(mine, said, depth - 1);
            }
            (_, value) => drop(known.insert(name, value)),
        }
    }
}

fn with_title(extra: Option<Extra>, title: Option<String>) -> Option<Extra> {
    let Some(title) = title else { return extra };
    let mut extra = extra.unwrap_or_default();
    extra.insert(TITLE.to_owned(), title.into());
    Some(extra)
}

fn without_title(extra: Option<Extra>) -> Option<Extra> {
    let mut extra = extra?;
    extra.remove(TITLE);
    Some(extra)
}

#[cfg(test)]
mod tests {
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
        ToolUpdate {
            permission: Some(PermissionPrompt { request, answer: tokio::sync::oneshot::channel().0 }),
            ..update
        }
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
        let command = ClientCommand::ResolvePermission { chat: "main".into(), turn: TURN.into(), question, verdict };
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
        let edit =
            || ToolOutputPart::Edit { path: "/w/a".into(), before: Some("1\n".into()), after: Some("2\n".into()) };
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
        let call = after(vec![
            first,
            ToolUpdate { extra: said(json!({"acp": {"b": 2}})), input: Some("1".into()), ..update() },
        ]);
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
        for update in
            [asks(titled("ls")), ToolUpdate { stage: Some(ToolStage::Completed), output: gave("a"), ..update() }]
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
}
