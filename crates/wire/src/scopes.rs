//! The scope of every method and action of every dialect: the one table of what a token's holder may do.
//!
//! The matches are exhaustive: a new method or action does not compile until its scope is decided. `None` means that
//! every connection may send it. The params of some requests need [further scopes](further).
//!
//! | scope | for |
//! |---|---|
//! | `read` | seeing sessions, files and history; a reader's own view and marks of what was read |
//! | `prompt` | creating, changing and disposing of sessions and chats; prompts, trees, workspaces, results of a client's tools |
//! | `approve` | answers to agents, and everything that changes what agents do without asking, protected files among it |
//! | `terminal` | terminals |
//! | `folders` | folders outside the configured roots, which the host decides by path |
//! | `admin` | stores, moving, importing and erasing sessions, tokens, installing agents, other hosts, stored rules, ending the host |

pub mod further;

use grove_core::Scope;

use crate::ahp::{self, AnnotationsAction, ChangesetAction, ChatAction, RootAction, SessionAction, TerminalAction};
use crate::copilot::methods::Method as CopilotMethod;
use crate::v1;
use crate::x_grove;
use crate::x_grove::administration::AdministrationMethod;
use crate::x_grove::handover::HandoverMethod;
use crate::x_grove::history::HistoryMethod;
use crate::x_grove::import::ImportMethod;
use crate::x_grove::notify::NotifyMethod;
use crate::x_grove::policy::PolicyMethod;
use crate::x_grove::removal::RemovalMethod;
use crate::x_grove::sessions::SessionsMethod;
use crate::x_grove::tokens::TokensMethod;
use crate::x_grove::workspace::WorkspaceMethod;

/// The scope of a request of version 1.
pub const fn v1_method(method: v1::Method) -> Option<Scope> {
    use v1::Method;
    match method {
        Method::Ping => None,
        // Every connection of version 1 is told of new sessions, without a subscription.
        Method::Initialize
        | Method::Reconnect
        | Method::Subscribe
        | Method::ListSessions
        | Method::FetchTurns
        | Method::FetchContent
        | Method::BrowseDirectory => Some(Scope::Read),
        Method::CreateSession | Method::DisposeSession => Some(Scope::Prompt),
    }
}

/// The scope of an action of version 1. Those that only the host dispatches are refused for that reason.
pub const fn v1_action(action: v1::ActionType) -> Option<Scope> {
    use v1::ActionType;
    match action {
        ActionType::TurnStarted | ActionType::TurnCancelled | ActionType::ModelChanged => Some(Scope::Prompt),
        ActionType::PermissionResolved => Some(Scope::Approve),
        ActionType::AgentsChanged
        | ActionType::Ready
        | ActionType::CreationFailed
        | ActionType::Delta
        | ActionType::ResponsePart
        | ActionType::ToolStart
        | ActionType::ToolComplete
        | ActionType::PermissionRequest
        | ActionType::TurnComplete
        | ActionType::Error
        | ActionType::TitleChanged
        | ActionType::Usage
        | ActionType::Reasoning => None,
    }
}

/// The scope of a request of the Agent Host Protocol. [`further::ahp_method`] adds to it.
pub const fn ahp_method(method: ahp::Method) -> Option<Scope> {
    use ahp::Method;
    match method {
        Method::Initialize | Method::Reconnect | Method::Ping => None,
        Method::Subscribe
        | Method::ListSessions
        | Method::FetchTurns
        | Method::Completions
        | Method::ResolveSessionConfig
        | Method::SessionConfigCompletions
        | Method::ResourceRead
        | Method::ResourceList
        | Method::ResourceResolve
        // Asking for changes needs more.
        | Method::ResourceRequest
        | Method::CreateResourceWatch
        | Method::ListAutomationTriggerDefinitions
        | Method::FetchAutomationRuns => Some(Scope::Read),
        Method::CreateSession
        | Method::DisposeSession
        | Method::CreateChat
        | Method::DisposeChat
        | Method::MoveChat
        | Method::ResourceWrite
        | Method::ResourceMkdir
        | Method::ResourceDelete
        | Method::ResourceCopy
        | Method::ResourceMove
        | Method::InvokeChangesetOperation
        | Method::RunAutomation => Some(Scope::Prompt),
        // Agents act in the name of the account that it logs in.
        Method::Authenticate => Some(Scope::Admin),
        Method::CreateTerminal | Method::DisposeTerminal => Some(Scope::Terminal),
    }
}

