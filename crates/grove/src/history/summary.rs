//! A session of another tool, as the host shows it.

use grove_core::{AgentId, Lifecycle, NewSession, Session, SessionId, SessionTitle, StoreName};
use grove_history::catalog::CatalogEntry;
use grove_host::history::HistoryRow;
use grove_transcript::TranscriptState;
use grove_wire::x_grove::history::HistoryMetadata;

/// A row of a session list.
pub(super) fn row(entry: &CatalogEntry) -> HistoryRow {
    HistoryRow { session: session(entry), about: about(entry) }
}

/// The session without its turns.
pub(super) fn session(entry: &CatalogEntry) -> Session {
    let agent = AgentId::from(entry.source().name());
    let id = SessionId::from(entry.id.as_str());
    let created_at = entry.session.created_at.unwrap_or_else(|| entry.modified_at());
    let new = NewSession {
        uri: format!("{agent}:/{id}").into(),
        id,
        agent,
        model: entry.session.models.last().map(|model| model.as_str().into()),
        working_directories: entry.folder.iter().cloned().collect(),
        config: None,
        store: StoreName::default(),
    };
    let mut session = Session::new(&new, created_at);
    session.lifecycle = Lifecycle::Ready;
    session.modified_at = entry.modified_at();
    if entry.session.damage.is_recovered() {
        session.details.warnings.push("parts of it could not be read: `grove doctor` shows the damage".to_owned());
    }
    session.set_title(&SessionTitle::given(entry.title()));
    for chat in &mut session.chats {
        (chat.modified_at, chat.touched_at) = (entry.modified_at(), entry.modified_at());
        chat.has_failed = matches!(entry.session.state, TranscriptState::Failed);
    }
    session.catalogue = session.chats.iter().map(|chat| chat.row()).collect();
    session
}

fn about(entry: &CatalogEntry) -> HistoryMetadata {
    let session = &entry.session;
    let state = match session.state {
        TranscriptState::Empty => "empty",
        TranscriptState::Complete => "complete",
        TranscriptState::Cancelled => "cancelled",
        TranscriptState::Failed => "failed",
        TranscriptState::Interrupted => "interrupted",
    };
    HistoryMetadata {
        source: session.source.name().to_owned(),
        source_id: session.source_id.clone(),
        product: entry.product.clone(),
        path: entry.path.display().to_string(),
        kept_from: entry.kept_from.as_ref().map(|path| path.display().to_string()),
        agent: session.agent.clone(),
        repository: entry.repository.clone(),
        branch: session.workspace.branch.clone(),
        turns: session.turns,
        turns_completed: session.turns_completed,
        tools: session.tools.clone(),
        models: session.models.clone(),
        input_tokens: session.usage.input_tokens,
        output_tokens: session.usage.output_tokens,
        state: state.to_owned(),
        recovered: session.damage.is_recovered(),
        bad_places: session.damage.count,
        listed: entry.listed,
    }
}
