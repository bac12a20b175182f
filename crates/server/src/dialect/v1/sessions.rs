//! Sessions, lists and older turns.

use grove_core::{AgentId, ModelId, Session, SessionUri, Timestamp, TurnId};
use grove_host::history::{CONTINUE_FIRST, HistoryQuery};
use grove_host::sequencer::SubscriptionTarget;
use grove_host::turns::{self, TurnPage, TurnsError};
use grove_host::{AgentSetup, CreateSession};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::v1::{self, error_code, project};
use grove_work::local_path;
use serde_json::value::RawValue;

use super::{Peer, no_session, wanted};
use crate::dialect::answer::{read_params, refused, stopped};
use crate::dialect::history::unavailable;
use crate::dialect::turns::newest;

/// The default number of turns in an answer to `fetchTurns`.
const DEFAULT_TURNS: u64 = 50;

/// The sessions of other tools in a list, newest first.
pub const MAX_HISTORY_SESSIONS: usize = 10_000;

impl Peer {
    pub(super) async fn create_session(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: v1::CreateSessionParams = read_params(params)?;
        // It would hide another tool's session of this name.
        if self.host.is_history(&wanted(&params.session)).await {
            return Err(ErrorObject::new(error_code::SESSION_EXISTS, CONTINUE_FIRST));
        }
        let wanted = CreateSession {
            uri: params.session.into(),
            agent: params.provider.map(AgentId::from),
            model: params.model.map(ModelId::from),
            working_directories: params.working_directory.into_iter().collect(),
            config: None,
            store: None,
            setup: AgentSetup::default(),
            active_client: None,
        };
        self.host.create_session(wanted).await.map_err(|error| refused(&error))
    }

    pub(super) async fn dispose_session(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: v1::DisposeSessionParams = read_params(params)?;
        let uri = SessionUri::from(params.session);
        match self.host.dispose_session(&uri).await.map_err(stopped)? {
            true => Ok(()),
            false => Err(self.unchangeable(uri.as_str(), no_session(uri.as_str())).await),
        }
    }

    pub(super) async fn list_sessions(&self, params: Option<&RawValue>) -> Result<v1::ListSessionsResult, ErrorObject> {
        let params: v1::ListSessionsParams = match params {
            Some(params) => read_params(Some(params))?,
            None => Default::default(),
        };
        let mut filter = params.filter.unwrap_or_default();
        // A folder may be written as a path or as a URI; they are compared as paths.
        let folder = filter.working_directory.take().map(|folder| local_path(&folder).ok());
        let summaries = self.host.sequencer().read(|published| {
            let summary = |(session, failed): (&Session, bool)| {
                let summary = project::summary(session);
                let status = if failed { v1::SessionStatus::Error } else { summary.status };
                v1::SessionSummary { status, ..summary }
            };
            published.listed().map(summary).collect::<Vec<_>>()
        });
        let mut sessions = summaries;
        if filter.history == Some(true)
            && let Some(history) = self.host.history()
        {
            let since = filter.modified_since.map(Timestamp);
            let query = HistoryQuery {
                source: filter.provider.clone(),
                since,
                limit: MAX_HISTORY_SESSIONS,
                ..HistoryQuery::default()
            };
            let rows = history.list(query).await.map_err(|error| unavailable(&error))?;
            sessions.extend(rows.iter().map(|row| project::summary(&row.session)));
        }
        sessions.retain(|summary| {
            let path = || summary.working_directory.as_deref().and_then(|folder| local_path(folder).ok());
            filter.takes(summary) && folder.as_ref().is_none_or(|folder| folder.is_some() && path() == *folder)
        });
        sessions.sort_by(|a, b| b.modified_at.cmp(&a.modified_at).then_with(|| a.resource.cmp(&b.resource)));
        Ok(v1::ListSessionsResult { sessions })
    }

    pub(super) async fn fetch_turns(&self, id: &Id, params: Option<&RawValue>) -> Result<String, ErrorObject> {
        let params: v1::FetchTurnsParams = read_params(params)?;
        self.load(&params.session).await;
        let uri = SessionUri::from(params.session.as_str());
        let before = params.before.map(TurnId::from);
        let limits = self.host.config().limits;
        let most = params.limit.unwrap_or(DEFAULT_TURNS).min(limits.snapshot_turns as u64) as usize;
        let found = turns::find(&self.host, SubscriptionTarget::SessionWithMainChat(uri), before, most).await.map_err(
            |error| match error {
                TurnsError::NoChat => no_session(&params.session),
                TurnsError::HostStopped(error) => stopped(error),
                error @ (TurnsError::NoTurn(_) | TurnsError::Unreadable(_) | TurnsError::History(_)) => {
                    ErrorObject::invalid_params(error.to_string())
                }
            },
        )?;
        let TurnPage { session, turns, older } = found;
        let window = newest(&turns, |turn| project::turn_json(&session, turn), limits.snapshot_bytes);
        let has_more = older || window.len() < turns.len();
        let turns = window.join(",");
        Ok(jsonrpc::response_raw(id, &format!(r#"{{"turns":[{turns}],"hasMore":{has_more}}}"#)))
    }
}