/// The scope of an action of the Agent Host Protocol. [`further::ahp_action`] adds to it.
///
/// Actions that only the host dispatches, and unknown ones, are refused for that reason.
pub const fn ahp_action(action: &ahp::Action) -> Option<Scope> {
    match action {
        ahp::Action::Root(action) => root_action(action),
        ahp::Action::Session(action) => session_action(action),
        ahp::Action::Chat(action) => chat_action(action),
        ahp::Action::Terminal(action) => terminal_action(action),
        ahp::Action::Changeset(action) => changeset_action(action),
        ahp::Action::Annotations(action) => annotations_action(action),
        ahp::Action::ResourceWatch(ahp::ResourceWatchAction::Changed(_)) | ahp::Action::Unknown(_) => None,
    }
}

const fn root_action(action: &RootAction) -> Option<Scope> {
    match action {
        // The settings of the host itself.
        RootAction::ConfigChanged(_) => Some(Scope::Admin),
        RootAction::AgentsChanged(_) | RootAction::ActiveSessionsChanged(_) | RootAction::TerminalsChanged(_) => None,
    }
}

const fn session_action(action: &SessionAction) -> Option<Scope> {
    match action {
        // A reader marks a session by seeing it.
        SessionAction::IsReadChanged(_) => Some(Scope::Read),
        SessionAction::TitleChanged(_)
        | SessionAction::IsArchivedChanged(_)
        | SessionAction::ActiveClientSet(_)
        | SessionAction::ActiveClientRemoved(_)
        | SessionAction::WorkingDirectorySet(_)
        | SessionAction::WorkingDirectoryRemoved(_)
        | SessionAction::WorkingDirectoryReplaced(_)
        | SessionAction::ConfigChanged(_) => Some(Scope::Prompt),
        // They start programs, and decide which instructions and tools an agent has.
        SessionAction::CustomizationToggled(_)
        | SessionAction::McpServerStartRequested(_)
        | SessionAction::McpServerBackgroundRequested(_)
        | SessionAction::McpServerStopRequested(_) => Some(Scope::Approve),
        SessionAction::Ready(_)
        | SessionAction::CreationFailed(_)
        | SessionAction::ChatAdded(_)
        | SessionAction::ChatRemoved(_)
        | SessionAction::ChatUpdated(_)
        | SessionAction::ChatsReordered(_)
        | SessionAction::DefaultChatChanged(_)
        | SessionAction::ActivityChanged(_)
        | SessionAction::ChangesetsChanged(_)
        | SessionAction::ServerToolsChanged(_)
        | SessionAction::InputNeededSet(_)
        | SessionAction::InputNeededRemoved(_)
        | SessionAction::CustomizationsChanged(_)
        | SessionAction::CustomizationUpdated(_)
        | SessionAction::CustomizationRemoved(_)
        | SessionAction::McpServerStateChanged(_)
        | SessionAction::MetaChanged(_) => None,
    }
}

const fn chat_action(action: &ChatAction) -> Option<Scope> {
    match action {
        ChatAction::IsReadChanged(_) => Some(Scope::Read),
        ChatAction::TurnStarted(_)
        | ChatAction::TurnCancelled(_)
        | ChatAction::TurnResume(_)
        | ChatAction::Truncated(_)
        | ChatAction::PendingMessageSet(_)
        | ChatAction::PendingMessageRemoved(_)
        | ChatAction::QueuedMessagesReordered(_)
        | ChatAction::DraftChanged(_)
        | ChatAction::IsArchivedChanged(_)
        | ChatAction::WorkingDirectorySet(_)
        | ChatAction::WorkingDirectoryRemoved(_)
        // The results of the client's own tools.
        | ChatAction::ToolCallComplete(_)
        | ChatAction::ToolCallContentChanged(_) => Some(Scope::Prompt),
        ChatAction::ToolCallConfirmed(_)
        | ChatAction::ToolCallResultConfirmed(_)
        | ChatAction::InputAnswerChanged(_)
        | ChatAction::InputCompleted(_) => Some(Scope::Approve),
        ChatAction::Delta(_)
        | ChatAction::ResponsePart(_)
        | ChatAction::Reasoning(_)
        | ChatAction::ToolCallStart(_)
        | ChatAction::ToolCallDelta(_)
        | ChatAction::ToolCallReady(_)
        | ChatAction::ToolCallAuthRequired(_)
        | ChatAction::ToolCallAuthResolved(_)
        | ChatAction::Usage(_)
        | ChatAction::TurnComplete(_)
        | ChatAction::Error(_)
        | ChatAction::TurnsLoaded(_)
        | ChatAction::InputRequested(_)
        | ChatAction::ActivityChanged(_)
        | ChatAction::BackgroundWorkSet(_)
        | ChatAction::BackgroundWorkRemoved(_)
        | ChatAction::MovableChanged(_)
        | ChatAction::ChangesetsChanged(_)
        | ChatAction::CanvasesChanged(_) => None,
    }
}

