//! The wire format of sessions, views and providers.

use std::collections::HashSet;
use std::sync::Arc;

use grove_sessions::provider::{Availability, SessionType, SessionsProvider};
use grove_sessions::session::{
    ChatState, FileOperation, GitHubInfo, Interactivity, Mode, Repository, SessionState, SessionStatus,
};
use grove_sessions::{Session, SessionId, management, provider, session};
use grove_wire::x_grove::sessions as wire;

use super::groups;

fn text(text: impl AsRef<str>) -> String {
    text.as_ref().to_owned()
}

/// The row of a session. Its pin belongs to the list, not to the session.
pub(super) fn row(session: &Session, is_pinned: bool) -> wire::SessionListRow {
    let state = session.state();
    let capabilities = state.capabilities;
    wire::SessionListRow {
        id: text(session.id().as_str()),
        resource: text(session.resource().as_str()),
        provider_id: text(session.provider_id().as_str()),
        session_type: text(state.session_type.as_str()),
        icon: text(state.icon.as_str()),
        created_at: session.created_at().0,
        updated_at: state.updated_at().0,
        title: text(state.title()),
        status: status(state.status()),
        chat_error: state.chat_error().map(|chat| text(chat.as_str())),
        workspace: state.workspace.as_deref().map(workspace),
        // An object of strings is an object on the wire, too.
        metadata: serde_json::to_value(state.metadata.as_ref()).unwrap_or_default(),
        capabilities: wire::RowCapabilities {
            supports_multiple_chats: capabilities.supports_multiple_chats,
            supports_fork: capabilities.supports_fork,
            supports_rename: capabilities.supports_rename,
            supports_delete: capabilities.supports_delete,
        },
        state: wire::RowState {
            changes: changes(&state.changes()),
            model_id: state.model_id().map(text),
            mode: state.mode().as_ref().map(mode),
            loading: state.loading(),
            is_archived: state.is_archived(),
            is_read: state.is_read(),
            description: state.description().map(|words| text(words.as_str())),
            last_turn_end: state.last_turn_end().map(|at| at.0),
            git_hub_info: state.github_info().as_deref().map(git_hub_info),
        },
        chats: state.chats().take(wire::MAX_ROW_CHATS).map(|known| chat(&state, known)).collect(),
        group: groups::group_of(&state),
        context: wire::RowContext { chat_session_provider_id: text(session.provider_id().as_str()) },
        is_pinned,
        activity: activity(&state),
        waiting: state.waiting.len(),
    }
}

/// The activity of a running session as one line of plain text. It comes from agents, so nothing in it may change how
/// other text is shown.
fn activity(state: &SessionState) -> Option<String> {
    let is_running = matches!(state.status(), SessionStatus::InProgress | SessionStatus::NeedsInput);
    let description = state.description().filter(|_| is_running)?;
    let line = description.as_str().lines().map(str::trim).find(|line| !line.is_empty())?;
    let shown = line.chars().filter(|char| !char.is_control() && !is_bidi_control(*char));
    Some(shown.take(wire::MAX_ACTIVITY_CHARS).collect())
}

