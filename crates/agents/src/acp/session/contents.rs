//! The content that the tool calls of a running turn have shown.
//!
//! Agents send content once and do not repeat it, neither when they ask for permission nor when the call ends. They
//! refer to terminals by ids, and only this side has the output. So the content of each call is kept here while its
//! turn runs, and completes the updates that leave it out.

use std::collections::HashMap;

use grove_core::ToolCallId;

use crate::acp::map;
use crate::agent::{AccumulatedOutput, ToolOutputPart, ToolStage, ToolUpdate};

/// The number of calls of a turn whose content is kept. That of further ones is shown as it comes.
pub const MOST_CALLS: usize = 1_024;
/// The bytes of content kept per turn. Larger content is shown as it comes, and not completed later.
pub const MOST_BYTES: usize = 16 << 20;
/// The bytes of a running call's output that are shown: its end.
pub const LIVE_BYTES: usize = 16 << 10;

/// A terminal's text so far, and whether its command has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TerminalText {
    pub(crate) text: String,
    pub(crate) ended: bool,
}

/// The content of a turn's calls.
#[derive(Debug, Default)]
pub(super) struct CallContents {
    calls: HashMap<ToolCallId, CallContent>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct CallContent {
    gave: AccumulatedOutput,
    terminals: Vec<String>,
    /// The output of a terminal that the agent runs itself.
    agent_output: String,
    is_watched: bool,
    is_over: bool,
}

/// Gives the text of a terminal by its id.
pub(super) type TerminalTexts<'a> = &'a dyn Fn(&str) -> Option<TerminalText>;

impl CallContents {
    /// Completes an update with the call's earlier content. `true`: the call shows a terminal that is not watched yet.
    pub(super) fn complete(&mut self, update: &mut ToolUpdate, terminal_texts: TerminalTexts<'_>) -> bool {
        if self.calls.len() >= MOST_CALLS && !self.calls.contains_key(&update.call) {
            return false;
        }
        let content = self.calls.entry(update.call.clone()).or_default();
        let terminals = map::terminals(update);
        for output in map::take_terminal_outputs(update) {
            append_bounded(&mut content.agent_output, &output, &mut self.bytes);
        }
        let is_mentioned = update.output.is_some() || !terminals.is_empty();
        if is_mentioned {
            if update.stage != Some(ToolStage::Failed) {
                keep_edits(&content.gave, update.output.as_mut());
            }
            let before = size(&content.gave);
            content.gave = update.output.clone().unwrap_or_default();
            content.terminals = terminals;
            let now = self.bytes - before + size(&content.gave);
            if now > MOST_BYTES {
                content.gave = AccumulatedOutput::default();
                self.bytes -= before;
            } else {
                self.bytes = now;
            }
        }
        let ends = matches!(update.stage, Some(ToolStage::Completed | ToolStage::Failed));
        if is_mentioned || ends || update.permission.is_some() {
            let gave = update.output.take().unwrap_or_else(|| content.gave.clone());
            let (whole, _) = content.with_terminals(gave, terminal_texts);
            update.output = Some(whole).filter(|whole| !is_empty(whole));
        }
        if update.output.is_some() || !is_empty(&content.gave) || !content.agent_output.is_empty() {
            update.result_text = None;
        }
        content.is_over |= ends;
        let is_live = !content.terminals.is_empty() && !content.is_over;
        is_live && !std::mem::replace(&mut content.is_watched, true)
    }

    /// The present content of a running call, and whether that is the last of it; `None` if the call is over.
    pub(super) fn live(
        &self,
        call: &ToolCallId,
        terminal_texts: TerminalTexts<'_>,
    ) -> Option<(AccumulatedOutput, bool)> {
        let content = self.calls.get(call).filter(|content| !content.is_over)?;
        let (mut gave, ended) = content.with_terminals(content.gave.clone(), terminal_texts);
        if gave.text.len() > LIVE_BYTES {
            gave.text.drain(..gave.text.ceil_char_boundary(gave.text.len() - LIVE_BYTES));
        }
        Some((gave, ended))
    }

