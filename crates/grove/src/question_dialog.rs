//! A dialog that asks an agent's questions on the terminal, and reads an answer per line.

use grove_wire::ahp::{
    ChatInputAnswer, ChatInputAnswerValue, ChatInputAnswered, ChatInputBooleanAnswer, ChatInputNumberAnswer,
    ChatInputNumberQuestion, ChatInputOption, ChatInputQuestion, ChatInputSelectedAnswer, ChatInputSelectedManyAnswer,
    ChatInputSkipped, ChatInputTextAnswer, ConfirmationOption, ConfirmationOptionKind,
};
use serde_json::Number;

use crate::chat_client::{AlwaysChoice, ChatCommand, PendingRequest, PermissionDecision, ToolPermission};
use crate::show::call::{self, ToolCallSubject};
use crate::show::diff;
use crate::show::facts::{self, current_folder};
use crate::show::style::{bold, dim, sanitize, sanitize_line, yellow};

/// The maximum number of diff lines in a question.
const MAX_DIFF_LINES: usize = 40;
/// The maximum number of lines in the details of a question.
const MAX_DETAIL_LINES: usize = 2_000;

/// A pending request, with the answers so far.
#[derive(Debug)]
pub(crate) struct QuestionDialog {
    waiting: PendingRequest,
    answers: Vec<(String, ChatInputAnswer)>,
    /// The user chooses a rule to allow always.
    is_choosing_rule: bool,
}

/// The outcome of a line.
#[derive(Debug)]
pub(crate) enum DialogStep {
    Done(Box<ChatCommand>),
    /// There is another question.
    Next,
    /// The line is not a valid answer, and why.
    Again(String),
    /// The user wants details before answering.
    Details(String),
    /// The user chose a rule that answers this request and later ones.
    AllowAlways(Box<ToolPermission>, AlwaysChoice),
}

impl QuestionDialog {
    pub(crate) fn new(waiting: PendingRequest) -> Self {
        Self { waiting, answers: Vec::new(), is_choosing_rule: false }
    }

    pub(crate) fn id(&self) -> &str {
        self.waiting.id()
    }

    /// The current question.
    fn question(&self) -> Option<&ChatInputQuestion> {
        match &self.waiting {
            PendingRequest::Questions { request, .. } => request.questions.as_ref()?.get(self.answers.len()),
            PendingRequest::ToolPermission(_) | PendingRequest::Elsewhere { .. } => None,
        }
    }

    /// The text before the prompt, and the prompt.
    pub(crate) fn words(&self) -> (String, String) {
        match &self.waiting {
            PendingRequest::ToolPermission(permission) if self.is_choosing_rule => rule_words(permission),
            PendingRequest::ToolPermission(permission) => {
                let question = call::question(permission);
                let (lines, is_all) = subject(permission, &question);
                let question = if lines.is_empty() { call::with_tool(permission, question) } else { question };
                let mut words = format!("{} {}", yellow("?"), bold(&question));
                for line in lines {
                    words.push_str(&format!("\n  {line}"));
                }
                if !is_all {
                    words.push_str(&format!("\n  {}", dim("(? shows everything)")));
                }
                for (number, option) in permission.options.iter().enumerate() {
                    words.push_str(&format!("\n  {} {}", bold(number + 1), sanitize_line(&option.label)));
                }
                if !permission.always_choices().is_empty() {
                    words.push_str(&format!("\n  {} Allow by a rule …", bold(ALWAYS)));
                }
                let prompt = if permission.options.is_empty() { "[y/n]" } else { "[y/n, or a number]" };
                (words, prompt.to_owned())
            }
            PendingRequest::Questions { request, .. } => {
                let mut words = String::new();
                if self.answers.is_empty() {
                    let about = request.message.iter().chain(&request.url);
                    words = about.map(|line| format!("{} {}\n", yellow("?"), sanitize(line))).collect();
                }
                match self.question() {
                    Some(question) => {
                        words.push_str(&format!("{} {}", yellow("?"), bold(sanitize(&wording(question)))));
                        for (number, option) in options(question).iter().enumerate() {
                            let recommended = if option.recommended == Some(true) { " (recommended)" } else { "" };
                            let about = option.description.as_ref().map(|about| format!(" – {about}"));
                            let label = format!("{}{recommended}{}", option.label, about.unwrap_or_default());
                            words.push_str(&format!("\n  {} {}", bold(number + 1), sanitize_line(&label)));
                        }
                        (words, hint(question))
                    }
                    None => (words.trim_end().to_owned(), "[y when it is done, n to decline]".to_owned()),
                }
            }
            PendingRequest::Elsewhere { what, .. } => {
                (dim(format!("waiting for {}", sanitize(what))).to_string(), String::new())
            }
        }
    }