/// Characters that change the direction of the text around them.
fn is_bidi_control(char: char) -> bool {
    matches!(char, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn chat(session: &SessionState, chat: &ChatState) -> wire::RowChat {
    wire::RowChat {
        resource: text(chat.resource.as_str()),
        created_at: chat.created_at.0,
        updated_at: chat.updated_at.0,
        title: text(&chat.title),
        status: status(chat.status),
        state: wire::RowState {
            changes: changes(&chat.changes),
            model_id: chat.model_id.as_ref().map(text),
            mode: chat.mode.as_ref().map(mode),
            loading: chat.loading,
            is_archived: chat.is_archived,
            is_read: chat.is_read,
            description: chat.description.as_ref().map(|words| text(words.as_str())),
            last_turn_end: chat.last_turn_end.map(|at| at.0),
            git_hub_info: chat.github_info.as_deref().map(git_hub_info),
        },
        interactivity: match session.interactivity(chat) {
            Interactivity::Full => wire::Interactivity::Full,
            Interactivity::ReadOnly => wire::Interactivity::ReadOnly,
            Interactivity::Hidden => wire::Interactivity::Hidden,
        },
    }
}

pub(super) fn status(status: SessionStatus) -> wire::RowStatus {
    match status {
        SessionStatus::Untitled => wire::RowStatus::Untitled,
        SessionStatus::InProgress => wire::RowStatus::InProgress,
        SessionStatus::NeedsInput => wire::RowStatus::NeedsInput,
        SessionStatus::Completed => wire::RowStatus::Completed,
        SessionStatus::Error => wire::RowStatus::Error,
    }
}

fn mode(mode: &Mode) -> wire::Mode {
    wire::Mode { id: text(&mode.id), kind: text(&mode.kind) }
}

fn changes(changes: &[session::ChatFileChange]) -> wire::RowChanges {
    let sum = |count: fn(&session::ChatFileChange) -> u64| changes.iter().map(count).fold(0, u64::saturating_add);
    let file = |change: &session::ChatFileChange| wire::RowFileChange {
        uri: text(change.uri.as_str()),
        original_uri: change.original_uri.as_ref().map(|uri| text(uri.as_str())),
        operation: match change.operation {
            FileOperation::Created => wire::FileOperation::Created,
            FileOperation::Modified => wire::FileOperation::Modified,
            FileOperation::Deleted => wire::FileOperation::Deleted,
        },
        insertions: change.insertions,
        deletions: change.deletions,
    };
    wire::RowChanges {
        total: changes.len(),
        insertions: sum(|change| change.insertions),
        deletions: sum(|change| change.deletions),
        files: changes.iter().take(wire::MAX_ROW_CHANGES).map(file).collect(),
    }
}

pub(super) fn workspace(workspace: &session::SessionWorkspace) -> wire::RowWorkspace {
    wire::RowWorkspace {
        uri: text(workspace.uri.as_str()),
        label: text(&workspace.label),
        icon: text(workspace.icon.as_str()),
        host: workspace.host.as_ref().map(text),
        repositories: workspace.repositories.iter().map(repository).collect(),
        requires_workspace_trust: workspace.requires_workspace_trust,
    }
}

fn repository(repository: &Repository) -> wire::RowRepository {
    wire::RowRepository {
        uri: text(repository.uri.as_str()),
        identity: repository.identity.as_ref().map(text),
        working_directory: repository.working_directory.as_ref().map(|uri| text(uri.as_str())),
        detail: repository.detail.as_ref().map(text),
        base_branch_name: repository.base_branch_name.as_ref().map(text),
        base_branch_protected: repository.base_branch_protected,
    }
}

fn git_hub_info(info: &GitHubInfo) -> wire::GitHubInfo {
    wire::GitHubInfo {
        owner: text(&info.owner),
        repo: text(&info.repo),
        pull_request: info.pull_request.as_ref().map(|pull_request| wire::PullRequest {
            number: pull_request.number,
            uri: text(pull_request.uri.as_str()),
            icon: pull_request.icon.as_ref().map(|icon| text(icon.as_str())),
        }),
    }
}

pub(super) fn view(view: &management::ActiveView, pins: &HashSet<SessionId>) -> wire::SessionsView {
    let active = view.active_session.as_ref();
    let context = &view.context;
    wire::SessionsView {
        active_session: active.map(|active| row(active.session(), pins.contains(active.session().id()))),
        active_chat: active.map(|active| text(active.active_chat().resource().as_str())),
        new_session: view.new_session.as_ref().map(|session| row(session, false)),
        active_provider_id: view.active_provider_id.as_ref().map(|id| text(id.as_str())),
        context: wire::ContextKeys {
            is_new_chat_session: context.is_new_chat_session,
            active_session_provider_id: text(&context.active_session_provider_id),
            active_session_type: text(&context.active_session_type),
            is_active_session_background_provider: context.is_active_session_background_provider,
            is_active_session_archived: context.is_active_session_archived,
            active_session_supports_multi_chat: context.active_session_supports_multi_chat,
            active_session_has_git_repository: context.active_session_has_git_repository,
        },
    }
}

pub(super) fn provider(provider: &Arc<dyn SessionsProvider>) -> wire::Provider {
    let (availability, reason) = match provider.availability() {
        Availability::Ready => (wire::Availability::Ready, None),
        Availability::Connecting => (wire::Availability::Connecting, None),
        Availability::Away { reason } => (wire::Availability::Away, Some(reason)),
        Availability::Incompatible { message } => (wire::Availability::Incompatible, Some(message)),
    };
    let taken = provider.capabilities().attachments;
    wire::Provider {
        id: text(provider.id().as_str()),
        label: text(provider.label()),
        icon: text(provider.icon().as_str()),
        environment: match provider.environment() {
            provider::ProviderEnvironment::ThisHost => wire::ProviderEnvironment::ThisHost,
            provider::ProviderEnvironment::OtherHost(_) => wire::ProviderEnvironment::OtherHost,
            provider::ProviderEnvironment::History => wire::ProviderEnvironment::History,
            provider::ProviderEnvironment::Cloud => wire::ProviderEnvironment::Cloud,
        },
        availability,
        reason: reason.map(text),
        seen_at: provider.seen_at().map(|at| at.0),
        attachments: wire::Attachments {
            files: taken.files,
            folders: taken.folders,
            selections: taken.selections,
            images: taken.images,
        },
    }
}

/// A session type, with its provider if that matters.
pub(super) fn session_type(session_type: SessionType, provider: Option<&str>) -> wire::SessionType {
    wire::SessionType {
        id: text(session_type.id.as_str()),
        label: text(session_type.label),
        icon: text(session_type.icon.as_str()),
        provider_id: provider.map(text),
    }
}