    /// Stops watching a call: the next terminal that it shows is watched.
    pub(super) fn unwatched(&mut self, call: &ToolCallId) {
        if let Some(content) = self.calls.get_mut(call) {
            content.is_watched = false;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl CallContent {
    /// The content followed by the text of its terminals, and whether all their commands have ended.
    fn with_terminals(
        &self,
        mut gave: AccumulatedOutput,
        terminal_texts: TerminalTexts<'_>,
    ) -> (AccumulatedOutput, bool) {
        let mut ended = true;
        let mut push = |text: &str| {
            if !gave.text.is_empty() && !gave.text.ends_with('\n') && !text.is_empty() {
                gave.text.push('\n');
            }
            gave.text.push_str(text);
        };
        for TerminalText { text, ended: this } in self.terminals.iter().filter_map(|id| terminal_texts(id)) {
            ended &= this;
            push(&text);
        }
        push(&self.agent_output);
        (gave, ended)
    }
}

/// Keeps the edits that a call has shown: some agents end a call with a sentence in their place.
fn keep_edits(earlier: &AccumulatedOutput, output: Option<&mut AccumulatedOutput>) {
    let is_edit = |piece: &&ToolOutputPart| matches!(piece, ToolOutputPart::Edit { .. });
    if let Some(output) = output
        && !output.pieces.iter().any(|piece| is_edit(&piece))
    {
        output.pieces.extend(earlier.pieces.iter().filter(is_edit).cloned());
    }
}

/// Appends to an output. If there is no room for it, the beginning of the output makes room.
fn append_bounded(output: &mut String, more: &str, bytes: &mut usize) {
    let more = &more[more.ceil_char_boundary(more.len().saturating_sub(MOST_BYTES))..];
    let excess = (*bytes + more.len()).saturating_sub(MOST_BYTES);
    let cut = output.ceil_char_boundary(excess.min(output.len()));
    output.drain(..cut);
    *bytes -= cut;
    // The content of other calls takes all the room.
    if *bytes + more.len() <= MOST_BYTES {
        output.push_str(more);
        *bytes += more.len();
    }
}

fn is_empty(gave: &AccumulatedOutput) -> bool {
    gave.text.is_empty() && gave.pieces.is_empty()
}

fn size(gave: &AccumulatedOutput) -> usize {
    let piece = |piece: &ToolOutputPart| match piece {
        ToolOutputPart::Edit { path, before, after } => {
            let sides = before.iter().chain(after).map(String::len).sum::<usize>();
            path.len() + sides
        }
        ToolOutputPart::Bytes { mime_type, bytes } => mime_type.len() + bytes.len(),
    };
    gave.text.len() + gave.pieces.iter().map(piece).sum::<usize>()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use grove_core::{PermissionKind, PermissionRequest};
    use serde_json::{Value, json};

    use super::*;
    use crate::acp::map::UpdateContent;
    use crate::agent::{AgentEvent, PermissionPrompt};

    fn no_screen(_: &str) -> Option<TerminalText> {
        None
    }

    fn update(members: Value) -> ToolUpdate {
        let mut update = members;
        update["sessionUpdate"] = json!("tool_call_update");
        update["toolCallId"] = json!("c");
        match map::update(json!({"sessionId": "s", "update": update})).unwrap().content {
            UpdateContent::Events(mut events) => match events.pop() {
                Some(AgentEvent::Tool(update)) => *update,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn diff() -> Value {
        json!([{"type": "diff", "path": "/w/a", "oldText": "1", "newText": "2"}])
    }

    #[test]
    fn the_end_of_a_call_that_does_not_mention_its_diff_has_it() {
        let mut contents = CallContents::default();
        contents.complete(&mut update(json!({"content": diff(), "status": "in_progress"})), &no_screen);
        let mut end = update(json!({"status": "completed", "rawOutput": "The file was updated"}));
        contents.complete(&mut end, &no_screen);
        assert_eq!(end.output.unwrap().pieces.len(), 1);
        assert_eq!(end.result_text, None);
        assert!(end.structured.is_some(), "the result stays as data");
    }

    fn text(text: &str) -> Value {
        json!([{"type": "content", "content": {"type": "text", "text": text}}])
    }

    #[test]
    fn content_that_is_mentioned_takes_the_place_of_what_was_there() {
        let mut contents = CallContents::default();
        contents.complete(&mut update(json!({"content": text("working")})), &no_screen);
        let mut end = update(json!({"status": "completed", "content": text("done")}));
        contents.complete(&mut end, &no_screen);
        assert_eq!(end.output, Some(AccumulatedOutput { text: "done".to_owned(), pieces: vec![] }));
    }

    #[test]
    fn a_diff_stays_until_another_takes_its_place_or_its_call_fails() {
        let shown_after = |status: &str, content: Value| {
            let mut contents = CallContents::default();
            contents.complete(&mut update(json!({"content": diff()})), &no_screen);
            let mut end = update(json!({"status": status, "content": content}));
            contents.complete(&mut end, &no_screen);
            end.output.unwrap()
        };
        let done = shown_after("completed", text("Replaced 1 occurrence"));
        assert_eq!((done.text.as_str(), done.pieces.len()), ("Replaced 1 occurrence", 1));
        let other = json!([{"type": "diff", "path": "/w/a", "oldText": "1", "newText": "3"}]);
        let after =
            |piece: &ToolOutputPart| matches!(piece, ToolOutputPart::Edit { after: Some(after), .. } if after == "3");
        let replaced = shown_after("completed", other);
        assert!(matches!(&replaced.pieces[..], [piece] if after(piece)), "{replaced:?}");
        assert!(shown_after("failed", text("no such file")).pieces.is_empty());
    }

    /// An update with a piece of the output of the agent's own terminal.
    fn output(piece: &str, status: Option<&str>) -> ToolUpdate {
        let meta = json!({"terminal_output_delta": {"terminal_id": "own", "data": piece}});
        update(json!({"status": status, "_meta": meta}))
    }

    #[test]
    fn the_output_of_a_terminal_that_the_agent_runs_is_shown() {
        let mut contents = CallContents::default();
        let shows = json!([{"type": "terminal", "terminalId": "own"}]);
        contents.complete(&mut update(json!({"content": shows})), &no_screen);
        // Nothing of it is known yet, so watching ends at once.
        contents.unwatched(&"c".into());
        assert!(contents.complete(&mut output("one\n", None), &no_screen), "a further update is watched again");
        assert_eq!(contents.live(&"c".into(), &no_screen).unwrap().0.text, "one\n");
        let mut end = output("two\n", Some("completed"));
        contents.complete(&mut end, &no_screen);
        assert_eq!(end.output.unwrap().text, "one\ntwo\n");
        assert_eq!(end.extra, None, "it is not kept twice");
    }

    #[test]
    fn the_output_of_a_terminal_that_the_agent_runs_is_bounded() {
        let mut contents = CallContents::default();
        for _ in 0..40 {
            contents.complete(&mut output(&"é".repeat(1 << 18), None), &no_screen);
            assert!(contents.bytes <= MOST_BYTES);
        }
        let mut end = output("the end", Some("completed"));
        contents.complete(&mut end, &no_screen);
        let text = end.output.unwrap().text;
        assert!(
            text.ends_with("éthe end") && text.len() <= MOST_BYTES && text.len() > MOST_BYTES - 8,
            "{}",
            text.len()
        );
        contents.complete(&mut output(&"x".repeat(2 * MOST_BYTES), None), &no_screen);
        assert!(contents.bytes <= MOST_BYTES);
    }

    #[test]
    fn a_request_for_permission_shows_the_diff_that_was_told_before() {
        let mut contents = CallContents::default();
        contents.complete(&mut update(json!({"content": diff()})), &no_screen);
        let request = PermissionRequest {
            id: "r".into(),
            kind: PermissionKind::Write,
            path: None,
            full_command_text: None,
            intention: None,
            title: None,
            options: vec![],
            edits: vec![],
            editable: false,
        };
        let permission = Some(PermissionPrompt::new(request, tokio::sync::oneshot::channel().0));
        let mut asks = ToolUpdate { permission, ..update(json!({})) };
        contents.complete(&mut asks, &no_screen);
        assert_eq!(asks.output.unwrap().pieces.len(), 1);
    }

    #[test]
    fn a_terminal_is_shown_while_it_runs_and_at_the_end() {
        let mut contents = CallContents::default();
        let shows = json!([{"type": "terminal", "terminalId": "t"}]);
        let mut begin = update(json!({"content": shows}));
        assert!(contents.complete(&mut begin, &|_| Some(TerminalText { text: String::new(), ended: false })));
        assert_eq!(begin.output, None);
        let long = format!("{}end", "é".repeat(LIVE_BYTES));
        let screen = |id: &str| (id == "t").then(|| TerminalText { text: long.clone(), ended: false });
        let (live, ended) = contents.live(&"c".into(), &screen).unwrap();
        assert!(live.text.len() <= LIVE_BYTES && live.text.ends_with("éend") && !ended);
        let mut end = update(json!({"status": "completed", "rawOutput": {"exitCode": 0, "output": "other"}}));
        assert!(!contents.complete(&mut end, &screen));
        assert_eq!((end.output.unwrap().text, end.result_text), (long.clone(), None));
        assert_eq!(contents.live(&"c".into(), &screen), None);
    }

    #[test]
    fn what_is_kept_of_a_turn_is_bounded() {
        let mut contents = CallContents::default();
        let large = "x".repeat(MOST_BYTES + 1);
        let text = json!([{"type": "content", "content": {"type": "text", "text": large}}]);
        let mut whole = update(json!({"content": text}));
        contents.complete(&mut whole, &no_screen);
        assert_eq!(whole.output.unwrap().text.len(), large.len(), "it is shown as it came");
        assert_eq!(contents.bytes, 0);
        for n in 0..2 * MOST_CALLS {
            contents.complete(&mut ToolUpdate::of(n.to_string().into()), &no_screen);
        }
        assert_eq!(contents.calls.len(), MOST_CALLS);
    }
}
