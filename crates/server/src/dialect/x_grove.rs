//! Grove's extensions to every dialect: reading and navigating a session's tree, and its workspace.

use std::str::FromStr;

use grove_core::{SessionUri, StoreName};
use grove_host::Host;
use grove_host::SetupChange;
use grove_host::session::{
    ChatAddress, HandoverRequest, MigrateOutcome, NavigateOptions, NavigateOutcome, PendingCommand, PendingMigration,
    PendingPermissionsRequest, PendingTreeRequest, TreeAnswer, TreeRequest, WorkspaceRequest,
};
use grove_storage::store_move::VerifiedCopy;
use grove_tree::navigate::Prefill;
use grove_tree::{Cursor, EntryRow, MAX_ROWS, RowFilter};
use grove_wire::ahp::project;
use grove_wire::jsonrpc::{ErrorObject, Id};
use grove_wire::x_grove::announcement::Announcement;
use grove_wire::x_grove::policy::{PolicyAllowParams, PolicyMethod, PolicyOffersParams};
use grove_wire::x_grove::*;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{encode, read_params, refuse, refused};
use super::{handover, workspace};

/// The default number of rows in an answer.
const ROWS: usize = 500;

/// The extensions of this host. Methods without an implementation are not announced.
pub(super) fn announcement(host: &Host) -> Announcement {
    Announcement::of(|method| match method {
        Method::Tree
        | Method::Entries
        | Method::Navigate
        | Method::Label
        | Method::Branch
        | Method::Fork
        | Method::Merge
        | Method::Compact
        | Method::Abort
        | Method::Rename
        | Method::Permissions
        | Method::SetWorkingDirectory
        | Method::Migrate
        | Method::Setup
        | Method::Workspace(_)
        | Method::Handover(_)
        | Method::Import(_)
        | Method::Presence
        | Method::Removal(_) => true,
        Method::History(_) => host.history().is_some(),
        Method::Sessions(_) => host.session_hub().is_some(),
        Method::Tokens(_) => host.tokens().is_some(),
        Method::Policy(_) => host.permission_rules().is_some(),
        Method::Administration(_) => host.administration().is_some(),
        Method::Notify(_) => host.notifications().is_some(),
    })
}

/// The channel that a request is about.
pub(super) fn channel(params: Option<&RawValue>) -> Result<String, ErrorObject> {
    read_params::<ChannelRef>(params).map(|params| params.channel)
}

/// A request that a session has queued.
pub(crate) enum PendingCall {
    Tree(PendingTreeCall),
    Workspace(workspace::PendingWorkspaceCall),
    Handover(handover::PendingHandoverCall),
}

/// The dialect in which an answer contains a message's attachments: that in which the client sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageShape {
    V1,
    Ahp,
}

/// A request to a chat's tree that is not answered yet.
pub(crate) struct PendingTreeCall {
    id: Id,
    what: TreeCall,
    shape: MessageShape,
}

enum TreeCall {
    Tree { place: ChatAddress, asked: PendingTreeRequest, then: TreeCallFollowUp },
    Migrate(PendingMigration),
    Setup(SessionUri, Box<SetupChange>),
    Rename(PendingCommand),
    Permissions(PendingPermissionsRequest),
    SetWorkingDirectory(PendingCommand, String),
    Policy(ChatAddress, PolicyRequest),
}

/// A request of Grove's extensions.
enum ExtensionRequest {
    Tree(TreeRequest, TreeCallFollowUp),
    Workspace(WorkspaceRequest),
    Handover(HandoverRequest),
    Migrate(StoreName),
    Setup(SetupChange),
    Rename(String),
    Permissions { revoke: bool },
    SetWorkingDirectory(String),
    Policy(PolicyRequest),
}

/// A request about rules for a pending permission request.
enum PolicyRequest {
    Offers(PolicyOffersParams),
    Allow(PolicyAllowParams),
}

/// The next step after the session's answer.
enum TreeCallFollowUp {
    Answer,
    /// Creates a session from it.
    Branch {
        entry: String,
    },
    Fork {
        title: Option<String>,
        store: Option<StoreName>,
    },
}

