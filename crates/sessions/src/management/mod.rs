//! The management of all sessions of all providers: one list, all actions, and the active session of each viewer.

mod aggregate;
mod context;
mod create;
mod driver;
mod error;
mod events;
mod open;
mod session_actions;
mod trust;
mod view;
mod viewers;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, oneshot, watch};

use self::aggregate::Aggregate;
pub use self::context::{ContextKeys, ContextValue, row_context};
pub use self::create::NewSession;
pub use self::driver::ManagementDriver;
pub use self::error::ManagementError;
pub use self::events::SessionsEvent;
pub use self::session_actions::BatchDeletion;
use self::trust::OpenTrustQuestions;
pub use self::trust::{NoTrustPrompt, TrustPrompt, TrustQuestion};
pub use self::view::{ActiveSession, ActiveView};
use self::view::{ReplacementRequest, Selection};
use self::viewers::{Viewer, ViewerId, Viewers};
use crate::ids::{ProviderId, SessionId, Uri};
use crate::observable::Observable;
use crate::provider::{BrowseAction, BrowseOutcome, BrowseRequest, ProviderError, SessionType, SessionsProvider};
use crate::registry::{RegisteredProvider, Registry};
use crate::session::{Session, SessionState};
use crate::state_store::{PersistentState, StateChange, StateStore, StateStoreError};
use crate::subscription::Subscription;

/// The events that wait for a slow listener. Past it the listener is told to list again.
pub const EVENTS: usize = 1024;

/// All sessions of all providers.
///
/// A read is never older than the providers' events. Listeners are notified while the [`ManagementDriver`] runs. The
/// active session belongs to one viewer: [`Management::new_viewer`] gives another one, over the same list.
#[derive(Debug)]
pub struct Management {
    shared: Arc<ManagementShared>,
    viewer: ViewerId,
    /// Dropped with the last handle, which ends the driver.
    alive: Arc<oneshot::Sender<()>>,
}

#[derive(Debug)]
struct ManagementShared {
    registry: Registry,
    state_store: Arc<dyn StateStore>,
    inner: Mutex<ManagementState>,
    /// Counts the changes of any viewer's view.
    looked: watch::Sender<u64>,
    events: broadcast::Sender<SessionsEvent>,
    open_trust_questions: OpenTrustQuestions,
}

#[derive(Debug)]
struct ManagementState {
    aggregate: Aggregate,
    viewers: Viewers,
    persistent_state: PersistentState,
}

/// A browse action for a picker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickerAction {
    /// The label of the provider, under which the action is listed.
    pub provider_label: Arc<str>,
    /// The action.
    pub action: BrowseAction,
}

impl Management {
    /// The management of a registry's providers, and its driver.
    pub fn new(
        registry: Registry,
        state_store: Arc<dyn StateStore>,
    ) -> Result<(Self, ManagementDriver), StateStoreError> {
        let persistent_state = state_store.recall()?;
        let mut viewers = Viewers::default();
        let viewer = viewers.add();
        let inner = ManagementState { aggregate: Aggregate::default(), viewers, persistent_state };
        let shared = Arc::new(ManagementShared {
            registry,
            state_store,
            inner: Mutex::new(inner),
            looked: watch::Sender::new(0),
            events: broadcast::Sender::new(EVENTS),
            open_trust_questions: OpenTrustQuestions::default(),
        });
        shared.catch_up();
        let (alive, dropped) = oneshot::channel();
        Ok((Self { shared: shared.clone(), viewer, alive: Arc::new(alive) }, ManagementDriver { shared, dropped }))
    }

    /// The same management for another viewer, with its own active session, none at first, and its own draft.
    /// Persistent choices (the active provider, trusted folders) are shared. Unset a draft before dropping this:
    /// otherwise its provider keeps it.
    pub fn new_viewer(&self) -> Self {
        let viewer = self.shared.current().viewers.add();
        self.shared.catch_up();
        Self { shared: self.shared.clone(), viewer, alive: self.alive.clone() }
    }

    /// The providers.
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// All sessions, provider by provider in their order.
    pub fn sessions(&self) -> Vec<Session> {
        self.shared.current().aggregate.sessions()
    }

