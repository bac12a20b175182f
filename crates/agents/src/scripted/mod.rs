//! The scripted agent: does exactly what the prompt tells it.
//!
//! A message whose text begins with `script:` carries a JSON array of steps (see `script.rs`), which run in order. A
//! script that is too large for a message is read from the file that the message refers to. Any other text is answered
//! by a short canned conversation that shows streaming, a tool call and a permission. Its summaries are made without a
//! model as well (see `summary.rs`).

mod mcp;
pub(crate) mod script;
mod summary;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use grove_core::*;
use serde_json::Value;

use crate::agent::*;
use crate::setup::{
    AgentAbilities, AgentSetup, HookAbility, McpAbilities, Support, SystemMessageAbility, ToolFilterAbility,
};
use crate::sink::TurnSink;
use crate::spills::SpillStore;
use mcp::McpCall;
use script::{ClientCall, Say, Script, ScriptStep, ScriptedEdit, ScriptedPart, ScriptedTool};
use summary::ScriptedSummarizer;

/// The scripted agent. It needs no model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptedAgent;

/// The model whose sessions take [`SLOW_START`] to create.
const SLOW: &str = "scripted/slow-start";
/// The model whose sessions fail to be created after [`FAILED_START`].
const FAILING: &str = "scripted/fails-to-start";
/// The prefix of a message that is a script.
const SCRIPT: &str = "script:";
/// The largest script that is read.
pub const LARGEST_SCRIPT: usize = 16 << 20;
/// The duration of a slow start.
pub const SLOW_START: Duration = Duration::from_millis(1_000);
/// The duration of a failing start: long enough for a turn to be started meanwhile.
pub const FAILED_START: Duration = Duration::from_millis(250);

#[async_trait]
impl Agent for ScriptedAgent {
    fn info(&self) -> AgentInfo {
        let model = |id: &str, name: &str| ModelInfo {
            id: id.into(),
            name: name.to_owned(),
            max_context_window: None,
            supports_vision: None,
        };
        AgentInfo {
            id: "scripted".into(),
            display_name: "Scripted".to_owned(),
            description: "Does what the prompt's script says; needs no model".to_owned(),
            models: vec![
                model("scripted", "Scripted"),
                model(SLOW, "Scripted, slow to start"),
                model(FAILING, "Scripted, fails to start"),
            ],
        }
    }

    async fn open(&self, session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        match session.model.as_ref().map(ModelId::as_str) {
            Some(SLOW) => tokio::time::sleep(SLOW_START).await,
            Some(FAILING) => {
                tokio::time::sleep(FAILED_START).await;
                return Err(AgentError::Start(format!("the model {FAILING} is made to fail: choose another")));
            }
            Some(_) | None => {}
        }
        let asks_hooks = !session.setup.hooks.is_none();
        let OpenSession { spills, setup, working_directories, .. } = session;
        let folder = working_directories.into_iter().next();
        Ok(Arc::new(ScriptedSession { steering: Mutex::default(), spills, asks_hooks, setup, folder }))
    }

    fn abilities(&self) -> AgentAbilities {
        AgentAbilities {
            mcp: McpAbilities { stdio: Support::Yes, ..McpAbilities::default() },
            system_message: SystemMessageAbility::Native,
            tool_filter: ToolFilterAbility::Native,
            hooks: HookAbility::EveryCall,
            changed_arguments: Support::Yes,
            ..AgentAbilities::default()
        }
    }

    fn turn_survival(&self) -> TurnSurvival {
        TurnSurvival::PendingRequest
    }

    fn summarizer(&self) -> Option<Arc<dyn Summarizer>> {
        Some(Arc::new(ScriptedSummarizer))
    }
}

/// Messages to running turns, until the script handles them.
struct ScriptedSession {
    steering: Mutex<HashMap<TurnId, Vec<String>>>,
    /// Holds scripts that are too large for a message.
    spills: Arc<dyn SpillStore>,
    /// The session has hooks, which are asked before every call.
    asks_hooks: bool,
    setup: Arc<AgentSetup>,
    folder: Option<String>,
}

