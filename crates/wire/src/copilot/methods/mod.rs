//! Clients' requests: names, params, results; and the host's own notifications and requests ([`server`]).
//!
//! Absent params are read as an empty object. A request without a result returns `null`.

pub mod server;

mod answers;
mod commands;
mod connection;
mod custom_agents;
mod elicitation;
mod log;
mod metadata;
mod permissions;
mod queue;
mod session_catalog;
mod sessions;
mod settings;
mod skills;
mod workspace;

pub use answers::*;
pub use commands::*;
pub use connection::*;
pub use custom_agents::*;
pub use elicitation::*;
pub use log::*;
pub use metadata::*;
pub use permissions::*;
pub use queue::*;
pub use session_catalog::*;
pub use sessions::*;
pub use settings::*;
pub use skills::*;
pub use workspace::*;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::error;
use crate::ahp::macros::{names, records};
use crate::jsonrpc::ErrorObject;
use crate::value_reader;

names! {
    /// The requests that a host may answer.
    pub enum Method {
        Connect = "connect",
        Ping = "ping",
        StatusGet = "status.get",
        AuthGetStatus = "auth.getStatus",
        ModelsList = "models.list",
        RuntimeShutdown = "runtime.shutdown",
        SessionFsSetProvider = "sessionFs.setProvider",
        SessionCreate = "session.create",
        SessionResume = "session.resume",
        SessionSend = "session.send",
        SessionSendAndWait = "session.sendAndWait",
        SessionAbort = "session.abort",
        SessionGetMessages = "session.getMessages",
        SessionDetach = "session.detach",
        SessionDestroy = "session.destroy",
        SessionDelete = "session.delete",
        SessionSuspend = "session.suspend",
        SessionShutdown = "session.shutdown",
        SessionList = "session.list",
        SessionGetLastId = "session.getLastId",
        SessionGetMetadata = "session.getMetadata",
        SessionGetForeground = "session.getForeground",
        SessionSetForeground = "session.setForeground",
        SessionsFork = "sessions.fork",
        SessionsClose = "sessions.close",
        SessionsReadPersistedEvents = "sessions.readPersistedEvents",
        NameGet = "session.name.get",
        NameSet = "session.name.set",
        ModelGetCurrent = "session.model.getCurrent",
        ModelSwitchTo = "session.model.switchTo",
        ModelList = "session.model.list",
        ModelSetEffort = "session.model.setReasoningEffort",
        ModeGet = "session.mode.get",
        ModeSet = "session.mode.set",
        AgentList = "session.agent.list",
        AgentGetCurrent = "session.agent.getCurrent",
        AgentSelect = "session.agent.select",
        AgentDeselect = "session.agent.deselect",
        AgentReload = "session.agent.reload",
        SkillsDiscover = "skills.discover",
        SkillsList = "session.skills.list",
        SkillsEnable = "session.skills.enable",
        SkillsDisable = "session.skills.disable",
        SkillsReload = "session.skills.reload",
        OptionsUpdate = "session.options.update",
        MetadataIsProcessing = "session.metadata.isProcessing",
        PlanRead = "session.plan.read",
        PlanUpdate = "session.plan.update",
        PlanDelete = "session.plan.delete",
        WorkspaceGet = "session.workspaces.getWorkspace",
        WorkspaceListFiles = "session.workspaces.listFiles",
        WorkspaceReadFile = "session.workspaces.readFile",
        WorkspaceCreateFile = "session.workspaces.createFile",
        WorkspaceCreateDirectory = "session.workspaces.createDirectory",
        WorkspaceStatFile = "session.workspaces.statFile",
        WorkspaceRemovePath = "session.workspaces.removePath",
        WorkspaceRenamePath = "session.workspaces.renamePath",
        WorkspaceSaveLargePaste = "session.workspaces.saveLargePaste",
        WorkspaceListCheckpoints = "session.workspaces.listCheckpoints",
        WorkspaceReadCheckpoint = "session.workspaces.readCheckpoint",
        HistoryCompact = "session.history.compact",
        HistoryTruncate = "session.history.truncate",
        HistoryRewind = "session.history.rewind",
        HistoryListRewindPoints = "session.history.listRewindPoints",
        EventLogRead = "session.eventLog.read",
        EventLogTail = "session.eventLog.tail",
        EventLogRegisterInterest = "session.eventLog.registerInterest",
        EventLogReleaseInterest = "session.eventLog.releaseInterest",
        PermissionsHandlePending = "session.permissions.handlePendingPermissionRequest",
        PermissionsPending = "session.permissions.pendingRequests",
        PermissionsConfigure = "session.permissions.configure",
        PermissionsSetApproveAll = "session.permissions.setApproveAll",
        PermissionsGetMode = "session.permissions.getMode",
        PermissionsSetMode = "session.permissions.setMode",
        PermissionsModifyRules = "session.permissions.modifyRules",
        PermissionsSetRequired = "session.permissions.setRequired",
        PermissionsResetApprovals = "session.permissions.resetSessionApprovals",
        PermissionsNotifyPromptShown = "session.permissions.notifyPromptShown",
        PermissionsListPaths = "session.permissions.paths.list",
        PermissionsAddPath = "session.permissions.paths.add",
        PermissionsSetPrimaryPath = "session.permissions.paths.updatePrimary",
        PermissionsIsAllowedPath = "session.permissions.paths.isPathWithinAllowedDirectories",
        PermissionsIsWorkspacePath = "session.permissions.paths.isPathWithinWorkspace",
        PermissionsResolveLocation = "session.permissions.locations.resolve",
        PermissionsApplyLocation = "session.permissions.locations.apply",
        PermissionsAddLocationApproval = "session.permissions.locations.addToolApproval",
        PermissionsIsTrusted = "session.permissions.folderTrust.isTrusted",
        PermissionsAddTrusted = "session.permissions.folderTrust.addTrusted",
        PermissionsUnrestrictUrls = "session.permissions.urls.setUnrestrictedMode",
        ToolsHandlePending = "session.tools.handlePendingToolCall",
        UiHandlePendingUserInput = "session.ui.handlePendingUserInput",
        UiElicitation = "session.ui.elicitation",
        UiHandlePendingElicitation = "session.ui.handlePendingElicitation",
        Log = "session.log",
        MainTurnInterrupt = "session.interruptMainTurn",
        NameSetAuto = "session.name.setAuto",
        MetadataSnapshot = "session.metadata.snapshot",
        MetadataActivity = "session.metadata.activity",
        MetadataSetWorkingDirectory = "session.metadata.setWorkingDirectory",
        MetadataRecordContext = "session.metadata.recordContextChange",
        UsageGetMetrics = "session.usage.getMetrics",
        ToolsGetMetadata = "session.tools.getCurrentMetadata",
        PlanReadTodos = "session.plan.readSqlTodos",
        PlanReadTodosWithDependencies = "session.plan.readSqlTodosWithDependencies",
        WorkspaceEnsure = "session.workspaces.ensure",
        WorkspaceDiff = "session.workspaces.diff",
        HistoryAbortCompaction = "session.history.abortManualCompaction",
        CommandsList = "session.commands.list",
        CommandsInvoke = "session.commands.invoke",
        CommandsExecute = "session.commands.execute",
        CommandsHandlePending = "session.commands.handlePendingCommand",
        CommandsEnqueue = "session.commands.enqueue",
        CommandsRespond = "session.commands.respondToQueuedCommand",
        QueuePendingItems = "session.queue.pendingItems",
        QueueSnapshot = "session.queue.snapshot",
        QueueHasPending = "session.queue.hasPending",
        QueueInsertAt = "session.queue.insertAt",
        QueueRemoveAt = "session.queue.removeAt",
        QueueRemoveMostRecent = "session.queue.removeMostRecent",
        QueueMoveItem = "session.queue.moveItem",
        QueueUpdateText = "session.queue.updateText",
        QueueDuplicateAt = "session.queue.duplicateAt",
        QueueSendNow = "session.queue.sendNow",
        QueueClear = "session.queue.clear",
        SessionsList = "sessions.list",
        SessionsGetMetadata = "sessions.getMetadata",
        SessionsFindByPrefix = "sessions.findByPrefix",
        SessionsGetLastForContext = "sessions.getLastForContext",
        SessionsListNonEmpty = "sessions.listNonEmptySessionIds",
        SessionsGetSizes = "sessions.getSizes",
        SessionsCheckInUse = "sessions.checkInUse",
        SessionsEnrichMetadata = "sessions.enrichMetadata",
        SessionsGetEventFilePath = "sessions.getEventFilePath",
        SessionsSave = "sessions.save",
        SessionsDelete = "sessions.delete",
        SessionsBulkDelete = "sessions.bulkDelete",
        SessionsPruneOld = "sessions.pruneOld",
        SessionsSetPlugins = "sessions.setAdditionalPlugins",
    }
}

