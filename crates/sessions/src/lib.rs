//! Sessions of every source in one list, each controlled through its own provider.
//!
//! # What this crate owns
//!
//! - [`session`]: the facade. A [`Session`] has the same interface whatever it runs on: this host, another one, a
//!   cloud, or nothing any more. It groups [`Chat`]s, and most of its properties follow from them. Each session is one
//!   channel; a property is a projection of it, with its present value and each later one ([`Observable`]).
//! - [`provider`]: the trait [`SessionsProvider`]. An environment that has sessions implements it and needs nothing
//!   else;
//!   `docs/providers.md` says how.
//! - [`providers`]: the providers that Grove includes: hosts, and the sessions of other tools on this machine.
//! - [`Registry`]: the registered providers, and nothing else.
//! - [`management`]: one list of all sessions, updated by the providers' events; actions on a session through its
//!   provider;
//!   the active session, chat and provider; new sessions; workspace trust; the context keys.
//! - [`Metadata`]: the facts about a session's origin, and the label that follows.
//! - [`grouping`]: sessions under headings, one for each workspace.
//! - [`StateStore`]: a small trait for state that outlives the process.
//!
//! # What it never does
//!
//! It opens no file and no connection, starts no task and reads no clock: providers do, and a [`StateStore`] does; the
//! included ones are in [`providers`] and nowhere else. It decides nothing that belongs to a session. Every queue is
//! bounded:
//! a listener that is too slow is told to list again ([`SubscriptionItem::Reset`]), and so is this crate by a provider.
//!
//! **Law.** After each read, the list is exactly what the providers have: nothing twice, nothing lost
//! (`tests/it/law.rs`).
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use grove_core::Timestamp;
//! use grove_sessions::provider::{Announcer, ProviderEnvironment, ProviderEvent, SessionType, SessionsChange};
//! use grove_sessions::session::{ChatState, SessionCapabilities, SessionStatus, SessionWorkspace};
//! use grove_sessions::{
//!     Icon, InMemoryState, Management, Metadata, ProviderError, ProviderId, Registry, Session, SessionIdentity,
//!     SessionSource, SessionState, SessionsProvider, Uri,
//! };
//! use tokio::sync::broadcast;
//!
//! /// A drawer with one session in it.
//! #[derive(Debug)]
//! struct Drawer {
//!     id: ProviderId,
//!     source: SessionSource,
//!     announcer: Announcer,
//! }
//!
//! #[async_trait]
//! impl SessionsProvider for Drawer {
//!     fn id(&self) -> &ProviderId { &self.id }
//!     fn label(&self) -> Arc<str> { "Drawer".into() }
//!     fn icon(&self) -> Icon { "archive".into() }
//!     fn environment(&self) -> ProviderEnvironment { ProviderEnvironment::History }
//!     fn session_types(&self) -> Vec<SessionType> { Vec::new() }
//!     fn subscribe(&self) -> broadcast::Receiver<ProviderEvent> { self.announcer.subscribe() }
//!     fn sessions(&self) -> Vec<Session> { vec![self.source.session()] }
//!     async fn resolve_workspace(&self, _: &Uri) -> Result<Option<SessionWorkspace>, ProviderError> { Ok(None) }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let id = ProviderId::new("drawer")?;
//! let (resource, at) = (Uri::from("drawer:/1"), Timestamp(1_700_000_000_000));
//! let identity =
//!     SessionIdentity { id: id.session("1")?, resource: resource.clone(), provider_id: id.clone(), created_at: at };
//! let metadata = Metadata::local("/home/u/site");
//! let mut main_chat = ChatState::untitled("drawer:/1/main", at);
//! main_chat.status = SessionStatus::Completed;
//! let state = SessionState {
//!     session_type: "notes".into(),
//!     icon: "note".into(),
//!     workspace: metadata.workspace(None).map(Arc::new),
//!     metadata: Arc::new(metadata),
//!     capabilities: SessionCapabilities::default(),
//!     main_chat: Arc::new(main_chat),
//!     more_chats: Vec::new(),
//!     waiting: Arc::default(),
//! };
//! let drawer = Arc::new(Drawer { id, source: SessionSource::new(identity, state), announcer: Announcer::default() });
//!
//! let registry = Registry::new();
//! let _registration = registry.register(drawer.clone())?;
//! let (management, _driver) = Management::new(registry, Arc::new(InMemoryState::default()))?;
//!
//! let session = management.open_session(&resource)?;
//! assert_eq!(session.workspace().ok_or("it has one")?.label.as_ref(), "site");
//! drawer.source.update_main_chat(|chat| chat.title = "Fix the build".into());
//! drawer.announcer.sessions(SessionsChange::changed([drawer.source.session()]));
//! assert_eq!(session.title().as_ref(), "Fix the build");
//! assert!(!management.view().context.is_active_session_background_provider);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod grouping;
mod ids;
pub mod limits;
pub mod management;
pub mod metadata;
mod observable;
pub mod provider;
pub mod providers;
mod registry;
pub mod session;
mod state_store;
mod subscription;

pub use ids::{BadId, BrowseActionId, Icon, Markdown, ProviderId, SessionId, SessionTypeId, Uri};
pub use management::{Management, ManagementError};
pub use metadata::Metadata;
pub use observable::Observable;
pub use provider::{ProviderError, SessionsProvider};
pub use registry::{DuplicateProvider, ProvidersChange, Registration, Registry};
pub use session::{Chat, Session, SessionIdentity, SessionSource, SessionState};
pub use state_store::{
    InMemoryState, LastChat, MAX_LAST_CHATS, MAX_TRUST_ANSWERS, PersistentState, StateChange, StateStore,
    StateStoreError, Trust,
};
pub use subscription::{Subscription, SubscriptionItem};
