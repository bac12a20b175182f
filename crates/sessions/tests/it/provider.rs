//! A provider in memory, whose sessions tests create and change.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use grove_core::Timestamp;
use grove_sessions::management::{Management, ManagementDriver};
use grove_sessions::provider::{
    Announcer, Availability, BrowseAction, BrowseOffer, BrowseOutcome, BrowseRequest, ProviderCapabilities,
    ProviderEnvironment, ProviderEvent, ReadState, SendOptions, SessionType, SessionsChange, SupportedAttachments,
};
use grove_sessions::session::{
    ChatDeletion, ChatState, SessionCapabilities, SessionState, SessionStatus, SessionWorkspace, first_title,
};
use grove_sessions::{
    InMemoryState, Metadata, ProviderError, ProviderId, Registry, Session, SessionId, SessionIdentity, SessionSource,
    SessionTypeId, SessionsProvider, Uri,
};
use tokio::sync::{Notify, broadcast};

pub(crate) struct TestProvider {
    pub(crate) id: ProviderId,
    pub(crate) order: i32,
    pub(crate) environment: ProviderEnvironment,
    pub(crate) attachments: SupportedAttachments,
    pub(crate) several_chats: bool,
    /// A sent session is replaced by another one.
    pub(crate) replaces: bool,
    /// A draft whose sending it refuses was never listed.
    pub(crate) refuses_early: bool,
    /// Folders below this are its own.
    pub(crate) folders: String,
    pub(crate) requires_trust: bool,
    /// Sends wait for it once their chat exists.
    pub(crate) gate: Option<Arc<Notify>>,
    /// Sends wait for it before anything else.
    pub(crate) gate_first: Option<Arc<Notify>>,
    /// Creating a session waits for it.
    pub(crate) gate_create: Option<Arc<Notify>>,
    pub(crate) failing: AtomicBool,
    pub(crate) availability: Mutex<Availability>,
    pub(crate) announcer: Announcer,
    pub(crate) types: Mutex<Vec<SessionType>>,
    pub(crate) inner: Mutex<Inner>,
    pub(crate) next: AtomicU64,
    /// The number of calls that listed all its sessions.
    pub(crate) lists: AtomicUsize,
}

#[derive(Default)]
pub(crate) struct Inner {
    rows: Vec<Arc<SessionSource>>,
    drafts: Vec<Arc<SessionSource>>,
    /// The calls that it got.
    calls: Vec<String>,
}

/// A management of some providers. They are unregistered when it is dropped.
pub(crate) fn manage(
    providers: impl IntoIterator<Item = Arc<TestProvider>>,
) -> (Management, ManagementDriver, Vec<grove_sessions::Registration>) {
    let registry = Registry::new();
    let handles = providers.into_iter().map(|provider| registry.register(provider).unwrap()).collect();
    let (management, driver) = Management::new(registry, Arc::new(InMemoryState::default())).unwrap();
    (management, driver, handles)
}

pub(crate) fn ids(sessions: &[Session]) -> Vec<String> {
    sessions.iter().map(|session| session.id().to_string()).collect()
}