impl ScriptedSession {
    // Nothing that can panic happens while it is held, so a poisoned lock still guards complete data.
    fn steering(&self) -> MutexGuard<'_, HashMap<TurnId, Vec<String>>> {
        self.steering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the tools that the session may not use.
    fn filter(&self, prompt: &mut Prompt) {
        prompt.client_tools.retain(|offered| self.setup.tool_filter.allows(&offered.tool.name));
    }

    async fn script_of(&self, prompt: &Prompt) -> Result<Script, AgentError> {
        let Some(steps) = prompt.message.text.strip_prefix(SCRIPT) else {
            return Ok(script::canned(&prompt.message.text));
        };
        match self.pasted(&prompt.message).await? {
            Some(whole) => whole.strip_prefix(SCRIPT).unwrap_or(&whole).parse(),
            None => steps.parse(),
        }
    }

    /// The full text of a message that was too large and holds only the beginning. It is attached last.
    async fn pasted(&self, message: &Message) -> Result<Option<String>, AgentError> {
        let Some(last) = message.attachments.last() else { return Ok(None) };
        let Ok(path) = grove_work::local_path(&last.path) else { return Ok(None) };
        let unreadable = |reason: String| AgentError::Script(format!("{} cannot be read: {reason}", last.path));
        match self.spills.read(&path, LARGEST_SCRIPT).await {
            Some(Ok(bytes)) => String::from_utf8(bytes).map(Some).map_err(|error| unreadable(error.to_string())),
            Some(Err(reason)) => Err(unreadable(reason)),
            None => Ok(None),
        }
    }

    /// Runs a script from a step on; messages to the turn are repeated between two steps.
    async fn run(&self, script: Script, from: usize, prompt: &Prompt, turn: &TurnSink) -> Result<(), AgentError> {
        self.steering().insert(turn.turn().clone(), Vec::new());
        for (number, step) in script.steps.into_iter().enumerate().skip(from) {
            self.take(step, number, prompt, turn).await?;
            let messages = self.steering().get_mut(turn.turn()).map(std::mem::take).unwrap_or_default();
            for text in messages {
                turn.text(format!("You say: {text}\n")).await?;
            }
        }
        self.steering().remove(turn.turn());
        Ok(())
    }

    async fn take(&self, step: ScriptStep, number: usize, prompt: &Prompt, turn: &TurnSink) -> Result<(), AgentError> {
        match step {
            ScriptStep::Say(say) => speak(say, turn).await,
            ScriptStep::Reason(text) => turn.reasoning(text).await,
            ScriptStep::ScriptedTool(tool) if !self.setup.tool_filter.allows(&tool.name) => {
                turn.text(format!("The session may not use the tool {}.\n", tool.name)).await
            }
            ScriptStep::ScriptedTool(tool) => call_tool(tool, number, self.asks_hooks, turn).await,
            ScriptStep::ClientTool(call) => call_client(call, number, prompt, self.asks_hooks, turn).await,
            ScriptStep::McpTool(call) => call_server(call, number, self, turn).await,
            ScriptStep::ScriptedPart(ScriptedPart { mime_type, body }) => turn.body(mime_type, body).await,
            ScriptStep::Usage(usage) => turn.usage(usage).await,
            ScriptStep::Title(title) => turn.title(title).await,
            ScriptStep::Ask(mut request) => {
                request.id = format!("{}-ask-{number}", turn.turn()).into();
                turn.ask(*request).await.map(|_| ())
            }
            ScriptStep::Instructions => {
                let instructions = self.setup.instructions();
                turn.text(instructions.as_ref().map_or("none", |message| message.content.as_str())).await
            }
            ScriptStep::Fail(message) => Err(AgentError::TurnFailed(message)),
            ScriptStep::Sleep(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            ScriptStep::Hang => std::future::pending().await,
        }
    }
}

#[async_trait]
impl AgentSession for ScriptedSession {
    async fn prompt(&self, mut prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        self.filter(&mut prompt);
        self.run(self.script_of(&prompt).await?, 0, &prompt, &turn).await
    }

