//! The state of a row of the host's list. Pure: all facts come in, a state goes out.

use std::sync::Arc;

use grove_core::Timestamp;
use grove_wire::ahp::{
    AgentInfo, ChatInteractivity, ChatOrigin, SessionChatSummary, SessionInputRequest, SessionSummary, time,
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::details::SessionDetails;
use super::identity::HostIdentity;
use crate::ids::{Icon, Markdown, SessionTypeId, Uri};
use crate::metadata::{Metadata, REPOSITORY_NWO, REPOSITORY_PATH, REPOSITORY_URL, WORKING_DIRECTORY_PATH};
use crate::session::{
    ChatState, InputRequest, Interactivity, SessionCapabilities, SessionState, SessionStatus, SessionWorkspace,
    StatusBits, UNTITLED,
};

/// The metadata keys that a host may give for a session's origin, beside the members of the protocol.
const TOLD: [&str; 11] = [
    "owner",
    "name",
    "repositoryNwo",
    "repository",
    "repositoryUrl",
    "repositoryPath",
    "worktreePath",
    "branch",
    "baseBranchName",
    "baseBranchProtected",
    "pullRequestUrl",
];

/// The member of a row's `_meta` that marks sessions of other tools.
const HISTORY: &str = "history";

/// The repository of a folder of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderFacts {
    /// `owner/name`.
    pub(super) repository: Option<String>,
    pub(super) git_root: Option<String>,
}

/// All facts of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionFacts<'a> {
    pub(super) host: &'a HostIdentity,
    pub(super) row: &'a SessionSummary,
    pub(super) agent: Option<&'a AgentInfo>,
    pub(super) details: &'a SessionDetails,
    pub(super) folder: Option<&'a FolderFacts>,
    /// The model that was chosen here for the next message.
    pub(super) chosen_model: Option<&'a str>,
    /// Its state until now.
    pub(super) before: Option<&'a SessionState>,
}

/// Returns whether a row is a session of another tool. Those have their own providers.
pub(super) fn is_history(row: &SessionSummary) -> bool {
    meta_value(row, HISTORY).is_some()
}

/// The status of a row as a whole.
pub(super) fn bits(row: &SessionSummary) -> StatusBits {
    StatusBits::from_bits(row.status)
}

/// The working directory of a session, in the host's spelling.
pub(super) fn folder(row: &SessionSummary) -> Option<String> {
    row.working_directories.iter().flatten().next().map(|uri| path_of(uri))
}

/// Returns whether a row itself names the repository of its folder.
pub(super) fn tells_repository(row: &SessionSummary) -> bool {
    [REPOSITORY_PATH, REPOSITORY_NWO, REPOSITORY_URL].into_iter().any(|key| meta_value(row, key).is_some())
}

/// The path of a `file:` URI; anything else as it is.
pub(super) fn path_of(uri: &str) -> String {
    let parsed = Uri::from(uri);
    if parsed.scheme() != "file" {
        return uri.to_owned();
    }
    let path = percent_decode_str(parsed.path()).decode_utf8_lossy().into_owned();
    // A network share: its server belongs to its path.
    let server = parsed.authority();
    if !server.is_empty() && server != "localhost" {
        return format!("//{}{path}", percent_decode_str(server).decode_utf8_lossy());
    }
    // `/C:/src` is a path of another system.
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => path[1..].to_owned(),
        _ => path,
    }
}

pub(super) fn capabilities(agent: &AgentInfo) -> SessionCapabilities {
    let chats = agent.capabilities.as_ref().and_then(|can| can.multiple_chats.as_ref());
    SessionCapabilities {
        supports_multiple_chats: chats.is_some(),
        supports_fork: chats.and_then(|chats| chats.fork).unwrap_or(false),
        supports_rename: true,
        supports_delete: true,
    }
}

pub(super) fn agent_icon() -> Icon {
    Icon::from("agent")
}

/// The workspace of some metadata. A person must trust a folder before an agent works there: the folder itself,
/// whatever repository the host gives for it.
pub(super) fn workspace(metadata: &Metadata) -> Option<SessionWorkspace> {
    let workspace = metadata.workspace(None)?;
    let folder = metadata.text(WORKING_DIRECTORY_PATH).and_then(|folder| Metadata::local(folder).workspace(None));
    let uri = folder.map_or(workspace.uri, |folder| folder.uri);
    let requires_workspace_trust = uri.scheme() == "file";
    Some(SessionWorkspace { uri, requires_workspace_trust, ..workspace })
}

