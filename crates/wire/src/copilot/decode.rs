//! Converts clients' prompts and answers to core's types.

use grove_core::{
    self as core, Answer, AnswerValue, Choice, ConfirmationReason, Decision, PermissionOption, PermissionRequest,
    Question, QuestionKind, Verdict,
};
use serde_json::Value;

use super::methods::*;
use super::project::request_events::{NO, YES};
use crate::ahp;

/// Converts a prompt to a message of a person.
pub fn message(prompt: String, attachments: Vec<Attachment>) -> core::Message {
    let modelled: Vec<core::Attachment> = attachments.iter().filter_map(self::modelled).collect();
    // Attachments that core does not model are kept in the dialect that agents get.
    let all_modelled = modelled.len() == attachments.len();
    let own = original(&attachments);
    let mut extra = match all_modelled {
        true => None,
        false => {
            let ahp_attachments: Vec<ahp::MessageAttachment> = attachments.into_iter().map(ahp_attachment).collect();
            ahp::project::extra([("attachments", Some(serde_json::to_value(ahp_attachments)))])
        }
    };
    if let Some(own) = own {
        extra.get_or_insert_default().insert(EXTRA.to_owned(), serde_json::json!({ "attachments": own }));
    }
    core::Message { attachments: modelled, extra, ..core::Message::user(prompt) }
}

/// The member of a message's further data that only the SDK's clients read.
pub(super) const EXTRA: &str = "copilot";

/// A message with the mode that its sender asked for. It is kept for readers: the mode of a session is its setting.
pub fn with_agent_mode(mut message: core::Message, mode: Option<String>) -> core::Message {
    if let Some(mode) = mode {
        let extra = message.extra.get_or_insert_default().entry(EXTRA).or_insert_with(|| serde_json::json!({}));
        extra["agentMode"] = mode.into();
    }
    message
}

/// The attachments as they came, if some of them have more than core models. Bytes are left out: they are stored with
/// the attachments for agents.
fn original(attachments: &[Attachment]) -> Option<Vec<Attachment>> {
    let has_more = attachments.iter().any(|attachment| match attachment {
        Attachment::File(file) => file.line_range.is_some(),
        Attachment::Selection(_) | Attachment::Unknown(_) => true,
        Attachment::Directory(_) | Attachment::Blob(_) => false,
    });
    let without_bytes = |attachment: &Attachment| match attachment {
        Attachment::Blob(blob) => Attachment::Blob(BlobAttachment { data: None, ..blob.clone() }),
        other => other.clone(),
    };
    has_more.then(|| attachments.iter().map(without_bytes).collect())
}

fn modelled(attachment: &Attachment) -> Option<core::Attachment> {
    let (kind, path, display_name) = match attachment {
        Attachment::File(file) => (core::AttachmentKind::File, &file.path, &file.display_name),
        Attachment::Directory(folder) => (core::AttachmentKind::Directory, &folder.path, &folder.display_name),
        // A selection's text would be lost if only its file were kept.
        Attachment::Selection(selection) if !has_text(selection) => {
            (core::AttachmentKind::Selection, &selection.file_path, &selection.display_name)
        }
        Attachment::Selection(_) | Attachment::Blob(_) | Attachment::Unknown(_) => return None,
    };
    Some(core::Attachment { kind, path: path.clone(), display_name: display_name.clone() })
}

fn has_text(selection: &SelectionAttachment) -> bool {
    selection.text.as_ref().is_some_and(|text| !text.is_empty())
}

