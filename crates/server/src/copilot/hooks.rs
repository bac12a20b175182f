//! Hooks of the SDK: functions of a client's program that the host calls.

use async_trait::async_trait;
use grove_core::{Answerer, SessionId};
use grove_host::SetupChange;
use grove_host::client_hooks::{
    ClientHookEvent, ClientHooks, HookAnswer, HookFailure, HookMoment, HookSource, HookVerdict, HookedResult,
};
use grove_host::setup::HookMode;
use grove_host::subscriber::Outgoing;
use grove_wire::copilot::hooks::*;
use grove_wire::copilot::methods::OpenParams;
use grove_wire::jsonrpc;

use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// The hooks of a client that has a session open.
struct SdkHooks(CopilotPeer);

impl CopilotPeer {
    /// How the hooks of a session count that a client opens.
    pub(super) fn hook_mode(&self, params: &OpenParams) -> HookMode {
        match params.hooks {
            Some(true) => self.host().config().client_hooks,
            Some(false) | None => HookMode::None,
        }
    }

    /// Registers the client's hooks for a session that it opens. The agent waits for them from its next turn on.
    pub(super) async fn open_hooks(
        &self,
        session: &SessionRef,
        mode: HookMode,
        source: HookSource,
    ) -> Result<(), CopilotError> {
        if mode.is_none() {
            // A client that opens the session again without hooks has none any more.
            self.host().client_hooks().remove(&session.id, self.id());
            return Ok(());
        }
        let change = SetupChange { hooks: Some(mode), ..SetupChange::default() };
        self.host().change_setup(&session.uri, change).await?;
        self.note_hooks();
        let hooks = std::sync::Arc::new(SdkHooks(self.clone()));
        self.host().client_hooks().register(&session.id, self.id(), hooks, source);
        Ok(())
    }

    /// Tells the client's hooks that it closes a session. The session expects no hooks any more if they were the last.
    pub(super) async fn close_hooks(&self, id: &SessionId) {
        let registry = self.host().client_hooks();
        if registry.remove(id, self.id()).is_none() {
            return;
        }
        let moment = HookMoment {
            session: id.clone(),
            at: self.host().env().clock.now(),
            folder: String::new(),
            event: ClientHookEvent::SessionEnd,
        };
        // Nobody needs the answer, and the client has the session open until it has the answer to its own request.
        self.invoke_hook(moment).ok();
        if registry.has_clients(id) {
            return;
        }
        let change = SetupChange { hooks: Some(HookMode::None), ..SetupChange::default() };
        if let Ok(session) = self.find(id.as_str()).await
            && let Err(error) = self.host().change_setup(&session.uri, change).await
        {
            tracing::warn!(session = %id, %error, "the session goes on expecting hooks");
        }
    }

    /// Sends the request to call a hook.
    fn invoke_hook(&self, moment: HookMoment) -> Result<jsonrpc::OutgoingCall, HookFailure> {
        let call = self.calls().begin(HOOKS_INVOKE, &invocation(moment)).map_err(failed)?;
        self.queue().push(Outgoing::Frame(call.frame.as_str().into()));
        Ok(call)
    }
}

#[async_trait]
impl ClientHooks for SdkHooks {
    async fn call(&self, moment: HookMoment) -> Result<HookAnswer, HookFailure> {
        let answer = self.0.invoke_hook(moment)?.answer().await.map_err(failed)?;
        let result: HookInvokeResult = serde_json::from_str(answer.get()).map_err(unreadable)?;
        Ok(answer_of(HookOutput::read(result.output).map_err(unreadable)?))
    }

    fn party(&self) -> Answerer {
        self.0.party().answerer()
    }
}

fn failed(error: jsonrpc::CallError) -> HookFailure {
    match error {
        jsonrpc::CallError::Closed => HookFailure::Disconnected,
        error => HookFailure::Failed(error.to_string()),
    }
}

fn unreadable(error: impl std::fmt::Display) -> HookFailure {
    HookFailure::Failed(format!("its answer cannot be read: {error}"))
}

fn invocation(moment: HookMoment) -> HookInvokeParams {
    let HookMoment { session, at, folder, event } = moment;
    let moment = input(event);
    HookInvokeParams {
        session_id: session.to_string(),
        hook_type: moment.hook_type().to_owned(),
        input: HookInput { session_id: session.to_string(), timestamp: at.0, cwd: folder, moment },
    }
}

fn input(event: ClientHookEvent) -> HookMomentInput {
    match event {
        ClientHookEvent::SessionStart { source, initial_prompt } => HookMomentInput::SessionStart {
            source: match source {
                HookSource::New => StartSource::New,
                HookSource::Resume => StartSource::Resume,
            },
            initial_prompt: Some(initial_prompt),
        },
        ClientHookEvent::SessionEnd => HookMomentInput::SessionEnd { reason: EndReason::UserExit },
        ClientHookEvent::PromptSubmitted { prompt } => HookMomentInput::UserPromptSubmitted { prompt },
        ClientHookEvent::BeforeTool(call) => {
            HookMomentInput::PreToolUse { tool_name: call.tool, tool_args: call.arguments }
        }
        ClientHookEvent::AfterTool { call, result: HookedResult { success: true, text } } => {
            HookMomentInput::PostToolUse {
                tool_name: call.tool,
                tool_args: call.arguments,
                tool_result: HookToolResult { text_result_for_llm: text, result_type: ToolResultType::Success },
            }
        }
        ClientHookEvent::AfterTool { call, result: HookedResult { success: false, text } } => {
            HookMomentInput::PostToolUseFailure { tool_name: call.tool, tool_args: call.arguments, error: text }
        }
        ClientHookEvent::AgentStop { is_again } => {
            HookMomentInput::AgentStop { stop_reason: "end_turn".to_owned(), stop_hook_active: is_again }
        }
        ClientHookEvent::Error { message, of_agent } => HookMomentInput::ErrorOccurred {
            error: message,
            error_context: if of_agent { ErrorContext::ModelCall } else { ErrorContext::System },
            recoverable: false,
        },
    }
}

fn answer_of(output: HookOutput) -> HookAnswer {
    let result = output.modified_result.map(|result| HookedResult {
        success: result.result_type == ToolResultType::Success,
        text: result.text_result_for_llm,
    });
    HookAnswer {
        verdict: output.permission_decision.and_then(|verdict| match verdict {
            PermissionVerdict::Allow => Some(HookVerdict::Allow),
            PermissionVerdict::Ask => Some(HookVerdict::Ask),
            PermissionVerdict::Deny => Some(HookVerdict::Deny),
            // Reading an output refuses other words.
            PermissionVerdict::Unknown(_) => None,
        }),
        reason: output.permission_decision_reason.or(output.reason),
        arguments: output.modified_args,
        prompt: output.modified_prompt,
        result,
        context: output.additional_context,
        blocks_stop: output.blocks,
    }
}
