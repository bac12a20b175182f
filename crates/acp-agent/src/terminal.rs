//! Commands of agents, shown as terminals of the editor.
//!
//! Such a terminal shows output and runs nothing: the command runs at the host, where its turn outlives the editor. An
//! editor announces with `terminal_output` in the `_meta` of its capabilities that it has such terminals. It is told of
//! them in the `_meta` of tool calls: `terminal_info` when the call is announced, then pieces of `terminal_output`, and
//! `terminal_exit`.

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Map, Value, json};

use crate::tool_call::{CallDraft, DraftContent};

/// The end of the shown output that is looked for in the new one.
const TAIL_BYTES: usize = 256;
/// Clears a terminal and what was scrolled out of it.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

/// Says which terminal a new call has.
pub(crate) fn info(call: &CallDraft, cwd: Option<&str>) -> acp::Meta {
    let mut info = json!({"terminal_id": call.id});
    if let Some(cwd) = cwd {
        info["cwd"] = cwd.into();
    }
    member("terminal_info", info)
}

/// The output since a call was told, if there is some.
pub(crate) fn output(told: Option<&CallDraft>, now: &CallDraft) -> Option<acp::Meta> {
    let data = added(&told.map(text).unwrap_or_default(), &text(now));
    (!data.is_empty()).then(|| member("terminal_output", json!({"terminal_id": now.id, "data": data})))
}

/// The end of the command, if the call ends now.
pub(crate) fn exit(told: Option<&CallDraft>, now: &CallDraft) -> Option<acp::Meta> {
    let is_over =
        |call: &CallDraft| matches!(call.status, acp::ToolCallStatus::Completed | acp::ToolCallStatus::Failed);
    if !is_over(now) || told.is_some_and(is_over) {
        return None;
    }
    let named = |name: &str| now.raw_output.as_ref().and_then(|output| output.get(name)?.as_u64());
    let code = named("exitCode").or_else(|| named("exit_code"));
    Some(member("terminal_exit", json!({"terminal_id": now.id, "exit_code": code, "signal": null})))
}

/// The contents of a call beside its output.
pub(crate) fn other_contents(call: &CallDraft) -> Vec<DraftContent> {
    call.content.iter().filter(|content| !matches!(content, DraftContent::Text(_))).cloned().collect()
}

/// The content that stands for a call's terminal.
pub(crate) fn content(call: &CallDraft) -> acp::ToolCallContent {
    acp::ToolCallContent::Terminal(acp::Terminal::new(acp::TerminalId::new(call.id.as_str())))
}

fn text(call: &CallDraft) -> String {
    let texts = call.content.iter().filter_map(|content| match content {
        DraftContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The text to add to a terminal that shows `told`, so that it shows `now`.
///
/// The host sends only the end of a running command's output. If nothing in it was shown, the terminal begins again.
fn added(told: &str, now: &str) -> String {
    if let Some(added) = now.strip_prefix(told) {
        return added.to_owned();
    }
    let tail = &told[told.ceil_char_boundary(told.len().saturating_sub(TAIL_BYTES))..];
    match now.rfind(tail) {
        Some(at) => now[at + tail.len()..].to_owned(),
        None => format!("{CLEAR}{now}"),
    }
}

fn member(name: &str, value: Value) -> acp::Meta {
    let mut meta = Map::new();
    meta.insert(name.to_owned(), value);
    meta
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_only_what_it_does_not_show() {
        assert_eq!(added("", "a\n"), "a\n");
        assert_eq!(added("a\n", "a\nb\n"), "b\n");
        assert_eq!(added("a\n", "a\n"), "");
        let long: String = (0..400).map(|line| format!("ä {line}\n")).collect();
        let end = |bytes: usize| &long[long.ceil_char_boundary(long.len() - bytes)..];
        let (window, next) = (end(1_000), end(700));
        assert_eq!(added(window, &format!("{next}more\n")), "more\n", "only the end of a long output is sent");
        assert_eq!(added(window, &format!("{long}more\n")), "more\n", "the whole output comes at the end");
        assert_eq!(added(window, "else"), format!("{CLEAR}else"), "nothing of it was shown");
        assert_eq!(added("shown", ""), CLEAR);
    }
}
