//! The task of an open session: tells the editor what changes, and asks it what must be asked.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use grove_client::{ConnectionStatus, RequestError};
use grove_wire::ahp::{ChatState, FetchTurnsParams, SessionInputRequest, SessionState};
use grove_wire::file_uri;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::content::ContentLoader;
use crate::editor::{Editor, EditorGone};
use crate::host::HOST_PATIENCE;
use crate::report::{ChatReport, DueUpdate, ReportedChat, notice};
use crate::session::{EditorSession, PromptEnd};
use crate::settings::ShownSettings;
use crate::tool_call::CallDraft;
use crate::{permission, question, terminal};

/// The turns that loading a session replays; of older ones the editor is told that they exist.
pub const REPLAYED_TURNS: usize = 2_000;
/// The questions that the editor is asked at the same time, of one session.
pub const OPEN_QUESTIONS: usize = 32;

/// Follows a session for the editor.
pub(crate) struct SessionFollower {
    session: Arc<EditorSession>,
    editor: Editor,
    contents: ContentLoader,
    chat: ReportedChat,
    told: ToldDetails,
    /// The open questions, by their id in the session.
    questions: HashMap<String, OpenQuestion>,
}

/// The reported details of the session beside its chat.
#[derive(Debug, Default, PartialEq)]
struct ToldDetails {
    title: String,
    settings: ShownSettings,
    commands: Vec<acp::AvailableCommand>,
}

