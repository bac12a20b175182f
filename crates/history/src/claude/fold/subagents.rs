//! The conversations of subagents: in the same file, or with a log of their own.

use std::collections::HashSet;

use grove_transcript::{DamageKind, TranscriptChat};
use serde_json::Value;

use super::super::entry::{EntryParent, LogEntry};
use super::super::sidecar::SubagentMetadata;
use super::super::turn_assembler::{ToolResultDetails, TurnAssembler, content_text};
use super::super::{SidechainLog, side_log};
use super::{TurnFold, is_type};
use crate::json::JsonMembers;
use crate::limits::MAX_STATE;
use crate::subagents::SubagentChat;

/// The maximum number of subagents' conversations in a turn's own file. Further lines are added to the last of them.
const MAX_SIDES: usize = 1_000;
/// The maximum depth of subagents' logs. Deeper ones are added beside the others.
const MAX_DEPTH: usize = 8;
/// A subagent's conversation in the same file.
#[derive(Debug)]
pub(super) struct Sidechain {
    pub(super) turn_assembler: TurnAssembler,
    /// The ids of its lines.
    ids: HashSet<String>,
}

impl TurnFold {
    /// The conversation of a subagent with a log of its own.
    pub(super) fn agent(&mut self, id: &str, call: String) -> Option<SubagentChat> {
        if self.depth >= MAX_DEPTH || !self.known.own.claimed.insert(id.to_owned()) {
            return None;
        }
        let path = self.sidecar.agent(id)?;
        let card = SubagentMetadata::of(&path);
        let room = MAX_STATE.saturating_sub(self.weight);
        let read = side_log(&path, id, &self.sidecar, self.depth + 1, room, &mut self.known.own.claimed);
        let damage = &mut self.known.session.damage;
        let Some(SidechainLog { session, turns, size }) = read else {
            damage.mark(DamageKind::TooLarge);
            return None;
        };
        self.weight = self.weight.saturating_add(size);
        for mark in session.damage.marks {
            damage.mark(mark);
        }
        damage.count = damage.count.saturating_add(session.damage.count);
        let call = card.call.clone().unwrap_or(call);
        let mut chat = TranscriptChat { id: id.to_owned(), turns, ..TranscriptChat::default() };
        card.write_to(&mut chat);
        Some(SubagentChat { call, chat })
    }

    pub(super) fn found(&mut self, found: ToolResultDetails) {
        self.weight = self.weight.saturating_add(found.weight);
        if found.is_too_large {
            self.known.session.damage.mark(DamageKind::TooLarge);
        }
        for (agent, call) in found.agents {
            self.link(agent, call);
        }
    }

    pub(super) fn link(&mut self, agent: String, call: String) {
        let is_known = self.known.own.claimed.contains(&agent) || self.agents.iter().any(|(known, _)| *known == agent);
        if !is_known && self.agents.len() < MAX_SIDES {
            self.agents.push((agent, call));
        }
    }

    /// Adds a line of a subagent's conversation in the same file.
    pub(super) fn side(&mut self, mut entry: LogEntry) {
        let known = match &entry.parent {
            EntryParent::Of(parent) => self.sides.iter().rposition(|side| side.ids.contains(parent)),
            EntryParent::Root | EntryParent::Unspecified => None,
        };
        let begins = known.is_none() && entry.kind == "user" && self.sides.len() < MAX_SIDES;
        if begins || self.sides.is_empty() {
            self.open(entry.at);
            let turn_assembler = TurnAssembler::unasked(String::new(), entry.at);
            self.sides.push(Sidechain { turn_assembler, ids: HashSet::new() });
        }
        let at = known.filter(|_| !begins).unwrap_or(self.sides.len() - 1);
        let Some(side) = self.sides.get_mut(at) else { return };
        if let Some(id) = entry.id.clone() {
            side.ids.insert(id);
        }
        match entry.kind.as_str() {
            "assistant" => side.turn_assembler.assistant(entry),
            "user" => {
                let content = entry.body.object("message").and_then(|mut message| message.any("content"));
                match content {
                    Some(Value::Array(blocks)) if blocks.iter().any(|block| is_type(block, "tool_result")) => {
                        let (_, found) = side.turn_assembler.results(blocks, &mut entry.body, entry.at, &self.sidecar);
                        self.found(found);
                    }
                    Some(content) if begins => side.turn_assembler.draft.turn.message.text = content_text(&content),
                    Some(content) => {
                        side.turn_assembler.draft.notice("user", content_text(&content), JsonMembers::default())
                    }
                    None => {}
                }
            }
            "progress" => {}
            kind => {
                let kind = kind.to_owned();
                side.turn_assembler.draft.notice(&kind, String::new(), entry.body);
            }
        }
    }
}
