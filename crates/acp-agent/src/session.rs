//! An open session of the editor.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1 as acp;
use grove_client::{Ahp, DispatchError, DispatchHandle, DispatchOutcome, Subscription};
use grove_wire::ahp::{
    Action, ChatAction, ChatPendingMessageRemoved, ChatPendingMessageSet, ChatState, ChatTurnCancelled, Message,
    ModelSelection, PendingMessageKind, SessionAction, SessionActiveClient, SessionActiveClientRemoved,
    SessionActiveClientSet, SessionConfigChanged, SessionState,
};
use grove_wire::jsonrpc::ErrorObject;
use tokio::sync::{Notify, oneshot, watch};

use crate::capabilities::EditorCapabilities;
use crate::editor::Editor;
use crate::host::{HostConnection, refusal};
use crate::report::{ReportedEnd, notice};
use crate::servers;
use crate::settings::{SettingChange, SettingSource, ShownSettings};

/// The prompts of one session that wait for their end; a further one is refused.
pub const OPEN_PROMPTS: usize = 16;
/// The attempts to take part in a session.
const ATTEMPTS: u32 = 32;
/// The attempts to give an answer of the editor to the host.
const ANSWER_ATTEMPTS: usize = 3;

/// A session that the editor has open.
pub(crate) struct EditorSession {
    /// The id, of the host and of the editor alike.
    pub(crate) id: String,
    pub(crate) host: HostConnection,
    pub(crate) editor: EditorCapabilities,
    pub(crate) session: Subscription<Ahp>,
    /// Its main chat, which is the conversation in the editor.
    pub(crate) chat: Subscription<Ahp>,
    /// The model for the next messages.
    model: Mutex<Option<String>>,
    prompts: Mutex<HashMap<String, OpenPrompt>>,
    /// Wakes the follower, which also looks after prompts.
    pub(crate) wake: Notify,
    is_closed: watch::Sender<bool>,
    /// The attempts to take part in the session.
    attempts: AtomicU32,
    /// The editor's MCP servers.
    servers: Mutex<Vec<acp::McpServer>>,
}

/// A prompt whose turn has not ended.
#[derive(Debug)]
struct OpenPrompt {
    answer: oneshot::Sender<PromptEnd>,
    /// The host has it, so it is in the chat's state until its turn is gone.
    is_accepted: bool,
    /// The editor cancelled it, and the host does not know that yet.
    is_cancelling: bool,
}

/// The end of a prompt.
#[derive(Debug)]
pub(crate) enum PromptEnd {
    Turn(Box<ReportedEnd>),
    /// Somebody removed it from the queue, or its turn from the chat.
    Removed,
    HostAway,
    SessionGone,
}

/// The place of a message with an id of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessagePlace {
    Queued,
    Running,
    Ended,
    Nowhere,
}

/// The host's URI of a session.
pub(crate) fn session_uri(id: &str) -> String {
    format!("ahp-session:/{id}")
}

impl EditorSession {
    /// Subscribes to a session and its main chat.
    pub(crate) async fn open(
        host: &HostConnection,
        editor: EditorCapabilities,
        id: &str,
    ) -> Result<Arc<Self>, ErrorObject> {
        let session = host.client.subscribe(&session_uri(id)).await.map_err(|error| refusal(&error))?;
        let chat = session.read(|state| {
            let session = state.session()?;
            session.default_chat.clone().or_else(|| session.chats.first().map(|chat| chat.resource.clone()))
        });
        let chat = chat.ok_or_else(|| ErrorObject::internal("the session has no chat"))?;
        let chat = host.client.subscribe(&chat).await.map_err(|error| refusal(&error))?;
        Ok(Arc::new(Self {
            id: id.to_owned(),
            host: host.clone(),
            editor,
            session,
            chat,
            model: Mutex::default(),
            prompts: Mutex::default(),
            wake: Notify::new(),
            is_closed: watch::Sender::new(false),
            attempts: AtomicU32::new(0),
            servers: Mutex::default(),
        }))
    }

