//! What Grove adds to every dialect: looking at a session's tree, and moving in it; and its workspace.

use std::str::FromStr;

use grove_core::{Rejection, StoreName};
use grove_tree::navigate::Prefill;
use grove_tree::{Cursor, Filter, MAX_ROWS, Row};
use grove_wire::ahp::{error_code, project};
use grove_wire::jsonrpc::{self, ErrorObject, Id, code};
use grove_wire::x_grove::announced::Announcement;
use grove_wire::x_grove::*;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{encode, read_params};
use super::{handover, workspace};
use crate::branch::{AskError, Asked, Migrating, PendingCommand, PermissionsInquiry, TreePlace};
use crate::host::{CreateError, Host};
use crate::session::{
    HandoverRequest, MigrateError, Migrated, NavigateWishes, Navigated, Refusal, TreeAnswer, TreeError, TreeRequest,
    WorkspaceRequest,
};
use crate::store::moving::Checked;

/// How many rows are given at once where nobody says how many.
const ROWS: usize = 500;

/// What this host adds. Who has nothing behind it serves it not.
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
        | Method::Workspace(_)
        | Method::Handover(_)
        | Method::Import(_)
        | Method::Removal(_) => true,
        Method::History(_) => host.history().is_some(),
        Method::Sessions(_) => host.sessions_layer().is_some(),
    })
}

/// The channel that a request is about.
pub(super) fn channel(params: Option<&RawValue>) -> Result<String, ErrorObject> {
    read_params::<Channel>(params).map(|params| params.channel)
}

/// Something that a session was asked. It has its place among what it does.
pub(crate) enum Begun {
    Tree(TreeBegun),
    Workspace(workspace::Begun),
    Handover(handover::Begun),
}

/// The dialect in which an answer gives a message's attachments: the one in which a client sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageShape {
    V1,
    Ahp,
}

/// Something that was asked of a chat's tree.
pub(crate) struct TreeBegun {
    id: Id,
    what: What,
    shape: MessageShape,
}

enum What {
    Tree { place: TreePlace, asked: Asked, then: Then },
    Migrate(Migrating),
    Rename(PendingCommand),
    Permissions(PermissionsInquiry),
    SetWorkingDirectory(PendingCommand, String),
}

/// What somebody asks for.
enum Wanted {
    Tree(TreeRequest, Then),
    Workspace(WorkspaceRequest),
    Handover(HandoverRequest),
    Migrate(StoreName),
    Rename(String),
    Permissions { revoke: bool },
    SetWorkingDirectory(String),
}

/// What becomes of the session's answer.
enum Then {
    Answer,
    /// A new session is made of it.
    Branch {
        entry: String,
    },
    Fork {
        title: Option<String>,
        store: Option<StoreName>,
    },
}

/// Understands a request, and has the session's task do it.
pub(crate) async fn begin(
    host: &Host,
    id: Id,
    method: Method,
    params: Option<&RawValue>,
    place: TreePlace,
    shape: MessageShape,
) -> Result<Begun, ErrorObject> {
    match read(method, params)? {
        Wanted::Tree(request, then) => {
            let asked = host.ask_tree(&place, request).await.map_err(|error| refusal(&error))?;
            Ok(Begun::Tree(TreeBegun { id, what: What::Tree { place, asked, then }, shape }))
        }
        Wanted::Migrate(to) => {
            let migrating = host.ask_to_migrate(&place.0, to).await.map_err(|error| refusal(&error))?;
            Ok(Begun::Tree(TreeBegun { id, what: What::Migrate(migrating), shape }))
        }
        Wanted::Rename(title) => {
            let renaming = host.ask_to_rename(&place, title).await.map_err(|error| refusal(&error))?;
            Ok(Begun::Tree(TreeBegun { id, what: What::Rename(renaming), shape }))
        }
        Wanted::Permissions { revoke } => {
            let asked = host.ask_permissions(&place.0, revoke).await.map_err(|error| refusal(&error))?;
            Ok(Begun::Tree(TreeBegun { id, what: What::Permissions(asked), shape }))
        }
        Wanted::SetWorkingDirectory(directory) => {
            let asked = host.ask_to_set_working_directory(&place.0, directory).await;
            let (pending, directory) = asked.map_err(|error| refusal(&error))?;
            Ok(Begun::Tree(TreeBegun { id, what: What::SetWorkingDirectory(pending, directory), shape }))
        }
        Wanted::Workspace(request) => workspace::begin(host, id, request, place).await.map(Begun::Workspace),
        Wanted::Handover(request) => handover::begin(host, id, request, place).await.map(Begun::Handover),
    }
}