    /// All sessions, and all later events, without a gap.
    pub fn subscribe(&self) -> (Vec<Session>, Subscription<SessionsEvent>) {
        let inner = self.shared.current();
        (inner.aggregate.sessions(), Subscription::new(self.shared.events.subscribe()))
    }

    /// The session at a URI: of several, that of the first provider.
    pub fn session(&self, resource: &Uri) -> Option<Session> {
        self.shared.current().aggregate.at(resource).cloned()
    }

    /// The session with an id. A draft is found by its id alone.
    pub fn session_by_id(&self, id: &SessionId) -> Option<Session> {
        let inner = self.shared.current();
        let new = inner.viewers.get(self.viewer).and_then(|viewer| viewer.selection.new_session());
        inner.aggregate.get(id).or(new.filter(|new| new.id() == id)).cloned()
    }

    /// The session that a chat belongs to.
    pub fn session_of_chat(&self, chat: &Uri) -> Option<Session> {
        self.shared.current().aggregate.of_chat(chat).cloned()
    }

    /// The session types that a session can have.
    pub fn session_types(&self, session: &SessionId) -> Result<Vec<SessionType>, ManagementError> {
        Ok(self.provider_of(session)?.session_types_of(session))
    }

    /// The session types of all providers. Of equal ids that of the first provider.
    pub fn all_session_types(&self) -> Vec<SessionType> {
        let mut seen = HashSet::new();
        let all = self.shared.registry.providers().into_iter().flat_map(|provider| provider.session_types());
        all.filter(|session_type| seen.insert(session_type.id.clone())).collect()
    }

    /// The session types that are available in a folder, of each provider that knows it. A provider that cannot answer
    /// is left out.
    pub async fn session_types_for_folder(&self, folder: &Uri) -> Vec<(ProviderId, SessionType)> {
        let mut found = Vec::new();
        for provider in self.shared.registry.providers() {
            match provider.resolve_workspace(folder).await {
                Ok(Some(_)) => {
                    let types = provider.session_types().into_iter();
                    found.extend(types.map(|session_type| (provider.id().clone(), session_type)));
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(provider = %provider.id(), %folder, %error, "cannot resolve a folder"),
            }
        }
        found
    }

    /// The browse actions of all providers, which find a workspace for a new session.
    pub fn browse_actions(&self) -> Vec<PickerAction> {
        let of = |provider: Arc<dyn SessionsProvider>| {
            let provider_label = provider.label();
            let actions = provider.browse_actions().into_iter();
            actions.map(move |action| PickerAction { provider_label: provider_label.clone(), action })
        };
        self.shared.registry.providers().into_iter().flat_map(of).collect()
    }

    /// Runs a browse action of a provider.
    pub async fn browse(
        &self,
        provider: &ProviderId,
        request: &BrowseRequest,
    ) -> Result<BrowseOutcome, ManagementError> {
        let provider = self.provider(provider.as_str())?;
        if !provider.browse_actions().iter().any(|action| action.id == request.action) {
            let provider = provider.label().to_string();
            return Err(ProviderError::UnknownBrowseAction { provider, action: request.action.clone() }.into());
        }
        Ok(provider.browse(request).await?)
    }

    /// A property of the view: its present value, and each later one.
    pub fn observe<T: PartialEq + Clone>(
        &self,
        project: impl Fn(&ActiveView) -> T + Send + Sync + 'static,
    ) -> Observable<T, ActiveView> {
        Observable::new(self.follow(), project)
    }

    /// The whole view.
    pub fn view(&self) -> Arc<ActiveView> {
        self.shared.current().viewers.get(self.viewer).map(Viewer::view).unwrap_or_default()
    }

    fn follow(&self) -> watch::Receiver<Arc<ActiveView>> {
        // A viewer exists as long as its management; a channel without a sender never changes.
        let viewer = self.shared.current().viewers.get(self.viewer).map(Viewer::follow);
        viewer.unwrap_or_else(|| watch::channel(Arc::default()).1)
    }

    /// Changes the selection.
    fn select<T: Default>(&self, change: impl FnOnce(&mut Selection) -> T) -> T {
        self.shared.select(self.viewer, change).unwrap_or_default()
    }

    fn provider(&self, id: &str) -> Result<Arc<dyn SessionsProvider>, ManagementError> {
        self.shared.provider(id)
    }

    /// The provider of a session, by its id.
    fn provider_of(&self, session: &SessionId) -> Result<Arc<dyn SessionsProvider>, ManagementError> {
        self.provider(session.provider())
    }

    /// A session and its provider.
    fn route(&self, id: &SessionId) -> Result<(Session, Arc<dyn SessionsProvider>), ManagementError> {
        let provider = self.provider_of(id)?;
        let session = self.session_by_id(id).ok_or_else(|| ManagementError::UnknownSession(id.clone()))?;
        Ok((session, provider))
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner).viewers.remove(self.viewer);
    }
}