    pub(crate) fn read_session<T>(&self, read: impl FnOnce(&SessionState) -> T) -> Option<T> {
        self.session.read_confirmed(|state, _| state.session().map(read))
    }

    pub(crate) fn read_chat<T>(&self, read: impl FnOnce(&ChatState) -> T) -> Option<T> {
        self.chat.read_confirmed(|state, _| state.chat().map(read))
    }

    /// Takes part in the session, if the editor has files to show: the host asks only clients that take part.
    ///
    /// A host forgets a client that was away for long, so this is called again and again.
    pub(crate) fn take_part(&self) {
        let client = self.host.client.client_id();
        let is_part = self.read_session(|state| state.active_clients.iter().any(|active| active.client_id == client));
        if !self.editor.reads_files || is_part != Some(false) {
            return;
        }
        // A host that refuses it is not asked for ever.
        if self.session.pending() > 0 || self.attempts.fetch_add(1, Ordering::Relaxed) >= ATTEMPTS {
            return;
        }
        let active_client = SessionActiveClient { client_id: client.to_owned(), ..SessionActiveClient::default() };
        let set = SessionAction::ActiveClientSet(SessionActiveClientSet { active_client });
        self.session.dispatch(Action::Session(set)).ok();
    }

    /// Gives the agent the editor's MCP servers.
    pub(crate) async fn give_servers(&self, servers: Vec<acp::McpServer>) -> Result<(), ErrorObject> {
        servers::give(&self.host, &self.id, &servers).await?;
        *lock(&self.servers) = servers;
        Ok(())
    }

    /// The editor's MCP servers.
    pub(crate) fn servers(&self) -> Vec<acp::McpServer> {
        lock(&self.servers).clone()
    }

    fn leave(&self) {
        let client_id = self.host.client.client_id().to_owned();
        let is_part = self.read_session(|state| state.active_clients.iter().any(|one| one.client_id == client_id));
        if is_part == Some(true) {
            let removed = SessionAction::ActiveClientRemoved(SessionActiveClientRemoved { client_id });
            self.session.dispatch(Action::Session(removed)).ok();
        }
    }

    /// Ends following it. Its turns go on in the host.
    pub(crate) fn close(&self) {
        if !self.is_closed.send_replace(true) {
            self.leave();
        }
        self.end_prompts(|| PromptEnd::SessionGone);
    }

    /// Waits until it is closed.
    pub(crate) async fn closed(&self) {
        // The sender lives as long as this session.
        self.is_closed.subscribe().wait_for(|is_closed| *is_closed).await.ok();
    }

