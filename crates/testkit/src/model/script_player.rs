//! Assigning the script's answers to requests.
//!
//! A prompt claims a turn of the script and thereby begins a *run* of it. Calls carry their run's number in their id,
//! and agents send the id back with the tool's result: so a request belongs to its run even when several conversations
//! go on at once, or the agent has rewritten its history.
//!
//! A prompt has no such id. An identical prompt after an answer with a fault in it is the agent's retry; it cannot be
//! distinguished from another conversation with the very same prompt.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::model_request::ModelRequest;
use super::record::RequestPurpose;
use super::schema;
use super::script::{PromptMatch, ReplyStep, ReplySteps, Script, TokenUsage, Turn};

/// The most runs that are remembered. Earlier ones have ended long ago.
const RUNS: usize = 1000;

/// The characters of a system prompt that are searched for its topic. The long ones of agents mention everything.
const OPENING: usize = 600;

/// The script, and its progress.
#[derive(Debug)]
pub(super) struct ScriptPlayer {
    script: Arc<Script>,
    /// The turns that a prompt has had.
    claimed: Vec<bool>,
    runs: VecDeque<ScriptRun>,
    last_run: u64,
    /// Part of all ids, so that those of another server, in a conversation that is resumed here, mean nothing.
    nonce: u64,
}

/// One prompt's way through a turn.
#[derive(Debug)]
struct ScriptRun {
    number: u64,
    turn: Arc<Turn>,
    place: Option<usize>,
    prompt: String,
    next: usize,
    calls: usize,
    /// The last request, if its answer had a fault: the same again is a retry.
    faulted: Option<u64>,
}

/// The answer to a request.
#[derive(Debug)]
pub(super) struct ScriptedReply {
    pub(super) purpose: RequestPurpose,
    pub(super) steps: ReplySteps,
    pub(super) usage: Option<TokenUsage>,
    /// The prefix of its calls' ids.
    pub(super) id: String,
    /// The number of its first call.
    pub(super) first_call: usize,
}

impl ScriptPlayer {
    pub(super) fn new(script: Script) -> Self {
        let nonce = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64 & 0xffff_ffff);
        let claimed = vec![false; script.turns.len()];
        Self { script: Arc::new(script), claimed, runs: VecDeque::new(), last_run: 0, nonce }
    }

    /// Replaces the script. Prompts that are being answered go on with the old one.
    pub(super) fn replace(&mut self, script: Script) {
        self.claimed = vec![false; script.turns.len()];
        self.script = Arc::new(script);
    }

    /// The answer to a request.
    pub(super) fn answer(&mut self, model_request: &ModelRequest) -> ScriptedReply {
        let script = self.script.clone();
        if is_utility(model_request, &script) {
            self.last_run += 1;
            let text = match &model_request.output {
                Some(schema) => schema::fit(schema, &script.utility).to_string(),
                None => script.utility.clone(),
            };
            let id = format!("{:x}r{}", self.nonce, self.last_run);
            let steps = vec![ReplyStep::say(&text)];
            return ScriptedReply { purpose: RequestPurpose::Utility, steps, usage: script.usage, id, first_call: 0 };
        }
        let at = self.find(model_request).unwrap_or_else(|| self.claim(model_request));
        let nonce = self.nonce;
        let run = &mut self.runs[at];
        let fingerprint = model_request.fingerprint();
        if run.faulted == Some(fingerprint) && run.next == run.turn.answers.len() {
            run.next -= 1;
        }
        let answer = run.next;
        let steps = run.turn.answers.get(answer).cloned().unwrap_or_else(|| vec![ReplyStep::say(&script.ended)]);
        let first_call = run.calls;
        run.next += 1;
        run.calls +=
            steps.iter().filter(|step| matches!(step, ReplyStep::Call { .. } | ReplyStep::Shell { .. })).count();
        run.faulted = steps.iter().any(ReplyStep::is_fault).then_some(fingerprint);
        let purpose = RequestPurpose::Turn { turn: run.place, answer };
        ScriptedReply { purpose, steps, usage: script.usage, id: format!("{nonce:x}r{}", run.number), first_call }
    }

    /// The run that a request continues.
    fn find(&self, model_request: &ModelRequest) -> Option<usize> {
        if !model_request.is_continued() {
            let fingerprint = model_request.fingerprint();
            return self.runs.iter().rposition(|run| run.faulted == Some(fingerprint));
        }
        let number = model_request.answered_call().and_then(|call| self.number_in(call));
        let by_number = number.and_then(|number| self.runs.iter().rposition(|run| run.number == number));
        by_number.or_else(|| self.runs.iter().rposition(|run| run.prompt == model_request.prompt()))
    }

    /// The run's number in a call's id, with any additions of the agent.
    fn number_in(&self, call: &str) -> Option<u64> {
        let mark = format!("{:x}r", self.nonce);
        let (_, rest) = call.split_once(&mark)?;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    }

    /// Begins a run. A conversation that another server began is continued from its present state.
    fn claim(&mut self, model_request: &ModelRequest) -> usize {
        let prompt = model_request.prompt();
        let turns = || self.script.turns.iter().enumerate();
        let by_prompt =
            turns().find(|(_, turn)| matches!(&turn.when, PromptMatch::Told(text) if prompt.contains(text)));
        let next = || turns().find(|(at, turn)| turn.when == PromptMatch::Next && !self.claimed[*at]);
        let always = || turns().find(|(_, turn)| turn.when == PromptMatch::Always);
        let found = by_prompt.or_else(next).or_else(always).map(|(at, turn)| (at, turn.clone()));

        let (place, turn) = found.map_or((None, Turn::always([])), |(at, turn)| (Some(at), turn));
        if let Some(at) = place {
            self.claimed[at] = true;
        }
        if self.runs.len() == RUNS {
            self.runs.pop_front();
        }
        self.last_run += 1;
        self.runs.push_back(ScriptRun {
            number: self.last_run,
            turn: Arc::new(turn),
            place,
            prompt: prompt.to_owned(),
            next: model_request.rounds(),
            calls: 0,
            faulted: None,
        });
        self.runs.len() - 1
    }
}

/// Returns whether a request is beside the conversation: for a title, a summary, a guess at the next message.
///
/// There are two signs. It offers no tools, although no tool has just answered (coding agents always offer theirs in
/// the conversation); or its system prompt begins with titles.
fn is_utility(model_request: &ModelRequest, script: &Script) -> bool {
    let opening: String = model_request.system.chars().take(OPENING).collect();
    let is_toolless = model_request.tools.is_empty() && !model_request.is_continued() && !script.without_tools;
    is_toolless || opening.to_lowercase().contains("title")
}
