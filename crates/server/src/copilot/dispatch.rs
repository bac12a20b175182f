//! The methods of the endpoint: for each its params, its handler and its answer.
//!
//! Each handler's future is built and boxed by a function of its own. One future over all methods would need the stack of
//! all handlers together at every poll, which is megabytes without optimisation.

use futures_util::future::BoxFuture;
use grove_core::{ScopeSet, SessionId};
use grove_host::audit::{AuditOutcome, PendingRecord};
use grove_wire::copilot::error;
use grove_wire::copilot::methods::{self, *};
use grove_wire::copilot::surface::{self, Unserved};
use grove_wire::scopes::{self, further};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use super::peer::{CopilotError, CopilotPeer, CopilotResult};
use super::permissions::no_locations;
use crate::recording;

/// A request of a known method, with its params unread.
#[derive(Clone, Copy)]
struct MethodCall<'a> {
    method: Method,
    params: Option<&'a RawValue>,
}

impl<'a> MethodCall<'a> {
    /// Reads the params, and answers with the result of the handler's future.
    fn answer_with<P, R, F>(self, handler: impl FnOnce(P) -> F) -> BoxFuture<'a, CopilotResult>
    where
        P: DeserializeOwned,
        R: Serialize,
        F: Future<Output = Result<R, CopilotError>> + Send + 'a,
    {
        match self.read() {
            Ok(params) => {
                let result = handler(params);
                Box::pin(async move { encode(&result.await?) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// Reads the params, and answers with the handler's result.
    fn answer_now<P, R>(self, handler: impl FnOnce(P) -> Result<R, CopilotError>) -> BoxFuture<'a, CopilotResult>
    where
        P: DeserializeOwned,
        R: Serialize,
    {
        let answer = self.read().and_then(handler).and_then(|result| encode(&result));
        Box::pin(std::future::ready(answer))
    }

    fn read<P: DeserializeOwned>(self) -> Result<P, CopilotError> {
        methods::params(self.method.as_str(), self.params).map_err(CopilotError::Error)
    }
}

fn encode<R: Serialize>(result: &R) -> CopilotResult {
    Ok(serde_json::value::to_raw_value(result)?)
}

impl CopilotPeer {
    /// Handles a method, if the client may call it, and records the outcome.
    ///
    /// Before a client is authenticated, `connect` alone is handled.
    pub(super) async fn dispatch(&self, method: Method, params: Option<&RawValue>) -> CopilotResult {
        if !self.is_in() {
            return match method {
                Method::Connect => encode(&self.connect(params).await?),
                _ => Err(CopilotError::Error(error::authentication_required())),
            };
        }
        let (needed, name) =
            (ScopeSet::from(scopes::copilot_method(method)).union(further::copilot_method(method)), method.as_str());
        let (host, client) = (self.host(), Some(self.client()));
        let session = if recording::only_reads(needed, name) { None } else { recording::named_session(params) };
        let mut record = recording::begin(host, self.principal(), client, needed, name, session.as_deref());
        let about = session.map(SessionId::from);
        let allowed = self.principal().authorize(host, needed, name, client, about.as_ref()).await;
        let result = match allowed {
            Ok(()) => self.begin(method, params, &mut record).await,
            Err(forbidden) => Err(CopilotError::Error(error::not_permitted(name, forbidden))),
        };
        match &result {
            // What only reads may have a large result.
            Ok(_) if record.is_none() => {}
            Ok(result) => record.finish(recording::outcome(result), None),
            Err(CopilotError::Failed(reason) | CopilotError::UnknownModel(reason)) => {
                record.finish(AuditOutcome::Refused, Some(reason))
            }
            Err(CopilotError::Refused(error)) => record.finish(AuditOutcome::Refused, Some(&error.to_string())),
            Err(CopilotError::Error(error)) => record.finish(AuditOutcome::Refused, Some(&error.message)),
        }
        result
    }

    /// Handles a method that is not served: with what is true without the feature, or with the reason.
    pub(super) async fn dispatch_unserved(&self, method: &str, params: Option<&RawValue>) -> CopilotResult {
        if !self.is_in() {
            return Err(CopilotError::Error(error::authentication_required()));
        }
        let answer = match surface::unserved(method) {
            None => return Err(CopilotError::Error(error::unhandled(method))),
            Some(Unserved::Refused(reason)) => return Err(CopilotError::Failed(reason.to_owned())),
            Some(Unserved::Absent(answer)) => answer,
        };
        let missing = |missing| CopilotError::Error(error::not_permitted(method, missing));
        self.principal().check(ScopeSet::NONE.with(scopes::COPILOT_ABSENT), method).map_err(missing)?;
        if method.starts_with("session.") {
            let params: SessionParams = methods::params(method, params).map_err(CopilotError::Error)?;
            self.find(&params.session_id).await?;
        }
        Ok(RawValue::from_string(answer.to_owned())?)
    }

    /// Starts the handler of a method.
    fn begin<'a>(
        &'a self,
        method: Method,
        params: Option<&'a RawValue>,
        record: &'a mut PendingRecord,
    ) -> BoxFuture<'a, CopilotResult> {
        let call = MethodCall { method, params };
        match method {
            Method::Connect => call.answer_with(|_: IgnoredAny| self.connect(None)),
            Method::Ping => call.answer_now(|params| Ok(PingResult::to(&params, self.host().env().clock.now()))),
            Method::StatusGet => call.answer_now(|_: IgnoredAny| Ok(StatusResult::of(env!("CARGO_PKG_VERSION")))),
            Method::AuthGetStatus => call.answer_now(|_: IgnoredAny| Ok(auth_status())),
            Method::ModelsList => call.answer_now(|_: IgnoredAny| Ok(ModelsListResult { models: self.models() })),
            Method::RuntimeShutdown => call.answer_with(|_: IgnoredAny| self.shut_down()),
            Method::SessionFsSetProvider => call.answer_with(|params| self.set_storage_client(params)),
            Method::SessionCreate => call.answer_with(|params| self.create(params)),
            Method::SessionResume => call.answer_with(|params| self.resume(params)),
            Method::SessionSend => call.answer_with(|params| self.send(params)),
            Method::SessionSendAndWait => call.answer_with(|params| self.send_and_wait(params)),
            Method::SessionAbort => call.answer_with(|params| self.abort(params)),
            Method::SessionGetMessages => call.answer_with(|params| self.messages(params)),
            Method::SessionDetach | Method::SessionDestroy | Method::SessionsClose => {
                call.answer_with(|params| self.detach(params))
            }
            Method::SessionSuspend => call.answer_with(|params| self.suspend(params)),
            Method::SessionShutdown => call.answer_with(|params| self.shut_session_down(params)),
            Method::SessionDelete => call.answer_with(|params| self.delete(params)),
            Method::SessionList => call.answer_with(|params| self.list(params)),
            Method::SessionGetLastId => call.answer_with(|_: IgnoredAny| self.last_id()),
            Method::SessionGetMetadata => call.answer_with(|params| self.metadata(params)),
            Method::SessionGetForeground => call.answer_now(|_: IgnoredAny| Ok(MaybeSession::default())),
            Method::SessionSetForeground => call.answer_with(|params| self.set_foreground(params)),
            Method::SessionsFork => call.answer_with(|params| self.fork(params)),
            Method::SessionsReadPersistedEvents => call.answer_with(|params| {
                self.read_events(ReadEventsParams { wait_ms: None, include_ephemeral: Some(false), ..params })
            }),
            Method::NameGet => call.answer_with(|params| self.name(params)),
            Method::NameSet => call.answer_with(|params| self.set_name(params)),
            Method::ModelGetCurrent => call.answer_with(|params| self.model(params)),
            Method::ModelSwitchTo => call.answer_with(|params| self.switch_model(params)),
            Method::ModelList => call.answer_now(|_: IgnoredAny| Ok(SessionModelsResult { list: self.models() })),
            Method::ModelSetEffort => call.answer_with(|params| self.set_effort(params)),
            Method::ModeGet => call.answer_with(|params| self.mode(params)),
            Method::ModeSet => call.answer_with(|params| self.set_mode(params)),
            Method::AgentList | Method::AgentReload => call.answer_with(|params| self.custom_agents(params)),
            Method::AgentGetCurrent => call.answer_with(|params| self.current_agent(params)),
            Method::AgentSelect => call.answer_with(|params| self.select_agent(params)),
            Method::AgentDeselect => call.answer_with(|params| self.deselect_agent(params)),
            Method::SkillsDiscover => call.answer_with(|params| self.discover_skills(params)),
            Method::SkillsList => call.answer_with(|params| self.skills(params)),
            Method::SkillsEnable => call.answer_with(|params| self.switch_skill(params, true)),
            Method::SkillsDisable => call.answer_with(|params| self.switch_skill(params, false)),
            Method::SkillsReload => call.answer_with(|params| self.reload_skills(params)),
            Method::OptionsUpdate => call.answer_with(|params| self.update_options(params)),
            Method::MetadataIsProcessing => call.answer_with(|params| self.is_processing(params)),
            Method::PlanRead => call.answer_with(|params| self.plan(params)),
            Method::PlanUpdate => call.answer_with(|params| self.update_plan(params)),
            Method::PlanDelete => call.answer_with(|params| self.delete_plan(params)),
            Method::WorkspaceGet => call.answer_with(|params| self.workspace(params)),
            Method::WorkspaceListFiles => call.answer_with(|params| self.list_files(params)),
            Method::WorkspaceReadFile => call.answer_with(|params| self.read_file(params)),
            Method::WorkspaceCreateFile => call.answer_with(|params| self.create_file(params)),
            Method::WorkspaceStatFile => call.answer_with(|params| self.stat_file(params)),
            Method::WorkspaceRemovePath => call.answer_with(|params| self.remove_path(params)),
            Method::WorkspaceRenamePath => call.answer_with(|params| self.rename_path(params)),
            Method::WorkspaceSaveLargePaste => call.answer_with(|params| self.save_paste(params)),
            Method::WorkspaceListCheckpoints => call.answer_with(|params| self.list_checkpoints(params)),
            Method::WorkspaceReadCheckpoint => call.answer_with(|params| self.read_checkpoint(params)),
            Method::WorkspaceCreateDirectory => call.answer_with(|params| self.create_directory(params)),
            Method::HistoryCompact => call.answer_with(|params| self.compact(params)),
            Method::HistoryTruncate => call.answer_with(|params| self.truncate(params)),
            Method::HistoryRewind => call.answer_with(|params| self.rewind(params)),
            Method::HistoryListRewindPoints => call.answer_with(|params| self.rewind_points(params)),
            Method::EventLogRead => call.answer_with(|params| self.read_events(params)),
            Method::EventLogTail => call.answer_with(|params| self.tail(params)),
            // All events are sent anyway.
            Method::EventLogRegisterInterest => call.answer_now(|RegisterInterestParams { event_type, .. }| {
                Ok(RegisterInterestResult { handle: event_type })
            }),
            Method::EventLogReleaseInterest => call.answer_now(|_: IgnoredAny| Ok(Success::YES)),
            Method::PermissionsHandlePending => call.answer_with(|params| self.answer_permission(params, record)),
            Method::PermissionsPending => call.answer_with(|params| self.pending_permissions(params)),
            Method::PermissionsConfigure => call.answer_with(|params| self.configure_permissions(params)),
            Method::PermissionsSetApproveAll => call.answer_with(|params| self.set_approve_all(params)),
            Method::PermissionsGetMode => call.answer_with(|params| self.permission_mode(params)),
            Method::PermissionsSetMode => call.answer_with(|params| self.set_permission_mode(params)),
            Method::PermissionsModifyRules => call.answer_with(|params| self.modify_rules(params)),
            // Every client is sent the request, and no other client needs to know that one of them shows it.
            Method::PermissionsSetRequired | Method::PermissionsNotifyPromptShown => {
                call.answer_with(|params| self.acknowledge(params))
            }
            Method::PermissionsResetApprovals => call.answer_with(|params| self.reset_approvals(params)),
            Method::PermissionsListPaths => call.answer_with(|params| self.allowed_paths(params)),
            Method::PermissionsAddPath => call.answer_with(|params| self.allow_path(params)),
            Method::PermissionsSetPrimaryPath => call.answer_with(|params| self.set_primary_path(params)),
            Method::PermissionsIsAllowedPath => call.answer_with(|params| self.is_allowed_path(params)),
            Method::PermissionsIsWorkspacePath => call.answer_with(|params| self.is_workspace_path(params)),
            Method::PermissionsResolveLocation => call.answer_with(|params| self.location(params)),
            Method::PermissionsApplyLocation => call.answer_with(|params| self.apply_location(params)),
            Method::PermissionsAddLocationApproval => call.answer_now(|_: IgnoredAny| Err::<(), _>(no_locations())),
            Method::PermissionsIsTrusted => call.answer_now(|params| Ok(self.is_trusted(params))),
            Method::PermissionsAddTrusted => call.answer_now(|params| self.add_trusted(params)),
            Method::PermissionsUnrestrictUrls => call.answer_with(|params| self.unrestrict_urls(params)),
            Method::ToolsHandlePending => call.answer_with(|params| self.answer_tool(params)),
            Method::UiHandlePendingUserInput => call.answer_with(|params| self.answer_input(params)),
            Method::UiElicitation => call.answer_with(|params| self.elicit(params)),
            Method::UiHandlePendingElicitation => call.answer_with(|params| self.answer_elicitation(params)),
            Method::Log => call.answer_with(|params| self.log(params)),
            Method::MainTurnInterrupt => call.answer_with(|params| self.interrupt(params)),
            Method::NameSetAuto => call.answer_with(|params| self.set_auto_name(params)),
            Method::MetadataSnapshot => call.answer_with(|params| self.snapshot(params)),
            Method::MetadataActivity => call.answer_with(|params| self.activity(params)),
            Method::MetadataSetWorkingDirectory => call.answer_with(|params| self.set_working_directory(params)),
            Method::MetadataRecordContext => call.answer_with(|params| self.record_context(params)),
            Method::UsageGetMetrics => call.answer_with(|params| self.usage(params)),
            Method::ToolsGetMetadata => call.answer_with(|params| self.tool_metadata(params)),
            Method::PlanReadTodos => call.answer_with(|params| async move {
                self.todos(params).await.map(|todos| SqlTodosResult { rows: todos.rows })
            }),
            Method::PlanReadTodosWithDependencies => call.answer_with(|params| self.todos(params)),
            Method::WorkspaceEnsure => call.answer_with(|params| self.workspace(params)),
            Method::WorkspaceDiff => call.answer_with(|params| self.diff(params)),
            Method::HistoryAbortCompaction => call.answer_with(|params| self.abort_compaction(params)),
            Method::CommandsList => call.answer_with(|params| self.list_commands(params)),
            Method::CommandsInvoke => call.answer_with(|params| self.invoke_command(params)),
            Method::CommandsExecute => call.answer_with(|params| self.execute_command(params)),
            Method::CommandsHandlePending => call.answer_with(|params| self.end_command(params)),
            Method::CommandsEnqueue => call.answer_with(|params| self.enqueue_command(params)),
            Method::CommandsRespond => call.answer_with(|params| self.respond_to_command(params)),
            Method::QueuePendingItems | Method::QueueSnapshot => call.answer_with(|params| self.pending_items(params)),
            Method::QueueHasPending => call.answer_with(|params| self.has_pending(params)),
            Method::QueueInsertAt => call.answer_with(|params| self.insert_queued(params)),
            Method::QueueRemoveAt => call.answer_with(|params| self.remove_queued(params)),
            Method::QueueRemoveMostRecent => call.answer_with(|params| self.remove_newest_queued(params)),
            Method::QueueMoveItem => call.answer_with(|params| self.move_queue_item(params)),
            Method::QueueUpdateText => call.answer_with(|params| self.update_queued(params)),
            Method::QueueDuplicateAt => call.answer_with(|params| self.duplicate_queued(params)),
            Method::QueueSendNow => call.answer_with(|params| self.send_queued_now(params)),
            Method::QueueClear => call.answer_with(|params| self.clear_queue(params)),
            Method::SessionsList => call.answer_with(|params| self.list_catalog(params)),
            Method::SessionsGetMetadata => call.answer_with(|params| self.metadata(params)),
            Method::SessionsFindByPrefix => call.answer_with(|params| self.find_by_prefix(params)),
            Method::SessionsGetLastForContext => call.answer_with(|params| self.last_for_context(params)),
            Method::SessionsListNonEmpty => call.answer_with(|_: IgnoredAny| self.list_non_empty()),
            Method::SessionsGetSizes => call.answer_with(|_: IgnoredAny| self.session_sizes()),
            Method::SessionsCheckInUse => call.answer_now(Self::in_use),
            Method::SessionsEnrichMetadata => call.answer_with(|params| self.enrich(params)),
            Method::SessionsGetEventFilePath => call.answer_with(|params| self.event_file_path(params)),
            Method::SessionsSave => call.answer_with(|params| self.save(params)),
            Method::SessionsDelete => call.answer_with(|params| self.delete(params)),
            Method::SessionsBulkDelete => call.answer_with(|params| self.bulk_delete(params)),
            Method::SessionsPruneOld => call.answer_with(|params| self.prune(params)),
            Method::SessionsSetPlugins => call.answer_now(Self::set_plugins),
        }
    }

    /// Ends the endpoint: the program that was started for the client ends next. Its storage is flushed while it is still
    /// connected.
    async fn shut_down(&self) -> Result<(), CopilotError> {
        self.endpoint().shut_down().await;
        Ok(())
    }

    /// Answers a request that changes nothing, if its session exists.
    async fn acknowledge(&self, params: SessionParams) -> Result<Success, CopilotError> {
        self.find(&params.session_id).await?;
        Ok(Success::YES)
    }
}

fn auth_status() -> AuthStatusResult {
    AuthStatusResult {
        is_authenticated: true,
        auth_type: Some("token".to_owned()),
        status_message: Some("Grove's agents bring their own accounts".to_owned()),
        ..AuthStatusResult::default()
    }
}