records! {
    /// No params, or only ignored ones: `status.get`, `auth.getStatus`, `session.getLastId`, `session.getForeground`,
    /// `runtime.shutdown`.
    #[derive(Default, Eq)]
    pub struct NoParams {}

    /// The params of a request with only a session: `session.getMessages`, `session.detach`, `session.destroy`,
    /// `session.delete`, `session.suspend`, `session.getMetadata`, `session.setForeground`, `sessions.close`, and those
    /// that read one session.
    #[derive(Default, Eq)]
    pub struct SessionParams {
        pub session_id: String,
    }

    /// The result of a request that may come too late, or fail without an error: `session.abort`, `session.detach`,
    /// `session.destroy`, `session.delete`, `session.setForeground`, `session.options.update`, `sessionFs.setProvider`,
    /// and a client's answers.
    #[derive(Default, Eq)]
    pub struct Success {
        pub success: bool,
        pub error: Option<String>,
    }

    /// The empty object as a result: `sessions.close`.
    #[derive(Default, Eq)]
    pub struct EmptyResult {}
}

impl Success {
    pub const YES: Self = Self { success: true, error: None };
    /// Another client was first, or no such request is waiting.
    pub const NO: Self = Self { success: false, error: None };

    pub fn failed(error: impl Into<String>) -> Self {
        Self { success: false, error: Some(error.into()) }
    }
}