/// How many characters a label may have: rows of a tree carry it.
const MAX_LABEL: usize = 200;

fn checked_label(label: Option<String>) -> Result<Option<String>, ErrorObject> {
    match label {
        Some(label) if label.chars().count() > MAX_LABEL => {
            Err(ErrorObject::invalid_params(format!("a label may have {MAX_LABEL} characters")))
        }
        label => Ok(label),
    }
}

fn read(method: Method, params: Option<&RawValue>) -> Result<Wanted, ErrorObject> {
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let request = match method {
        Method::Tree => {
            let params: TreeParams = read_params(params)?;
            TreeRequest::Rows {
                filter: parsed::<Filter>(params.filter.as_deref())?.unwrap_or_default(),
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
                    let wrong = |_| ErrorObject::invalid_params(format!("{cursor:?} is no cursor of x-grove/entries"));
                    cursor.parse().map_err(wrong)?
                }
            };
            let limit = params.limit.unwrap_or(ROWS).clamp(1, MAX_ROWS);
            TreeRequest::Entries { after, limit }
        }
        Method::Navigate => {
            let NavigateParams { entry, label, summarize, instructions, replace_instructions } = read_params(params)?;
            let wishes = NavigateWishes {
                summarize,
                custom_instructions: filled(instructions),
                replace_instructions,
                label: checked_label(filled(label))?,
            };
            TreeRequest::Navigate { target: entry, wishes }
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
            return Ok(Wanted::Tree(TreeRequest::Cut { before: Some(entry.clone()) }, Then::Branch { entry }));
        }
        Method::Fork => {
            let ForkParams { title, store } = read_params(params)?;
            let then = Then::Fork { title: filled(title), store: filled(store).map(StoreName::from) };
            return Ok(Wanted::Tree(TreeRequest::Cut { before: None }, then));
        }
        Method::Rename => return Ok(Wanted::Rename(read_params::<RenameParams>(params)?.title)),
        Method::Permissions => {
            return Ok(Wanted::Permissions { revoke: read_params::<PermissionsParams>(params)?.revoke });
        }
        Method::SetWorkingDirectory => {
            return Ok(Wanted::SetWorkingDirectory(read_params::<SetWorkingDirectoryParams>(params)?.directory));
        }
        Method::Migrate => return Ok(Wanted::Migrate(read_params::<MigrateParams>(params)?.store.into())),
        Method::Workspace(method) => return workspace::read(method, params).map(Wanted::Workspace),
        Method::Handover(method) => return handover::read(method, params).map(Wanted::Handover),
        // A connection does these itself: they are about no session that is there.
        Method::Import(method) => return Err(ErrorObject::unknown_method(method.as_str())),
        Method::Removal(method) => return Err(ErrorObject::unknown_method(method.as_str())),
        Method::History(method) => return Err(ErrorObject::unknown_method(method.as_str())),
        Method::Sessions(method) => return Err(ErrorObject::unknown_method(method.as_str())),
    };
    Ok(Wanted::Tree(request, Then::Answer))
}

impl Begun {
    /// Waits until it is done.
    pub(crate) async fn answer(self, host: &Host) -> String {
        match self {
            Begun::Tree(begun) => begun.answer(host).await,
            Begun::Workspace(begun) => begun.answer().await,
            Begun::Handover(begun) => begun.answer().await,
        }
    }
}