    /// All details of the request.
    fn details(&self) -> Option<String> {
        let PendingRequest::ToolPermission(permission) = &self.waiting else { return None };
        let mut lines = vec![
            format!("{} {}", dim("tool   "), sanitize_line(&permission.name)),
            format!("{} {}", dim("request"), sanitize_line(&permission.request)),
            format!("{} {}", dim("title  "), sanitize_line(&permission.title)),
        ];
        if let Some(input) = &permission.input {
            // JSON is easier to read with a member on each line.
            let pretty = serde_json::from_str::<serde_json::Value>(input).ok().filter(|value| !value.is_string());
            let pretty = pretty.and_then(|value| serde_json::to_string_pretty(&value).ok());
            lines.push(dim("input").to_string());
            lines.extend(sanitize(pretty.as_deref().unwrap_or(input)).lines().map(|line| format!("    {line}")));
        }
        lines.extend(diff::shown(&permission.diffs, MAX_DETAIL_LINES).0);
        let more = lines.len().saturating_sub(MAX_DETAIL_LINES);
        lines.truncate(MAX_DETAIL_LINES);
        if more > 0 {
            lines.push(dim(format!("… {more} more lines")).to_string());
        }
        Some(lines.join("\n"))
    }

    /// Handles a line as an answer.
    pub(crate) fn reply(&mut self, line: &str) -> DialogStep {
        if line.trim() == "?"
            && let Some(details) = self.details()
        {
            return DialogStep::Details(details);
        }
        if let PendingRequest::ToolPermission(permission) = &self.waiting
            && let Some(step) = rule_step(permission, &mut self.is_choosing_rule, line)
        {
            return step;
        }
        let given = match &self.waiting {
            PendingRequest::ToolPermission(permission) => {
                return match verdict(permission, line) {
                    Ok(verdict) => DialogStep::Done(Box::new(ChatCommand::Permit {
                        permission: Box::new(permission.clone()),
                        verdict,
                    })),
                    Err(why) => DialogStep::Again(why),
                };
            }
            PendingRequest::Elsewhere { .. } => return DialogStep::Again("another client must answer this".to_owned()),
            PendingRequest::Questions { .. } => match self.question() {
                Some(question) => answer(question, line).map(|answer| (id(question).to_owned(), answer)),
                None => {
                    return match yes_or_no(line) {
                        Some(done) => DialogStep::Done(Box::new(self.answered(done))),
                        None => DialogStep::Again("y or n".to_owned()),
                    };
                }
            },
        };
        match given {
            Ok(given) => self.answers.push(given),
            Err(why) => return DialogStep::Again(why),
        }
        if self.question().is_some() { DialogStep::Next } else { DialogStep::Done(Box::new(self.answered(true))) }
    }

    fn answered(&self, accepted: bool) -> ChatCommand {
        let chat = match &self.waiting {
            PendingRequest::Questions { chat, .. } => chat.clone(),
            PendingRequest::ToolPermission(_) | PendingRequest::Elsewhere { .. } => String::new(),
        };
        ChatCommand::Answer { chat, request: self.id().to_owned(), answers: accepted.then(|| self.answers.clone()) }
    }
}