/// Reads the params of a request; the error is its response.
pub fn params<T: DeserializeOwned>(method: &str, params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    value_reader::from_text(text).map_err(|problem| error::invalid_params(method, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: DeserializeOwned>(method: Method, text: &str) -> Result<T, String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        params(method.as_str(), Some(&raw)).map_err(|error| error.message)
    }

    #[test]
    fn absent_params_are_those_of_an_empty_object() {
        assert_eq!(params("ping", None).map_err(|error| error.message), Ok(PingParams::default()));
        assert!(params::<SessionParams>("session.getMessages", None).is_err());
    }

    #[test]
    fn params_may_say_more_than_is_known() {
        let more = r#"{"sessionId":"s","capi":[1],"provider":{"type":"x"},"tools":[{"name":"t","defer":2}]}"#;
        let open: OpenParams = read(Method::SessionCreate, more).unwrap();
        assert_eq!((open.session_id.as_deref(), open.tools.map(|tools| tools.len())), (Some("s"), Some(1)));
        let absent = r#"{"sessionId":null,"model":null,"streaming":null}"#;
        assert_eq!(read(Method::SessionCreate, absent), Ok(OpenParams::default()));
    }

    #[test]
    fn a_refusal_names_the_call_and_what_is_wrong_with_it() {
        let refused = |text| read::<PlanUpdateParams>(Method::PlanUpdate, text).unwrap_err();
        let begin = "Request session.plan.update failed with message: Invalid session.plan.update params: ";
        let missing = refused(r#"{"sessionId":"s"}"#);
        assert!(missing.starts_with(&format!("{begin}missing field `content`")), "{missing}");
        let wrong = refused(r#"{"sessionId":"s","content":1}"#);
        assert!(wrong.contains("content: invalid type: integer `1`"), "{wrong}");
    }

    #[test]
    fn what_is_not_there_is_null_where_its_key_must_be() {
        let plan = serde_json::to_value(PlanReadResult::default()).unwrap();
        assert_eq!(plan, serde_json::json!({ "exists": false, "content": null, "path": null }));
        let found = Workspace { id: "s".to_owned(), git_root: Some("/g".to_owned()), ..Workspace::default() };
        let found = WorkspaceResult { workspace: Some(found).into(), path: None };
        let found = serde_json::to_value(found).unwrap();
        assert_eq!(found, serde_json::json!({ "workspace": { "id": "s", "git_root": "/g" } }));
    }

    #[test]
    fn a_method_is_found_by_its_name() {
        for method in Method::ALL {
            assert_eq!(Method::named(method.as_str()), Some(*method));
        }
        assert_eq!(Method::named("session.unheardOf"), None);
    }
}