impl TreeBegun {
    async fn answer(self, host: &Host) -> String {
        let Self { id, what, shape } = self;
        let answer = match what {
            What::Tree { asked, then: Then::Answer, .. } => {
                asked.answer().await.map(|answer| of_tree(&id, answer, shape))
            }
            What::Tree { place, asked, then: Then::Branch { entry } } => {
                host.branch_off(&place, entry, asked).await.map(|branched| {
                    let (text, attachments) = said(branched.prefill, shape);
                    encode(&id, &NewSessionResult { session: branched.session.to_string(), text, attachments })
                })
            }
            What::Tree { asked, then: Then::Fork { title, store }, .. } => {
                host.fork_off(title, store, asked).await.map(|session| {
                    let session = session.to_string();
                    encode(&id, &NewSessionResult { session, text: None, attachments: Vec::new() })
                })
            }
            What::Migrate(migrating) => migrating.answer().await.map(|Migrated { store, checked }| {
                let Checked { files, bytes } = checked;
                encode(&id, &MigrateResult { store: store.to_string(), files, bytes })
            }),
            What::Rename(renaming) => renaming.answer().await.map(|()| encode(&id, &RenameResult {})),
            What::SetWorkingDirectory(pending, directory) => {
                pending.answer().await.map(|()| encode(&id, &SetWorkingDirectoryResult { directory }))
            }
            What::Permissions(asked) => asked.answer(host).await.map(|permissions| encode(&id, &permissions)),
        };
        answer.unwrap_or_else(|error| jsonrpc::error(Some(&id), &refusal(&error)))
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
        TreeAnswer::Navigated(Navigated { moved, leaf, prefill, summary_entry }) => {
            let (text, attachments) = said(prefill, shape);
            encode(id, &NavigateResult { moved, leaf, text, attachments, summary_entry })
        }
        TreeAnswer::Labelled { leaf } => encode(id, &LabelResult { leaf }),
        TreeAnswer::Merged(merged) => {
            encode(id, &MergeResult { summary_entry: merged.entry, summary: merged.summary, leaf: merged.leaf })
        }
        TreeAnswer::Compacted(compacted) => encode(
            id,
            &CompactResult {
                compaction_entry: compacted.entry,
                summary: compacted.summary,
                first_kept_entry: compacted.first_kept,
                tokens_before: compacted.tokens_before,
            },
        ),
        TreeAnswer::Aborted(aborted) => encode(id, &AbortResult { aborted }),
        // These are asked by the host alone.
        TreeAnswer::Cut(_) | TreeAnswer::Beginning(_) => encode(id, &()),
    }
}

