//! The answers of hooks, and how those of several clients become one.

use grove_agents::setup::HookMode;
use grove_core::{Answerer, is_unprintable};
use serde_json::Value;

use super::{HookFailure, HookedResult};

/// The longest reason of a hook that is kept. Longer ones are cut.
pub const MAX_REASON_CHARS: usize = 1_000;
/// The longest text that hooks may add to a prompt. Longer ones are cut.
pub const MAX_CONTEXT_BYTES: usize = 64 << 10;

/// The answer of one client's hook. Members that do not belong to the moment have no effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookAnswer {
    pub verdict: Option<HookVerdict>,
    /// The reason of the verdict, or the message with which an agent goes on that is not to stop.
    pub reason: Option<String>,
    /// The arguments with which a call is to run.
    pub arguments: Option<Value>,
    pub prompt: Option<String>,
    pub result: Option<HookedResult>,
    /// A text for the model beside the prompt.
    pub context: Option<String>,
    /// The agent is to go on instead of stopping.
    pub blocks_stop: bool,
}

/// A hook's decision about a tool call. A later one goes before an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookVerdict {
    Allow,
    /// A person decides.
    Ask,
    Deny,
}

/// The decision of all hooks about a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutcome {
    pub verdict: Option<HookVerdict>,
    pub reason: Option<String>,
    /// The hook that decided.
    pub by: Option<Answerer>,
    pub arguments: Option<Value>,
}

/// A prompt after its hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptOutcome {
    pub prompt: Option<String>,
    /// Texts for the model beside the prompt.
    pub contexts: Vec<String>,
}

/// The answer of one client, with its party.
pub(super) type PartyAnswer = (Answerer, Result<HookAnswer, HookFailure>);

impl ToolOutcome {
    /// Combines the answers: a denial goes before a question, and a question before a permission. A hook that failed
    /// denies, unless hooks are best effort.
    pub(super) fn of(answers: Vec<PartyAnswer>, mode: HookMode, hook: &str) -> Self {
        let mut outcome = Self::default();
        for (party, answer) in answers {
            let answer = answer.unwrap_or_else(|failure| match mode {
                HookMode::Strict => HookAnswer {
                    verdict: Some(HookVerdict::Deny),
                    reason: Some(failure.to_string()),
                    ..HookAnswer::default()
                },
                HookMode::BestEffort | HookMode::None => HookAnswer::default(),
            });
            if answer.verdict > outcome.verdict {
                outcome.verdict = answer.verdict;
                outcome.reason = answer.reason.as_deref().map(clipped_reason).filter(|reason| !reason.is_empty());
                outcome.by = Some(party.hook(hook));
            }
            outcome.arguments = answer.arguments.or(outcome.arguments);
        }
        outcome
    }

    /// A denial by the host, because the hooks cannot be honoured.
    pub(crate) fn denied(reason: &str, by: Answerer) -> Self {
        Self { verdict: Some(HookVerdict::Deny), reason: Some(reason.to_owned()), by: Some(by), arguments: None }
    }

    /// The denial in words, as the SDK's own server says it.
    pub(crate) fn denial(&self) -> String {
        match &self.reason {
            Some(reason) => format!("Denied by preToolUse hook: {reason}"),
            None => "Denied by preToolUse hook".to_owned(),
        }
    }
}

impl PromptOutcome {
    /// Adds an answer. The last changed prompt counts.
    pub(super) fn add(&mut self, answer: HookAnswer) {
        self.prompt = answer.prompt.or(self.prompt.take());
        let used: usize = self.contexts.iter().map(String::len).sum();
        if let Some(context) = answer.context.filter(|context| !context.is_empty()) {
            let room = MAX_CONTEXT_BYTES.saturating_sub(used);
            let context = &context[..context.floor_char_boundary(room)];
            if !context.is_empty() {
                self.contexts.push(context.to_owned());
            }
        }
    }