    /// Returns whether nothing was said yet.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty =
            |chat: &ChatState| chat.turns.is_empty() && chat.active_turn.is_none() && chat.queued_messages.is_none();
        self.read_chat(is_empty).unwrap_or_default()
    }

    /// The settings as the editor shows them.
    pub(crate) fn settings(&self) -> ShownSettings {
        self.with_settings(|source| source.shown()).unwrap_or_default()
    }

    /// Reads the sources of the settings.
    pub(crate) fn with_settings<T>(&self, read: impl FnOnce(&SettingSource<'_>) -> T) -> Option<T> {
        let agents = self.host.agents();
        let model = lock(&self.model).clone().or_else(|| self.read_chat(last_model).flatten());
        let has_switches = self.editor.boolean_options;
        self.read_session(|session| {
            read(&SettingSource { session, agents: &agents, model: model.as_deref(), has_switches })
        })
    }

    /// Makes a change of a setting that needs no other session.
    pub(crate) async fn configure(&self, change: SettingChange) -> Result<(), ErrorObject> {
        match change {
            SettingChange::Config { name, value } => {
                let config = [(name, value)].into_iter().collect();
                let changed = SessionConfigChanged { config, replace: None };
                change_session(&self.session, SessionAction::ConfigChanged(changed)).await
            }
            SettingChange::Model(model) => {
                *lock(&self.model) = Some(model);
                Ok(())
            }
            SettingChange::Agent(agent) => Err(ErrorObject::invalid_params(format!(
                "the agent cannot become {agent:?} once the conversation has begun: start a new session"
            ))),
        }
    }

    /// Sends a prompt, and waits for the end of its turn. `turn` is a new id.
    pub(crate) async fn prompt(&self, turn: &str, mut message: Message) -> Result<PromptEnd, ErrorObject> {
        message.model = lock(&self.model).clone().map(|id| ModelSelection { id, config: None });
        let (answer, end) = oneshot::channel();
        {
            let mut prompts = lock(&self.prompts);
            if prompts.len() >= OPEN_PROMPTS {
                let message = format!("{OPEN_PROMPTS} prompts of this session wait already: wait for one to end");
                return Err(ErrorObject::invalid_request(message));
            }
            prompts.insert(turn.to_owned(), OpenPrompt { answer, is_accepted: false, is_cancelling: false });
        }
        let submitted = self.submit(turn, message).await;
        if let Err(error) = submitted {
            lock(&self.prompts).remove(turn);
            return Err(error);
        }
        if let Some(prompt) = lock(&self.prompts).get_mut(turn) {
            prompt.is_accepted = true;
        }
        self.wake.notify_one();
        Ok(end.await.unwrap_or(PromptEnd::SessionGone))
    }

    /// Queues a message until the host has it: it becomes a turn at once if nothing else runs.
    async fn submit(&self, turn: &str, message: Message) -> Result<(), ErrorObject> {
        loop {
            self.host.ready().await?;
            let (kind, id) = (PendingMessageKind::Queued, turn.to_owned());
            let set = ChatPendingMessageSet { kind, id, message: message.clone() };
            match self.chat.dispatch(Action::Chat(ChatAction::PendingMessageSet(set))) {
                Ok(queued) => match queued.await {
                    DispatchOutcome::Confirmed(_) => return Ok(()),
                    DispatchOutcome::Rejected(reason) => return Err(ErrorObject::invalid_params(reason)),
                    // The state after the reconnect shows whether it arrived.
                    DispatchOutcome::Lost => {
                        self.host.ready().await?;
                        if self.place(turn) != MessagePlace::Nowhere {
                            return Ok(());
                        }
                    }
                },
                Err(DispatchError::NotConnected(_)) => {}
                Err(error) => return Err(not_sent(&error)),
            }
            if self.session.is_gone() {
                return Err(ErrorObject::new(crate::host::code::RESOURCE_NOT_FOUND, "the session was deleted"));
            }
        }
    }

    fn place(&self, turn: &str) -> MessagePlace {
        self.read_chat(|chat| place(chat, turn)).unwrap_or(MessagePlace::Nowhere)
    }

    /// Cancels the editor's prompts; without one, the turn that runs.
    pub(crate) fn cancel(&self) {
        let mut has_any = false;
        for prompt in lock(&self.prompts).values_mut() {
            prompt.is_cancelling = true;
            has_any = true;
        }
        if has_any {
            self.wake.notify_one();
        } else {
            self.cancel_running_turn();
        }
    }

    /// Cancels the editor's prompts and the running turn, also if another client began it.
    pub(crate) fn cancel_all(self: &Arc<Self>) {
        self.cancel();
        self.settle_prompts();
        if self.has_prompts() && self.running_turn().is_some_and(|turn| !self.is_own(&turn)) {
            self.cancel_running_turn();
        }
    }

    fn cancel_running_turn(&self) {
        if let Some(turn) = self.running_turn() {
            self.cancel_turn(turn);
        }
    }

    fn running_turn(&self) -> Option<String> {
        self.read_chat(|chat| chat.active_turn.as_ref().map(|turn| turn.id.clone())).flatten()
    }

    /// Cancels one prompt.
    pub(crate) fn cancel_prompt(&self, turn: &str) {
        if let Some(prompt) = lock(&self.prompts).get_mut(turn) {
            prompt.is_cancelling = true;
        }
        self.wake.notify_one();
    }

    fn cancel_turn(&self, turn: String) -> Option<DispatchHandle> {
        // The host measures the duration itself.
        let cancelled = ChatTurnCancelled { turn_id: turn, duration: 0, meta: None };
        self.chat.dispatch(Action::Chat(ChatAction::TurnCancelled(cancelled))).ok()
    }

    /// Cancels the turn of a prompt. What a broken connection loses is sent again after the reconnect.
    fn cancel_own_turn(self: &Arc<Self>, turn: String) {
        let Some(cancelled) = self.cancel_turn(turn.clone()) else { return };
        if let Some(prompt) = lock(&self.prompts).get_mut(&turn) {
            prompt.is_cancelling = false;
        }
        let session = self.clone();
        tokio::spawn(async move {
            if let DispatchOutcome::Lost = cancelled.await {
                session.cancel_prompt(&turn);
            }
        });
    }

    /// Gives an answer of the editor to the host, again after a broken connection. Returns the reason of a refusal.
    async fn send_answer(&self, action: &Action) -> Option<String> {
        for _ in 0..ANSWER_ATTEMPTS {
            match self.chat.dispatch(action.clone()).map(IntoFuture::into_future) {
                Ok(sent) => match sent.await {
                    DispatchOutcome::Confirmed(_) => return None,
                    DispatchOutcome::Rejected(reason) => return Some(reason),
                    DispatchOutcome::Lost => {}
                },
                Err(DispatchError::NotConnected(_)) => {}
                Err(error) => return Some(error.to_string()),
            }
            if self.host.client.connected().await.is_err() {
                return None;
            }
        }
        Some("the connection to the host broke".to_owned())
    }

    /// Gives an answer of the editor to the host. If the host refuses it and still waits for one, the editor is told:
    /// otherwise another client was faster.
    pub(crate) async fn answer_request(&self, editor: &Editor, request: &str, action: &Action) {
        let Some(reason) = self.send_answer(action).await else { return };
        tracing::debug!(reason, session = self.id, "the host refused the editor's answer");
        let is_asked = |state: &SessionState| {
            state.input_needed.iter().flatten().any(|asked| asked.id().is_some_and(|id| id == request))
        };
        if self.read_session(is_asked) == Some(true) {
            let text = format!("The answer was not accepted, and the question is still open: {reason}");
            editor.update(&self.id, notice(self.editor, text)).await.ok();
        }
    }

    /// Returns whether the editor waits for a prompt.
    pub(crate) fn has_prompts(&self) -> bool {
        !lock(&self.prompts).is_empty()
    }

    /// Returns whether the editor sent the prompt of a turn, and waits for it.
    pub(crate) fn is_own(&self, turn: &str) -> bool {
        lock(&self.prompts).contains_key(turn)
    }

    /// Ends the prompt of a turn.
    pub(crate) fn end_prompt(&self, end: ReportedEnd) {
        if let Some(prompt) = lock(&self.prompts).remove(&end.turn) {
            // The request may be gone.
            prompt.answer.send(PromptEnd::Turn(Box::new(end))).ok();
        }
    }

    /// Ends all prompts.
    pub(crate) fn end_prompts(&self, end: impl Fn() -> PromptEnd) {
        for (_, prompt) in lock(&self.prompts).drain() {
            prompt.answer.send(end()).ok();
        }
    }

    /// Ends prompts that are in the chat no more, and cancels those that the editor cancelled.
    pub(crate) fn settle_prompts(self: &Arc<Self>) {
        let accepted: Vec<(String, bool)> = {
            let prompts = lock(&self.prompts);
            let accepted = prompts.iter().filter(|(_, prompt)| prompt.is_accepted);
            accepted.map(|(turn, prompt)| (turn.clone(), prompt.is_cancelling)).collect()
        };
        for (turn, is_cancelling) in accepted {
            match self.place(&turn) {
                MessagePlace::Nowhere => {
                    if let Some(prompt) = lock(&self.prompts).remove(&turn) {
                        prompt.answer.send(PromptEnd::Removed).ok();
                    }
                }
                // The report ends it.
                MessagePlace::Ended => {}
                MessagePlace::Running if is_cancelling => self.cancel_own_turn(turn),
                MessagePlace::Queued if is_cancelling => {
                    let removed = ChatPendingMessageRemoved { kind: PendingMessageKind::Queued, id: turn.clone() };
                    let removed = Action::Chat(ChatAction::PendingMessageRemoved(removed));
                    self.chat.dispatch(removed).ok();
                }
                MessagePlace::Running | MessagePlace::Queued => {}
            }
        }
    }
}

