//! Commands: of the agent, of the host, and of clients.

use grove_core::{AgentCommand, Session};
use grove_wire::copilot::events::{CommandCompleted, CommandExecute, CommandQueued, PendingMessagesModified};
use grove_wire::copilot::methods::*;

use super::client_requests::QueuedCommand;
use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// The host's own commands.
const HOST_COMMANDS: [(&str, &str); 2] = [
    ("compact", "Summarize the conversation so far, to make room in the agent's context"),
    ("model", "Show the session's model"),
];

impl CopilotPeer {
    pub(super) async fn list_commands(&self, params: SessionParams) -> Result<CommandsListResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let own = HOST_COMMANDS.map(|(name, description)| CommandInfo {
            name: name.to_owned(),
            description: description.to_owned(),
            kind: CommandKind::BuiltIn,
            input: None,
            allow_during_agent_execution: false,
        });
        let agents: Vec<AgentCommand> = self.look(&session, |session| session.details.commands.clone()).await?;
        let agents = agents.into_iter().map(|command| CommandInfo {
            name: command.name,
            description: command.description,
            kind: CommandKind::BuiltIn,
            input: command.hint.map(|hint| CommandInput { hint }),
            allow_during_agent_execution: false,
        });
        let clients = self.endpoint().feeds().of(&session.id).map(|feed| feed.commands()).unwrap_or_default();
        let clients = clients.into_iter().map(|command| CommandInfo {
            name: command.name,
            description: command.description.unwrap_or_default(),
            kind: CommandKind::Client,
            input: None,
            allow_during_agent_execution: true,
        });
        Ok(CommandsListResult { commands: own.into_iter().chain(agents).chain(clients).collect() })
    }

    /// Runs a command of the host or of a client. One of the agent is returned as the prompt to send.
    pub(super) async fn invoke_command(
        &self,
        params: CommandInvokeParams,
    ) -> Result<CommandInvokeResult, CopilotError> {
        let CommandInvokeParams { session_id, name, input } = params;
        let session = self.find(&session_id).await?;
        let name = name.trim_start_matches('/').to_owned();
        let input = input.unwrap_or_default();
        let done = |message| CommandInvokeResult {
            kind: "completed".to_owned(),
            message: Some(message),
            ..CommandInvokeResult::default()
        };
        let wanted = name.clone();
        let has_it = move |session: &Session| session.details.commands.iter().any(|command| command.name == wanted);
        if self.look(&session, has_it).await? {
            let prompt = format!("/{name} {input}").trim_end().to_owned();
            return Ok(CommandInvokeResult {
                kind: "agent-prompt".to_owned(),
                prompt: Some(prompt.clone()),
                display_prompt: Some(prompt),
                ..CommandInvokeResult::default()
            });
        }
        match name.as_str() {
            "model" => {
                let current = self.model(SessionParams { session_id }).await?;
                let text = format!("The model is {}.", current.model_id.unwrap_or_default());
                Ok(CommandInvokeResult { kind: "text".to_owned(), text: Some(text), ..CommandInvokeResult::default() })
            }
            "compact" => {
                let custom_instructions = Some(input).filter(|input| !input.is_empty());
                self.compact(CompactParams { session_id, custom_instructions, trigger: None }).await?;
                Ok(done("The conversation is compacted.".to_owned()))
            }
            _ => match self.run_command(&session, &name, input).await? {
                None => Ok(done(format!("/{name} is done."))),
                Some(error) => Err(CopilotError::Failed(error)),
            },
        }
    }

    pub(super) async fn execute_command(
        &self,
        params: CommandExecuteParams,
    ) -> Result<CommandExecuteResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        Ok(CommandExecuteResult { error: self.run_command(&session, &params.command_name, params.args).await? })
    }

    /// Has the client that offers a command run it. Returns the reason if it failed.
    async fn run_command(
        &self,
        session: &SessionRef,
        name: &str,
        args: String,
    ) -> Result<Option<String>, CopilotError> {
        let feed = self.endpoint().feeds().of(&session.id);
        let Some((feed, connection)) = feed.and_then(|feed| feed.client_of(name).map(|client| (feed, client))) else {
            return Err(CopilotError::Failed(format!(
                "no client of session {} offers the command /{name}: session.commands.list has those that exist",
                session.id
            )));
        };
        let request_id = self.host().new_id()?;
        let ended = feed.requests().begin_command(&request_id, connection)?;
        let command = format!("/{name} {args}").trim_end().to_owned();
        let execute = CommandExecute { request_id: request_id.clone(), command, command_name: name.to_owned(), args };
        feed.say_to(connection, execute);
        let error = match ended.await {
            Ok(error) => error,
            Err(_) => Some(format!("the client that offers /{name} has left the session")),
        };
        feed.say(CommandCompleted { request_id });
        Ok(error)
    }

    /// Ends a command. An answer that comes too late is no error: its client has done what it could.
    pub(super) async fn end_command(&self, params: HandleCommandParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            feed.requests().end_command(&params.request_id, params.error);
        }
        Ok(Success::YES)
    }

    /// Queues a command. The clients are asked about one after another.
    pub(super) async fn enqueue_command(
        &self,
        params: CommandEnqueueParams,
    ) -> Result<CommandEnqueueResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let Some(feed) = self.endpoint().feeds().of(&session.id) else {
            return Err(CopilotError::Failed(format!("Session not found: {}", session.id)));
        };
        let queued = QueuedCommand { id: self.host().new_id()?, command: params.command };
        let asked = feed.requests().enqueue(queued)?;
        if let Some(QueuedCommand { id: request_id, command }) = asked {
            feed.say(CommandQueued { request_id, command });
        }
        feed.say(PendingMessagesModified {});
        Ok(CommandEnqueueResult { queued: true })
    }

    /// Ends the current queued command. One that no client handles is sent to the agent.
    pub(super) async fn respond_to_command(&self, params: RespondToCommandParams) -> Result<Success, CopilotError> {
        let RespondToCommandParams { session_id, request_id, result } = params;
        let session = self.find(&session_id).await?;
        let Some(feed) = self.endpoint().feeds().of(&session.id) else { return Ok(Success::NO) };
        let stops = result.handled && result.stop_processing_queue.unwrap_or(false);
        let ended = feed.requests().end_current(&request_id, stops);
        let Some((ended, next)) = ended else { return Ok(Success::NO) };
        if let Some(QueuedCommand { id: request_id, command }) = next {
            feed.say(CommandQueued { request_id, command });
        }
        if !result.handled {
            self.enqueue_prompt(&session, ended.command, Vec::new()).await?;
        }
        Ok(Success::YES)
    }
}