    /// The prompt with everything that the hooks give.
    pub(crate) fn apply(self, text: String) -> String {
        let mut text = self.prompt.unwrap_or(text);
        for context in self.contexts {
            text.push_str(&format!("\n\n<system_reminder>\n{context}\n</system_reminder>"));
        }
        text
    }
}

/// A reason in one line, cut.
fn clipped_reason(reason: &str) -> String {
    let shown: String =
        reason.chars().map(|c| if c == '\n' { ' ' } else { c }).filter(|c| !is_unprintable(*c)).collect();
    shown.trim().chars().take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(name: &str) -> Answerer {
        Answerer::client(name, None)
    }

    fn says(verdict: HookVerdict, reason: &str) -> Result<HookAnswer, HookFailure> {
        Ok(HookAnswer { verdict: Some(verdict), reason: Some(reason.to_owned()), ..HookAnswer::default() })
    }

    #[test]
    fn a_denial_goes_before_a_question_and_a_question_before_a_permission() {
        let all = [("a", HookVerdict::Allow), ("b", HookVerdict::Deny), ("c", HookVerdict::Ask)];
        for turn in 0..3 {
            let mut answers = all.map(|(name, verdict)| (party(name), says(verdict, name))).to_vec();
            answers.rotate_left(turn);
            let outcome = ToolOutcome::of(answers.clone(), HookMode::Strict, "preToolUse");
            assert_eq!((outcome.verdict, outcome.reason.as_deref()), (Some(HookVerdict::Deny), Some("b")));
            assert_eq!(outcome.by, Some(party("b").hook("preToolUse")));
            answers.retain(|(name, _)| *name != party("b"));
            let outcome = ToolOutcome::of(answers, HookMode::Strict, "preToolUse");
            assert_eq!(outcome.verdict, Some(HookVerdict::Ask));
        }
        let none = ToolOutcome::of(vec![(party("a"), Ok(HookAnswer::default()))], HookMode::Strict, "preToolUse");
        assert_eq!(none, ToolOutcome::default());
    }

    #[test]
    fn a_hook_that_fails_denies_unless_hooks_are_best_effort() {
        let answers = || vec![(party("a"), says(HookVerdict::Allow, "")), (party("b"), Err(HookFailure::TimedOut(60)))];
        let strict = ToolOutcome::of(answers(), HookMode::Strict, "preToolUse");
        assert_eq!(strict.verdict, Some(HookVerdict::Deny));
        assert_eq!(strict.denial(), "Denied by preToolUse hook: the hook did not answer within 60 s");
        let lenient = ToolOutcome::of(answers(), HookMode::BestEffort, "preToolUse");
        assert_eq!(lenient.verdict, Some(HookVerdict::Allow));
    }

    #[test]
    fn a_reason_is_one_line_without_control_characters() {
        let answers = vec![(party("a"), says(HookVerdict::Deny, "no\n\u{1b}[2Jway"))];
        assert_eq!(ToolOutcome::of(answers, HookMode::Strict, "x").reason.as_deref(), Some("no [2Jway"));
    }

    #[test]
    fn hooks_change_a_prompt_and_add_to_it_in_bounds() {
        let answer = |prompt: Option<&str>, context: &str| HookAnswer {
            prompt: prompt.map(str::to_owned),
            context: Some(context.to_owned()),
            ..HookAnswer::default()
        };
        let mut outcome = PromptOutcome::default();
        outcome.add(answer(Some("other"), "one"));
        outcome.add(answer(None, "two"));
        let applied = outcome.apply("first".to_owned());
        assert_eq!(
            applied,
            "other\n\n<system_reminder>\none\n</system_reminder>\n\n<system_reminder>\ntwo\n</system_reminder>"
        );
        let mut long = PromptOutcome::default();
        long.add(answer(None, &"x".repeat(MAX_CONTEXT_BYTES + 1)));
        long.add(answer(None, "more"));
        assert_eq!(long.contexts.iter().map(String::len).sum::<usize>(), MAX_CONTEXT_BYTES);
    }
}