pub(super) fn state(known: &SessionFacts<'_>) -> SessionState {
    let metadata = metadata(known);
    let github_info = metadata.github_info().map(Arc::new);
    let mut chats = chats(known);
    let main = &mut chats[0];
    main.github_info = github_info;
    let main_chat = Arc::new(chats.remove(0));
    let before = known.before;
    SessionState {
        session_type: SessionTypeId::from(known.row.provider.as_str()),
        icon: agent_icon(),
        workspace: workspace(&metadata).map(Arc::new),
        metadata: Arc::new(metadata),
        capabilities: known.agent.map(capabilities).or(before.map(|before| before.capabilities)).unwrap_or_default(),
        main_chat,
        more_chats: chats.into_iter().map(Arc::new).collect(),
        waiting: waiting(known),
    }
}

/// The pending requests. Those of the last state are kept if they are the same, so that they are copied once.
fn waiting(known: &SessionFacts<'_>) -> Arc<[Arc<InputRequest>]> {
    let before = known.before.map(|before| &*before.waiting).unwrap_or_default();
    let request = |content: &SessionInputRequest| {
        let id = content.id()?;
        if let Some(known) = before.iter().find(|known| &*known.id == id && known.content == *content) {
            return Some(known.clone());
        }
        let chat = match content {
            SessionInputRequest::ChatInput(request) => &request.chat,
            SessionInputRequest::ToolConfirmation(request) => &request.chat,
            _ => return None,
        };
        Some(Arc::new(InputRequest { id: id.into(), chat: known.host.here(chat), content: content.clone() }))
    };
    known.details.waiting.iter().filter_map(request).collect()
}

fn metadata(known: &SessionFacts<'_>) -> Metadata {
    let row = known.row;
    let folder = folder(row);
    let own = known.host.metadata(folder.as_deref());
    let mut all: Map<String, Value> = own.as_map().clone();
    let mut add = |key: &str, value: Value| {
        all.entry(key).or_insert(value);
    };
    for key in TOLD {
        if let Some(value) = meta_value(row, key) {
            add(key, value.clone());
        }
    }
    if let Some(project) = row.project.as_ref().map(|project| path_of(&project.uri))
        && Some(&project) != folder.as_ref()
    {
        add(REPOSITORY_PATH, project.into());
    }
    if let Some(facts) = known.folder {
        // `owner/name` alone is taken for one on GitHub: a row with the address of the remote knows better.
        if let Some(repository) = &facts.repository
            && meta_value(row, REPOSITORY_URL).is_none()
        {
            add(REPOSITORY_NWO, repository.as_str().into());
        }
        if let Some(root) = &facts.git_root {
            add(REPOSITORY_PATH, root.as_str().into());
        }
    }
    if let Some(branch) = &known.details.branch {
        add("branch", branch.as_str().into());
    }
    if let Some(changes) = &row.changes
        && let Ok(changes) = serde_json::to_value(changes)
    {
        add("changesSummary", changes);
    }
    // A map is always metadata.
    serde_json::from_value(Value::Object(all)).unwrap_or(own)
}

/// The chats, the main one first.
fn chats(known: &SessionFacts<'_>) -> Vec<ChatState> {
    let row = known.row;
    // A list need not contain the chats. Then the session's own state does, once it was fetched.
    let summaries = row.chats.as_deref().unwrap_or(&known.details.summaries);
    let main = row.default_chat.as_deref().or(known.details.main.as_deref());
    let main = main.or(summaries.first().map(|chat| chat.resource.as_str())).unwrap_or(&row.resource);
    let of_main = summaries.iter().find(|chat| chat.resource == main);
    let others = || summaries.iter().filter(|chat| chat.resource != main);
    let mut all = vec![main_chat(known, main, of_main, others())];
    all.extend(others().map(|chat| other_chat(known, chat)));
    all
}

