//! Sessions for tests.

use std::sync::Arc;

use grove_core::Timestamp;
use grove_sessions::ProviderId;
use grove_sessions::session::{
    ChatState, SessionCapabilities, SessionIdentity, SessionSource, SessionState, SessionStatus,
};

/// A session of a provider without a host. Its times are those of its number.
pub(crate) fn session(number: u64, title: &str, status: SessionStatus) -> SessionSource {
    let provider = provider();
    let resource = format!("p:/{number}");
    let at = Timestamp(number);
    let identity = SessionIdentity {
        id: provider.session(number.to_string()).unwrap(),
        resource: resource.as_str().into(),
        provider_id: provider,
        created_at: at,
    };
    let mut main_chat = ChatState::untitled(format!("{resource}/main"), at);
    (main_chat.title, main_chat.status) = (title.into(), status);
    let state = SessionState {
        session_type: "agent".into(),
        icon: "icon".into(),
        workspace: None,
        metadata: Arc::default(),
        capabilities: SessionCapabilities::default(),
        main_chat: Arc::new(main_chat),
        more_chats: Vec::new(),
        waiting: Arc::default(),
    };
    SessionSource::new(identity, state)
}

pub(crate) fn provider() -> ProviderId {
    ProviderId::new("p").unwrap()
}