/// The answer that leads to the offered rules.
const ALWAYS: &str = "a";

/// The offered rules, exactly as they would be stored.
fn rule_words(permission: &ToolPermission) -> (String, String) {
    let mut words = format!("{} {}", yellow("?"), bold("Which rule, and where?"));
    for (number, (_, choice)) in permission.always_choices().iter().enumerate() {
        words.push_str(&format!("\n  {} {}", bold(number + 1), sanitize_line(choice)));
    }
    (words, "[a number, or n to go back]".to_owned())
}

/// Handles a line about rules; `None` if the line is about something else.
fn rule_step(permission: &ToolPermission, is_choosing: &mut bool, line: &str) -> Option<DialogStep> {
    let choices = permission.always_choices();
    let line = line.trim();
    if !*is_choosing {
        let is_option = permission.options.iter().any(|option| option.id == line || option.label == line);
        *is_choosing = line.eq_ignore_ascii_case(ALWAYS) && !choices.is_empty() && !is_option;
        return is_choosing.then_some(DialogStep::Next);
    }
    if yes_or_no(line) == Some(false) {
        *is_choosing = false;
        return Some(DialogStep::Next);
    }
    let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    Some(match number.and_then(|at| choices.into_iter().nth(at)) {
        Some((choice, _)) => DialogStep::AllowAlways(Box::new(permission.clone()), choice),
        None => DialogStep::Again("a number of the list, or n".to_owned()),
    })
}

/// The command, diff or input of a permission request, in a few lines, and whether they are complete.
fn subject(permission: &ToolPermission, question: &str) -> (Vec<String>, bool) {
    if !permission.diffs.is_empty() {
        return diff::shown(&permission.diffs, MAX_DIFF_LINES);
    }
    if !permission.edits.is_empty() {
        return (facts::edits(permission.edits.iter(), current_folder().as_deref()), true);
    }
    let subject = ToolCallSubject::of(permission.input.as_deref());
    let (lines, is_all) = subject.lines();
    // The question may already name the file.
    match lines.as_slice() {
        [only] if question.contains(only.as_str()) => (Vec::new(), is_all),
        _ => (lines.into_iter().map(|line| format!("  {line}")).collect(), is_all),
    }
}

fn yes_or_no(line: &str) -> Option<bool> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// Reads a decision: yes, no, or one of the options by number, id or label.
pub(crate) fn verdict(permission: &ToolPermission, line: &str) -> Result<PermissionDecision, String> {
    if let Some(option) = chosen(&permission.options, line, |option| (&option.id, &option.label)) {
        return Ok(with_option(option));
    }
    yes_or_no(line).map(PermissionDecision::new).ok_or_else(|| match permission.options.as_slice() {
        [] => "y or n".to_owned(),
        options => format!("y, n, or one of {}", names(options)),
    })
}

pub(crate) fn with_option(option: &ConfirmationOption) -> PermissionDecision {
    let approved = option.kind != ConfirmationOptionKind::Deny;
    PermissionDecision { option: Some(option.id.clone()), ..PermissionDecision::new(approved) }
}

/// The ids of options, for messages.
pub(crate) fn names(options: &[ConfirmationOption]) -> String {
    options.iter().map(|option| option.id.as_str()).collect::<Vec<_>>().join(", ")
}

fn chosen<'a, T>(options: &'a [T], line: &str, names: impl Fn(&T) -> (&String, &String)) -> Option<&'a T> {
    let line = line.trim();
    let is_named = |option: &&T| {
        let (id, label) = names(option);
        id == line || label.eq_ignore_ascii_case(line)
    };
    let by_number = || options.get(line.parse::<usize>().ok()?.checked_sub(1)?);
    options.iter().find(is_named).or_else(by_number)
}