impl TestProvider {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: ProviderId::new(id).unwrap(),
            order: 0,
            environment: ProviderEnvironment::ThisHost,
            attachments: SupportedAttachments::ALL,
            several_chats: true,
            replaces: false,
            refuses_early: false,
            folders: "file:///".into(),
            requires_trust: false,
            gate: None,
            gate_first: None,
            gate_create: None,
            failing: AtomicBool::new(false),
            availability: Mutex::new(Availability::Ready),
            announcer: Announcer::default(),
            types: Mutex::new(vec![session_type("agent")]),
            inner: Mutex::default(),
            next: AtomicU64::new(1),
            lists: AtomicUsize::new(0),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn call(&self, what: &str, session: &SessionId) -> Result<(), ProviderError> {
        self.inner().calls.push(format!("{what} {session}"));
        match self.failing.load(Ordering::Relaxed) {
            true => Err(ProviderError::Refused(format!("{} says no", self.id))),
            false => Ok(()),
        }
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().calls)
    }

    pub(crate) fn set_types(&self, types: &[&str]) {
        *self.types.lock().unwrap() = types.iter().map(|id| session_type(id)).collect();
        self.announcer.session_types();
    }

    /// A session that was not announced.
    pub(crate) fn make(&self, local: &str, folder: &str) -> Arc<SessionSource> {
        self.build(local, folder, Uri::from(format!("{}:/{local}", self.id)))
    }

    pub(crate) fn make_at(&self, local: &str, resource: &str) -> Arc<SessionSource> {
        self.build(local, "/work/app", resource.into())
    }

    fn build(&self, local: &str, folder: &str, resource: Uri) -> Arc<SessionSource> {
        let metadata = Metadata::local(folder);
        let mut workspace = metadata.workspace(None).unwrap();
        workspace.requires_workspace_trust = self.requires_trust;
        let at = Timestamp(self.next.fetch_add(1, Ordering::Relaxed));
        let mut main_chat = ChatState::untitled(format!("{resource}/main").as_str(), at);
        main_chat.status = SessionStatus::Completed;
        main_chat.title = local.into();
        let capabilities =
            SessionCapabilities { supports_multiple_chats: self.several_chats, ..SessionCapabilities::default() };
        let state = SessionState {
            session_type: "agent".into(),
            icon: "robot".into(),
            workspace: Some(Arc::new(workspace)),
            metadata: Arc::new(metadata),
            capabilities,
            main_chat: Arc::new(main_chat),
            more_chats: Vec::new(),
            waiting: Arc::default(),
        };
        let id = self.id.session(local).unwrap();
        let identity = SessionIdentity { id, resource, provider_id: self.id.clone(), created_at: at };
        Arc::new(SessionSource::new(identity, state))
    }

    /// The list changes first and is announced afterwards, both under one lock, as the law of providers requires.
    pub(crate) fn add(&self, local: &str) -> Arc<SessionSource> {
        let source = self.make(local, "/work/app");
        self.add_source(&source);
        source
    }

    pub(crate) fn add_source(&self, source: &Arc<SessionSource>) {
        let mut inner = self.inner();
        inner.rows.push(source.clone());
        self.announcer.sessions(SessionsChange::added([source.session()]));
    }

    /// A bug of a provider: it lists a session without announcing it.
    pub(crate) fn add_silently(&self, source: &Arc<SessionSource>) {
        self.inner().rows.push(source.clone());
    }

    pub(crate) fn remove(&self, id: &SessionId) -> bool {
        let mut inner = self.inner();
        let Some(place) = inner.rows.iter().position(|row| row.session().id() == id) else { return false };
        let row = inner.rows.remove(place);
        self.announcer.sessions(SessionsChange::removed([row.session()]));
        true
    }

    pub(crate) fn change(&self, id: &SessionId, title: &str) -> bool {
        let inner = self.inner();
        let Some(row) = inner.rows.iter().find(|row| row.session().id() == id) else { return false };
        let differs = row.update_main_chat(|chat| chat.title = title.into());
        self.announcer.sessions(SessionsChange::changed([row.session()]));
        differs
    }

    /// Replaces a session by another.
    pub(crate) fn replace(&self, from: &SessionId, to: &Arc<SessionSource>) {
        let mut inner = self.inner();
        let Some(place) = inner.rows.iter().position(|row| row.session().id() == from) else { return };
        let old = std::mem::replace(&mut inner.rows[place], to.clone());
        self.announcer.replaced(old.session(), to.session());
    }

    pub(crate) fn add_chat(&self, source: &SessionSource, name: &str) -> Uri {
        let resource = Uri::from(format!("{}/{name}", source.session().resource()));
        let mut chat = ChatState::untitled(resource.clone(), Timestamp(self.next.fetch_add(1, Ordering::Relaxed)));
        chat.status = SessionStatus::Completed;
        chat.title = name.into();
        source.update(|state| state.more_chats.push(Arc::new(chat)));
        self.announcer.sessions(SessionsChange::changed([source.session()]));
        resource
    }

    fn find(&self, id: &SessionId) -> Result<Arc<SessionSource>, ProviderError> {
        let inner = self.inner();
        let mut all = inner.rows.iter().chain(&inner.drafts);
        all.find(|row| row.session().id() == id).cloned().ok_or_else(|| ProviderError::UnknownSession(id.clone()))
    }

    fn take_draft(&self, id: &SessionId) -> Option<Arc<SessionSource>> {
        let mut inner = self.inner();
        let place = inner.drafts.iter().position(|row| row.session().id() == id)?;
        Some(inner.drafts.remove(place))
    }

    pub(crate) fn drafts(&self) -> usize {
        self.inner().drafts.len()
    }

    pub(crate) fn lose_drafts(&self) {
        let gone: Vec<_> = self.inner().drafts.drain(..).map(|source| source.session()).collect();
        self.announcer.sessions(SessionsChange::removed(gone));
    }

    /// Its host disconnects: sessions stay listed, drafts and types are dropped.
    pub(crate) fn go_away(&self) {
        *self.availability.lock().unwrap() = Availability::Away { reason: "no route".into() };
        self.announcer.availability();
        self.lose_drafts();
        self.set_types(&[]);
    }

    /// Its host is back, with other sessions than before.
    pub(crate) fn come_back(&self, sessions: &[&str]) {
        *self.availability.lock().unwrap() = Availability::Ready;
        self.announcer.availability();
        self.set_types(&["agent"]);
        for gone in self.sessions().iter().filter(|known| !sessions.contains(&known.id().local())) {
            self.remove(gone.id());
        }
        let known: Vec<String> = self.sessions().iter().map(|known| known.id().local().to_owned()).collect();
        for new in sessions.iter().filter(|new| !known.iter().any(|known| known == *new)) {
            self.add(new);
        }
    }
}

