//! Permission requests: the editor is asked, and its answer goes to the host.
//!
//! Other clients see the same request. If one of them answers first, the question in the editor is withdrawn.

use agent_client_protocol_schema::v1 as acp;
use grove_wire::ahp::{
    Action, ChatAction, ChatToolCallConfirmed, ChatToolCallResultConfirmed, ConfirmationOption, ConfirmationOptionKind,
    SessionToolConfirmationRequest, ToolCallCancellationReason, ToolCallConfirmation, ToolCallConfirmationReason,
    ToolCallState,
};
use serde::Deserialize;

use crate::content::ContentLoader;
use crate::editor::Editor;
use crate::session::EditorSession;
use crate::tool_call::{self, CallDraft};

/// The answers to a request that names none.
const ALLOW: &str = "grove.allow";
const DENY: &str = "grove.deny";

/// The editor's decision.
#[derive(Debug, PartialEq, Eq)]
struct EditorDecision {
    approved: bool,
    /// The option of the request; `None` if it names none.
    option: Option<String>,
}

/// Asks the editor, and gives its answer to the host. Dropping this withdraws the question.
pub(crate) async fn ask(session: &EditorSession, editor: &Editor, request: SessionToolConfirmationRequest) {
    let Some((draft, options)) = question(&request.tool_call) else { return };
    let mut contents = ContentLoader::new(session.host.client.clone());
    let content = contents.tool_contents(&draft.content).await;
    let keeps_terminal = session.editor.terminal_output && draft.is_command && content.is_empty();
    let mut call = draft.update(None, content);
    if keeps_terminal {
        call.fields.content = None;
    }
    let shown = options.iter().map(option).collect();
    let params = acp::RequestPermissionRequest::new(acp::SessionId::new(session.id.as_str()), call, shown);
    let answer = match editor.ask(acp::CLIENT_METHOD_NAMES.session_request_permission, &params).await {
        Ok(answer) => answer,
        Err(error) => {
            // The request stays open for other clients.
            tracing::warn!(%error, session = session.id, "the editor did not answer a permission request");
            return;
        }
    };
    let answer = serde_json::from_str::<acp::RequestPermissionResponse>(answer.get());
    let Some(decision) = answer.ok().and_then(|answer| decision(&answer.outcome, &options)) else {
        tracing::debug!(session = session.id, "the editor left a permission request open");
        return;
    };
    let action = confirm(&request, decision);
    session.answer_request(editor, &request.id, &Action::Chat(action)).await;
}

/// The call to show, and the answers to choose from.
fn question(call: &ToolCallConfirmation) -> Option<(CallDraft, Vec<ConfirmationOption>)> {
    let plain = |id: &str, label: &str, kind| ConfirmationOption {
        id: id.to_owned(),
        label: label.to_owned(),
        kind,
        group: None,
    };
    let allow_or_deny = || {
        let approve = plain(ALLOW, "Allow", ConfirmationOptionKind::Approve);
        vec![approve, plain(DENY, "Deny", ConfirmationOptionKind::Deny)]
    };
    match call {
        ToolCallConfirmation::PendingConfirmation(call) => {
            let draft = tool_call::waiting(call);
            let options = call.options.clone().filter(|options| !options.is_empty());
            Some((draft, options.unwrap_or_else(allow_or_deny)))
        }
        ToolCallConfirmation::PendingResultConfirmation(call) => {
            let draft = tool_call::draft(&ToolCallState::PendingResultConfirmation(call.clone()))?;
            let title = format!("Use the result? {}", draft.title);
            Some((CallDraft { title, ..draft }, allow_or_deny()))
        }
        ToolCallConfirmation::Unknown(_) => None,
    }
}

fn option(option: &ConfirmationOption) -> acp::PermissionOption {
    let lasting = option.group.is_some();
    let kind = match (approves(option), lasting) {
        (true, false) => acp::PermissionOptionKind::AllowOnce,
        (true, true) => acp::PermissionOptionKind::AllowAlways,
        (false, false) => acp::PermissionOptionKind::RejectOnce,
        (false, true) => acp::PermissionOptionKind::RejectAlways,
    };
    acp::PermissionOption::new(acp::PermissionOptionId::new(option.id.as_str()), option.label.clone(), kind)
}

fn approves(option: &ConfirmationOption) -> bool {
    option.kind == ConfirmationOptionKind::Approve
}

/// The decision; `None` if there is none, or it is none of the options.
fn decision(outcome: &acp::RequestPermissionOutcome, options: &[ConfirmationOption]) -> Option<EditorDecision> {
    let acp::RequestPermissionOutcome::Selected(selected) = outcome else { return None };
    let chosen = options.iter().find(|option| *option.id == *selected.option_id.0)?;
    let is_ours = chosen.id == ALLOW || chosen.id == DENY;
    Some(EditorDecision { approved: approves(chosen), option: (!is_ours).then(|| chosen.id.clone()) })
}

fn confirm(request: &SessionToolConfirmationRequest, decision: EditorDecision) -> ChatAction {
    let turn_id = request.turn_id.clone();
    let EditorDecision { approved, option } = decision;
    match &request.tool_call {
        ToolCallConfirmation::PendingResultConfirmation(call) => {
            let tool_call_id = call.base.tool_call_id.clone();
            ChatAction::ToolCallResultConfirmed(ChatToolCallResultConfirmed {
                turn_id,
                tool_call_id,
                meta: None,
                approved,
            })
        }
        call => ChatAction::ToolCallConfirmed(Box::new(ChatToolCallConfirmed {
            turn_id,
            tool_call_id: call_id(call),
            meta: None,
            approved,
            confirmed: approved.then_some(ToolCallConfirmationReason::UserAction),
            reason: (!approved).then_some(ToolCallCancellationReason::Denied),
            edited_tool_input: None,
            user_suggestion: None,
            reason_message: None,
            selected_option_id: option,
        })),
    }
}

fn call_id(call: &ToolCallConfirmation) -> String {
    match call {
        ToolCallConfirmation::PendingConfirmation(call) => call.base.tool_call_id.clone(),
        ToolCallConfirmation::PendingResultConfirmation(call) => call.base.tool_call_id.clone(),
        ToolCallConfirmation::Unknown(value) => {
            value.get("toolCallId").and_then(|id| String::deserialize(id).ok()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_option(id: &str, kind: ConfirmationOptionKind, group: Option<i64>) -> ConfirmationOption {
        ConfirmationOption { id: id.to_owned(), label: id.to_owned(), kind, group }
    }

    #[test]
    fn an_answer_that_is_none_of_the_options_decides_nothing() {
        let options = [request_option("yes", ConfirmationOptionKind::Approve, Some(1))];
        let selected = |id: &str| {
            let id = acp::PermissionOptionId::new(id);
            acp::RequestPermissionOutcome::Selected(acp::SelectedPermissionOutcome::new(id))
        };
        assert_eq!(decision(&selected("no"), &options), None);
        assert_eq!(decision(&acp::RequestPermissionOutcome::Cancelled, &options), None);
        let approved = EditorDecision { approved: true, option: Some("yes".to_owned()) };
        assert_eq!(decision(&selected("yes"), &options), Some(approved));
    }

    #[test]
    fn an_option_of_unknown_kind_never_allows() {
        let unknown = request_option("x", ConfirmationOptionKind::Unknown("later".to_owned()), None);
        assert_eq!(option(&unknown).kind, acp::PermissionOptionKind::RejectOnce);
        let lasting = request_option("x", ConfirmationOptionKind::Approve, Some(1));
        assert_eq!(option(&lasting).kind, acp::PermissionOptionKind::AllowAlways);
    }
}