    /// A script waits in one step at a time, and its question is named after the step.
    async fn resume(&self, mut prompt: Prompt, from: Resumption, turn: TurnSink) -> Result<(), AgentError> {
        self.filter(&mut prompt);
        let lost = || AgentError::TurnFailed("the script's position is lost".to_owned());
        let PendingRequest { request, answer_from } = from.waiting.into_iter().next().ok_or_else(lost)?;
        let number: usize = request.as_str().rsplit('-').next().and_then(|n| n.parse().ok()).ok_or_else(lost)?;
        let script = self.script_of(&prompt).await?;
        match (answer_from, script.steps.get(number).ok_or_else(lost)?) {
            (PendingAnswer::Permission(call, answer), ScriptStep::ScriptedTool(tool)) => {
                if answer.await.map_err(|_| AgentError::TurnOver)?.decision == Decision::Approved {
                    complete_tool(tool, call, &turn).await?;
                }
            }
            (PendingAnswer::Result(_, result), ScriptStep::ClientTool(_)) => {
                result.await.map_err(|_| AgentError::TurnOver)?;
            }
            (PendingAnswer::Question(answer), ScriptStep::Ask(_)) => {
                answer.await.map_err(|_| AgentError::TurnOver)?;
            }
            (_, _) => return Err(lost()),
        }
        self.run(script, number + 1, &prompt, &turn).await
    }

    fn can_steer(&self) -> bool {
        true
    }

    async fn steer(&self, turn: &TurnId, message: Message) {
        if let Some(messages) = self.steering().get_mut(turn) {
            messages.push(message.text);
        }
    }