/// Parses a request and sends it to the session's task.
pub(crate) async fn begin(
    host: &Host,
    id: Id,
    method: Method,
    params: Option<&RawValue>,
    place: ChatAddress,
    shape: MessageShape,
) -> Result<PendingCall, ErrorObject> {
    match read(method, params)? {
        ExtensionRequest::Tree(request, then) => {
            let asked = host.ask_tree(&place, request).await.map_err(|error| refused(&error))?;
            Ok(PendingCall::Tree(PendingTreeCall { id, what: TreeCall::Tree { place, asked, then }, shape }))
        }
        ExtensionRequest::Migrate(to) => {
            let migrating = host.ask_to_migrate(&place.0, to).await.map_err(|error| refused(&error))?;
            Ok(PendingCall::Tree(PendingTreeCall { id, what: TreeCall::Migrate(migrating), shape }))
        }
        ExtensionRequest::Setup(change) => {
            Ok(PendingCall::Tree(PendingTreeCall { id, what: TreeCall::Setup(place.0, Box::new(change)), shape }))
        }
        ExtensionRequest::Rename(title) => {
            let renaming = host.ask_to_rename(&place, title).await.map_err(|error| refused(&error))?;
            Ok(PendingCall::Tree(PendingTreeCall { id, what: TreeCall::Rename(renaming), shape }))
        }
        ExtensionRequest::Permissions { revoke } => {
            let asked = host.ask_permissions(&place.0, revoke).await.map_err(|error| refused(&error))?;
            Ok(PendingCall::Tree(PendingTreeCall { id, what: TreeCall::Permissions(asked), shape }))
        }
        ExtensionRequest::SetWorkingDirectory(directory) => {
            let asked = host.ask_to_set_working_directory(&place.0, directory).await;
            let (pending, directory) = asked.map_err(|error| refused(&error))?;
            Ok(PendingCall::Tree(PendingTreeCall {
                id,
                what: TreeCall::SetWorkingDirectory(pending, directory),
                shape,
            }))
        }
        ExtensionRequest::Policy(request) => {
            Ok(PendingCall::Tree(PendingTreeCall { id, what: TreeCall::Policy(place, request), shape }))
        }
        ExtensionRequest::Workspace(request) => {
            workspace::begin(host, id, request, place).await.map(PendingCall::Workspace)
        }
        ExtensionRequest::Handover(request) => {
            handover::begin(host, id, request, place).await.map(PendingCall::Handover)
        }
    }
}

/// The characters that a label may have: rows of a tree contain it.
pub const MAX_LABEL: usize = 200;

fn checked_label(label: Option<String>) -> Result<Option<String>, ErrorObject> {
    match label {
        Some(label) if label.chars().count() > MAX_LABEL => {
            Err(ErrorObject::invalid_params(format!("a label may have at most {MAX_LABEL} characters")))
        }
        label => Ok(label),
    }
}