const fn terminal_action(action: &TerminalAction) -> Option<Scope> {
    match action {
        TerminalAction::Input(_)
        | TerminalAction::Resized(_)
        | TerminalAction::Claimed(_)
        | TerminalAction::TitleChanged(_)
        | TerminalAction::Cleared(_) => Some(Scope::Terminal),
        TerminalAction::Data(_)
        | TerminalAction::CwdChanged(_)
        | TerminalAction::Exited(_)
        | TerminalAction::CommandDetectionAvailable(_)
        | TerminalAction::CommandExecuted(_)
        | TerminalAction::CommandFinished(_) => None,
    }
}

const fn changeset_action(action: &ChangesetAction) -> Option<Scope> {
    match action {
        ChangesetAction::FilesReviewChanged(_) => Some(Scope::Prompt),
        ChangesetAction::StatusChanged(_)
        | ChangesetAction::FileSet(_)
        | ChangesetAction::FileRemoved(_)
        | ChangesetAction::ContentChanged(_)
        | ChangesetAction::OperationsChanged(_)
        | ChangesetAction::OperationStatusChanged(_)
        | ChangesetAction::Cleared(_) => None,
    }
}

const fn annotations_action(action: &AnnotationsAction) -> Option<Scope> {
    match action {
        AnnotationsAction::Set(_)
        | AnnotationsAction::Updated(_)
        | AnnotationsAction::Removed(_)
        | AnnotationsAction::EntrySet(_)
        | AnnotationsAction::EntryRemoved(_) => Some(Scope::Prompt),
    }
}

/// The scope of a method of Grove's extensions. [`further::x_grove_method`] adds to it.
pub const fn x_grove_method(method: x_grove::Method) -> Option<Scope> {
    use x_grove::Method;
    Some(match method {
        Method::Tree | Method::Entries | Method::Permissions | Method::Presence => Scope::Read,
        Method::Navigate
        | Method::Label
        | Method::Rename
        | Method::SetWorkingDirectory
        | Method::Branch
        | Method::Fork
        | Method::Merge
        | Method::Compact
        | Method::Abort => Scope::Prompt,
        Method::Migrate => Scope::Admin,
        // An MCP server is a program that runs without asking anybody.
        Method::Setup => Scope::Approve,
        Method::Workspace(method) => match method {
            WorkspaceMethod::Manifest
            | WorkspaceMethod::Plan
            | WorkspaceMethod::Files
            | WorkspaceMethod::ReadFile
            | WorkspaceMethod::Checkpoints
            | WorkspaceMethod::Checkpoint
            | WorkspaceMethod::Todos => Scope::Read,
            WorkspaceMethod::SetPlan | WorkspaceMethod::WriteFile | WorkspaceMethod::RemoveFile => Scope::Prompt,
        },
        Method::Handover(HandoverMethod::Files | HandoverMethod::Read | HandoverMethod::Leave) => Scope::Admin,
        // An imported session brings its own permissions.
        Method::Import(ImportMethod::Begin | ImportMethod::Put | ImportMethod::Commit | ImportMethod::Abort) => {
            Scope::Admin
        }
        Method::Removal(RemovalMethod::Disposed) => Scope::Read,
        Method::Removal(RemovalMethod::Erase) => Scope::Admin,
        Method::History(HistoryMethod::List | HistoryMethod::Scan) => Scope::Read,
        // The tool's files bring permissions, and agents can write them: a person decides.
        Method::History(HistoryMethod::Import) => Scope::Approve,
        Method::Sessions(method) => sessions_method(method),
        Method::Policy(PolicyMethod::Offers) => Scope::Read,
        Method::Policy(PolicyMethod::Allow) => Scope::Approve,
        // A device is told no more than its token may read.
        Method::Notify(
            NotifyMethod::Key
            | NotifyMethod::Subscribe
            | NotifyMethod::Unsubscribe
            | NotifyMethod::List
            | NotifyMethod::Test,
        ) => Scope::Read,
        Method::Tokens(
            TokensMethod::List
            | TokensMethod::Add
            | TokensMethod::Revoke
            | TokensMethod::Rotate
            | TokensMethod::IssueCode,
        ) => Scope::Admin,
        Method::Administration(method) => administration_method(method),
    })
}