/// The main chat, with the facts that only it has: the row of a session says more of it than of the others.
fn main_chat<'a>(
    known: &SessionFacts<'_>,
    resource: &str,
    summary: Option<&SessionChatSummary>,
    others: impl Iterator<Item = &'a SessionChatSummary>,
) -> ChatState {
    let row = known.row;
    let before = known.before.map(|before| &*before.main_chat);
    let whole = bits(row);
    let live = known.details.chat(resource).and_then(|chat| chat.status);
    let own = live.or_else(|| summary.and_then(|chat| status_bits(known, chat)));
    let mut chat_statuses: Vec<SessionStatus> = own.iter().map(|own| own.status).collect();
    chat_statuses.extend(others.filter_map(|chat| status_bits(known, chat)).map(|bits| bits.status));
    // A status of the session that none of its chats has belongs to the main chat: some hosts give no chat status, and
    // for an unloaded chat only the session knows it. A subscribed chat knows it best.
    let status = match own {
        Some(own) if live.is_some() || chat_statuses.contains(&whole.status) => own.status,
        Some(_) | None => whole.status,
    };
    let activity = row.activity.as_deref().filter(|activity| !activity.is_empty()).map(Markdown::from);
    let title = [row.title.as_str(), before.map_or("", |before| &*before.title), title(known, summary)];
    let chat = ChatState {
        title: title.into_iter().find(|title| !title.is_empty()).unwrap_or(UNTITLED).into(),
        updated_at: at(&row.modified_at),
        status,
        loading: known.details.loading,
        is_archived: whole.is_archived,
        is_read: whole.is_read && own.is_none_or(|own| own.is_read),
        description: activity,
        interactivity: interactivity(summary),
        ..ChatState::untitled(known.host.here(resource), at(&row.created_at))
    };
    with_details(known, resource, before, chat)
}

fn other_chat(known: &SessionFacts<'_>, summary: &SessionChatSummary) -> ChatState {
    let row = known.row;
    let resource = known.host.here(&summary.resource);
    let before = known.before.and_then(|before| before.chat(&resource)).map(|before| &**before);
    let own = status_bits(known, summary).unwrap_or_else(|| bits(row));
    let known_at = known.details.chat(&summary.resource).and_then(|chat| chat.updated_at);
    let updated_at = known_at.unwrap_or_else(|| at(&row.modified_at));
    // The list has no creation times of chats. A chat that appears while the session is shown is created then.
    let created_at = match (before, known.before) {
        (Some(before), _) => before.created_at,
        (None, Some(_)) => updated_at,
        (None, None) => at(&row.created_at),
    };
    let title = Some(title(known, Some(summary))).filter(|title| !title.is_empty());
    let chat = ChatState {
        title: title.unwrap_or(UNTITLED).into(),
        updated_at,
        status: own.status,
        is_archived: own.is_archived,
        is_read: own.is_read,
        interactivity: interactivity(Some(summary)),
        ..ChatState::untitled(resource, created_at)
    };
    with_details(known, &summary.resource, before, chat)
}

/// A chat with the details of its own channel, the main one or another. Known facts stay if nothing is newer.
fn with_details(known: &SessionFacts<'_>, host_uri: &str, before: Option<&ChatState>, chat: ChatState) -> ChatState {
    let details = known.details.chat(host_uri);
    let is_running = is_running(chat.status);
    let stopped = before.is_some_and(is_running_state) && !is_running;
    let model = known.chosen_model.map(Arc::from).or_else(|| details?.model.clone());
    let model = model.or_else(|| known.details.model.clone()).or_else(|| before?.model_id.clone());
    let changes = details.and_then(|details| details.changes.as_ref());
    let changes = changes.or(before.map(|before| &before.changes)).cloned();
    ChatState {
        changes: changes.unwrap_or_default(),
        model_id: model,
        mode: known.details.mode.clone().or_else(|| before?.mode.clone()),
        description: details
            .and_then(|details| details.description.clone())
            .or(chat.description)
            .filter(|_| is_running),
        last_turn_end: details
            .and_then(|details| details.last_turn_end)
            .max(before.and_then(|before| before.last_turn_end))
            .max(stopped.then_some(chat.updated_at)),
        ..chat
    }
}

/// The status of a chat: by its subscription, else by the list.
fn status_bits(known: &SessionFacts<'_>, summary: &SessionChatSummary) -> Option<StatusBits> {
    let live = known.details.chat(&summary.resource).and_then(|chat| chat.status);
    live.or_else(|| summary.status.map(StatusBits::from_bits))
}