fn read(method: Method, params: Option<&RawValue>) -> Result<ExtensionRequest, ErrorObject> {
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let request = match method {
        Method::Tree => {
            let params: TreeParams = read_params(params)?;
            TreeRequest::Rows {
                filter: parsed::<RowFilter>(params.filter.as_deref())?.unwrap_or_default(),
                search: params.search.unwrap_or_default(),
                after: parsed::<Cursor>(params.cursor.as_deref())?,
                limit: params.limit.unwrap_or(ROWS).clamp(1, MAX_ROWS),
            }
        }
        Method::Entries => {
            let params: EntriesParams = read_params(params)?;
            let after = match params.cursor.as_deref() {
                None => 0,
                Some(cursor) => {
                    let wrong =
                        |_| ErrorObject::invalid_params(format!("{cursor:?} is not a cursor of x-grove/entries"));
                    cursor.parse().map_err(wrong)?
                }
            };
            let limit = params.limit.unwrap_or(ROWS).clamp(1, MAX_ROWS);
            TreeRequest::Entries { after, limit }
        }
        Method::Navigate => {
            let NavigateParams { entry, label, summarize, instructions, replace_instructions } = read_params(params)?;
            let navigate_options = NavigateOptions {
                summarize,
                custom_instructions: filled(instructions),
                replace_instructions,
                label: checked_label(filled(label))?,
            };
            TreeRequest::Navigate { target: entry, navigate_options }
        }
        Method::Label => {
            let LabelParams { entry, label } = read_params(params)?;
            TreeRequest::Label { target: entry, label: checked_label(label)? }
        }
        Method::Merge => {
            let MergeParams { entry, instructions } = read_params(params)?;
            TreeRequest::Merge { from: entry, instructions: filled(instructions) }
        }
        Method::Compact => {
            let CompactParams { instructions } = read_params(params)?;
            TreeRequest::Compact { instructions: filled(instructions), keep: None }
        }
        Method::Abort => TreeRequest::Abort,
        Method::Branch => {
            let entry = read_params::<BranchParams>(params)?.entry;
            return Ok(ExtensionRequest::Tree(
                TreeRequest::PlanFork { before: Some(entry.clone()) },
                TreeCallFollowUp::Branch { entry },
            ));
        }
        Method::Fork => {
            let ForkParams { title, store } = read_params(params)?;
            let then = TreeCallFollowUp::Fork { title: filled(title), store: filled(store).map(StoreName::from) };
            return Ok(ExtensionRequest::Tree(TreeRequest::PlanFork { before: None }, then));
        }
        Method::Rename => return Ok(ExtensionRequest::Rename(read_params::<RenameParams>(params)?.title)),
        Method::Permissions => {
            return Ok(ExtensionRequest::Permissions { revoke: read_params::<PermissionsParams>(params)?.revoke });
        }
        Method::SetWorkingDirectory => {
            return Ok(ExtensionRequest::SetWorkingDirectory(
                read_params::<SetWorkingDirectoryParams>(params)?.directory,
            ));
        }
        Method::Policy(PolicyMethod::Offers) => {
            return Ok(ExtensionRequest::Policy(PolicyRequest::Offers(read_params(params)?)));
        }
        Method::Policy(PolicyMethod::Allow) => {
            return Ok(ExtensionRequest::Policy(PolicyRequest::Allow(read_params(params)?)));
        }
        Method::Migrate => return Ok(ExtensionRequest::Migrate(read_params::<MigrateParams>(params)?.store.into())),
        Method::Setup => return setup_change(read_params(params)?).map(ExtensionRequest::Setup),
        Method::Workspace(method) => return workspace::read(method, params).map(ExtensionRequest::Workspace),
        Method::Handover(method) => return handover::read(method, params).map(ExtensionRequest::Handover),
        // The connection handles this itself: it is about the client.
        Method::Presence => return Err(ErrorObject::unknown_method(method.as_str())),
        // The connection handles these itself: they concern no existing session.
        Method::Import(method) => return Err(ErrorObject::unknown_method(method.as_str())),
        Method::Removal(method) => return Err(ErrorObject::unknown_method(method.as_str())),
        Method::History(method) => return Err(ErrorObject::unknown_method(method.as_str())),
        Method::Sessions(method) => return Err(ErrorObject::unknown_method(method.as_str())),
        Method::Tokens(method) => return Err(ErrorObject::unknown_method(method.as_str())),
        Method::Administration(method) => return Err(ErrorObject::unknown_method(method.as_str())),
        Method::Notify(method) => return Err(ErrorObject::unknown_method(method.as_str())),
    };
    Ok(ExtensionRequest::Tree(request, TreeCallFollowUp::Answer))
}

/// The change that a client wants. An error names the member alone: values may be secrets.
fn setup_change(params: SetupParams) -> Result<SetupChange, ErrorObject> {
    fn member<T: serde::de::DeserializeOwned>(name: &str, value: serde_json::Value) -> Result<T, ErrorObject> {
        let wrong = |_| ErrorObject::invalid_params(format!("`{name}` is not valid: see x-grove/setup in protocol.md"));
        serde_json::from_value(value).map_err(wrong)
    }
    let SetupParams { mcp_servers, system_message, tool_filter } = params;
    Ok(SetupChange {
        mcp_servers: mcp_servers.map(|servers| member("mcpServers", servers.into())).transpose()?,
        system_message: system_message.map(|message| member("systemMessage", message)).transpose()?,
        tool_filter: tool_filter.map(|filter| member("toolFilter", filter)).transpose()?,
        ..SetupChange::default()
    })
}

impl PendingCall {
    /// Waits for the answer.
    pub(crate) async fn answer(self, host: &Host) -> String {
        match self {
            PendingCall::Tree(begun) => begun.answer(host).await,
            PendingCall::Workspace(begun) => begun.answer().await,
            PendingCall::Handover(begun) => begun.answer().await,
        }
    }
}