const fn administration_method(method: AdministrationMethod) -> Scope {
    use AdministrationMethod as Method;
    match method {
        Method::ListAgents
        | Method::ListHosts
        | Method::Rules
        | Method::CheckRules => Scope::Read,
        // It starts agents, as a new session does.
        Method::CheckAgents => Scope::Prompt,
        // They show the requests of every session and of other tools, to those who answer requests.
        Method::TestRules | Method::SuggestRules => Scope::Approve,
        Method::PlanInstall
        | Method::Install
        | Method::InstallStatus
        | Method::CancelInstall
        // Agents act in the name of the account that they log in.
        | Method::LogIn
        | Method::CheckHosts
        | Method::AddHost
        | Method::RemoveHost
        | Method::AddRules
        | Method::RemoveRule
        // They name files of this machine.
        | Method::ListSettings => Scope::Admin,
    }
}

const fn sessions_method(method: SessionsMethod) -> Scope {
    match method {
        SessionsMethod::List
        | SessionsMethod::Subscribe
        | SessionsMethod::Unsubscribe
        | SessionsMethod::Providers
        | SessionsMethod::Types
        | SessionsMethod::TypesForFolder
        | SessionsMethod::BrowseActions
        | SessionsMethod::Browse
        | SessionsMethod::Waiting
        // The client's own view.
        | SessionsMethod::Open
        | SessionsMethod::OpenChat
        | SessionsMethod::OpenNewSessionView
        | SessionsMethod::Restore
        | SessionsMethod::UnsetNewSession
        | SessionsMethod::SetActiveProvider
        | SessionsMethod::SetRead => Scope::Read,
        SessionsMethod::Create
        | SessionsMethod::SetSessionType
        | SessionsMethod::SendAndCreateChat
        | SessionsMethod::SendRequest
        | SessionsMethod::SetModel
        | SessionsMethod::RenameChat
        | SessionsMethod::Pin
        | SessionsMethod::Archive
        | SessionsMethod::Unarchive
        | SessionsMethod::Delete
        | SessionsMethod::DeleteChat => Scope::Prompt,
        SessionsMethod::AnswerTrust | SessionsMethod::Answer => Scope::Approve,
    }
}

/// The scope of a method of the Copilot SDK that is always answered with the same value.
pub const COPILOT_ABSENT: Scope = Scope::Read;