/// The title of a chat, by the list or else by the session's own state. Empty if neither has one.
fn title<'a>(known: &SessionFacts<'a>, summary: Option<&'a SessionChatSummary>) -> &'a str {
    let Some(summary) = summary else { return "" };
    let in_session = || known.details.summary(&summary.resource).map(|chat| chat.title.as_str());
    Some(summary.title.as_str()).filter(|title| !title.is_empty()).or_else(in_session).unwrap_or_default()
}

fn interactivity(chat: Option<&SessionChatSummary>) -> Interactivity {
    let Some(chat) = chat else { return Interactivity::Full };
    match chat.interactivity {
        Some(ChatInteractivity::Full) => Interactivity::Full,
        Some(ChatInteractivity::ReadOnly) => Interactivity::ReadOnly,
        Some(ChatInteractivity::Hidden) => Interactivity::Hidden,
        // The chats of subagents are hidden unless their host wants them to be shown.
        None if matches!(chat.origin, Some(ChatOrigin::Tool(_))) => Interactivity::Hidden,
        None => Interactivity::Full,
    }
}

pub(super) fn is_running(status: SessionStatus) -> bool {
    match status {
        SessionStatus::InProgress | SessionStatus::NeedsInput => true,
        SessionStatus::Untitled | SessionStatus::Completed | SessionStatus::Error => false,
    }
}

fn is_running_state(chat: &ChatState) -> bool {
    is_running(chat.status)
}

/// The host's value under a key, beside the members of the protocol.
fn meta_value<'a>(row: &'a SessionSummary, key: &str) -> Option<&'a Value> {
    row.meta.as_ref()?.get(key).filter(|value| !value.is_null())
}