/// Makes a change of a session, and waits until the host confirms it.
pub(crate) async fn change_session(session: &Subscription<Ahp>, action: SessionAction) -> Result<(), ErrorObject> {
    match session.dispatch(Action::Session(action)).map_err(|error| not_sent(&error))?.await {
        DispatchOutcome::Confirmed(_) => Ok(()),
        DispatchOutcome::Rejected(reason) => Err(ErrorObject::invalid_params(reason)),
        DispatchOutcome::Lost => Err(ErrorObject::internal("the connection to the host broke: try again")),
    }
}

fn place(chat: &ChatState, turn: &str) -> MessagePlace {
    if chat.active_turn.as_ref().is_some_and(|active| active.id == turn) {
        MessagePlace::Running
    } else if chat.queued_messages.iter().flatten().any(|queued| queued.id == turn) {
        MessagePlace::Queued
    } else if chat.turns.iter().rev().any(|ended| ended.id == turn) {
        MessagePlace::Ended
    } else {
        MessagePlace::Nowhere
    }
}

/// The model of the last message that named one.
fn last_model(chat: &ChatState) -> Option<String> {
    let active = chat.active_turn.iter().map(|turn| &turn.message);
    let messages = active.chain(chat.turns.iter().rev().map(|turn| &turn.message));
    messages.into_iter().find_map(|message| message.model.as_ref().map(|model| model.id.clone()))
}