impl ManagementShared {
    /// Applies the providers' events, passes them on, and returns the lists as of then. Every change
    /// that is not in them is passed on later.
    fn current(&self) -> MutexGuard<'_, ManagementState> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = self.registry.snapshot();
        let changes = inner.aggregate.catch_up(&entries);
        for event in changes.events {
            inner.viewers.selections().for_each(|selection| selection.follow(&event));
            if let SessionsEvent::SessionReplacement(replaced) = &event {
                let (from, to) = (replaced.from.id().clone(), replaced.to.id().clone());
                self.try_remember(&mut inner, StateChange::SessionReplacement { from, to });
            }
            self.tell(event);
        }
        for session in changes.dropped {
            if inner.aggregate.get(&session).is_none() {
                inner.viewers.selections().for_each(|selection| selection.dropped(&session));
            }
        }
        self.look(&mut inner, &entries);
        inner
    }

    /// Changes a viewer's selection. `None`: the viewer is gone.
    fn select<T>(&self, viewer: ViewerId, change: impl FnOnce(&mut Selection) -> T) -> Option<T> {
        let mut inner = self.current();
        let changed = inner.viewers.selection(viewer).map(change);
        let entries = self.registry.snapshot();
        self.look(&mut inner, &entries);
        changed
    }

    /// The pending replacement requests of the viewers. The caller fulfils them.
    fn replacement_requests(&self) -> Vec<(ViewerId, ReplacementRequest)> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).viewers.replacement_requests()
    }

    fn provider(&self, id: &str) -> Result<Arc<dyn SessionsProvider>, ManagementError> {
        self.registry.get(id).ok_or_else(|| ManagementError::UnknownProvider(id.to_owned()))
    }

    /// Applies the providers' events, and passes them on.
    fn catch_up(&self) {
        drop(self.current());
    }

    /// The active sessions of all viewers.
    fn active(&self) -> Vec<watch::Receiver<Arc<SessionState>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).viewers.active()
    }

    fn look(&self, inner: &mut ManagementState, entries: &[RegisteredProvider]) {
        let ManagementState { viewers, persistent_state, .. } = inner;
        if viewers.look(entries, persistent_state.active_provider.as_ref()) {
            self.looked.send_modify(|looked| *looked = looked.wrapping_add(1));
        }
    }

    fn tell(&self, event: SessionsEvent) {
        // Without a listener, nothing is lost.
        self.events.send(event).ok();
    }

    fn persistent_state<T>(&self, read: impl FnOnce(&PersistentState) -> T) -> T {
        read(&self.inner.lock().unwrap_or_else(PoisonError::into_inner).persistent_state)
    }

    /// Stores a change that a person relies on.
    fn remember(&self, thing: StateChange) -> Result<(), StateStoreError> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.state_store.remember(thing.clone())?;
        inner.persistent_state.apply(thing)
    }

    /// Stores a change that is only a convenience: it applies here even if it cannot be stored.
    fn try_remember(&self, inner: &mut ManagementState, thing: StateChange) {
        if let Err(error) = self.state_store.remember(thing.clone()).and_then(|()| inner.persistent_state.apply(thing))
        {
            tracing::warn!(%error, "cannot store the last open session");
        }
    }
}