/// The text of a question.
pub(crate) fn wording(question: &ChatInputQuestion) -> String {
    let (title, message) = match question {
        ChatInputQuestion::Text(question) => (&question.title, &question.message),
        ChatInputQuestion::Number(question) | ChatInputQuestion::Integer(question) => {
            (&question.title, &question.message)
        }
        ChatInputQuestion::Boolean(question) => (&question.title, &question.message),
        ChatInputQuestion::SingleSelect(question) => (&question.title, &question.message),
        ChatInputQuestion::MultiSelect(question) => (&question.title, &question.message),
        ChatInputQuestion::Unknown(_) => return "a question of an unknown kind".to_owned(),
    };
    match title {
        Some(title) => format!("{title}: {message}"),
        None => message.clone(),
    }
}

/// Returns whether a question has to be answered: it is required, and has no default.
pub(crate) fn needs_answer(question: &ChatInputQuestion) -> bool {
    is_required(question) && default(question).is_none()
}

/// A question in a list, with its choices.
pub(crate) fn listed(question: &ChatInputQuestion) -> String {
    let optional = if needs_answer(question) { "" } else { " (optional)" };
    let options = options(question).iter().enumerate();
    let options = options.map(|(number, option)| format!("\n    {} {}", number + 1, option.label));
    format!("  {}{optional}{}", wording(question), options.collect::<String>())
}

pub(crate) fn id(question: &ChatInputQuestion) -> &str {
    match question {
        ChatInputQuestion::Text(question) => &question.id,
        ChatInputQuestion::Number(question) | ChatInputQuestion::Integer(question) => &question.id,
        ChatInputQuestion::Boolean(question) => &question.id,
        ChatInputQuestion::SingleSelect(question) => &question.id,
        ChatInputQuestion::MultiSelect(question) => &question.id,
        ChatInputQuestion::Unknown(value) => value.get("id").and_then(serde_json::Value::as_str).unwrap_or_default(),
    }
}

fn is_required(question: &ChatInputQuestion) -> bool {
    let required = match question {
        ChatInputQuestion::Text(question) => question.required,
        ChatInputQuestion::Number(question) | ChatInputQuestion::Integer(question) => question.required,
        ChatInputQuestion::Boolean(question) => question.required,
        ChatInputQuestion::SingleSelect(question) => question.required,
        ChatInputQuestion::MultiSelect(question) => question.required,
        ChatInputQuestion::Unknown(_) => None,
    };
    required == Some(true)
}

fn options(question: &ChatInputQuestion) -> &[ChatInputOption] {
    match question {
        ChatInputQuestion::SingleSelect(question) => &question.options,
        ChatInputQuestion::MultiSelect(question) => &question.options,
        ChatInputQuestion::Text(_)
        | ChatInputQuestion::Number(_)
        | ChatInputQuestion::Integer(_)
        | ChatInputQuestion::Boolean(_)
        | ChatInputQuestion::Unknown(_) => &[],
    }
}

/// The prompt of a question, with the limits of the answer.
fn hint(question: &ChatInputQuestion) -> String {
    match question {
        ChatInputQuestion::Boolean(_) => "[y/n]".to_owned(),
        ChatInputQuestion::SingleSelect(_) => "[a number]".to_owned(),
        ChatInputQuestion::MultiSelect(select) => match bounds(select.min.as_ref(), select.max.as_ref()) {
            Some(bounds) => format!("[{bounds} numbers, with commas between them]"),
            None => "[numbers, with commas between them]".to_owned(),
        },
        ChatInputQuestion::Text(text) => match bounds(text.min.as_ref(), text.max.as_ref()) {
            Some(bounds) => format!("[{bounds} characters] >"),
            None => ">".to_owned(),
        },
        ChatInputQuestion::Number(number) => match bounds(number.min.as_ref(), number.max.as_ref()) {
            Some(bounds) => format!("[a number, {bounds}] >"),
            None => "[a number] >".to_owned(),
        },
        ChatInputQuestion::Integer(number) => match bounds(number.min.as_ref(), number.max.as_ref()) {
            Some(bounds) => format!("[a whole number, {bounds}] >"),
            None => "[a whole number] >".to_owned(),
        },
        ChatInputQuestion::Unknown(_) => ">".to_owned(),
    }
}

