//! Asking a person before an agent writes a protected file: one that decides what runs in the workspace.

use std::time::Duration;

use grove_core::*;
use grove_wire::jsonrpc::ErrorObject;
use tokio::sync::oneshot;

use super::process::TurnHandle;
use super::requests::answered;
use crate::acp::map;
use crate::acp::serve::PlannedWrite;
use crate::agent::*;

/// The name of the tool call that stands for such a write.
const TOOL: &str = "write_text_file";

/// A write that a person has approved.
#[derive(Debug)]
pub(super) struct ApprovedWrite {
    sink: TurnSink,
    call: ToolCallId,
    edit: ToolOutputPart,
}

/// Asks whether a planned write may happen; the error is for the agent. `waited` receives the answer to a question that
/// an earlier host asked.
pub(super) async fn ask(
    planned: &PlannedWrite,
    turn_request: Option<(TurnHandle, RequestId)>,
    waited: Option<PendingAnswer>,
    patience: Duration,
) -> Result<ApprovedWrite, ErrorObject> {
    let path = planned.path.display();
    let reason = planned.protected.as_ref().map_or("is protected", |protected| protected.reason);
    let refused = |why: &str| ErrorObject::invalid_params(format!("{path} was not written: it {reason}, and {why}"));
    let Some((turn, request)) = turn_request else { return Err(refused("nobody can be asked while no turn runs")) };
    let call = ToolCallId::from(format!("write/{request}"));
    let sink = turn.sink.clone();
    let answer = match waited {
        Some(PendingAnswer::Permission(_, waited)) => waited,
        Some(PendingAnswer::Question(_) | PendingAnswer::Result(..)) | None => {
            let (answer, verdict) = oneshot::channel();
            let update = question(planned, reason, request, call.clone(), answer);
            // Without a receiver the host is ending, and the next one asks.
            sink.report(vec![AgentEvent::Tool(Box::new(update))], None).await.ok();
            verdict
        }
    };
    match answered(answer, turn, patience).await {
        Some(verdict) if verdict.decision == Decision::Approved => {
            Ok(ApprovedWrite { sink, call, edit: edit(planned) })
        }
        Some(verdict) => Err(refused(map::denial_reason(&verdict).unwrap_or("the person denied it"))),
        None => Err(refused("nobody has approved it")),
    }
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
    let option = |id: &str, label: &str, allows: bool| PermissionOption {
        id: id.to_owned(),
        label: label.to_owned(),
        allows,
        lasting: false,
    };
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
        name: Some(TOOL.to_owned()),
        kind: Some(ToolKind::Edit),
        title: Some(title),
        stage: Some(ToolStage::Pending),
        output: Some(AccumulatedOutput { text: String::new(), pieces: vec![edit(planned)] }),
        permission: Some(PermissionPrompt { request, answer }),
        ..ToolUpdate::of(call)
    }
}

fn edit(planned: &PlannedWrite) -> ToolOutputPart {
    let before = planned.protected.as_ref().and_then(|protected| protected.before.clone());
    ToolOutputPart::Edit { path: planned.path.display().to_string(), before, after: Some(planned.content.clone()) }
}

impl ApprovedWrite {
    /// Reports the outcome of the write.
    pub(super) async fn done(self, error: Option<&ErrorObject>) {
        let (stage, output) = match error {
            None => (ToolStage::Completed, AccumulatedOutput { text: String::new(), pieces: vec![self.edit] }),
            Some(error) => (ToolStage::Failed, AccumulatedOutput { text: error.message.clone(), pieces: vec![] }),
        };
        let update = ToolUpdate { stage: Some(stage), output: Some(output), ..ToolUpdate::of(self.call) };
        // Without a receiver the host is ending.
        self.sink.report(vec![AgentEvent::Tool(Box::new(update))], None).await.ok();
    }
}
