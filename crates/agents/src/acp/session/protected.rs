//! Asking a person before an agent writes a protected file, one that decides what runs in the workspace, and before it uses
//! a file outside the working directories.

use std::path::Path;
use std::time::Duration;

use grove_core::*;
use grove_wire::jsonrpc::ErrorObject;
use tokio::sync::oneshot;

use super::process::TurnHandle;
use super::requests::answered;
use crate::acp::map;
use crate::acp::serve::{IS_ELSEWHERE, PlannedWrite};
use crate::agent::*;
use crate::sink::TurnSink;

/// The names of the tool calls that stand for such a use.
const WRITE: &str = "write_text_file";
const READ: &str = "read_text_file";

/// The use of a file that a person has approved.
#[derive(Debug)]
pub(super) struct ApprovedUse {
    sink: TurnSink,
    call: ToolCallId,
    edit: Option<ToolOutputPart>,
}

/// Asks whether a planned write may happen; the error is for the agent. `waited` receives the answer to a question that
/// an earlier host asked.
pub(super) async fn ask(
    planned: &PlannedWrite,
    turn_request: Option<(TurnHandle, RequestId)>,
    waited: Option<PendingAnswer>,
    patience: Duration,
) -> Result<ApprovedUse, ErrorObject> {
    let path = planned.path.display();
    let reason = planned.protected.as_ref().map_or("is protected", |protected| protected.reason);
    let refused = |why: &str| ErrorObject::invalid_params(format!("{path} was not written: it {reason}, and {why}"));
    let Some((turn, request)) = turn_request else { return Err(refused("nobody can be asked while no turn runs")) };
    let call = ToolCallId::from(format!("write/{request}"));
    let sink = turn.sink.clone();
    let answer = ask_person(&sink, waited, |answer| question(planned, reason, request, call.clone(), answer)).await;
    match answered(answer, turn, patience).await {
        Some(verdict) if verdict.decision == Decision::Approved => {
            Ok(ApprovedUse { sink, call, edit: Some(edit(planned)) })
        }
        Some(verdict) => Err(refused(map::denial_reason(&verdict).unwrap_or("the person denied it"))),
        None => Err(refused("nobody has approved it")),
    }
}

/// Asks whether a file outside the working directories may be read; the error is for the agent.
pub(super) async fn ask_to_read(
    path: &Path,
    turn_request: Option<(TurnHandle, RequestId)>,
    waited: Option<PendingAnswer>,
    patience: Duration,
) -> Result<ApprovedUse, ErrorObject> {
    let refused = |why: &str| {
        ErrorObject::invalid_params(format!("{} was not read: it {IS_ELSEWHERE}, and {why}", path.display()))
    };
    let Some((turn, request)) = turn_request else { return Err(refused("nobody can be asked while no turn runs")) };
    let call = ToolCallId::from(format!("read/{request}"));
    let sink = turn.sink.clone();
    let answer = ask_person(&sink, waited, |answer| read_question(path, request, call.clone(), answer)).await;
    match answered(answer, turn, patience).await {
        Some(verdict) if verdict.decision == Decision::Approved => Ok(ApprovedUse { sink, call, edit: None }),
        Some(verdict) => Err(refused(map::denial_reason(&verdict).unwrap_or("the person denied it"))),
        None => Err(refused("nobody has approved it")),
    }
}

/// Reports a question, unless an earlier host asked it, and returns the receiver of the answer.
async fn ask_person(
    sink: &TurnSink,
    waited: Option<PendingAnswer>,
    question: impl FnOnce(oneshot::Sender<Verdict>) -> ToolUpdate,
) -> oneshot::Receiver<Verdict> {
    match waited {
        Some(PendingAnswer::Permission(_, waited)) => waited,
        Some(PendingAnswer::Question(_) | PendingAnswer::Result(..)) | None => {
            let (answer, verdict) = oneshot::channel();
            // Without a receiver the host is ending, and the next one asks.
            sink.report(vec![AgentEvent::Tool(Box::new(question(answer)))], None).await.ok();
            verdict
        }
    }
}

fn read_question(path: &Path, id: RequestId, call: ToolCallId, answer: oneshot::Sender<Verdict>) -> ToolUpdate {
    let path = path.display().to_string();
    let title = format!("Read {path}");
    let request = PermissionRequest {
        id,
        kind: PermissionKind::Read,
        path: Some(path.clone()),
        full_command_text: None,
        intention: Some(format!("{path} {IS_ELSEWHERE}.")),
        title: Some(title.clone()),
        options: vec![option("allow_once", "Allow this read", true), option("reject_once", "Do not read", false)],
        edits: vec![],
        editable: false,
    };
    ToolUpdate {
        name: Some(READ.to_owned()),
        kind: Some(ToolKind::Read),
        title: Some(title),
        stage: Some(ToolStage::Pending),
        permission: Some(PermissionPrompt::new(request, answer)),
        ..ToolUpdate::of(call)
    }
}

fn option(id: &str, label: &str, allows: bool) -> PermissionOption {
    PermissionOption { id: id.to_owned(), label: label.to_owned(), allows, lasting: false }
}

fn question(
    planned: &PlannedWrite,
    reason: &str,
    id: RequestId,
    call: ToolCallId,
    answer: oneshot::Sender<Verdict>,
) -> ToolUpdate {
    let path = planned.path.display().to_string();
    let title = format!("Write {path}");
    let request = PermissionRequest {
        id,
        kind: PermissionKind::Write,
        path: Some(path.clone()),
        full_command_text: None,
        intention: Some(format!("{path} {reason}.")),
        title: Some(title.clone()),
        options: vec![option("allow_once", "Allow this write", true), option("reject_once", "Do not write", false)],
        edits: vec![],
        editable: false,
    };
    ToolUpdate {
        name: Some(WRITE.to_owned()),
        kind: Some(ToolKind::Edit),
        title: Some(title),
        stage: Some(ToolStage::Pending),
        output: Some(AccumulatedOutput { text: String::new(), pieces: vec![edit(planned)] }),
        permission: Some(PermissionPrompt::new(request, answer)),
        ..ToolUpdate::of(call)
    }
}

fn edit(planned: &PlannedWrite) -> ToolOutputPart {
    let before = planned.protected.as_ref().and_then(|protected| protected.before.clone());
    ToolOutputPart::Edit { path: planned.path.display().to_string(), before, after: Some(planned.content.clone()) }
}

impl ApprovedUse {
    /// Reports the outcome.
    pub(super) async fn done(self, error: Option<&ErrorObject>) {
        let (stage, output) = match error {
            None => (
                ToolStage::Completed,
                AccumulatedOutput { text: String::new(), pieces: self.edit.into_iter().collect() },
            ),
            Some(error) => (ToolStage::Failed, AccumulatedOutput { text: error.message.clone(), pieces: vec![] }),
        };
        let update = ToolUpdate { stage: Some(stage), output: Some(output), ..ToolUpdate::of(self.call) };
        // Without a receiver the host is ending.
        self.sink.report(vec![AgentEvent::Tool(Box::new(update))], None).await.ok();
    }
}