fn within(question: &ChatInputNumberQuestion, value: &Number) -> Result<(), String> {
    let value = value.as_f64().unwrap_or_default();
    let of = |bound: &Option<Number>| bound.as_ref().and_then(Number::as_f64);
    let fits = of(&question.min).is_none_or(|min| value >= min) && of(&question.max).is_none_or(|max| value <= max);
    must_fit(fits, question.min.as_ref(), question.max.as_ref(), "is wanted")
}

fn must_fit<T: std::fmt::Display>(fits: bool, min: Option<&T>, max: Option<&T>, what: &str) -> Result<(), String> {
    match (fits, bounds(min, max)) {
        (false, Some(bounds)) => Err(format!("{bounds} {what}")),
        (true, _) | (false, None) => Ok(()),
    }
}

fn bounds<T: std::fmt::Display>(min: Option<&T>, max: Option<&T>) -> Option<String> {
    match (min, max) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (Some(min), None) => Some(format!("at least {min}")),
        (None, Some(max)) => Some(format!("at most {max}")),
        (None, None) => None,
    }
}

/// Reads an answer to a question. An empty one selects the default, or skips the question if that is allowed.
pub(crate) fn answer(question: &ChatInputQuestion, line: &str) -> Result<ChatInputAnswer, String> {
    let text = line.trim();
    let submitted = |value| Ok(ChatInputAnswer::Submitted(ChatInputAnswered { value }));
    if text.is_empty() {
        return match default(question) {
            Some(value) => submitted(value),
            None if is_required(question) => Err("an answer is required".to_owned()),
            None => Ok(ChatInputAnswer::Skipped(ChatInputSkipped { freeform_values: None })),
        };
    }
    submitted(match question {
        ChatInputQuestion::Text(limits) => {
            let length = text.chars().count() as u64;
            let fits = limits.min.is_none_or(|min| length >= min) && limits.max.is_none_or(|max| length <= max);
            must_fit(fits, limits.min.as_ref(), limits.max.as_ref(), "characters are required")?;
            ChatInputAnswerValue::Text(ChatInputTextAnswer { value: text.to_owned() })
        }
        ChatInputQuestion::Unknown(_) => ChatInputAnswerValue::Text(ChatInputTextAnswer { value: text.to_owned() }),
        ChatInputQuestion::Number(limits) => {
            let value: Number = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
            within(limits, &value)?;
            ChatInputAnswerValue::Number(ChatInputNumberAnswer { value })
        }
        ChatInputQuestion::Integer(limits) => {
            let value = text.parse::<i64>().map_err(|_| format!("{text:?} is not a whole number"))?.into();
            within(limits, &value)?;
            ChatInputAnswerValue::Number(ChatInputNumberAnswer { value })
        }
        ChatInputQuestion::Boolean(_) => {
            let value = yes_or_no(text).ok_or_else(|| "y or n".to_owned())?;
            ChatInputAnswerValue::Boolean(ChatInputBooleanAnswer { value })
        }
        ChatInputQuestion::SingleSelect(select) => {
            let option = chosen(&select.options, text, |option| (&option.id, &option.label));
            ChatInputAnswerValue::Selected(match option {
                Some(option) => ChatInputSelectedAnswer { value: option.id.clone(), freeform_values: None },
                None if select.allow_freeform_input == Some(true) => {
                    ChatInputSelectedAnswer { value: String::new(), freeform_values: Some(vec![text.to_owned()]) }
                }
                None => return Err(format!("{text:?} is not one of the options")),
            })
        }
        ChatInputQuestion::MultiSelect(select) => {
            let mut many = ChatInputSelectedManyAnswer::default();
            for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                match chosen(&select.options, word, |option| (&option.id, &option.label)) {
                    Some(option) => many.value.push(option.id.clone()),
                    None if select.allow_freeform_input == Some(true) => {
                        many.freeform_values.get_or_insert_default().push(word.to_owned());
                    }
                    None => return Err(format!("{word:?} is not one of the options")),
                }
            }
            let count = (many.value.len() + many.freeform_values.as_ref().map_or(0, Vec::len)) as u64;
            let fits = select.min.is_none_or(|min| count >= min) && select.max.is_none_or(|max| count <= max);
            must_fit(fits, select.min.as_ref(), select.max.as_ref(), "choices are required")?;
            ChatInputAnswerValue::SelectedMany(many)
        }
    })
}

