//! Requests to clients and people.

use grove_core::{
    self as core, Answer, AnswerValue, Choice, InputRequest, PermissionKind, Question, QuestionKind, ToolCall,
};
use serde_json::{Value, json};

use super::turn_events::arguments;
use crate::copilot::events::*;
use crate::copilot::methods::server::UserInputParams;

/// The names of the answers to a yes-or-no question.
pub(in crate::copilot) const YES: &str = "Yes";
pub(in crate::copilot) const NO: &str = "No";

/// The kind of a request about a tool that a program offers.
const CUSTOM_TOOL: &str = "custom-tool";

/// A call's permission request.
pub fn permission_request(call: &ToolCall, request: &core::PermissionRequest) -> PermissionRequest {
    let fields = RequestFields::of(call, request);
    let base = PermissionRequest {
        kind: kind(request.kind).to_owned(),
        tool_call_id: Some(call.id.to_string()),
        ..PermissionRequest::default()
    };
    match request.kind {
        PermissionKind::Shell => PermissionRequest {
            intention: Some(fields.intention),
            commands: Some(vec![ShellCommand { identifier: fields.command.clone(), read_only: false }]),
            full_command_text: Some(fields.command),
            possible_paths: Some(request.path.iter().cloned().collect()),
            possible_urls: Some(Vec::new()),
            has_write_file_redirection: Some(false),
            can_offer_session_approval: Some(fields.lasting),
            ..base
        },
        PermissionKind::Write => PermissionRequest {
            intention: Some(fields.intention),
            file_name: Some(fields.path),
            diff: Some(String::new()),
            can_offer_session_approval: Some(fields.lasting),
            ..base
        },
        PermissionKind::Read => {
            PermissionRequest { intention: Some(fields.intention), path: Some(fields.path), ..base }
        }
        PermissionKind::Url => PermissionRequest { intention: Some(fields.intention), url: Some(fields.path), ..base },
        PermissionKind::Mcp if call.client.is_some() => PermissionRequest {
            kind: CUSTOM_TOOL.to_owned(),
            tool_name: Some(call.name.clone()),
            args: Some(arguments(call, call.input.as_deref())),
            ..base
        },
        PermissionKind::Mcp => PermissionRequest {
            server_name: Some(String::new()),
            tool_name: Some(call.name.clone()),
            tool_title: Some(call.display_name.clone()),
            args: Some(arguments(call, call.input.as_deref())),
            read_only: Some(false),
            ..base
        },
    }
}

/// The same request for display.
pub fn prompt_request(call: &ToolCall, request: &core::PermissionRequest) -> PromptRequest {
    let permission = permission_request(call, request);
    let commands = request.kind == PermissionKind::Shell;
    PromptRequest {
        kind: if commands { "commands".to_owned() } else { permission.kind },
        tool_call_id: permission.tool_call_id,
        intention: permission.intention,
        command_identifiers: permission.commands.map(|all| all.into_iter().map(|command| command.identifier).collect()),
        full_command_text: permission.full_command_text,
        can_offer_session_approval: permission.can_offer_session_approval,
        file_name: permission.file_name,
        diff: permission.diff,
        path: permission.path,
        url: permission.url,
        server_name: permission.server_name,
        tool_name: permission.tool_name,
        tool_title: permission.tool_title,
        args: permission.args,
    }
}

/// The known data of a request, the most descriptive first.
struct RequestFields {
    intention: String,
    command: String,
    path: String,
    /// True if an answer may hold for later requests of the same subject.
    lasting: bool,
}

impl RequestFields {
    fn of(call: &ToolCall, request: &core::PermissionRequest) -> Self {
        let first = |texts: [Option<&String>; 3]| texts.into_iter().flatten().find(|text| !text.is_empty()).cloned();
        let invocation = Some(&call.invocation_message);
        let intention = first([request.intention.as_ref(), request.title.as_ref(), invocation]);
        let command = first([request.full_command_text.as_ref(), call.input.as_ref(), invocation]);
        let path = first([request.path.as_ref(), request.full_command_text.as_ref(), request.title.as_ref()]);
        Self {
            intention: intention.unwrap_or_default(),
            command: command.unwrap_or_default(),
            path: path.unwrap_or_default(),
            lasting: request.options.iter().any(|option| option.allows && option.lasting),
        }
    }
}