impl PendingTreeCall {
    async fn answer(self, host: &Host) -> String {
        let Self { id, what, shape } = self;
        let answer = match what {
            TreeCall::Tree { asked, then: TreeCallFollowUp::Answer, .. } => {
                asked.answer().await.map(|answer| of_tree(&id, answer, shape))
            }
            TreeCall::Tree { place, asked, then: TreeCallFollowUp::Branch { entry } } => {
                host.branch_off(&place, entry, asked).await.map(|branched| {
                    let (text, attachments) = prefill_members(branched.prefill, shape);
                    encode(&id, &NewSessionResult { session: branched.session.to_string(), text, attachments })
                })
            }
            TreeCall::Tree { asked, then: TreeCallFollowUp::Fork { title, store }, .. } => {
                host.fork_off(title, store, asked).await.map(|session| {
                    let session = session.to_string();
                    encode(&id, &NewSessionResult { session, text: None, attachments: Vec::new() })
                })
            }
            TreeCall::Migrate(migrating) => migrating.answer().await.map(|MigrateOutcome { store, checked }| {
                let VerifiedCopy { files, bytes } = checked;
                encode(&id, &MigrateResult { store: store.to_string(), files, bytes })
            }),
            TreeCall::Setup(session, change) => {
                host.change_setup(&session, *change).await.map(|()| encode(&id, &SetupResult {}))
            }
            TreeCall::Rename(renaming) => renaming.answer().await.map(|()| encode(&id, &RenameResult {})),
            TreeCall::SetWorkingDirectory(pending, directory) => {
                pending.answer().await.map(|()| encode(&id, &SetWorkingDirectoryResult { directory }))
            }
            TreeCall::Policy(place, PolicyRequest::Offers(params)) => {
                host.offer_rules(&place, &params.request).await.map(|offers| encode(&id, &offers))
            }
            TreeCall::Policy(place, PolicyRequest::Allow(params)) => {
                host.allow_always(&place, params).await.map(|allowed| encode(&id, &allowed))
            }
            TreeCall::Permissions(asked) => asked.answer(host).await.map(|permissions| encode(&id, &permissions)),
        };
        answer.unwrap_or_else(|error| refuse(host, &id, &refused(&error)))
    }
}

fn of_tree(id: &Id, answer: TreeAnswer, shape: MessageShape) -> String {
    match answer {
        TreeAnswer::Rows(page) => encode(
            id,
            &TreeResult {
                rows: page.rows.into_iter().map(row).collect(),
                total: page.total,
                next_cursor: page.next.map(|next| next.to_string()),
            },
        ),
        TreeAnswer::Entries(entries) => encode(
            id,
            &EntriesResult {
                entries: entries.lines,
                cursor: entries.next.to_string(),
                more: entries.more,
                leaf: entries.leaf,
            },
        ),
        TreeAnswer::NavigateOutcome(NavigateOutcome { moved, leaf, prefill, summary_entry }) => {
            let (text, attachments) = prefill_members(prefill, shape);
            encode(id, &NavigateResult { moved, leaf, text, attachments, summary_entry })
        }
        TreeAnswer::Labelled { leaf } => encode(id, &LabelResult { leaf }),
        TreeAnswer::MergeOutcome(merged) => {
            encode(id, &MergeResult { summary_entry: merged.entry, summary: merged.summary, leaf: merged.leaf })
        }
        TreeAnswer::CompactionOutcome(compacted) => encode(
            id,
            &CompactResult {
                compaction_entry: compacted.entry,
                summary: compacted.summary,
                first_kept_entry: compacted.first_kept,
                tokens_before: compacted.tokens_before,
            },
        ),
        TreeAnswer::Aborted(aborted) => encode(id, &AbortResult { aborted }),
        // Only the host itself makes these requests.
        TreeAnswer::PlanFork(_) | TreeAnswer::Beginning(_) | TreeAnswer::InfoEntries(_) | TreeAnswer::InfoAdded(_) => {
            encode(id, &())
        }
    }
}

/// A prefill's text and attachments.
fn prefill_members(prefill: Option<Prefill>, shape: MessageShape) -> (Option<String>, Vec<Value>) {
    let Some(prefill) = prefill else { return (None, Vec::new()) };
    let attachments = match (&prefill.message, shape) {
        (None, _) => Vec::new(),
        (Some(message), MessageShape::V1) => values(&grove_wire::v1::project::attachments(message)),
        (Some(message), MessageShape::Ahp) => values(&project::message(message).attachments.unwrap_or_default()),
    };
    (Some(prefill.text), attachments)
}

fn values<T: Serialize>(items: &[T]) -> Vec<Value> {
    items.iter().filter_map(|item| serde_json::to_value(item).ok()).collect()
}

fn parsed<T: FromStr<Err: ToString>>(text: Option<&str>) -> Result<Option<T>, ErrorObject> {
    text.map(|text| text.parse().map_err(|error: T::Err| ErrorObject::invalid_params(error.to_string()))).transpose()
}

fn row(row: EntryRow) -> TreeRow {
    TreeRow {
        id: row.id,
        parent: row.parent,
        depth: row.depth,
        indent: row.indent,
        kind: row.kind.name().unwrap_or("unknown").to_owned(),
        role: row.preview.role,
        text: row.preview.text,
        // Another program may have written a longer one.
        label: row.label.map(|label| label.chars().take(MAX_LABEL).collect()),
        time: row.time,
        active: row.is_active,
        leaf: row.is_leaf,
        has_children: row.has_children,
        turn: row.turn.map(|turn| turn.to_string()),
    }
}
