//! What Grove adds to every dialect: looking at a session's tree, and moving in it.

use std::str::FromStr;

use grove_core::{ChatId, SessionUri};
use grove_tree::{Cursor, Filter, MAX_ROWS, Row};
use grove_wire::jsonrpc::{ErrorObject, Id};
use grove_wire::x_grove::*;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::answer::{encode, read_params, stopped};
use crate::host::Host;
use crate::session::{ToSession, TreeAnswer, TreeError, TreeRequest};

/// How many rows are given at once where nobody says how many.
const ROWS: usize = 500;

/// Where a session's tree is: the session, and one of its chats.
#[derive(Clone, Debug)]
pub(super) struct TreePlace {
    pub(super) session: SessionUri,
    pub(super) chat: ChatId,
}

/// The channel that a request is about.
pub(super) fn channel(params: Option<&RawValue>) -> Result<String, ErrorObject> {
    read_params::<Channel>(params).map(|params| params.channel)
}

/// Answers a request.
pub(super) async fn answer(
    host: &Host,
    id: &Id,
    method: Method,
    params: Option<&RawValue>,
    place: TreePlace,
) -> Result<String, ErrorObject> {
    let mut title = None;
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
        Method::Navigate => {
            let NavigateParams { entry, label } = read_params(params)?;
            TreeRequest::Navigate { target: entry, label: label.filter(|label| !label.is_empty()) }
        }
        Method::Label => {
            let LabelParams { entry, label } = read_params(params)?;
            TreeRequest::Label { target: entry, label }
        }
        Method::Branch => TreeRequest::Cut { before: Some(read_params::<BranchParams>(params)?.entry) },
        Method::Fork => {
            title = read_params::<ForkParams>(params)?.title;
            TreeRequest::Cut { before: None }
        }
    };
    let answer = ask(host, place, request).await?;
    Ok(match answer {
        TreeAnswer::Rows(page) => encode(
            id,
            &TreeResult {
                rows: page.rows.into_iter().map(row).collect(),
                total: page.total,
                next_cursor: page.next.map(|next| next.to_string()),
            },
        ),
        TreeAnswer::Navigated(navigated) => encode(
            id,
            &NavigateResult {
                moved: navigated.moved,
                leaf: navigated.leaf,
                text: navigated.prefill.map(|prefill| prefill.text),
            },
        ),
        TreeAnswer::Labelled { leaf } => encode(id, &LabelResult { leaf }),
        TreeAnswer::Cut(cutting) => {
            let text = cutting.prefill.as_ref().map(|prefill| prefill.text.clone());
            let title = match (title, method) {
                (Some(title), _) => title,
                (None, Method::Fork) => format!("{} (fork)", cutting.title),
                (None, _) => cutting.title.clone(),
            };
            let session = host.create_from(*cutting, title).await;
            let session = session.map_err(|error| ErrorObject::internal(error.to_string()))?;
            encode(id, &NewSessionResult { session: session.to_string(), text })
        }
    })
}

fn parsed<T: FromStr<Err: ToString>>(text: Option<&str>) -> Result<Option<T>, ErrorObject> {
    text.map(|text| text.parse().map_err(|error: T::Err| ErrorObject::invalid_params(error.to_string()))).transpose()
}

/// Has the session's task do it.
async fn ask(host: &Host, place: TreePlace, request: TreeRequest) -> Result<TreeAnswer, ErrorObject> {
    let gone = || ErrorObject::invalid_params(format!("there is no session {}", place.session));
    let session = host.session(&place.session).await.map_err(stopped)?.ok_or_else(gone)?;
    let (done, told) = oneshot::channel();
    session.inbox.send(ToSession::Tree(place.chat.clone(), request, done)).await.map_err(|_| gone())?;
    match told.await.map_err(|_| gone())? {
        Ok(answer) => Ok(answer),
        Err(
            error @ (TreeError::Plan(_)
            | TreeError::Point(_)
            | TreeError::Rows(_)
            | TreeError::UnknownChat(_)
            | TreeError::Refused(_)),
        ) => Err(ErrorObject::invalid_params(error.to_string())),
        Err(error) => Err(ErrorObject::internal(error.to_string())),
    }
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
        label: row.label,
        time: row.time,
        active: row.is_active,
        leaf: row.is_leaf,
        has_children: row.has_children,
    }
}
