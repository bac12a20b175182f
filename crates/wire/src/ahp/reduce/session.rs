//! A session's reducer.

use super::edit::{
    assign, assign_if_some, clear, configure, ranks, remove, remove_some, reorder, set, set_if_some, upsert,
    upsert_some,
};
use super::{ReduceOutcome, customization};
use crate::ahp::Uri;
use crate::ahp::action::{SessionAction, SessionChatRemoved, SessionWorkingDirectoryReplaced};
use crate::ahp::state::{
    ChatSummary, Customization, McpServerStarting, McpServerState, McpServerStopped, PartialChatSummary,
    SessionInputRequest, SessionLifecycle, SessionState, status,
};

/// Applies an action to a session.
pub fn session(state: &mut SessionState, action: &SessionAction) -> ReduceOutcome {
    match action {
        // Only the lifecycle: a chat may be active before its session is ready, and `status` shows that.
        SessionAction::Ready(_) => assign(&mut state.lifecycle, &SessionLifecycle::Ready),
        SessionAction::CreationFailed(action) => {
            assign(&mut state.lifecycle, &SessionLifecycle::Failed) | set(&mut state.creation_error, &action.error)
        }

        SessionAction::ChatAdded(action) => {
            upsert(&mut state.chats, &action.summary, |chat| chat.resource == action.summary.resource)
        }
        SessionAction::ChatRemoved(action) => chat_removed(state, action),
        SessionAction::ChatUpdated(action) => state
            .chats
            .iter_mut()
            .find(|chat| chat.resource == action.chat)
            .map_or(ReduceOutcome::Unchanged, |chat| chat_updated(chat, &action.changes)),
        SessionAction::ChatsReordered(action) => chats_reordered(&mut state.chats, &action.chats),
        SessionAction::DefaultChatChanged(action) => assign(&mut state.default_chat, &action.default_chat),

        SessionAction::TitleChanged(action) => assign(&mut state.title, &action.title),
        SessionAction::IsReadChanged(action) => flag(state, status::IS_READ, action.is_read),
        SessionAction::IsArchivedChanged(action) => flag(state, status::IS_ARCHIVED, action.is_archived),
        SessionAction::ActivityChanged(action) => assign(&mut state.activity, &action.activity),
        SessionAction::ChangesetsChanged(action) => assign(&mut state.changesets, &action.changesets),
        SessionAction::ServerToolsChanged(action) => set(&mut state.server_tools, &action.tools),
        SessionAction::MetaChanged(action) => assign(&mut state.meta, &action.meta),
        // Values without a schema are meaningless.
        SessionAction::ConfigChanged(action) => state
            .config
            .as_mut()
            .map_or(ReduceOutcome::Unchanged, |config| configure(&mut config.values, &action.config, action.replace)),

        SessionAction::ActiveClientSet(action) => {
            let client = &action.active_client;
            upsert(&mut state.active_clients, client, |known| known.client_id == client.client_id)
        }
        SessionAction::ActiveClientRemoved(action) => {
            remove(&mut state.active_clients, |known| known.client_id == action.client_id)
        }

        SessionAction::WorkingDirectorySet(action) => {
            upsert_some(&mut state.working_directories, &action.directory, |known| *known == action.directory)
        }
        SessionAction::WorkingDirectoryRemoved(action) => {
            remove_some(&mut state.working_directories, |known| *known == action.directory)
        }
        SessionAction::WorkingDirectoryReplaced(action) => {
            state.working_directories.as_mut().map_or(ReduceOutcome::Unchanged, |list| directory_replaced(list, action))
        }

        SessionAction::InputNeededSet(action) => input_needed(state, &action.request),
        SessionAction::InputNeededRemoved(action) => input_no_longer_needed(state, &action.id),

        SessionAction::CustomizationsChanged(action) => set(&mut state.customizations, &action.customizations),
        SessionAction::CustomizationUpdated(action) => match action.customization.id() {
            Some(id) => upsert_some(&mut state.customizations, &action.customization, |known| known.id() == Some(id)),
            None => ReduceOutcome::Unchanged,
        },
        SessionAction::CustomizationRemoved(action) => {
            customizations(state, |list| customization::removed(list, &action.id))
        }
        SessionAction::CustomizationToggled(action) => {
            customizations(state, |list| customization::toggled(list, &action.id, &action.enablement))
        }
        SessionAction::McpServerStateChanged(action) => {
            customizations(state, |list| customization::server_moved(list, &action.id, &action.state, &action.channel))
        }
        // A requested start counts as started: the host soon sends the result.
        SessionAction::McpServerStartRequested(action) => customizations(state, |list| {
            let starting = McpServerState::Starting(McpServerStarting::default());
            customization::server_moved(list, &action.id, &starting, &None)
        }),
        SessionAction::McpServerStopRequested(action) => customizations(state, |list| {
            let stopped = McpServerState::Stopped(McpServerStopped::default());
            customization::server_moved(list, &action.id, &stopped, &None)
        }),
        SessionAction::McpServerBackgroundRequested(action) => {
            customizations(state, |list| customization::server_backgrounded(list, &action.id))
        }
    }
}