/// A time of the protocol. An unreadable one is the epoch.
pub(super) fn at(text: &str) -> Timestamp {
    time::parse(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::providers::hosts::details::ChatDetails;
    use serde_json::json;

    fn row(more: Value) -> SessionSummary {
        let mut whole = json!({"resource": "claude:/1", "provider": "claude", "title": "Fix it", "status": 33,
            "createdAt": "1970-01-01T00:00:01.000Z", "modifiedAt": "1970-01-01T00:00:05.000Z",
            "workingDirectories": ["file:///srv/my%20app"]});
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn shown(host: &HostIdentity, row: &SessionSummary, before: Option<&SessionState>) -> SessionState {
        let details = SessionDetails::default();
        state(&SessionFacts { host, row, agent: None, details: &details, folder: None, chosen_model: None, before })
    }

    fn here() -> HostIdentity {
        HostIdentity::this_host("Grove").unwrap()
    }

    #[test]
    fn status_bits_are_read_from_the_most_urgent_down() {
        let cases = [
            (24 | 32, SessionStatus::NeedsInput, true),
            (16, SessionStatus::Completed, false),
            (2 | 8, SessionStatus::InProgress, false),
            (2, SessionStatus::Error, false),
            (1 | 64, SessionStatus::Completed, false),
        ];
        for (bits, status, is_read) in cases {
            let state = shown(&here(), &row(json!({"status": bits})), None);
            assert_eq!((state.status(), state.is_read()), (status, is_read), "{bits}");
            assert_eq!(state.is_archived(), bits & 64 != 0, "{bits}");
        }
    }

    #[test]
    fn each_chat_has_its_own_status_and_what_none_says_is_the_main_chats() {
        let chats =
            json!([{"resource": "c1", "title": "Side", "status": 8}, {"resource": "c0", "title": "", "status": 33}]);
        let state = shown(&here(), &row(json!({"status": 8, "defaultChat": "c0", "chats": chats})), None);
        let statuses: Vec<_> = state.chats().map(|chat| (chat.resource.as_str(), chat.status)).collect();
        let expected = [("agent-host-c0", SessionStatus::Completed), ("agent-host-c1", SessionStatus::InProgress)];
        assert_eq!(statuses, expected);
        assert_eq!(state.status(), SessionStatus::InProgress);
        assert!(!state.is_read(), "the second chat was not read");
        // For an unloaded session, its row knows that the last turn failed, and its chats do not.
        let chats = json!([{"resource": "c0", "title": "", "status": 33}]);
        let state = shown(&here(), &row(json!({"status": 34, "defaultChat": "c0", "chats": chats})), None);
        assert_eq!(state.status(), SessionStatus::Error);
    }

    #[test]
    fn a_folder_is_labelled_with_its_host_where_that_is_another_one() {
        let local = shown(&here(), &row(json!({})), None);
        let workspace = local.workspace.as_ref().unwrap();
        assert_eq!((&*workspace.label, workspace.uri.as_str()), ("my app", "file:///srv/my%20app"));
        assert_eq!(local.metadata.text("workingDirectoryPath"), Some("/srv/my app"));
        assert!(workspace.requires_workspace_trust && workspace.host.is_none());
        let there = shown(&HostIdentity::other_host("box:1", "dev-box").unwrap(), &row(json!({})), None);
        let workspace = there.workspace.as_ref().unwrap();
        assert_eq!((&*workspace.label, workspace.host.as_deref()), ("my app [dev-box]", Some("dev-box")));
        assert_eq!(there.metadata.text("remoteAgentHost"), Some("dev-box"));
    }

    #[test]
    fn what_a_host_says_beside_the_protocol_gives_repository_branches_and_pull_request() {
        let meta = json!({"repositoryNwo": "acme/site", "branch": "fix", "baseBranchName": "main",
            "baseBranchProtected": true, "pullRequestUrl": "https://github.com/acme/site/pull/7", "store": "local",
            "workingDirectoryPath": "/elsewhere", "remoteAgentHost": "a lie"});
        let state = shown(&here(), &row(json!({"_meta": meta})), None);
        let workspace = state.workspace.as_ref().unwrap();
        let repository = &workspace.repositories[0];
        assert_eq!(&*workspace.label, "site");
        assert_eq!(repository.identity.as_deref(), Some("github.com/acme/site"));
        assert_eq!((repository.detail.as_deref(), repository.base_branch_name.as_deref()), (Some("fix"), Some("main")));
        assert_eq!(repository.base_branch_protected, Some(true));
        assert_eq!(state.github_info().unwrap().pull_request.as_ref().unwrap().number, 7);
        assert_eq!(state.metadata.text("remoteAgentHost"), None);
        assert_eq!(state.metadata.text("workingDirectoryPath"), Some("/srv/my app"));
        assert_eq!(state.metadata.text("store"), None);
    }

    #[test]
    fn a_remote_that_the_row_names_is_not_taken_for_one_on_github() {
        let facts = FolderFacts { repository: Some("acme/site".into()), git_root: Some("/srv/my app".into()) };
        let details = SessionDetails::default();
        let identity = |row: &SessionSummary| {
            let host = here();
            let (folder, details) = (Some(&facts), &details);
            let known =
                SessionFacts { host: &host, row, agent: None, details, folder, chosen_model: None, before: None };
            let state = state(&known);
            let identity = state.workspace.as_ref().unwrap().repositories[0].identity.clone().unwrap();
            (identity.to_string(), state.github_info().is_some())
        };
        assert_eq!(identity(&row(json!({}))), ("github.com/acme/site".to_owned(), true));
        let elsewhere = row(json!({"_meta": {"repositoryUrl": "https://example.org/acme/site.git"}}));
        assert_eq!(identity(&elsewhere), ("example.org/acme/site".to_owned(), false));
    }

    #[test]
    fn a_worktree_belongs_to_the_project_that_the_row_names() {
        let project = json!({"uri": "file:///r/app", "displayName": "app"});
        let row = row(json!({"project": project, "workingDirectories": ["file:///r/app.worktrees/fix"]}));
        let workspace = shown(&here(), &row, None).workspace.unwrap();
        assert_eq!((&*workspace.label, workspace.repositories[0].uri.as_str()), ("app", "file:///r/app"));
    }

    #[test]
    fn trust_is_of_the_folder_whatever_repository_the_row_names() {
        let meta = json!({"repositoryPath": "/trusted", "worktreePath": "/srv/my app", "repositoryNwo": "acme/site"});
        let workspace = shown(&here(), &row(json!({"_meta": meta})), None).workspace.unwrap();
        assert_eq!((workspace.uri.as_str(), workspace.requires_workspace_trust), ("file:///srv/my%20app", true));
        assert_eq!(workspace.repositories[0].uri.as_str(), "file:///trusted");
    }

    #[test]
    fn the_last_turn_ended_when_a_running_session_stopped() {
        let running = shown(&here(), &row(json!({"status": 8, "activity": "Thinking"})), None);
        assert_eq!((running.last_turn_end(), running.description()), (None, Some("Thinking".into())));
        let stopped = row(json!({"status": 1, "activity": "Thinking", "modifiedAt": "1970-01-01T00:00:09.000Z"}));
        let stopped = shown(&here(), &stopped, Some(&running));
        assert_eq!(stopped.last_turn_end(), Some(Timestamp(9_000)));
        assert_eq!(stopped.description(), None, "nothing can clear an activity, so it holds only while something runs");
    }

    #[test]
    fn what_was_changed_and_changed_back_is_not_a_change_any_more() {
        let row = row(json!({"defaultChat": "c"}));
        let state_of = |turns: Value, cursor: Value, before: Option<&SessionState>| {
            let chat = json!({"resource": "c", "title": "", "status": 1, "modifiedAt": "", "turns": turns,
                "turnsNextCursor": cursor});
            let chat_details = ChatDetails::of(&serde_json::from_value(chat).unwrap());
            let details =
                SessionDetails { chats: HashMap::from([("c".to_owned(), chat_details)]), ..SessionDetails::default() };
            let host = here();
            let (agent, folder, chosen_model) = (None, None, None);
            state(&SessionFacts { host: &host, row: &row, agent, details: &details, folder, chosen_model, before })
        };
        let side = json!({"uri": "file:///a", "content": {"uri": "old:a"}});
        let turn = |edits: Value| {
            json!({"id": "t", "state": "complete", "message": {"text": "", "origin": {"kind": "user"}},
                "responseParts": [{"kind": "toolCall", "toolCall": {"status": "completed", "toolCallId": "c",
                    "toolName": "t", "displayName": "T", "invocationMessage": "", "confirmed": "not-needed",
                    "success": true, "pastTenseMessage": "", "content": edits}}]})
        };
        let made = turn(json!([{"type": "fileEdit", "after": side}]));
        let created = state_of(json!([made]), Value::Null, None);
        assert_eq!(created.main_chat.changes.len(), 1);
        let deleted = turn(json!([{"type": "fileEdit", "before": side}]));
        let back = state_of(json!([made, deleted]), Value::Null, Some(&created));
        assert!(back.main_chat.changes.is_empty(), "{:?}", back.main_chat.changes);
        // Without a subscription, and for missing turns, nothing is known.
        assert_eq!(shown(&here(), &row, Some(&created)).main_chat.changes.len(), 1);
        let newest = state_of(json!([]), json!("older"), Some(&created));
        assert_eq!(newest.main_chat.changes.len(), 1);
    }

    #[test]
    fn chats_of_subagents_are_hidden_unless_their_host_shows_them() {
        let origin = json!({"kind": "tool", "chat": "c0", "toolCallId": "t"});
        let chats = json!([{"resource": "c0", "title": ""}, {"resource": "c1", "title": "", "origin": origin},
            {"resource": "c2", "title": "", "origin": origin, "interactivity": "read-only"}]);
        let state = shown(&here(), &row(json!({"chats": chats})), None);
        let interactivities: Vec<_> = state.chats().map(|chat| chat.interactivity).collect();
        assert_eq!(interactivities, [Interactivity::Full, Interactivity::Hidden, Interactivity::ReadOnly]);
    }

    #[test]
    fn a_row_that_says_little_is_shown_all_the_same() {
        let row = row(json!({"title": "", "createdAt": "?", "modifiedAt": "", "workingDirectories": []}));
        let state = shown(&here(), &row, None);
        assert_eq!((&*state.title(), state.updated_at(), state.workspace), (UNTITLED, Timestamp(0), None));
        assert_eq!(state.main_chat.resource.as_str(), "agent-host-claude:/1");
        assert_eq!(path_of("file:///C:/src/a"), "C:/src/a");
        assert_eq!(path_of("file://server/share/a%20b"), "//server/share/a b");
        for path in [r"\\server\share\a b", "//server/share/a b"] {
            assert_eq!(crate::metadata::file_uri(path).as_str(), "file://server/share/a%20b");
        }
        assert_eq!(path_of("vscode-remote://x/y"), "vscode-remote://x/y");
    }
}
