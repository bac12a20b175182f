//! The parts of a response. Every kind that VS Code has written is known; any other is kept raw.

use grove_transcript::uri::{location_from, range_of};
use grove_transcript::{
    EditKind, FileLocation, Notice, Question, TextChange, TranscriptEdit, TranscriptPart, TranscriptTurn,
};
use serde_json::Value;

use super::invocation::call_of;
use super::link_labels;
use crate::json::{JsonMembers, message_of};
use crate::subagents::{SubagentChat, attach, chat_of};

/// The result of a response.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub parts: Vec<TranscriptPart>,
    /// Locations that the text refers to.
    pub references: Vec<FileLocation>,
    /// The model that was chosen for the person.
    pub chosen_model: Option<String>,
}

/// The parts of a response, with subagents' parts in their calls.
pub(crate) fn response_of(values: Vec<Value>) -> Response {
    let mut main = Vec::new();
    let mut children: Vec<(String, Vec<Value>)> = Vec::new();
    for value in values {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let owner = text("subAgentInvocationId").filter(|owner| text("toolCallId") != Some(owner)).map(str::to_owned);
        let Some(owner) = owner else {
            main.push(value);
            continue;
        };
        match children.iter_mut().rev().take(MAX_AT_ONCE).find(|(call, _)| *call == owner) {
            Some((_, parts)) => parts.push(value),
            None => children.push((owner, vec![value])),
        }
    }
    let mut response = flat(main);
    let chats: Vec<SubagentChat> = children
        .into_iter()
        .map(|(call, values)| {
            let Response { parts, references, .. } = flat(values);
            let turn = TranscriptTurn { id: format!("{call}-turn"), parts, references, ..TranscriptTurn::default() };
            SubagentChat { chat: chat_of(&call, turn), call }
        })
        .collect();
    attach(&mut response.parts, chats);
    response
}

/// The maximum number of subagents that are searched for a part's owner.
const MAX_AT_ONCE: usize = 100;

fn flat(values: Vec<Value>) -> Response {
    let mut builder = ResponseBuilder::default();
    for value in values {
        builder.add(value);
    }
    builder.response
}

#[derive(Debug, Default)]
struct ResponseBuilder {
    response: Response,
    /// The id of the newest thought, as long as nothing else follows.
    thought: Option<Option<String>>,
    /// True if a code fence was removed from the text because an edit is in it.
    in_fence: bool,
}