/// A question that the editor was asked. Dropping it withdraws the question.
struct OpenQuestion(JoinHandle<()>);

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SessionFollower {
    /// A follower that counts everything in the session as told.
    pub(crate) fn from_now_on(session: Arc<EditorSession>, editor: Editor) -> Self {
        let mut follower = Self::new(session, editor);
        follower.session.read_chat(|chat| follower.chat.skip(chat));
        follower
    }

    fn new(session: Arc<EditorSession>, editor: Editor) -> Self {
        let contents = ContentLoader::new(session.host.client.clone());
        let told = ToldDetails {
            title: session.read_session(|state| state.title.clone()).unwrap_or_default(),
            // The answer that opens the session has the settings.
            settings: session.settings(),
            commands: Vec::new(),
        };
        Self { session, editor, contents, chat: ReportedChat::default(), told, questions: HashMap::new() }
    }

    /// A follower that has told the editor everything that was said.
    pub(crate) async fn replay(session: Arc<EditorSession>, editor: Editor) -> Result<Self, RequestError> {
        let is_cut = load_older_turns(&session).await?;
        let mut follower = Self::new(session, editor);
        if is_cut {
            let notice = "Older turns are not shown here: `grove show` prints them all.".to_owned();
            follower.send(DueUpdate::Notice(notice)).await.ok();
        }
        follower.tell_chat(true).await.ok();
        Ok(follower)
    }

    /// Tells the settings again.
    pub(crate) fn forget_settings(&mut self) {
        self.told.settings = ShownSettings::default();
    }

    /// Runs until the session is closed or gone, or the editor is.
    pub(crate) async fn run(mut self) {
        let mut chat = self.session.chat.clone();
        let mut session = self.session.session.clone();
        let mut root = self.session.host.root();
        let mut status = self.session.host.client.status();
        let mut patience = HostPatience::default();
        loop {
            if self.tell().await.is_err() {
                return;
            }
            if self.session.session.is_gone() {
                self.session.close();
                return;
            }
            patience.note(&status.borrow_and_update());
            let open = self.session.clone();
            tokio::select! {
                changed = chat.changed() => if changed.is_err() { return open.end_prompts(|| PromptEnd::HostAway) },
                changed = session.changed() => if changed.is_err() { return open.end_prompts(|| PromptEnd::HostAway) },
                changed = root.changed() => if changed.is_err() { return open.end_prompts(|| PromptEnd::HostAway) },
                () = open.wake.notified() => {}
                _ = status.changed() => {}
                () = patience.ended() => open.end_prompts(|| PromptEnd::HostAway),
                () = open.closed() => return,
            }
        }
    }

    /// Tells everything that is new.
    async fn tell(&mut self) -> Result<(), EditorGone> {
        self.session.take_part();
        self.tell_details().await?;
        self.tell_chat(false).await?;
        self.session.settle_prompts();
        self.update_questions().await
    }

    /// Tells what is new in the chat; `is_replay` also tells the editor's own prompts.
    async fn tell_chat(&mut self, is_replay: bool) -> Result<(), EditorGone> {
        let session = self.session.clone();
        let is_own = |turn: &str| !is_replay && session.is_own(turn);
        let report = session.read_chat(|chat| self.chat.advance(chat, is_own));
        let ChatReport { updates, ended } = report.unwrap_or_default();
        for update in updates {
            self.send(update).await?;
        }
        for end in ended {
            self.session.end_prompt(end);
        }
        Ok(())
    }

    async fn send(&mut self, update: DueUpdate) -> Result<(), EditorGone> {
        let update = match update {
            DueUpdate::Ready(update) => update,
            DueUpdate::NewCall(call) if self.shows_terminal(&call) => return self.send_new_command(call).await,
            DueUpdate::ChangedCall { told, now } if self.shows_terminal(&now) => {
                return self.send_changed_command(&told, now).await;
            }
            DueUpdate::NewCall(call) => {
                let content = self.contents.tool_contents(&call.content).await;
                acp::SessionUpdate::ToolCall(call.announce(content))
            }
            DueUpdate::ChangedCall { told, now } => {
                let content = match told.content == now.content {
                    true => Vec::new(),
                    false => self.contents.tool_contents(&now.content).await,
                };
                acp::SessionUpdate::ToolCallUpdate(now.update(Some(&told), content))
            }
            DueUpdate::Stored(stored) => {
                let block = self.contents.block(&stored).await;
                acp::SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(block))
            }
            DueUpdate::Notice(text) => notice(self.session.editor, text),
        };
        self.editor.update(&self.session.id, update).await
    }

    fn shows_terminal(&self, call: &CallDraft) -> bool {
        self.session.editor.terminal_output && call.is_command
    }

    /// Tells of a command whose output is shown in a terminal.
    async fn send_new_command(&mut self, call: CallDraft) -> Result<(), EditorGone> {
        let cwd = self.session.read_session(|state| {
            let folder = state.working_directories.as_ref()?.first()?;
            file_uri::to_path(folder)
        });
        let info = terminal::info(&call, cwd.flatten().as_deref());
        let (output, exit) = (terminal::output(None, &call), terminal::exit(None, &call));
        let id = acp::ToolCallId::new(call.id.as_str());
        let content = self.command_contents(&call).await;
        let announced = acp::SessionUpdate::ToolCall(call.announce(content).meta(info));
        self.editor.update(&self.session.id, announced).await?;
        // Editors look for output only in updates.
        for meta in output.into_iter().chain(exit) {
            let update = acp::ToolCallUpdate::new(id.clone(), acp::ToolCallUpdateFields::new()).meta(meta);
            self.editor.update(&self.session.id, acp::SessionUpdate::ToolCallUpdate(update)).await?;
        }
        Ok(())
    }

    /// Tells what changed in such a command.
    async fn send_changed_command(&mut self, told: &CallDraft, now: CallDraft) -> Result<(), EditorGone> {
        if let Some(output) = terminal::output(Some(told), &now) {
            let id = acp::ToolCallId::new(now.id.as_str());
            let update = acp::ToolCallUpdate::new(id, acp::ToolCallUpdateFields::new()).meta(output);
            self.editor.update(&self.session.id, acp::SessionUpdate::ToolCallUpdate(update)).await?;
        }
        let exit = terminal::exit(Some(told), &now);
        let is_same = terminal::other_contents(told) == terminal::other_contents(&now);
        let content = if is_same { Vec::new() } else { self.command_contents(&now).await };
        let mut update = now.update(Some(told), content);
        if is_same {
            update.fields.content = None;
        }
        if exit.is_none() && update.fields == acp::ToolCallUpdateFields::new() {
            return Ok(());
        }
        self.editor.update(&self.session.id, acp::SessionUpdate::ToolCallUpdate(update.meta(exit))).await
    }

    async fn command_contents(&mut self, call: &CallDraft) -> Vec<acp::ToolCallContent> {
        let mut contents = vec![terminal::content(call)];
        contents.extend(self.contents.tool_contents(&terminal::other_contents(call)).await);
        contents
    }

    async fn tell_details(&mut self) -> Result<(), EditorGone> {
        let session = self.session.clone();
        let Some((title, commands)) = session.read_session(|state| (state.title.clone(), commands(state))) else {
            return Ok(());
        };
        let settings = session.settings();
        let mut updates = Vec::new();
        if title != self.told.title {
            updates.push(acp::SessionUpdate::SessionInfoUpdate(acp::SessionInfoUpdate::new().title(title.clone())));
        }
        if commands != self.told.commands {
            let commands = acp::AvailableCommandsUpdate::new(commands.clone());
            updates.push(acp::SessionUpdate::AvailableCommandsUpdate(commands));
        }
        if settings.options != self.told.settings.options {
            let options = acp::ConfigOptionUpdate::new(settings.options.clone());
            updates.push(acp::SessionUpdate::ConfigOptionUpdate(options));
        }
        let mode = |settings: &ShownSettings| settings.modes.as_ref().map(|modes| modes.current_mode_id.clone());
        if let Some(mode) = mode(&settings).filter(|now| mode(&self.told.settings).as_ref() != Some(now)) {
            updates.push(acp::SessionUpdate::CurrentModeUpdate(acp::CurrentModeUpdate::new(mode)));
        }
        self.told = ToldDetails { title, settings, commands };
        for update in updates {
            self.editor.update(&self.session.id, update).await?;
        }
        Ok(())
    }

    /// Asks what is asked now, and withdraws what is not asked any more.
    async fn update_questions(&mut self) -> Result<(), EditorGone> {
        let chat = self.session.chat.resource().to_owned();
        let asked = self.session.read_session(|state| {
            let asked = state.input_needed.iter().flatten().filter(|request| chat_of(request) == Some(&chat));
            asked.filter_map(|request| Some((request.id()?.to_owned(), request.clone()))).collect::<HashMap<_, _>>()
        });
        let asked = asked.unwrap_or_default();
        self.questions.retain(|id, _| asked.contains_key(id));
        for (id, request) in asked {
            if self.questions.contains_key(&id) || self.questions.len() >= OPEN_QUESTIONS {
                continue;
            }
            let (session, editor) = (self.session.clone(), self.editor.clone());
            let task = match request {
                SessionInputRequest::ToolConfirmation(request) => {
                    tokio::spawn(async move { permission::ask(&session, &editor, request).await })
                }
                SessionInputRequest::ChatInput(request) if session.editor.forms => {
                    tokio::spawn(async move { question::ask(&session, &editor, request).await })
                }
                SessionInputRequest::ChatInput(request) => {
                    self.send(DueUpdate::Notice(question::words(&session.id, &request.request))).await?;
                    tokio::spawn(async {})
                }
                _ => continue,
            };
            self.questions.insert(id, OpenQuestion(task));
        }
        Ok(())
    }
}

