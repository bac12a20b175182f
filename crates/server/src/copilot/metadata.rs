//! A session's metadata, usage and tools, and messages of clients for people.

use std::collections::BTreeMap;

use grove_core::*;
use grove_host::session::{TreeAnswer, TreeRequest, WorkspaceAnswer, WorkspaceRequest};
use grove_wire::copilot::methods::*;
use grove_wire::copilot::project;
use serde_json::json;

use super::history::{place, unexpected};
use super::peer::{CopilotError, CopilotPeer, SessionRef};

impl CopilotPeer {
    pub(super) async fn snapshot(&self, params: SessionParams) -> Result<MetadataSnapshot, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let workspace = self.workspace(params).await?.workspace;
        let selected_model = self.selected_model(&session).await?;
        let mode = self.known_mode(&session).await?;
        let row = self.look(&session, SessionMetadata::of).await?;
        Ok(MetadataSnapshot {
            session_id: row.session_id,
            start_time: row.start_time,
            modified_time: row.modified_time,
            is_remote: false,
            already_in_use: false,
            workspace_path: self.workspace_path(&session).await.into(),
            initial_name: row.name,
            summary: row.summary,
            working_directory: row.context.map(|context| context.cwd).unwrap_or_default(),
            current_mode: mode,
            selected_model: Some(selected_model),
            session_limits: None.into(),
            workspace,
        })
    }

    pub(super) async fn activity(&self, params: SessionParams) -> Result<SessionActivity, CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.look(&session, |session| {
            let chat = session.main_chat();
            let runs = chat.is_some_and(|chat| chat.active.is_some());
            let waits = chat.is_some_and(|chat| chat.steering.is_some() || !chat.queued.is_empty());
            SessionActivity { abortable: runs, has_active_work: runs || waits }
        })
        .await
    }

    pub(super) async fn set_working_directory(
        &self,
        params: WorkingDirectoryParams,
    ) -> Result<WorkingDirectoryResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.change_folder(Method::MetadataSetWorkingDirectory, &session, &params.working_directory).await?;
        Ok(WorkingDirectoryResult { working_directory: params.working_directory })
    }

    /// Notes the context that a client says the session has. Grove looks at the folder itself for its own lists.
    pub(super) async fn record_context(&self, params: RecordContextParams) -> Result<EmptyResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let context = params.context;
        let message = format!("The context changed to {}.", context.cwd);
        self.add_info(&session, json!({"infoType": "context", "message": message, "context": context})).await?;
        Ok(EmptyResult {})
    }

    pub(super) async fn usage(&self, params: SessionParams) -> Result<UsageMetrics, CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.metrics(&session).await
    }

    /// The counters of a session, from its turns.
    pub(super) async fn metrics(&self, session: &SessionRef) -> Result<UsageMetrics, CopilotError> {
        let current_model = Some(self.selected_model(session).await?);
        let transcript = self.transcript(session).await?;
        Ok(UsageMetrics { current_model, ..measured(transcript.session(), transcript.turns()) })
    }

    /// The tools that clients offer to the agent.
    pub(super) async fn tool_metadata(&self, params: SessionParams) -> Result<ToolMetadataResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let tools = self.look(&session, |session| {
            let offered = session.active_clients.iter().flat_map(|client| &client.tools);
            let tools = offered.map(|tool| ToolMetadata {
                name: tool.name.clone(),
                description: tool.description.clone().unwrap_or_default(),
                input_schema: tool.input_schema.clone(),
            });
            tools.collect()
        });
        Ok(ToolMetadataResult { tools: tools.await? })
    }

    /// Notes a message of a client for people. An ephemeral one is only sent.
    pub(super) async fn log(&self, params: LogParams) -> Result<LogResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let LogParams { message, level, kind, ephemeral, url, tip, .. } = params;
        if message.len() > MAX_LOG_MESSAGE {
            return Err(CopilotError::Failed(format!(
                "the message has {} bytes, more than {MAX_LOG_MESSAGE}: store it as a file of the workspace",
                message.len()
            )));
        }
        if let Some(unknown) = level.as_deref().filter(|level| !["info", "warning", "error"].contains(level)) {
            return Err(CopilotError::Failed(format!("{unknown:?} is not a level: use info, warning or error")));
        }
        if ephemeral == Some(true) {
            let event = project::log_event(level.as_deref(), kind, message, url, tip);
            let sent = match self.endpoint().feeds().of(&session.id) {
                Some(feed) => feed.say_and_wait(event).await,
                None => None,
            };
            return Ok(LogResult { event_id: sent.map(|id| id.to_string()).unwrap_or_default() });
        }
        let mut data = json!({"infoType": "log", "message": message});
        for (name, value) in [("level", level), ("category", kind), ("url", url), ("tip", tip)] {
            if let Some(value) = value {
                data[name] = value.into();
            }
        }
        Ok(LogResult { event_id: self.add_info(&session, data).await? })
    }

    /// Adds an event of the session to its log. Returns the event's id.
    pub(super) async fn add_info(&self, session: &SessionRef, data: serde_json::Value) -> Result<String, CopilotError> {
        let asked = self.host().ask_tree(&place(session), TreeRequest::AddInfo(data)).await?;
        let TreeAnswer::InfoAdded(line) = asked.answer().await? else { return Err(unexpected()) };
        let id = project::entry_event_id(&session.id, &line);
        Ok(id.map(|id| id.to_string()).unwrap_or_default())
    }

    /// Names a session by a summary, unless a person has named it.
    pub(super) async fn set_auto_name(&self, params: NameSetAutoParams) -> Result<NameSetAutoResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let source = self.look(&session, |session| session.title_source).await?;
        if source >= TitleSource::Person {
            return Ok(NameSetAutoResult { applied: false });
        }
        self.carry_out(&session, ClientCommand::ChangeTitle(params.summary)).await?;
        Ok(NameSetAutoResult { applied: true })
    }

    /// The session's todo list, which is the agent's plan.
    pub(super) async fn todos(&self, params: SessionParams) -> Result<SqlTodosWithDependenciesResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let WorkspaceAnswer::Todos(todos) = self.ask_workspace(&session, WorkspaceRequest::Todos).await? else {
            return Err(unexpected());
        };
        let row = |todo: grove_fs::workspace::Todo| SqlTodo {
            id: Some(todo.id),
            title: Some(todo.title),
            description: todo.description,
            status: Some(todo.status.name().to_owned()),
        };
        let edges = todos.iter().flat_map(|todo| todo.depends_on.iter().map(|other| (todo.id.clone(), other.clone())));
        let dependencies = edges.map(|(todo_id, depends_on)| SqlTodoDependency { todo_id, depends_on }).collect();
        Ok(SqlTodosWithDependenciesResult { rows: todos.into_iter().map(row).collect(), dependencies })
    }

    /// Grove keeps no copies of files, so it cannot say what a session has changed.
    pub(super) async fn diff(&self, params: DiffParams) -> Result<DiffResult, CopilotError> {
        self.find(&params.session_id).await?;
        if !["session", "unstaged", "branch"].contains(&params.mode.as_str()) {
            return Err(CopilotError::Failed(format!(
                "{:?} is not a mode: use session, unstaged or branch",
                params.mode
            )));
        }
        Ok(DiffResult {
            requested_mode: params.mode.clone(),
            mode: params.mode,
            changes: Vec::new(),
            is_fallback: false,
            unavailable_reason: Some("file-change-tracking-disabled".to_owned()),
        })
    }
}