fn flag(state: &mut SessionState, flag: u32, is_set: bool) -> ReduceOutcome {
    let status = status::with_flag(state.status, flag, is_set);
    assign(&mut state.status, &status)
}

fn customizations(
    state: &mut SessionState,
    change: impl FnOnce(&mut Vec<Customization>) -> ReduceOutcome,
) -> ReduceOutcome {
    state.customizations.as_mut().map_or(ReduceOutcome::Unchanged, change)
}

/// Removes a chat. A removed chat cannot be the default.
fn chat_removed(state: &mut SessionState, action: &SessionChatRemoved) -> ReduceOutcome {
    let outcome = remove(&mut state.chats, |chat| chat.resource == action.chat);
    if outcome.is_changed() {
        state.default_chat.take_if(|chat| *chat == action.chat);
    }
    outcome
}

fn chat_updated(chat: &mut ChatSummary, changes: &PartialChatSummary) -> ReduceOutcome {
    // All fields by name, so that a new one is not forgotten here.
    let PartialChatSummary {
        resource: _,
        title,
        status,
        activity,
        modified_at,
        changes,
        origin,
        movable,
        interactivity,
        working_directories,
    } = changes;
    assign_if_some(&mut chat.title, title)
        | assign_if_some(&mut chat.status, status)
        | set_if_some(&mut chat.activity, activity)
        | assign_if_some(&mut chat.modified_at, modified_at)
        | set_if_some(&mut chat.changes, changes)
        | set_if_some(&mut chat.origin, origin)
        | set_if_some(&mut chat.movable, movable)
        | set_if_some(&mut chat.interactivity, interactivity)
        | set_if_some(&mut chat.working_directories, working_directories)
}

/// Reorders chats. An order of other chats than the present ones is late: its sender did not know these.
fn chats_reordered(chats: &mut [ChatSummary], order: &[Uri]) -> ReduceOutcome {
    let named = ranks(order);
    let is_complete = named.len() == order.len() && order.len() == chats.len();
    if !is_complete || !chats.iter().all(|chat| named.contains_key(chat.resource.as_str())) {
        return ReduceOutcome::Unchanged;
    }
    reorder(chats, order, |chat| &chat.resource)
}

/// Puts the replacement in the directory's place, unless it comes earlier already. No directory is listed twice.
fn directory_replaced(list: &mut Vec<Uri>, action: &SessionWorkingDirectoryReplaced) -> ReduceOutcome {
    let Some(at) = list.iter().position(|known| *known == action.directory) else { return ReduceOutcome::Unchanged };
    let earlier = list.iter().take(at).any(|known| *known == action.replacement);
    if earlier {
        list.remove(at);
        return ReduceOutcome::Changed;
    }
    let (before, mut place) = (list.len(), 0);
    list.retain_mut(|known| {
        if place == at {
            known.clone_from(&action.replacement);
        }
        place += 1;
        place <= at + 1 || *known != action.replacement
    });
    ReduceOutcome::of(action.directory != action.replacement || list.len() != before)
}

fn input_needed(state: &mut SessionState, request: &SessionInputRequest) -> ReduceOutcome {
    let Some(id) = request.id() else { return ReduceOutcome::Unchanged };
    upsert_some(&mut state.input_needed, request, |known| known.id() == Some(id)) | input_status(state)
}

fn input_no_longer_needed(state: &mut SessionState, id: &str) -> ReduceOutcome {
    if !remove_some(&mut state.input_needed, |known| known.id() == Some(id)).is_changed() {
        return ReduceOutcome::Unchanged;
    }
    if state.input_needed.as_ref().is_some_and(Vec::is_empty) {
        clear(&mut state.input_needed);
    }
    input_status(state);
    ReduceOutcome::Changed
}

/// Updates the status: a session needs input while a request waits for the user. Afterwards it is in progress again, or
/// returns to another status.
fn input_status(state: &mut SessionState) -> ReduceOutcome {
    let status = if state.input_needed.iter().flatten().any(waits_for_user) {
        status::with_activity(state.status, status::INPUT_NEEDED)
    } else {
        status::with_flag(state.status, status::INPUT_NEEDED & !status::IN_PROGRESS, false)
    };
    assign(&mut state.status, &status)
}

/// False for a call that a client executes: it is allowed already and runs elsewhere.
fn waits_for_user(request: &SessionInputRequest) -> bool {
    !matches!(request, SessionInputRequest::ToolClientExecution(_))
}
