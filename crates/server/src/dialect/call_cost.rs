//! The cost of each request beyond that of its message, for the bounds of a connection and of a token.

use grove_host::CallCost;
use grove_wire::x_grove::administration::AdministrationMethod;
use grove_wire::x_grove::handover::HandoverMethod;
use grove_wire::x_grove::history::HistoryMethod;
use grove_wire::x_grove::import::ImportMethod;
use grove_wire::x_grove::removal::RemovalMethod;
use grove_wire::x_grove::sessions::SessionsMethod;
use grove_wire::{ahp, v1, x_grove};

/// The cost of a request of version 1, of AHP or of Grove's extensions. Unknown ones are refused elsewhere.
pub(super) fn call_cost(method: &str) -> CallCost {
    if let Some(method) = x_grove::Method::named(method) {
        return of_extension(method);
    }
    match (ahp::Method::named(method), v1::Method::named(method)) {
        (Some(method), _) => of_ahp(method),
        (None, Some(method)) => of_v1(method),
        (None, None) => CallCost::Small,
    }
}

fn of_v1(method: v1::Method) -> CallCost {
    use v1::Method;
    match method {
        Method::CreateSession => CallCost::Start,
        Method::Initialize
        | Method::Reconnect
        | Method::Ping
        | Method::Subscribe
        | Method::DisposeSession
        | Method::ListSessions
        | Method::FetchTurns
        | Method::FetchContent
        | Method::BrowseDirectory => CallCost::Small,
    }
}

fn of_ahp(method: ahp::Method) -> CallCost {
    use ahp::Method;
    match method {
        Method::CreateSession | Method::CreateChat | Method::CreateTerminal | Method::RunAutomation => CallCost::Start,
        Method::Completions
        | Method::MoveChat
        | Method::ResourceCopy
        | Method::ResourceMove
        | Method::InvokeChangesetOperation => CallCost::Large,
        Method::Initialize
        | Method::Ping
        | Method::Reconnect
        | Method::Subscribe
        | Method::ListSessions
        | Method::DisposeSession
        | Method::DisposeChat
        | Method::FetchTurns
        | Method::ResolveSessionConfig
        | Method::SessionConfigCompletions
        | Method::Authenticate
        | Method::DisposeTerminal
        | Method::ResourceRead
        | Method::ResourceWrite
        | Method::ResourceList
        | Method::ResourceResolve
        | Method::ResourceMkdir
        | Method::ResourceDelete
        | Method::ResourceRequest
        | Method::CreateResourceWatch
        | Method::ListAutomationTriggerDefinitions
        | Method::FetchAutomationRuns => CallCost::Small,
    }
}

fn of_extension(method: x_grove::Method) -> CallCost {
    use x_grove::Method;
    match method {
        Method::Branch
        | Method::Fork
        | Method::Import(ImportMethod::Begin)
        | Method::History(HistoryMethod::Import)
        | Method::Sessions(SessionsMethod::Create | SessionsMethod::SendAndCreateChat)
        | Method::Administration(
            AdministrationMethod::CheckAgents | AdministrationMethod::Install | AdministrationMethod::LogIn,
        ) => CallCost::Start,
        // A tree is searched, and its rows are made of the whole log.
        Method::Tree
        | Method::Navigate
        | Method::Merge
        | Method::Compact
        | Method::Migrate
        | Method::Setup
        | Method::Handover(HandoverMethod::Files | HandoverMethod::Read)
        | Method::Import(ImportMethod::Commit)
        | Method::Removal(RemovalMethod::Erase)
        | Method::History(HistoryMethod::List | HistoryMethod::Scan)
        | Method::Administration(
            AdministrationMethod::ListAgents
            | AdministrationMethod::PlanInstall
            | AdministrationMethod::CheckHosts
            | AdministrationMethod::AddHost
            | AdministrationMethod::TestRules
            | AdministrationMethod::SuggestRules,
        ) => CallCost::Large,
        Method::Entries
        | Method::Label
        | Method::Rename
        | Method::Permissions
        | Method::Policy(_)
        | Method::SetWorkingDirectory
        | Method::Abort
        | Method::Workspace(_)
        | Method::Handover(HandoverMethod::Leave)
        | Method::Import(ImportMethod::Put | ImportMethod::Abort)
        | Method::Removal(RemovalMethod::Disposed)
        | Method::Sessions(_)
        | Method::Presence
        | Method::Administration(_)
        | Method::Tokens(_)
        | Method::Notify(_) => CallCost::Small,
    }
}