fn kind(kind: PermissionKind) -> &'static str {
    match kind {
        PermissionKind::Shell => "shell",
        PermissionKind::Write => "write",
        PermissionKind::Mcp => "mcp",
        PermissionKind::Read => "read",
        PermissionKind::Url => "url",
    }
}

pub(super) fn permission_requested(call: &ToolCall, request: &core::PermissionRequest) -> PermissionRequested {
    PermissionRequested {
        request_id: request.id.to_string(),
        permission_request: permission_request(call, request),
        prompt_request: Some(prompt_request(call, request)),
        resolved_by_hook: None,
    }
}

pub(super) fn permission_completed(
    call: &core::ToolCallId,
    request: &core::RequestId,
    verdict: &core::Verdict,
    by: Option<&core::Answerer>,
) -> PermissionCompleted {
    let kind = match (verdict.decision, verdict.by) {
        (core::Decision::Approved, _) => "approved",
        (core::Decision::Denied, _) if matches!(by, Some(core::Answerer::Hook { .. })) => {
            "denied-by-permission-request-hook"
        }
        (core::Decision::Denied, core::ConfirmationReason::Setting) => "denied-by-rules",
        (core::Decision::Denied, _) if verdict.skipped => "cancelled",
        (core::Decision::Denied, _) => "denied-interactively-by-user",
    };
    let feedback = super::turn_events::feedback(verdict.extra.as_ref());
    let rule = verdict.extra.as_ref().and_then(|extra| extra.get(core::POLICY_RULE)?.as_str());
    let rules: Vec<Value> = rule.into_iter().map(policy_rule).collect();
    // The protocol requires the member of a denial alone.
    let rules = (kind == "denied-by-rules" || !rules.is_empty()).then_some(rules);
    let result = PermissionResult { kind: kind.to_owned(), feedback, reason: None, rules };
    PermissionCompleted { decision_source: decision_source(verdict.by), ..completed(call, request, result) }
}

/// The party that answered a request, in the protocol's words.
fn decision_source(by: core::ConfirmationReason) -> Option<String> {
    let source = match by {
        core::ConfirmationReason::Person => "human_response",
        core::ConfirmationReason::Setting => "host_policy",
        core::ConfirmationReason::NotNeeded => return None,
    };
    Some(source.to_owned())
}

/// A rule that answered a request, as the protocol lists it.
fn policy_rule(rule: &str) -> Value {
    json!({"kind": "policy", "argument": rule})
}

/// The event of a request that is unanswered at the turn's end.
pub(super) fn permission_cancelled(call: &core::ToolCallId, request: &core::RequestId) -> PermissionCompleted {
    completed(call, request, PermissionResult { kind: "cancelled".to_owned(), ..PermissionResult::default() })
}

fn completed(call: &core::ToolCallId, request: &core::RequestId, result: PermissionResult) -> PermissionCompleted {
    // A cancelled request has a reason instead of feedback.
    let result = match result.kind == "cancelled" {
        true => PermissionResult { reason: result.feedback, feedback: None, ..result },
        false => result,
    };
    let (request_id, tool_call_id) = (request.to_string(), Some(call.to_string()));
    PermissionCompleted { request_id, tool_call_id, result, decision_source: None }
}

/// Asks a client to run a call. The call's id names the request: there is only one at a time.
pub(super) fn external_tool(session: &core::Session, call: &ToolCall) -> ExternalToolRequested {
    ExternalToolRequested {
        request_id: call.id.to_string(),
        session_id: session.id.to_string(),
        tool_call_id: call.id.to_string(),
        tool_name: call.name.clone(),
        arguments: Some(arguments(call, call.input.as_deref())),
        working_directory: session.working_directories.first().cloned(),
    }
}

/// A question for a person. A request with several is asked one by one: the protocol has only single questions.
pub fn user_input(session: &core::SessionId, request: &InputRequest, question: Option<&Question>) -> UserInputParams {
    let input = user_input_question(request, question);
    UserInputParams {
        session_id: session.to_string(),
        question: input.question,
        choices: input.choices,
        allow_freeform: input.allow_freeform,
    }
}

