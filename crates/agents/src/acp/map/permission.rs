//! Permission requests and their answers.

use agent_client_protocol_schema::v1 as acp;
use grove_checks::Check;
use grove_core::*;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{JsonObject, call, text};
use crate::agent::*;

/// A permission request: the update to report, and the options that the answer chooses from.
#[derive(Debug)]
pub(crate) struct ParsedPermissionRequest {
    pub(crate) session: acp::SessionId,
    pub(crate) offered: Vec<acp::PermissionOption>,
    /// The changes of the call, with the question.
    pub(crate) update: Box<ToolUpdate>,
}

/// Reads the params of a `session/request_permission`. `id` names the question in the turn. The error says what is
/// missing.
pub(crate) fn permission(
    mut params: Value,
    id: RequestId,
    answer: oneshot::Sender<Verdict>,
) -> Result<ParsedPermissionRequest, String> {
    let lacks = |what: &str| format!("the permission request has no {what}");
    let session = params.get("sessionId").and_then(Value::as_str).map(acp::SessionId::new);
    let session = session.ok_or_else(|| lacks("\"sessionId\""))?;
    let offered = params.get("options").and_then(Value::as_array).ok_or_else(|| lacks("\"options\""))?;
    // Whether an option of a new kind allows is unknown.
    let offered: Vec<acp::PermissionOption> =
        offered.iter().filter_map(|option| serde_json::from_value(option.clone()).ok()).collect();
    let Some(Value::Object(call)) = params.get_mut("toolCall").map(Value::take) else {
        return Err(lacks("\"toolCall\""));
    };
    let subject = PermissionSubject::of(&call);
    let mut update = call::read(call).ok_or_else(|| lacks("\"toolCallId\""))?;
    let request = PermissionRequest {
        id,
        kind: subject.kind,
        path: subject.path,
        full_command_text: subject.command,
        intention: None,
        title: update.title.clone(),
        options: offered.iter().filter_map(option).collect(),
        edits: vec![],
        editable: false,
    };
    update.permission = Some(PermissionPrompt::new(request, answer));
    Ok(ParsedPermissionRequest { session, offered, update: Box::new(update) })
}

/// The response to a permission request. The protocol has no place for a reason but its metadata.
pub(crate) fn response(offered: &[acp::PermissionOption], verdict: Option<&Verdict>) -> acp::RequestPermissionResponse {
    let response = acp::RequestPermissionResponse::new(outcome(offered, verdict));
    match verdict.and_then(denial_reason) {
        Some(reason) => response.meta(JsonObject::from_iter([("reason".to_owned(), Value::from(reason))])),
        None => response,
    }
}

/// The reason that a denial gives.
pub(crate) fn denial_reason(verdict: &Verdict) -> Option<&str> {
    let extra = verdict.extra.as_ref().filter(|_| verdict.decision == Decision::Denied)?;
    extra.get("reasonMessage")?.as_str()
}

/// The answer to a permission request; without a verdict, the turn was cancelled.
pub(crate) fn outcome(offered: &[acp::PermissionOption], verdict: Option<&Verdict>) -> acp::RequestPermissionOutcome {
    let chosen = verdict.and_then(|verdict| {
        let allows = verdict.decision == Decision::Approved;
        // An option of the opposite decision is never chosen, not even by its name.
        let fits = |option: &&acp::PermissionOption| match Check::OptionDecision.is_enforced() {
            true => allows_and_lasts(option).is_some_and(|(is, _)| is == allows),
            false => true,
        };
        let fitting = || offered.iter().filter(fits);
        let named = verdict.option.as_deref().and_then(|id| fitting().find(|option| *option.option_id.0 == *id));
        named.or_else(|| fitting().min_by_key(|option| allows_and_lasts(option)))
    });
    match chosen {
        Some(option) => {
            acp::RequestPermissionOutcome::Selected(acp::SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => acp::RequestPermissionOutcome::Cancelled,
    }
}

/// Returns whether an option allows the call, and whether it holds permanently.
fn allows_and_lasts(option: &acp::PermissionOption) -> Option<(bool, bool)> {
    match option.kind {
        acp::PermissionOptionKind::AllowOnce => Some((true, false)),
        acp::PermissionOptionKind::AllowAlways => Some((true, true)),
        acp::PermissionOptionKind::RejectOnce => Some((false, false)),
        acp::PermissionOptionKind::RejectAlways => Some((false, true)),
        _ => None,
    }
}

fn option(option: &acp::PermissionOption) -> Option<PermissionOption> {
    let (allows, lasting) = allows_and_lasts(option)?;
    let label = match Check::OptionLabel.is_enforced() {
        true => normalized_title(&option.name).unwrap_or_default(),
        false => option.name.clone(),
    };
    Some(PermissionOption { id: option.option_id.to_string(), label, allows, lasting })
}

/// The subject of a permission request.
struct PermissionSubject {
    kind: PermissionKind,
    command: Option<String>,
    path: Option<String>,
}

impl PermissionSubject {
    fn of(call: &JsonObject) -> Self {
        let kind = match text(call, "kind").and_then(call::kind) {
            Some(ToolKind::Terminal) => PermissionKind::Shell,
            Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => PermissionKind::Write,
            Some(ToolKind::Read | ToolKind::Search) => PermissionKind::Read,
            Some(ToolKind::Fetch) => PermissionKind::Url,
            Some(ToolKind::Think | ToolKind::SwitchMode) | None => PermissionKind::Mcp,
        };
        let input = call.get("rawInput").and_then(Value::as_object);
        let path = match kind {
            // A request for an address is about the address, as others are about a path.
            PermissionKind::Url => input.and_then(|input| text(input, "url")).map(str::to_owned),
            _ => None,
        };
        let path = path.or_else(|| located(call)).or_else(|| input.and_then(path_in));
        Self { kind, command: input.and_then(command_in), path }
    }
}

/// The first location that the call names.
fn located(call: &JsonObject) -> Option<String> {
    let place = call.get("locations")?.as_array()?.first()?.as_object()?;
    text(place, "path").map(str::to_owned)
}

fn path_in(input: &JsonObject) -> Option<String> {
    const NAMES: [&str; 8] =
        ["path", "file_path", "filePath", "absolute_path", "abs_path", "target_file", "notebook_path", "fileName"];
    NAMES.iter().find_map(|name| text(input, name)).map(str::to_owned)
}

/// The command that a call would run, quoted so that it cannot be mistaken for another.
fn command_in(input: &JsonObject) -> Option<String> {
    let command = ["command", "cmd"].iter().find_map(|name| match input.get(*name)? {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words: Option<Vec<_>> = words.iter().map(|word| word.as_str().map(quoted)).collect();
            Some(words?.join(" "))
        }
        _ => None,
    });
    let commands = || {
        let commands: Option<Vec<&str>> = input.get("commands")?.as_array()?.iter().map(Value::as_str).collect();
        Some(commands?.join("\n"))
    };
    command.filter(|command| !command.is_empty()).or_else(|| commands().filter(|commands| !commands.is_empty()))
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