impl fmt::Debug for TestProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestProvider").field(&self.id).finish()
    }
}

pub(crate) fn session_type(id: &str) -> SessionType {
    SessionType { id: id.into(), label: format!("The {id}").into(), icon: "robot".into() }
}

#[async_trait]
impl SessionsProvider for TestProvider {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn label(&self) -> Arc<str> {
        format!("Provider {}", self.id).into()
    }

    fn icon(&self) -> grove_sessions::Icon {
        "server".into()
    }

    fn order(&self) -> i32 {
        self.order
    }

    fn environment(&self) -> ProviderEnvironment {
        self.environment.clone()
    }

    fn availability(&self) -> Availability {
        self.availability.lock().unwrap().clone()
    }

    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities { attachments: self.attachments }
    }

    fn session_types(&self) -> Vec<SessionType> {
        self.types.lock().unwrap().clone()
    }

    fn subscribe(&self) -> broadcast::Receiver<ProviderEvent> {
        self.announcer.subscribe()
    }

    fn sessions(&self) -> Vec<Session> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.inner().rows.iter().map(|row| row.session()).collect()
    }

    fn browse_actions(&self) -> Vec<BrowseAction> {
        let (label, icon) = ("Folders".into(), "folder".into());
        vec![BrowseAction { id: "folders".into(), label, icon, provider_id: self.id.clone() }]
    }

    async fn browse(&self, request: &BrowseRequest) -> Result<BrowseOutcome, ProviderError> {
        let Some(chosen) = &request.chosen else {
            let uri = Uri::from(format!("{}work/app", self.folders));
            return Ok(BrowseOutcome::Offered(vec![BrowseOffer { uri, label: "app".into(), description: None }]));
        };
        Ok(self.resolve_workspace(chosen).await?.map_or(BrowseOutcome::Nothing, BrowseOutcome::Chosen))
    }

    async fn resolve_workspace(&self, uri: &Uri) -> Result<Option<SessionWorkspace>, ProviderError> {
        if !uri.as_str().starts_with(&self.folders) {
            return Ok(None);
        }
        let mut workspace = SessionWorkspace::new(uri.clone(), uri.basename());
        workspace.requires_workspace_trust = self.requires_trust;
        Ok(Some(workspace))
    }

    async fn create_new_session(&self, workspace: &SessionWorkspace) -> Result<Session, ProviderError> {
        let source = self.make(&format!("new-{}", self.next.load(Ordering::Relaxed)), workspace.uri.path());
        self.call("create", source.session().id())?;
        source.update_main_chat(|chat| chat.status = SessionStatus::Untitled);
        self.inner().drafts.push(source.clone());
        if let Some(gate) = &self.gate_create {
            gate.notified().await;
        }
        Ok(source.session())
    }

    async fn delete_new_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        self.call("drop", session)?;
        self.take_draft(session);
        Ok(())
    }

    async fn set_session_type(&self, session: &SessionId, to: &SessionTypeId) -> Result<Session, ProviderError> {
        self.call("type", session)?;
        let source = self.find(session)?;
        source.update(|state| state.session_type = to.clone());
        Ok(source.session())
    }

    async fn rename_chat(&self, session: &SessionId, chat: &Uri, title: &str) -> Result<(), ProviderError> {
        self.call("rename", session)?;
        self.find(session)?.update_chat(chat, |chat| chat.title = title.into());
        Ok(())
    }

    async fn set_model(&self, session: &SessionId, model: &str) -> Result<(), ProviderError> {
        self.call("model", session)?;
        self.find(session)?.update_main_chat(|chat| chat.model_id = Some(model.into()));
        Ok(())
    }

    async fn archive_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        self.call("archive", session)?;
        self.find(session)?.update_main_chat(|chat| chat.is_archived = true);
        Ok(())
    }

    async fn unarchive_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        self.call("unarchive", session)?;
        self.find(session)?.update_main_chat(|chat| chat.is_archived = false);
        Ok(())
    }

    async fn delete_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        self.call("delete", session)?;
        match self.remove(session) || self.take_draft(session).is_some() {
            true => Ok(()),
            false => Err(ProviderError::UnknownSession(session.clone())),
        }
    }

    async fn delete_chat(&self, session: &SessionId, chat: &Uri) -> Result<bool, ProviderError> {
        self.call("delete chat", session)?;
        let source = self.find(session)?;
        assert_eq!(source.session().state().deleting(chat), ChatDeletion::Chat, "management sorts the rest out");
        source.update(|state| state.more_chats.retain(|known| &known.resource != chat));
        self.announcer.sessions(SessionsChange::changed([source.session()]));
        Ok(true)
    }

    async fn set_read(&self, session: &SessionId, read: ReadState) -> Result<(), ProviderError> {
        self.call("read", session)?;
        self.find(session)?.update_main_chat(|chat| chat.is_read = read == ReadState::Read);
        Ok(())
    }

    async fn send_and_create_chat(&self, session: &SessionId, options: SendOptions) -> Result<Session, ProviderError> {
        let source = self.find(session)?;
        if let Some(gate) = &self.gate_first {
            gate.notified().await;
        }
        if self.refuses_early {
            self.call("try", session)?;
        }
        let draft = self.take_draft(session);
        if let Some(draft) = &draft {
            draft.update_main_chat(|chat| {
                chat.title = first_title(&options.query).into();
                chat.status = SessionStatus::InProgress;
            });
            self.add_source(draft);
        } else {
            let name = format!("chat-{}", self.next.load(Ordering::Relaxed));
            self.add_chat(&source, &name);
        }
        if let Some(gate) = &self.gate {
            gate.notified().await;
        }
        if let Err(error) = self.call("send", session) {
            self.remove(session);
            return Err(error);
        }
        if draft.is_some() && self.replaces {
            let to = self.make(&format!("kept-{}", session.local()), "/work/app");
            self.replace(session, &to);
            return Ok(to.session());
        }
        Ok(source.session())
    }

    async fn send_request(
        &self,
        session: &SessionId,
        chat: &Uri,
        _options: SendOptions,
    ) -> Result<Session, ProviderError> {
        self.call("request", session)?;
        let source = self.find(session)?;
        source.update_chat(chat, |chat| chat.status = SessionStatus::InProgress);
        Ok(source.session())
    }
}