/// An attachment in the types of the Agent Host Protocol.
fn ahp_attachment(attachment: Attachment) -> ahp::MessageAttachment {
    match attachment {
        Attachment::Selection(selection) if has_text(&selection) => words(
            selection.display_name.unwrap_or_else(|| selection.file_path.clone()),
            "selection",
            format!("{}:\n{}", selection.file_path, selection.text.unwrap_or_default()),
        ),
        Attachment::Blob(blob) => ahp::MessageAttachment::EmbeddedResource(ahp::MessageEmbeddedResourceAttachment {
            label: blob.display_name.unwrap_or_else(|| "attachment".to_owned()),
            range: None,
            display_kind: None,
            meta: None,
            data: blob.data.unwrap_or_default(),
            content_type: blob.mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            selection: None,
        }),
        Attachment::Unknown(value) => {
            let label =
                ["title", "name", "url", "displayName", "type"].into_iter().find_map(|key| value.get(key)?.as_str());
            words(label.unwrap_or("attachment").to_owned(), "document", value.to_string())
        }
        known @ (Attachment::File(_) | Attachment::Directory(_) | Attachment::Selection(_)) => match modelled(&known) {
            Some(attachment) => ahp::project::attachment(&attachment),
            None => words("attachment".to_owned(), "document", String::new()),
        },
    }
}

/// A text attachment for an agent.
fn words(label: String, kind: &str, text: String) -> ahp::MessageAttachment {
    ahp::MessageAttachment::Simple(ahp::SimpleMessageAttachment {
        label,
        range: None,
        display_kind: Some(kind.to_owned()),
        meta: None,
        model_representation: Some(text),
    })
}

/// A tool that a client runs.
pub fn tool(declared: ToolDeclaration) -> core::ClientTool {
    let ToolDeclaration { name, description, parameters, overrides_built_in_tool: _, skip_permission } = declared;
    // Agents without a policy of their own for it ask before each call.
    let asks_first = !skip_permission.unwrap_or(false);
    let extra = asks_first.then(|| core::Extra::from_iter([(core::ClientTool::ASKS_FIRST.to_owned(), true.into())]));
    core::ClientTool { name, description, input_schema: parameters, extra }
}

/// Converts a decision on a permission request. The error says why it is invalid.
///
/// A lasting yes takes a lasting option if the agent offers one, and is a plain yes otherwise.
pub fn verdict(decision: PermissionDecision, request: &PermissionRequest) -> Result<Verdict, String> {
    let PermissionDecision { kind, feedback, reason, message } = decision;
    let feedback = feedback.or(reason).or(message).filter(|feedback| !feedback.is_empty());
    let (decision, lasting, skipped, feedback) = match kind.as_str() {
        "approve-once" | "approved" => (Decision::Approved, false, false, None),
        "approve-for-session"
        | "approve-for-location"
        | "approve-permanently"
        | "approved-for-session"
        | "approved-for-location" => (Decision::Approved, true, false, None),
        "reject" | "denied-interactively-by-user" => (Decision::Denied, false, false, feedback),
        "denied-by-rules" => (Decision::Denied, false, false, feedback.or_else(|| words_for("a rule forbids it"))),
        "denied-by-content-exclusion-policy" => {
            (Decision::Denied, false, false, feedback.or_else(|| words_for("a policy excludes this content")))
        }
        "denied-by-permission-request-hook" => {
            (Decision::Denied, false, false, feedback.or_else(|| words_for("a hook denied it")))
        }
        "user-not-available" | "denied-no-approval-rule-and-could-not-request-from-user" => {
            (Decision::Denied, false, false, feedback.or_else(|| words_for("nobody was there to be asked")))
        }
        "cancelled" => (Decision::Denied, false, true, feedback),
        other => return Err(format!("{other:?} is not a kind of decision")),
    };
    let extra =
        feedback.and_then(|feedback| ahp::project::extra([("reasonMessage", Some(serde_json::to_value(feedback)))]));
    let option = option(&request.options, decision, lasting).map(|option| option.id.clone());
    Ok(Verdict { decision, by: ConfirmationReason::Person, option, edited_input: None, skipped, extra })
}

fn words_for(reason: &str) -> Option<String> {
    Some(reason.to_owned())
}

/// The option that fits best.
fn option(options: &[PermissionOption], decision: Decision, lasting: bool) -> Option<&PermissionOption> {
    let fits = |option: &&PermissionOption| option.allows == (decision == Decision::Approved);
    let exact = options.iter().filter(fits).find(|option| option.lasting == lasting);
    // A lasting option is never chosen unless it was asked for.
    exact.or_else(|| options.iter().filter(fits).find(|option| !option.lasting))
}