/// A message to begin with, and what came with it.
fn said(prefill: Option<Prefill>, shape: MessageShape) -> (Option<String>, Vec<Value>) {
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

pub(super) fn refusal(error: &AskError) -> ErrorObject {
    match error {
        AskError::NoSession(_) => ErrorObject::new(error_code::SESSION_NOT_FOUND, error.to_string()),
        AskError::Tree(error) => tree_error(error),
        AskError::Migrate(error) => migrate_error(error),
        AskError::Create(CreateError::Store(_)) | AskError::WorkingDirectory(_) | AskError::DirectoryOfClient => {
            ErrorObject::invalid_params(error.to_string())
        }
        AskError::Create(_) | AskError::Stopped(_) => ErrorObject::internal(error.to_string()),
    }
}

fn migrate_error(error: &MigrateError) -> ErrorObject {
    let code = match error {
        MigrateError::TurnRuns | MigrateError::Busy | MigrateError::Creating | MigrateError::Changed => {
            error_code::TURN_IN_PROGRESS
        }
        MigrateError::NoFile(_) => error_code::NOT_FOUND,
        MigrateError::Store(_) | MigrateError::OfClient => code::INVALID_PARAMS,
        MigrateError::BeingCopied
        | MigrateError::BeingChanged
        | MigrateError::NotWritten
        | MigrateError::NotCopied(_)
        | MigrateError::Move(_)
        | MigrateError::Inventory(_)
        | MigrateError::SessionFile(_)
        | MigrateError::Fs(_)
        | MigrateError::Refused(_) => code::INTERNAL,
    };
    ErrorObject::new(code, error.to_string())
}

/// The code under which a session's refusal is answered. Its words say the reason.
pub(super) fn refusal_code(refusal: &Refusal) -> i64 {
    match refusal {
        Refusal::Unavailable(_) => code::INTERNAL,
        Refusal::Gone => error_code::SESSION_NOT_FOUND,
        Refusal::Rejected(rejection) => match rejection {
            Rejection::DuplicateChat(_) | Rejection::DuplicateTurn(_) | Rejection::DuplicatePart => {
                error_code::ALREADY_EXISTS
            }
            Rejection::TurnInProgress(_) | Rejection::BeingCreated => error_code::TURN_IN_PROGRESS,
            Rejection::NotYours => error_code::PERMISSION_DENIED,
            // The request is well formed; the session, as it is, cannot do it.
            Rejection::CreationFailed(_)
            | Rejection::TooManyChats
            | Rejection::TooManyClients
            | Rejection::TooManyRules
            | Rejection::QueueFull
            | Rejection::MainChat
            | Rejection::NoConfig => code::INVALID_REQUEST,
            Rejection::UnknownChat(_)
            | Rejection::TurnNotActive(_)
            | Rejection::EmptyId
            | Rejection::EmptyMessage
            | Rejection::AnswerMisfit { .. }
            | Rejection::UnknownRequest(_)
            | Rejection::AlreadyAnswered(_)
            | Rejection::UnknownModel { .. }
            | Rejection::UnknownPending(_)
            | Rejection::OnlyUserMessages
            | Rejection::UnknownPart(_)
            | Rejection::PartClosed(_)
            | Rejection::ToolCall { .. }
            | Rejection::UnknownQuestion(_)
            | Rejection::Unanswered(_)
            | Rejection::UnknownOption(_) => code::INVALID_PARAMS,
        },
    }
}

/// Why a tree was not looked at, or not changed, as an answer.
pub(super) fn tree_error(error: &TreeError) -> ErrorObject {
    let code = match error {
        TreeError::TurnRuns | TreeError::TurnBegan | TreeError::Busy | TreeError::WentOn => {
            error_code::TURN_IN_PROGRESS
        }
        TreeError::Forbidden { .. } | TreeError::MustAsk => error_code::PERMISSION_DENIED,
        TreeError::Refused(refusal) => refusal_code(refusal),
        TreeError::Plan(_)
        | TreeError::Point(_)
        | TreeError::Rows(_)
        | TreeError::UnknownChat(_)
        | TreeError::UnknownTurn(_)
        | TreeError::NoModel { .. }
        | TreeError::NothingToCompact
        | TreeError::NothingToMerge { .. }
        | TreeError::OnThisBranch { .. } => code::INVALID_PARAMS,
        TreeError::Aborted
        | TreeError::Summary(_)
        | TreeError::EmptySummary { .. }
        | TreeError::HookFailed { .. }
        | TreeError::NewLog(_)
        | TreeError::Log(_)
        | TreeError::Read(_)
        | TreeError::Fs(_)
        | TreeError::Append(_)
        | TreeError::NotCopied(_)
        | TreeError::Workspace(_)
        | TreeError::Broken => code::INTERNAL,
    };
    ErrorObject::new(code, error.to_string())
}

fn parsed<T: FromStr<Err: ToString>>(text: Option<&str>) -> Result<Option<T>, ErrorObject> {
    text.map(|text| text.parse().map_err(|error: T::Err| ErrorObject::invalid_params(error.to_string()))).transpose()
}

fn row(row: Row) -> TreeRow {
    TreeRow {
        id: row.id,
        parent: row.parent,
        depth: row.depth,
        indent: row.indent,
        kind: row.kind.name().unwrap_or("unknown").to_owned(),
        role: row.shown.role,
        text: row.shown.text,
        // Another program may have written a longer one.
        label: row.label.map(|label| label.chars().take(MAX_LABEL).collect()),
        time: row.time,
        active: row.is_active,
        leaf: row.is_leaf,
        has_children: row.has_children,
    }
}