fn not_sent(error: &DispatchError) -> ErrorObject {
    ErrorObject::internal(error.to_string())
}

// A value is changed in one step, so a poisoned lock is still sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PromptEnd {
    /// The answer to `session/prompt`.
    pub(crate) fn response(self) -> Result<acp::PromptResponse, ErrorObject> {
        use crate::report::ReportedOutcome;
        let end = match self {
            PromptEnd::Turn(end) => *end,
            PromptEnd::Removed => return Ok(acp::PromptResponse::new(acp::StopReason::Cancelled)),
            PromptEnd::HostAway => {
                return Err(ErrorObject::internal(
                    "the host is away: the turn goes on when it is back, and loading the session shows it",
                ));
            }
            PromptEnd::SessionGone => return Err(ErrorObject::internal("the session was closed or deleted")),
        };
        let stop = match end.outcome {
            ReportedOutcome::Complete => acp::StopReason::EndTurn,
            ReportedOutcome::Cancelled => acp::StopReason::Cancelled,
            ReportedOutcome::Failed(error) => {
                let message = if error.message.is_empty() { "the turn failed".to_owned() } else { error.message };
                return Err(ErrorObject::internal(message));
            }
        };
        let usage = end.usage.and_then(|usage| {
            let (input, output) = (usage.input_tokens?, usage.output_tokens?);
            Some(
                acp::Usage::new(input.saturating_add(output), input, output)
                    .cached_read_tokens(usage.cache_read_tokens),
            )
        });
        Ok(acp::PromptResponse::new(stop).usage(usage))
    }
}