impl ResponseBuilder {
    fn add(&mut self, value: Value) {
        let thought = self.thought.take();
        let mut members = match JsonMembers::of(value) {
            Ok(members) => members,
            // Responses of the first version are plain text.
            Err(Value::String(text)) => return self.text(&text),
            Err(other) => return self.push(TranscriptPart::Raw(other)),
        };
        let kind = members.peek("kind").and_then(Value::as_str).map(str::to_owned);
        let Some(kind) = kind else {
            return self.unnamed(members);
        };
        match kind.as_str() {
            "markdownContent" => match members.message("content").or_else(|| members.message("value")) {
                Some(text) => self.text(&text),
                None => self.push(TranscriptPart::Raw(members.into_value())),
            },
            "markdownVuln" => {
                let text = members.message("content").unwrap_or_default();
                self.text(&text);
                let found =
                    members.peek("vulnerabilities").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
                if found {
                    self.notice(&kind, String::new(), members);
                }
            }
            "inlineReference" => self.inline(members),
            "thinking" => self.think(members, thought),
            "toolInvocationSerialized" | "toolInvocation" => {
                self.push(TranscriptPart::ToolCall(Box::new(call_of(members))));
            }
            "textEditGroup" | "notebookEditGroup" => self.edit_group(members),
            "workspaceEdit" => self.workspace_edit(members),
            "externalEdit" => self.external_edit(members),
            "multiDiffData" => self.diffs(members),
            "confirmation"
            | "elicitation"
            | "elicitationSerialized"
            | "elicitation2"
            | "questionCarousel"
            | "planReview" => {
                self.question(members);
            }
            "clearToPreviousToolInvocation" => {
                self.clear_to_call();
                let text = members.message("reason").unwrap_or_default();
                self.notice(&kind, text, members);
            }
            "autoModeResolution" => {
                self.response.chosen_model = members.string("resolvedModelName");
                self.notice(&kind, String::new(), members);
            }
            "progressMessage"
            | "progressTaskSerialized"
            | "progressTask"
            | "warning"
            | "info"
            | "systemNotification" => {
                let text = link_labels::message(&mut members, "content").or_else(|| members.message("message"));
                self.notice(&kind, text.unwrap_or_default(), members);
            }
            "hook" => {
                let text = members.message("systemMessage").or_else(|| members.message("stopReason"));
                self.notice(&kind, text.unwrap_or_default(), members);
            }
            "pullRequest" => {
                let text = members.message("title").unwrap_or_default();
                self.notice(&kind, text, members);
            }
            "command" => {
                let command = members.peek("command").and_then(|command| message_of(command.get("title")?));
                self.notice(&kind, command.unwrap_or_default(), members);
            }
            "extensions" => {
                let names = members.peek("extensions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let text = names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
                self.notice(&kind, text, members);
            }
            "treeData" => {
                let text = members.peek("treeData").map(tree_text).unwrap_or_default();
                self.notice(&kind, text, members);
            }
            // They control the view, and have no text.
            "undoStop" | "codeblockUri" | "prepareToolInvocation" | "mcpServersStarting" | "disabledClaudeHooks" => {
                // A fence belongs to the edit after its file's name.
                self.thought = thought;
                self.notice(&kind, String::new(), members);
            }
            _ => self.push(TranscriptPart::Raw(members.into_value())),
        }
    }

    /// Markdown, or a file tree of the first versions.
    fn unnamed(&mut self, mut members: JsonMembers) {
        if let Some(text) = members.string("value") {
            return self.text(&text);
        }
        if members.has("label") && (members.has("children") || members.has("uri")) {
            let value = members.into_value();
            let text = tree_text(&value);
            let raw = value.as_object().cloned().unwrap_or_default();
            return self.push(TranscriptPart::Notice(Notice { kind: "treeData".into(), text, raw }));
        }
        self.push(TranscriptPart::Raw(members.into_value()));
    }

    fn push(&mut self, part: TranscriptPart) {
        self.response.parts.push(part);
    }

    /// Appends text to the text before it, across parts that only control the view.
    fn text(&mut self, mut text: &str) {
        if std::mem::take(&mut self.in_fence) {
            let rest = text.trim_start().trim_start_matches('`');
            text = if text.trim_start().starts_with(FENCE) { rest } else { text };
        }
        if text.is_empty() {
            return;
        }
        let open = self.response.parts.iter_mut().rev().find(|part| match part {
            TranscriptPart::Notice(notice) => !notice.text.is_empty(),
            _ => true,
        });
        match open {
            Some(TranscriptPart::Text(before)) => before.push_str(text),
            _ => self.push(TranscriptPart::Text(text.to_owned())),
        }
    }

    fn notice(&mut self, kind: &str, text: String, mut members: JsonMembers) {
        members.forget(&["kind"]);
        self.push(TranscriptPart::Notice(Notice { kind: kind.to_owned(), text, raw: members.rest() }));
    }

    fn inline(&mut self, mut members: JsonMembers) {
        let Some(target) = members.any("inlineReference") else {
            return self.push(TranscriptPart::Raw(members.into_value()));
        };
        let place = location_from(&target);
        let given_name = members.string("name").or_else(|| Some(target.get("name")?.as_str()?.to_owned()));
        let name =
            given_name.unwrap_or_else(|| place.as_ref().map(|place| place.name().to_owned()).unwrap_or_default());
        if !name.is_empty() {
            self.text(&format!("`{name}`"));
        }
        if let Some(place) = place {
            self.refer(place);
        }
    }

    fn refer(&mut self, place: FileLocation) {
        // One line may name a file many times; looking back a little finds those.
        if !self.response.references.iter().rev().take(50).any(|known| *known == place) {
            self.response.references.push(place);
        }
    }

    /// Adds a piece of a thought; pieces of one thought are joined.
    fn think(&mut self, mut members: JsonMembers, before: Option<Option<String>>) {
        let id = members.string("id");
        let more = match members.any("value") {
            Some(Value::Array(pieces)) => pieces.iter().filter_map(Value::as_str).collect(),
            Some(value) => message_of(&value).unwrap_or_default(),
            None => String::new(),
        };
        let more_title = members.string("generatedTitle");
        let more_ms = members.unsigned("reasoningDurationMs");
        if before.is_some_and(|before| before == id || id.as_deref().is_none_or(str::is_empty))
            && let Some(TranscriptPart::Reasoning { text, title, duration_ms }) = self.response.parts.last_mut()
        {
            text.push_str(&more);
            *title = title.take().or(more_title);
            *duration_ms = duration_ms.or(more_ms);
            self.thought = Some(id);
        } else if !more.is_empty() || more_title.is_some() {
            self.push(TranscriptPart::Reasoning { text: more, title: more_title, duration_ms: more_ms });
            self.thought = Some(id);
        }
    }

    fn edit_group(&mut self, mut members: JsonMembers) {
        let Some(place) = members.peek("uri").and_then(location_from) else {
            return self.push(TranscriptPart::Raw(members.into_value()));
        };
        members.forget(&["kind", "uri"]);
        let groups = members.list("edits");
        let mut changes = Vec::new();
        let mut odd = Vec::new();
        for edit in groups.into_iter().flat_map(|group| match group {
            Value::Array(edits) => edits,
            other => vec![other],
        }) {
            match change_of(&edit) {
                Some(change) => changes.push(change),
                None => odd.push(edit),
            }
        }
        let mut raw = members.rest();
        if !odd.is_empty() {
            raw.insert("edits".to_owned(), Value::Array(odd));
        }
        self.edit(TranscriptEdit { place, changes, raw, ..TranscriptEdit::default() });
    }

    fn edit(&mut self, edit: TranscriptEdit) {
        self.open_fence();
        self.push(TranscriptPart::Edit(Box::new(edit)));
    }

    /// VS Code shows an edit inside a code block of the text: the fences around it are not part of the answer.
    fn open_fence(&mut self) {
        let text = self.response.parts.iter_mut().rev().find(|part| !matches!(part, TranscriptPart::Notice(_)));
        let Some(TranscriptPart::Text(text)) = text else { return };
        if !text.trim_end().ends_with(FENCE) {
            return;
        }
        let before = text.trim_end().trim_end_matches('`');
        if before.is_empty() || before.ends_with('\n') {
            let length = before.trim_end().len();
            text.truncate(length);
            self.in_fence = true;
        }
    }

    fn workspace_edit(&mut self, mut members: JsonMembers) {
        for edit in members.list("edits") {
            let (old, new) =
                (edit.get("oldResource").and_then(location_from), edit.get("newResource").and_then(location_from));
            let (kind, place, from) = match (old, new) {
                (Some(old), Some(new)) => (EditKind::Rename, new, Some(old)),
                (Some(old), None) => (EditKind::Delete, old, None),
                (None, Some(new)) => (EditKind::Create, new, None),
                (None, None) => {
                    self.push(TranscriptPart::Raw(edit));
                    continue;
                }
            };
            self.edit(TranscriptEdit { kind, place, from, ..TranscriptEdit::default() });
        }
    }

    fn external_edit(&mut self, mut members: JsonMembers) {
        let Some(place) = members.any("uri").and_then(|uri| location_from(&uri)) else {
            return self.push(TranscriptPart::Raw(members.into_value()));
        };
        let kind = match members.string("editKind").as_deref() {
            Some("create") => EditKind::Create,
            Some("delete") => EditKind::Delete,
            Some("rename") => EditKind::Rename,
            _ => EditKind::Edit,
        };
        let from = members.any("originalUri").and_then(|uri| location_from(&uri));
        let mut diff = members.object("diff").unwrap_or_default();
        let (added, removed) = (diff.unsigned("added"), diff.unsigned("removed"));
        members.forget(&["kind"]);
        self.edit(TranscriptEdit {
            kind,
            place,
            from,
            added,
            removed,
            raw: members.rest(),
            ..TranscriptEdit::default()
        });
    }

    fn diffs(&mut self, mut members: JsonMembers) {
        let mut data = members.object("multiDiffData").unwrap_or_default();
        for resource in data.list("resources") {
            let place = |key: &str| resource.get(key).and_then(location_from);
            let number = |key: &str| resource.get(key).and_then(Value::as_u64);
            let (old, new) = (place("originalUri"), place("modifiedUri"));
            let kind = match (&old, &new) {
                (None, Some(_)) => EditKind::Create,
                (Some(_), None) => EditKind::Delete,
                _ => EditKind::Edit,
            };
            let Some(shown) = place("goToFileUri").or(new).or(old) else { continue };
            let (added, removed) = (number("added"), number("removed"));
            self.edit(TranscriptEdit { kind, place: shown, added, removed, ..TranscriptEdit::default() });
        }
        let title = data.message("title").unwrap_or_default();
        members.keep("multiDiffData", data);
        self.notice("multiDiffData", title, members);
    }

    fn question(&mut self, mut members: JsonMembers) {
        let title = link_labels::message(&mut members, "title").unwrap_or_default();
        let message = link_labels::message(&mut members, "message").or_else(|| members.message("content"));
        let message = message.unwrap_or_else(|| {
            let questions = members.peek("questions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let texts = questions.iter().filter_map(|question| {
                message_of(
                    question.get("message").or_else(|| question.get("title")).or_else(|| question.get("question"))?,
                )
            });
            texts.collect::<Vec<_>>().join("\n")
        });
        let answer = members.string("state").or_else(|| {
            let used = members.peek("isUsed").and_then(Value::as_bool)?;
            Some(if used { "answered" } else { "not answered" }.to_owned())
        });
        self.push(TranscriptPart::Question(Question { title, message, answer, raw: members.rest() }));
    }

    /// Removes the text since the last tool call.
    fn clear_to_call(&mut self) {
        let from = self.response.parts.iter().rposition(|part| matches!(part, TranscriptPart::ToolCall(_)));
        let mut at = 0;
        let keep = from.map_or(0, |from| from + 1);
        self.response.parts.retain(|part| {
            at += 1;
            at <= keep || !matches!(part, TranscriptPart::Text(_))
        });
    }
}

const FENCE: &str = "```";

fn change_of(edit: &Value) -> Option<TextChange> {
    Some(TextChange { range: edit.get("range").and_then(range_of)?, text: edit.get("text")?.as_str()?.to_owned() })
}

/// A file tree, one name per line.
fn tree_text(tree: &Value) -> String {
    let mut lines = Vec::new();
    let mut open = vec![(tree, 0_usize)];
    while let Some((node, depth)) = open.pop() {
        if let Some(label) = node.get("label").and_then(Value::as_str) {
            lines.push(format!("{}{label}", "  ".repeat(depth)));
        }
        if let Some(children) = node.get("children").and_then(Value::as_array) {
            open.extend(children.iter().rev().map(|child| (child, depth + 1)));
        }
    }
    lines.join("\n")
}