pub(super) fn user_input_requested(request: &InputRequest) -> UserInputRequested {
    let input = user_input_question(request, request.questions.first());
    UserInputRequested { request_id: request.id.to_string(), ..input }
}

pub(super) fn user_input_completed(request: &core::RequestId, answers: &core::Answers) -> UserInputCompleted {
    let (answer, was_freeform) = match answers.values().find_map(answered) {
        Some((answer, freeform)) => (Some(answer), Some(freeform)),
        None => (None, None),
    };
    UserInputCompleted { request_id: request.to_string(), answer, was_freeform }
}

fn user_input_question(request: &InputRequest, question: Option<&Question>) -> UserInputRequested {
    let own = question.map(|question| &question.message);
    let texts = [request.message.as_ref(), own, request.url.as_ref()];
    let texts: Vec<&str> = texts.into_iter().flatten().map(String::as_str).filter(|text| !text.is_empty()).collect();
    let labels = |options: &[Choice]| options.iter().map(|option| option.label.clone()).collect();
    let (choices, freeform) = match question.map(|question| &question.kind) {
        Some(QuestionKind::One { options, freeform } | QuestionKind::Several { options, freeform, .. }) => {
            (Some(labels(options)), *freeform)
        }
        Some(QuestionKind::YesOrNo { .. }) => (Some(vec![YES.to_owned(), NO.to_owned()]), false),
        Some(QuestionKind::Text { .. } | QuestionKind::Number { .. }) | None => (None, true),
    };
    UserInputRequested {
        request_id: String::new(),
        question: texts.join("\n\n"),
        choices,
        allow_freeform: Some(freeform),
    }
}

/// An answer in words, and true if they are the person's own.
fn answered(answer: &Answer) -> Option<(String, bool)> {
    let Answer::Submitted(value) = answer else { return None };
    Some(match value {
        AnswerValue::Text(text) => (text.clone(), true),
        AnswerValue::Number(number) => (number.to_string(), true),
        AnswerValue::YesOrNo(yes) => (if *yes { YES } else { NO }.to_owned(), false),
        AnswerValue::One { id, freeform } => match freeform.first() {
            Some(own) if id.is_empty() => (own.clone(), true),
            Some(_) | None => (id.clone(), false),
        },
        AnswerValue::Several { ids, freeform } => {
            (ids.iter().chain(freeform).cloned().collect::<Vec<_>>().join(", "), ids.is_empty())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The event of an answer, by this rule if there is one.
    fn answered(decision: grove_core::Decision, by: grove_core::ConfirmationReason, rule: Option<&str>) -> Value {
        let extra = rule.map(|rule| grove_core::Extra::from_iter([(grove_core::POLICY_RULE.to_owned(), rule.into())]));
        let verdict = grove_core::Verdict { by, extra, ..decision.into() };
        serde_json::to_value(permission_completed(&"c".into(), &"r".into(), &verdict, None)).unwrap()
    }

    #[test]
    fn an_answer_by_a_rule_names_the_rule_and_one_by_a_person_says_so() {
        use grove_core::ConfirmationReason::{Person, Setting};
        use grove_core::Decision::{Approved, Denied};
        let rules = json!([{"kind": "policy", "argument": "allow shell \"ls\""}]);
        let by_rule = answered(Approved, Setting, Some("allow shell \"ls\""));
        assert_eq!(by_rule["result"], json!({"kind": "approved", "rules": rules}));
        assert_eq!(by_rule["decisionSource"], "host_policy");
        // A session in which everything is allowed has no rule.
        let by_setting = answered(Approved, Setting, None);
        assert_eq!(by_setting["result"], json!({"kind": "approved"}));
        assert_eq!(by_setting["decisionSource"], "host_policy");
        assert_eq!(answered(Denied, Setting, None)["result"], json!({"kind": "denied-by-rules", "rules": []}));
        let by_person = answered(Approved, Person, None);
        assert_eq!(
            (&by_person["result"], &by_person["decisionSource"]),
            (&json!({"kind": "approved"}), &json!("human_response"))
        );
        assert_eq!(answered(Denied, Person, None)["decisionSource"], "human_response");
    }
}