fn default(question: &ChatInputQuestion) -> Option<ChatInputAnswerValue> {
    match question {
        ChatInputQuestion::Text(question) => {
            let value = question.default_value.clone()?;
            Some(ChatInputAnswerValue::Text(ChatInputTextAnswer { value }))
        }
        ChatInputQuestion::Number(question) | ChatInputQuestion::Integer(question) => {
            let value = question.default_value.clone()?;
            Some(ChatInputAnswerValue::Number(ChatInputNumberAnswer { value }))
        }
        ChatInputQuestion::Boolean(question) => {
            let value = question.default_value?;
            Some(ChatInputAnswerValue::Boolean(ChatInputBooleanAnswer { value }))
        }
        ChatInputQuestion::SingleSelect(_) | ChatInputQuestion::MultiSelect(_) | ChatInputQuestion::Unknown(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use grove_wire::x_grove::policy::{OfferedRule, OfferedTarget, PolicyOffersResult, RuleTarget};

    use super::*;

    fn dialog() -> QuestionDialog {
        let rule = |text: &str| OfferedRule { text: text.to_owned(), toml: format!("toml of {text}") };
        let target = |target, file: Option<&str>| OfferedTarget { target, file: file.map(str::to_owned) };
        let offers = Box::new(PolicyOffersResult {
            rules: vec![rule("allow shell \"make x\""), rule("allow shell \"make *\"")],
            targets: vec![target(RuleTarget::Session, None), target(RuleTarget::Everywhere, Some("/g.toml"))],
        });
        let permission = ToolPermission { request: "r".to_owned(), offers, ..ToolPermission::default() };
        QuestionDialog::new(PendingRequest::ToolPermission(permission))
    }

    #[test]
    fn a_rule_is_shown_as_it_is_stored_before_it_is_chosen() {
        let mut dialog = dialog();
        assert!(dialog.words().0.contains("Allow by a rule …"), "{:?}", dialog.words());
        assert!(matches!(dialog.reply("a"), DialogStep::Next));
        let (words, _) = dialog.words();
        assert!(words.contains("allow shell \"make *\" everywhere (/g.toml)"), "{words}");
        assert!(matches!(dialog.reply("9"), DialogStep::Again(_)));
        assert!(matches!(dialog.reply("n"), DialogStep::Next));
        assert!(matches!(dialog.reply("y"), DialogStep::Done(_)), "n leads back to the question");
        assert!(matches!(dialog.reply("a"), DialogStep::Next));
        match dialog.reply("4") {
            DialogStep::AllowAlways(_, choice) => {
                assert_eq!(
                    (choice.rule.toml.as_str(), choice.target),
                    ("toml of allow shell \"make *\"", RuleTarget::Everywhere)
                );
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_offers_there_is_nothing_to_allow_always() {
        let permission = ToolPermission::default();
        let mut dialog = QuestionDialog::new(PendingRequest::ToolPermission(permission));
        assert!(matches!(dialog.reply("a"), DialogStep::Again(_)));
    }
}