/// The time for which a host may be away.
#[derive(Debug, Default)]
enum HostPatience {
    #[default]
    Connected,
    Away {
        until: Instant,
    },
    /// It ended once for this absence.
    Ended,
}

impl HostPatience {
    fn note(&mut self, status: &ConnectionStatus) {
        match (status, &self) {
            (ConnectionStatus::Connected, _) => *self = HostPatience::Connected,
            (_, HostPatience::Connected) => *self = HostPatience::Away { until: Instant::now() + HOST_PATIENCE },
            (_, HostPatience::Away { .. } | HostPatience::Ended) => {}
        }
    }

    /// Waits until the host was away for too long.
    async fn ended(&mut self) {
        match self {
            HostPatience::Away { until } => tokio::time::sleep_until(*until).await,
            HostPatience::Connected | HostPatience::Ended => std::future::pending().await,
        }
        *self = HostPatience::Ended;
    }
}

fn chat_of(request: &SessionInputRequest) -> Option<&String> {
    match request {
        SessionInputRequest::ToolConfirmation(request) => Some(&request.chat),
        SessionInputRequest::ChatInput(request) => Some(&request.chat),
        _ => None,
    }
}

/// The commands that the agent understands in a message.
fn commands(session: &SessionState) -> Vec<acp::AvailableCommand> {
    let listed = session.meta.as_ref().and_then(|meta| meta.get("commands")?.as_array());
    let command = |command: &serde_json::Value| {
        let text = |name: &str| command.get(name).and_then(serde_json::Value::as_str);
        let hint =
            text("hint").map(|hint| acp::AvailableCommandInput::Unstructured(acp::UnstructuredCommandInput::new(hint)));
        Some(acp::AvailableCommand::new(text("name")?, text("description").unwrap_or_default()).input(hint))
    };
    listed.into_iter().flatten().filter_map(command).collect()
}

/// Loads the older turns of a chat. Returns whether there are even older ones.
async fn load_older_turns(session: &EditorSession) -> Result<bool, RequestError> {
    loop {
        let next = |chat: &ChatState| (chat.turns.len(), chat.turns_next_cursor.clone());
        let Some((count, cursor @ Some(_))) = session.read_chat(next) else { return Ok(false) };
        if count >= REPLAYED_TURNS {
            return Ok(true);
        }
        let channel = session.chat.resource().to_owned();
        session.host.client.request(FetchTurnsParams { channel, meta: None, cursor }).await?;
        // A host that sends none would be asked for ever.
        if session.read_chat(|chat| chat.turns.len()) == Some(count) {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_attempts_to_reconnect_do_not_prolong_the_patience() {
        let mut patience = HostPatience::default();
        let began = Instant::now();
        for attempt in 1..=5 {
            patience.note(&ConnectionStatus::Reconnecting { attempt, why: String::new() });
            let ended = tokio::time::timeout(HOST_PATIENCE / 4, patience.ended()).await;
            assert_eq!(ended.is_ok(), attempt >= 4, "attempt {attempt}");
            if ended.is_ok() {
                break;
            }
        }
        assert_eq!(began.elapsed().as_secs(), HOST_PATIENCE.as_secs());
        patience.note(&ConnectionStatus::Reconnecting { attempt: 9, why: String::new() });
        assert!(tokio::time::timeout(HOST_PATIENCE * 2, patience.ended()).await.is_err(), "it ends once");
        patience.note(&ConnectionStatus::Connected);
        patience.note(&ConnectionStatus::Reconnecting { attempt: 1, why: String::new() });
        patience.ended().await;
    }
}
