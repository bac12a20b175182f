//! Converts clients' actions to core's commands.

use grove_core::{self as core, ClientCommand, Decision, PermissionTarget};

use super::action::*;
use super::state::*;

/// The command of an action that a client dispatched.
pub fn command(action: Action) -> Result<ClientCommand, NotDispatchable> {
    let kind = action.kind();
    let Action::Session(action) = action else { return Err(NotDispatchable(kind)) };
    let chat = core::ChatId::from(core::Session::MAIN_CHAT);
    match action.change {
        SessionChange::TurnStarted { turn_id, user_message } => Ok(ClientCommand::StartTurn {
            chat,
            turn: turn_id.into(),
            message: message(user_message),
            started_at: None,
        }),
        SessionChange::TurnCancelled { turn_id } => Ok(ClientCommand::CancelTurn { chat, turn: turn_id.into() }),
        SessionChange::PermissionResolved { turn_id, request_id, approved, policy_rule: _ } => {
            Ok(ClientCommand::ResolvePermission {
                chat,
                turn: turn_id.into(),
                question: PermissionTarget::Request(request_id.into()),
                verdict: if approved { Decision::Approved.into() } else { Decision::Denied.into() },
                answered_by: None,
            })
        }
        SessionChange::ModelChanged { model } => Ok(ClientCommand::ChangeModel(model.into())),
        SessionChange::Ready
        | SessionChange::CreationFailed { .. }
        | SessionChange::Delta { .. }
        | SessionChange::ResponsePart { .. }
        | SessionChange::ToolStart { .. }
        | SessionChange::ToolComplete { .. }
        | SessionChange::PermissionRequest { .. }
        | SessionChange::TurnComplete { .. }
        | SessionChange::Error { .. }
        | SessionChange::TitleChanged { .. }
        | SessionChange::Usage { .. }
        | SessionChange::Reasoning { .. } => Err(NotDispatchable(kind)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only the host may dispatch {}", .0.as_str())]
pub struct NotDispatchable(pub ActionType);

fn message(message: UserMessage) -> core::Message {
    core::Message {
        attachments: message
            .attachments
            .unwrap_or_default()
            .into_iter()
            .map(|attachment| core::Attachment {
                kind: match attachment.kind {
                    AttachmentKind::File => core::AttachmentKind::File,
                    AttachmentKind::Directory => core::AttachmentKind::Directory,
                    AttachmentKind::Selection => core::AttachmentKind::Selection,
                },
                path: attachment.path,
                display_name: attachment.display_name,
            })
            .collect(),
        ..core::Message::user(message.text)
    }
}