    // Everything else happens in the prompt's own future, which the host drops.
    async fn cancel(&self, turn: &TurnId) {
        self.steering().remove(turn);
    }
}

async fn speak(say: Say, turn: &TurnSink) -> Result<(), AgentError> {
    for (n, piece) in say.pieces().enumerate() {
        if n > 0 && !say.delay.is_zero() {
            tokio::time::sleep(say.delay).await;
        }
        turn.text(piece).await?;
    }
    Ok(())
}

async fn call_tool(tool: ScriptedTool, number: usize, asks_hooks: bool, turn: &TurnSink) -> Result<(), AgentError> {
    let id = ToolCallId::from(format!("{}-call-{number}", turn.turn()));
    let shell = tool.permission == Some(PermissionKind::Shell);
    turn.tool_started(NewToolCall {
        id: id.clone(),
        name: tool.name.clone(),
        display_name: tool.name.clone(),
        kind: match shell {
            true => Some(ToolKind::Terminal),
            false => (!tool.edits.is_empty()).then_some(ToolKind::Edit),
        },
        language: shell.then(|| "shellscript".to_owned()),
        client: None,
        extra: None,
    })
    .await?;

    let (message, input) = (format!("Running {}", tool.name), tool.input.clone());
    let verdict = match tool.permission {
        None if !asks_hooks => {
            turn.tool_runs(id.clone(), message, input).await?;
            None
        }
        None => Some(turn.hooks_ask(id.clone(), message, input, hook_request(&tool.name, number, turn)).await?),
        Some(kind) => {
            let names_path = matches!(kind, PermissionKind::Read | PermissionKind::Write);
            let request = PermissionRequest {
                id: permission_id(number, turn),
                kind,
                path: tool.input.clone().filter(|_| names_path),
                full_command_text: tool.input.clone().filter(|_| shell),
                intention: Some(format!("Run {}", tool.name)),
                title: None,
                options: tool.options.clone(),
                edits: vec![],
                editable: tool.editable,
            };
            Some(turn.tool_asks(id.clone(), message, input, request).await?)
        }
    };
    if verdict.is_some_and(|verdict| verdict.decision == Decision::Denied) {
        return Ok(());
    }
    complete_tool(&tool, id, turn).await
}

/// Lets a client run one of its tools, and repeats the result.
async fn call_client(
    call: ClientCall,
    number: usize,
    prompt: &Prompt,
    asks_hooks: bool,
    turn: &TurnSink,
) -> Result<(), AgentError> {
    let offered = prompt.client_tools.iter().find(|offered| offered.tool.name == call.name);
    let offered = offered.ok_or_else(|| AgentError::TurnFailed(format!("no client offers a tool {}", call.name)))?;
    // Named after its step as a question is, so that a script can continue from here.
    let id = ToolCallId::from(format!("{}-call-{number}", turn.turn()));
    turn.tool_started(NewToolCall {
        id: id.clone(),
        name: call.name.clone(),
        display_name: call.name.clone(),
        kind: None,
        language: None,
        client: Some(offered.client.clone()),
        extra: None,
    })
    .await?;
    let hooks = asks_hooks.then(|| hook_request(&call.name, number, turn));
    let result = turn.client_runs(id, format!("Running {}", call.name), call.input, hooks).await?;
    let Some(result) = result else { return Ok(()) };
    turn.text(format!("{} gave: {}\n", call.name, result.output.unwrap_or_default())).await
}

/// Calls a tool of one of the session's MCP servers, and repeats the result.
async fn call_server(
    call: McpCall,
    number: usize,
    session: &ScriptedSession,
    turn: &TurnSink,
) -> Result<(), AgentError> {
    let id = ToolCallId::from(format!("{}-call-{number}", turn.turn()));
    turn.tool_started(NewToolCall {
        id: id.clone(),
        name: format!("{}-{}", call.server, call.tool),
        display_name: call.tool.clone(),
        kind: None,
        language: None,
        client: None,
        extra: None,
    })
    .await?;
    let (message, input) = (format!("Running {}", call.tool), call.arguments.as_ref().map(Value::to_string));
    if session.asks_hooks {
        let request = hook_request(&call.tool, number, turn);
        if turn.hooks_ask(id.clone(), message, input, request).await?.decision == Decision::Denied {
            return Ok(());
        }
    } else {
        turn.tool_runs(id.clone(), message, input).await?;
    }
    let (success, text) =
        mcp::call(&session.setup, session.folder.as_ref(), &call).await.unwrap_or_else(|reason| (false, reason));
    let verb = if success { "ran" } else { "failed" };
    let past_tense_message = format!("{} {verb}", call.tool);
    let result = ToolResult { success, past_tense_message, output: Some(text.clone()), attached: vec![], extra: None };
    turn.tool_completed(id, result).await?;
    turn.text(format!("{} gave: {text}\n", call.tool)).await
}

fn permission_id(number: usize, turn: &TurnSink) -> RequestId {
    format!("{}-permission-{number}", turn.turn()).into()
}

/// The request for a call that a script lets run: a person sees it if a hook wants them to decide.
fn hook_request(tool: &str, number: usize, turn: &TurnSink) -> PermissionRequest {
    PermissionRequest {
        id: permission_id(number, turn),
        kind: PermissionKind::Mcp,
        path: None,
        full_command_text: None,
        intention: Some(format!("Run {tool}")),
        title: None,
        options: vec![],
        edits: vec![],
        editable: false,
    }
}

async fn complete_tool(tool: &ScriptedTool, call: ToolCallId, turn: &TurnSink) -> Result<(), AgentError> {
    let past_tense_message = match tool.success {
        true => format!("Ran {}", tool.name),
        false => format!("{} failed", tool.name),
    };
    if !tool.edits.is_empty() {
        let pieces = tool.edits.iter().map(ScriptedEdit::part).collect();
        let output = AccumulatedOutput { text: tool.output.clone().unwrap_or_default(), pieces };
        let stage = if tool.success { ToolStage::Completed } else { ToolStage::Failed };
        let update = ToolUpdate {
            title: Some(past_tense_message),
            stage: Some(stage),
            output: Some(output),
            ..ToolUpdate::of(call)
        };
        return turn.report(vec![AgentEvent::Tool(Box::new(update))], None).await;
    }
    let output = tool.output.clone();
    let result = ToolResult { success: tool.success, past_tense_message, output, attached: vec![], extra: None };
    turn.tool_completed(call, result).await
}