/// The counters of turns.
fn measured<'a>(session: &Session, turns: impl Iterator<Item = &'a Turn>) -> UsageMetrics {
    let mut metrics =
        UsageMetrics { session_start_time: grove_wire::ahp::time::text(session.created_at), ..UsageMetrics::default() };
    let mut files: BTreeMap<String, ()> = BTreeMap::new();
    for turn in turns {
        metrics.total_user_requests += u64::from(turn.message.origin == MessageOrigin::User);
        if let Some(usage) = &turn.usage {
            count_usage(session, turn, usage, &mut metrics);
        }
        for part in &turn.parts {
            let Part::ToolCall(call) = part else { continue };
            let ToolCallStatus::Completed(result) = &call.status else { continue };
            for attached in &result.attached {
                let ToolAttachment::Edit(change) = attached else { continue };
                metrics.code_changes.lines_added += change.added;
                metrics.code_changes.lines_removed += change.removed;
                files.insert(change.path.clone(), ());
            }
        }
    }
    metrics.code_changes.files_modified = files.into_keys().collect();
    metrics.code_changes.files_modified_count = metrics.code_changes.files_modified.len() as u64;
    metrics
}

fn count_usage(session: &Session, turn: &Turn, usage: &Usage, metrics: &mut UsageMetrics) {
    let model = usage.model.as_ref().or(turn.message.model.as_ref()).or(session.model.as_ref());
    let model = model.map_or_else(|| session.agent.to_string(), ToString::to_string);
    let of_model = metrics.model_metrics.entry(model).or_default();
    let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
    of_model.requests.count += 1;
    of_model.usage.input_tokens += input;
    of_model.usage.output_tokens += output;
    of_model.usage.cache_read_tokens += usage.cache_read_tokens.unwrap_or(0);
    of_model.usage.cache_write_tokens += usage.cache_write_tokens.unwrap_or(0);
    if let Some(reasoning) = usage.reasoning_tokens {
        *of_model.usage.reasoning_tokens.get_or_insert(0) += reasoning;
    }
    (metrics.last_call_input_tokens, metrics.last_call_output_tokens) = (input, output);
}
