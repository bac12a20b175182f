//! Lines of the program: its notices, attachments, and data of the session as a whole.

use grove_transcript::limits::MAX_NAMES;
use grove_transcript::{
    FileLocation, ToolInput, TranscriptAttachment, TranscriptAttachmentKind, TranscriptEdit, TranscriptPart, Worktree,
};
use serde_json::Value;

use super::super::entry::{LogEntry, UserText, words_of};
use super::super::turn_assembler::content_text;
use super::TurnFold;
use crate::json::JsonMembers;
use crate::parent_index::ParentTurn;

impl TurnFold {
    pub(super) fn system(&mut self, mut entry: LogEntry) {
        let kind = entry.body.string("subtype").unwrap_or_else(|| "system".to_owned());
        let text = entry.body.message("content").unwrap_or_default();
        entry.body.forget(&["level", "toolUseID"]);
        if let Some(turn_assembler) = &mut self.current {
            match kind.as_str() {
                // It is written at the end of a turn.
                "turn_duration" => turn_assembler.draft.done(),
                "error" | "api_refusal" => {
                    let message = entry.body.peek("error").and_then(|error| error.get("message")?.as_str());
                    turn_assembler.draft.fail(&kind, message.unwrap_or(&text).to_owned());
                }
                _ => {}
            }
        }
        if kind == "local_command"
            && let UserText::Person { text, command, .. } = words_of(&text)
            && command.as_deref() == Some("rename")
        {
            self.renamed(&text);
        }
        self.notice(&kind, text, entry.body);
    }

    pub(super) fn attached(&mut self, mut entry: LogEntry) {
        let Some(mut attachment) = entry.body.object("attachment") else {
            return self.notice("attachment", String::new(), entry.body);
        };
        let foreign_kind = attachment.string("type").unwrap_or_default();
        let kind = match foreign_kind.as_str() {
            "file" | "compact_file_reference" | "pdf_reference" => TranscriptAttachmentKind::File,
            "directory" => TranscriptAttachmentKind::Folder,
            "selected_lines_in_ide" => TranscriptAttachmentKind::Selection,
            _ => return self.notice(&foreign_kind, String::new(), attachment),
        };
        let path = ["filename", "path"].iter().find_map(|key| attachment.string(key));
        let place = path.map(FileLocation::local);
        let name = attachment.string("displayPath").or_else(|| place.as_ref().map(|place| place.name().to_owned()));
        let text = attachment.any("content").map(|content| {
            let inner = content.get("file").and_then(|file| file.get("content")).and_then(Value::as_str);
            inner.map_or_else(|| content_text(&content), str::to_owned)
        });
        let raw = attachment.rest();
        let attached = TranscriptAttachment { kind, foreign_kind, name: name.unwrap_or_default(), place, text, raw };
        self.open(entry.at).draft.turn.message.attachments.push(attached);
    }

    /// Reads data of the session as a whole, and unknown lines.
    pub(super) fn record(&mut self, mut entry: LogEntry) {
        let body = &mut entry.body;
        match entry.kind.as_str() {
            "custom-title" => self.known.own.given_title = body.string("customTitle").filter(|title| !title.is_empty()),
            "ai-title" => self.known.own.made_title = body.string("aiTitle").or(self.known.own.made_title.take()),
            "summary" => {
                // A file has summaries of other sessions as well: those name lines that are not in it.
                let leaf = body.string("leafUuid");
                let is_ours = leaf.is_none_or(|leaf| self.chain.find(&leaf) != ParentTurn::Missing);
                let summary = body.string("summary").filter(|summary| {
                    !summary.is_empty() && !summary.starts_with("API Error") && !summary.starts_with("Invalid API key")
                });
                if is_ours {
                    self.known.own.made_title = summary.or(self.known.own.made_title.take());
                } else if let Some(summary) = summary {
                    self.notice("summary", summary, JsonMembers::default());
                }
            }
            "relocated" => {
                if let Some(folder) = body.string("relocatedCwd") {
                    self.known.session.workspace.folders = vec![FileLocation::local(folder)];
                }
            }
            "worktree-state" => {
                if let Some(mut tree) = body.object("worktreeSession") {
                    let workspace = &mut self.known.session.workspace;
                    workspace.branch = tree.string("worktreeBranch").or(workspace.branch.take());
                    workspace.commit = tree.string("originalHeadCommit").or(workspace.commit.take());
                    workspace.base_branch = tree.string("originalBranch").or(workspace.base_branch.take());
                    let repository = tree.string("originalCwd").filter(|folder| !folder.is_empty());
                    let folder = tree.string("worktreePath").filter(|folder| !folder.is_empty());
                    let tree = folder.map(|folder| Worktree { folder, repository });
                    workspace.worktree = tree.or(workspace.worktree.take());
                }
            }
            "pr-link" => {
                let workspace = &mut self.known.session.workspace;
                workspace.repository =
                    workspace.repository.take().or_else(|| body.peek("prRepository")?.as_str().map(str::to_owned));
                let text = body.string("prUrl").unwrap_or_default();
                workspace.set_pull_request(Some(text.clone()));
                self.notice("pr-link", text, entry.body);
            }
            "agent-name" => {
                if let (Some(name), true) = (body.string("agentName"), self.known.session.raw.len() < MAX_NAMES) {
                    self.known.session.raw.insert("agentName".to_owned(), Value::String(name));
                }
            }
            // The program's state, repeated with each prompt.
            "last-prompt" | "mode" | "permission-mode" => {}
            "queue-operation" => {
                if let Some(text) = body.string("content").filter(|text| !text.is_empty()) {
                    self.notice("queue-operation", text, entry.body);
                }
            }
            "file-history-snapshot" => {
                let snapshot = body.object("snapshot").unwrap_or_default();
                let backups = snapshot.peek("trackedFileBackups").and_then(Value::as_object);
                if backups.is_some_and(|backups| !backups.is_empty()) {
                    let folder = self.known.session.workspace.folders.first().and_then(|place| place.path.clone());
                    for edit in self.known.own.tracked.take(&snapshot, folder.as_deref(), &self.sidecar) {
                        self.edited(edit);
                    }
                    self.notice("file-history-snapshot", String::new(), snapshot);
                }
            }
            _ => {
                let kind = entry.kind;
                body.insert("type", Value::String(kind));
                self.push(TranscriptPart::Raw(entry.body.into_value()));
            }
        }
    }

    /// Adds an edit to the open turn, unless a call has the same text.
    fn edited(&mut self, mut edit: TranscriptEdit) {
        let Some(turn_assembler) = &self.current else { return };
        let is_told = turn_assembler.draft.turn.tool_calls().any(|call| match &call.input {
            ToolInput::Edits(edits) => edits.iter().any(|call_edit| call_edit.path == edit.place.shown()),
            _ => false,
        });
        if is_told {
            edit.changes.clear();
        }
        self.push(TranscriptPart::Edit(Box::new(edit)));
    }

    pub(super) fn renamed(&mut self, text: &str) {
        let name = text.split_once(' ').map(|(_, name)| name.trim().to_owned());
        self.known.own.given_title = name.filter(|name| !name.is_empty());
    }
}