/// The result of a client's tool `name`.
pub fn tool_result(name: &str, result: Option<ToolCallResult>, error: Option<String>) -> core::ToolResult {
    let (success, text) = match (error, result) {
        (Some(error), _) => (false, error),
        (None, None) => (true, String::new()),
        (None, Some(ToolCallResult::Text(text))) => (true, text),
        (None, Some(ToolCallResult::Other(value))) => (true, value.to_string()),
        (None, Some(ToolCallResult::Object(object))) => {
            let success = !matches!(
                object.result_type.as_deref(),
                Some("failure" | "rejected" | "denied" | "error" | "timeout" | "cancelled")
            );
            let text = object.text_result_for_llm.filter(|text| !text.is_empty());
            let error = object.error.filter(|_| !success);
            let shown = object.contents.as_deref().and_then(texts);
            (success, text.or(error).or(shown).or(object.session_log).unwrap_or_default())
        }
    };
    let past_tense_message = if success { format!("{name} ran") } else { format!("{name} failed") };
    core::ToolResult { success, past_tense_message, output: Some(text), attached: Vec::new(), extra: None }
}

fn texts(contents: &[Value]) -> Option<String> {
    let texts: Vec<&str> = contents.iter().filter_map(|piece| piece.get("text")?.as_str()).collect();
    Some(texts.join("\n")).filter(|text| !text.is_empty())
}

/// Converts a person's words to an answer to a question. The error describes valid answers.
pub fn answer(question: &Question, response: &UserInputResponse) -> Result<Answer, String> {
    let text = response.answer.trim();
    let value = match &question.kind {
        QuestionKind::Text { .. } => AnswerValue::Text(response.answer.clone()),
        QuestionKind::Number { .. } => match serde_json::from_str(text) {
            Ok(number) => AnswerValue::Number(number),
            Err(_) => return Err(format!("{text:?} is no number")),
        },
        QuestionKind::YesOrNo { .. } => match text {
            yes if yes.eq_ignore_ascii_case(YES) || yes == "true" => AnswerValue::YesOrNo(true),
            no if no.eq_ignore_ascii_case(NO) || no == "false" => AnswerValue::YesOrNo(false),
            other => return Err(format!("{other:?} is neither {YES} nor {NO}")),
        },
        QuestionKind::One { options, freeform } => match chosen(options, text) {
            Some(option) => AnswerValue::One { id: option.id.clone(), freeform: Vec::new() },
            None if *freeform => AnswerValue::One { id: String::new(), freeform: vec![response.answer.clone()] },
            None => return Err(not_offered(options, text)),
        },
        QuestionKind::Several { options, freeform, .. } => several(options, *freeform, text)?,
    };
    Ok(Answer::Submitted(value))
}

/// Reads several answers from one text: one per line, or separated by commas.
fn several(options: &[Choice], freeform: bool, text: &str) -> Result<AnswerValue, String> {
    let (mut ids, mut own) = (Vec::new(), Vec::new());
    let pieces: Vec<&str> = match chosen(options, text) {
        Some(_) => vec![text],
        None => text.split([',', '\n']).map(str::trim).filter(|piece| !piece.is_empty()).collect(),
    };
    for piece in pieces {
        match chosen(options, piece) {
            Some(option) => ids.push(option.id.clone()),
            None if freeform => own.push(piece.to_owned()),
            None => return Err(not_offered(options, piece)),
        }
    }
    Ok(AnswerValue::Several { ids, freeform: own })
}

fn chosen<'a>(options: &'a [Choice], text: &str) -> Option<&'a Choice> {
    options.iter().find(|option| option.label == text).or_else(|| options.iter().find(|option| option.id == text))
}

fn not_offered(options: &[Choice], text: &str) -> String {
    let labels: Vec<&str> = options.iter().map(|option| option.label.as_str()).collect();
    format!("{text:?} is not one of the answers: choose from {}", labels.join(", "))
}