/// The scope of a method of the Copilot SDK.
pub const fn copilot_method(method: CopilotMethod) -> Option<Scope> {
    use CopilotMethod as Method;
    Some(match method {
        Method::Connect | Method::Ping | Method::StatusGet | Method::AuthGetStatus => return None,
        Method::ModelsList
        | Method::SessionGetMessages
        | Method::SessionDetach
        | Method::SessionDestroy
        | Method::SessionSuspend
        | Method::SessionShutdown
        | Method::SessionsClose
        | Method::SessionList
        | Method::SessionGetLastId
        | Method::SessionGetMetadata
        | Method::SessionGetForeground
        | Method::SessionsReadPersistedEvents
        | Method::NameGet
        | Method::ModelGetCurrent
        | Method::ModelList
        | Method::ModeGet
        | Method::AgentList
        | Method::AgentGetCurrent
        | Method::AgentReload
        | Method::SkillsDiscover
        | Method::SkillsList
        | Method::MetadataIsProcessing
        | Method::PlanRead
        | Method::WorkspaceGet
        | Method::WorkspaceListFiles
        | Method::WorkspaceReadFile
        | Method::WorkspaceStatFile
        | Method::WorkspaceListCheckpoints
        | Method::WorkspaceReadCheckpoint
        | Method::HistoryListRewindPoints
        | Method::EventLogRead
        | Method::EventLogTail
        | Method::EventLogRegisterInterest
        | Method::EventLogReleaseInterest
        | Method::PermissionsPending
        | Method::PermissionsGetMode
        | Method::PermissionsNotifyPromptShown
        | Method::PermissionsListPaths
        | Method::PermissionsIsAllowedPath
        | Method::PermissionsIsWorkspacePath
        | Method::PermissionsResolveLocation
        | Method::PermissionsIsTrusted
        | Method::MetadataSnapshot
        | Method::MetadataActivity
        | Method::UsageGetMetrics
        | Method::ToolsGetMetadata
        | Method::PlanReadTodos
        | Method::PlanReadTodosWithDependencies
        | Method::WorkspaceEnsure
        | Method::WorkspaceDiff
        | Method::CommandsList
        | Method::QueuePendingItems
        | Method::QueueSnapshot
        | Method::QueueHasPending
        | Method::SessionsList
        | Method::SessionsGetMetadata
        | Method::SessionsFindByPrefix
        | Method::SessionsGetLastForContext
        | Method::SessionsListNonEmpty
        | Method::SessionsGetSizes
        | Method::SessionsCheckInUse
        | Method::SessionsEnrichMetadata
        | Method::SessionsGetEventFilePath
        | Method::SessionsSave
        | Method::SessionsSetPlugins => Scope::Read,
        // Resuming offers tools and may change the model; reading needs none of it.
        Method::SessionCreate
        | Method::SessionResume
        | Method::SessionSend
        | Method::SessionSendAndWait
        | Method::SessionAbort
        | Method::SessionSetForeground
        | Method::SessionsFork
        | Method::NameSet
        | Method::ModelSwitchTo
        | Method::ModelSetEffort
        | Method::AgentSelect
        | Method::SkillsEnable
        | Method::SkillsDisable
        | Method::SkillsReload
        | Method::AgentDeselect
        | Method::OptionsUpdate
        | Method::PlanUpdate
        | Method::PlanDelete
        | Method::WorkspaceCreateFile
        | Method::WorkspaceCreateDirectory
        | Method::WorkspaceRemovePath
        | Method::WorkspaceRenamePath
        | Method::WorkspaceSaveLargePaste
        | Method::HistoryCompact
        | Method::HistoryTruncate
        | Method::HistoryRewind
        | Method::ToolsHandlePending
        | Method::UiElicitation
        | Method::Log
        | Method::MainTurnInterrupt
        | Method::NameSetAuto
        | Method::MetadataSetWorkingDirectory
        | Method::MetadataRecordContext
        | Method::HistoryAbortCompaction
        | Method::CommandsInvoke
        | Method::CommandsExecute
        | Method::CommandsHandlePending
        | Method::CommandsEnqueue
        | Method::CommandsRespond
        | Method::QueueInsertAt
        | Method::QueueRemoveAt
        | Method::QueueRemoveMostRecent
        | Method::QueueMoveItem
        | Method::QueueUpdateText
        | Method::QueueDuplicateAt
        | Method::QueueSendNow
        | Method::QueueClear => Scope::Prompt,
        Method::ModeSet
        | Method::PermissionsHandlePending
        | Method::PermissionsConfigure
        | Method::PermissionsSetApproveAll
        | Method::PermissionsSetMode
        | Method::PermissionsModifyRules
        | Method::PermissionsSetRequired
        | Method::PermissionsResetApprovals
        | Method::PermissionsAddPath
        | Method::PermissionsSetPrimaryPath
        | Method::PermissionsApplyLocation
        | Method::PermissionsAddLocationApproval
        | Method::PermissionsAddTrusted
        | Method::PermissionsUnrestrictUrls
        | Method::UiHandlePendingUserInput
        | Method::UiHandlePendingElicitation => Scope::Approve,
        // Sessions come from the client's storage with their permissions.
        Method::SessionFsSetProvider | Method::RuntimeShutdown => Scope::Admin,
        // It erases the session's files.
        Method::SessionDelete | Method::SessionsDelete | Method::SessionsBulkDelete | Method::SessionsPruneOld => {
            Scope::Admin
        }
    })
}
