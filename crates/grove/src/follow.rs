//! Following a chat: shows it or prints its envelopes, and answers requests or asks the user, until it ends.

mod envelopes;

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::anyhow;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use grove_client::{ClientClosed, ConnectionStatus, DispatchOutcome};
use grove_wire::ahp::FileEdit;
use tokio::signal::unix::{SignalKind, signal};

use crate::chat_client::any::EnvelopeReceiver;
use crate::chat_client::presence::PresenceLines;
use crate::chat_client::{
    ChatClient, ChatCommand, DecisionSource, PartContent, PartView, PendingRequest, PermissionDecision, TurnResult,
};
use crate::commands::{Failure, exit};
use crate::connect::{id_of, new_id};
use crate::input::{Input, InputSource, Keyboard};
use crate::question_dialog::{DialogStep, QuestionDialog};
use crate::show::chat::{ChatPrinter, Questions};
use crate::show::diff::{DiffBody, FileDiff, diff_lines};
use crate::show::facts::{counts, current_folder, edited};
use crate::show::input_area::{InputText, PROMPT};
use crate::show::screen::ChatScreen;
use crate::show::style::{dim, escape_controls, red, sanitize, yellow};
pub(crate) use envelopes::{EnvelopeDialect, OutputFormat, output};

/// The interval of the spinner.
pub(crate) const TICK: Duration = Duration::from_millis(120);

/// The number of changed files that are compared for one question.
const MAX_FILES: usize = 20;
/// The maximum size of a file that is compared.
const MAX_CONTENT_BYTES: u64 = 256 << 10;
/// How long fetching the texts of a changed file may take.
const FETCH: Duration = Duration::from_secs(5);

/// The end of following.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FollowUntil {
    /// The end of this turn.
    Turn(String),
    /// The user leaves, or the session is removed.
    Left,
}

/// Options of following.
#[derive(Debug)]
pub(crate) struct FollowOptions {
    /// Approve permission requests without asking.
    pub(crate) yes: bool,
    /// The source of envelopes, if they are printed instead of the conversation.
    pub(crate) envelopes: EnvelopeReceiver,
    /// The number of earlier turns that are shown.
    pub(crate) newest: usize,
    /// Lines about the session's other clients.
    pub(crate) presence: PresenceLines,
}

/// Follows a chat to its end, and returns the result.
pub(crate) async fn follow<T: ChatClient>(
    chat_client: &mut T,
    until: FollowUntil,
    manner: FollowOptions,
) -> Result<(), Failure> {
    let FollowOptions { yes, envelopes, newest, presence } = manner;
    let is_shown = envelopes.is_none();
    let interactive = is_shown && io::stdin().is_terminal() && io::stderr().is_terminal();
    let mut screen = ChatScreen::new();
    let source = match interactive {
        false => InputSource::None,
        // A user who stays for more than one turn types while the agent responds.
        true if until == FollowUntil::Left && screen.can_have_an_input_line() => {
            screen.open_input();
            InputSource::Keys(Box::new(Keyboard::open()?))
        }
        true => InputSource::lines(),
    };
    let mut follower = ChatFollower {
        chat_client,
        until,
        yes,
        is_shown,
        show: ChatPrinter::new(if interactive { Questions::AskedHere } else { Questions::Shown }),
        screen,
        asking: None,
        dealt_with: HashSet::new(),
        outcomes: FuturesUnordered::new(),
        starting: 0,
        cancelling: None,
        is_lost: false,
        silent_since: None,
    };
    follower.begin(newest)?;
    let followed = follower.run(envelopes, source, presence).await;
    follower.screen.close_input()?;
    followed
}

/// A dispatched command, and its outcome.
type CommandOutcome = (ChatCommand, DispatchOutcome);

struct ChatFollower<'a, T> {
    chat_client: &'a mut T,
    until: FollowUntil,
    yes: bool,
    is_shown: bool,
    show: ChatPrinter,
    screen: ChatScreen,
    asking: Option<QuestionDialog>,
    /// Pending requests that were answered here or shown to the user.
    dealt_with: HashSet<String>,
    outcomes: FuturesUnordered<BoxFuture<'static, CommandOutcome>>,
    /// The number of started turns that the host has not confirmed.
    starting: usize,
    /// The turn that is being cancelled.
    cancelling: Option<String>,
    is_lost: bool,
    /// The running turn without any output yet, and its start.
    silent_since: Option<(String, tokio::time::Instant)>,
}

enum InterruptOutcome {
    On,
    Over,
}

impl<T: ChatClient> ChatFollower<'_, T> {
    fn begin(&mut self, newest: usize) -> Result<(), Failure> {
        let Self { chat_client, show, screen, until, .. } = self;
        // The turn may have ended already.
        let turn = match until {
            FollowUntil::Turn(turn) => Some(turn.as_str()),
            FollowUntil::Left => None,
        };
        turn.into_iter().for_each(|turn| show.mine(turn));
        Ok(chat_client.read_view(|view| show.begin(view, newest, turn, screen))?)
    }

    async fn run(
        &mut self,
        mut envelopes: EnvelopeReceiver,
        mut source: InputSource,
        mut presence: PresenceLines,
    ) -> Result<(), Failure> {
        let mut resizes = signal(SignalKind::window_change())?;
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut status = self.chat_client.status();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            // Envelopes are printed before the state shows their effect.
            while let Some(envelope) = envelopes.as_mut().and_then(|envelopes| envelopes.try_recv().ok()) {
                print(&envelope)?;
            }
            self.withdraw()?;
            self.write()?;
            if let Some(ended) = self.ended() {
                return ended;
            }
            self.attend(source.is_open()).await?;
            if let Some(editor) = source.editor() {
                self.screen.settle(InputText { text: editor.text().to_owned(), cursor: editor.cursor() })?;
            }
            tokio::select! {
                changed = self.chat_client.changed() => changed.map_err(|why| closed(why, self.chat_client.uri()))?,
                Some(envelope) = receive(&mut envelopes) => print(&envelope)?,
                input = source.next() => match input {
                    Some(Input::Entered(text)) => self.line(&text).await?,
                    Some(Input::Edited) => {}
                    Some(Input::Interrupt) => {
                        if let Some(ended) = self.on_interrupt(&mut source).await? {
                            return ended;
                        }
                    }
                    None => {
                        source = InputSource::None;
                        if self.until == FollowUntil::Left {
                            self.screen.end_line()?;
                            return Ok(());
                        }
                    }
                },
                // A line in the middle of an answer would break it.
                line = presence.next(), if !self.is_working() => self.screen.line(dim(sanitize(&line)))?,
                _ = resizes.recv() => self.screen.resized()?,
                _ = ticks.tick(), if self.is_silent() => self.spin()?,
                _ = interrupts.recv() => if let Some(ended) = self.on_interrupt(&mut source).await? {
                    return ended;
                },
                Some((command, outcome)) = self.outcomes.next(), if !self.outcomes.is_empty() => {
                    self.on_outcome(&command, outcome)?;
                }
                Ok(()) = status.changed() => {
                    let now = status.borrow_and_update().clone();
                    self.connection(&now)?;
                }
            }
        }
    }

    fn write(&mut self) -> Result<(), Failure> {
        if self.is_shown {
            let Self { chat_client, show, screen, .. } = self;
            chat_client.read_view(|view| show.update(view, screen))?;
        }
        Ok(())
    }

    /// Returns whether the agent works, and is not waiting for an answer.
    fn is_working(&self) -> bool {
        self.asking.is_none() && self.chat_client.read_view(|view| view.active.is_some())
    }

    /// Returns whether a turn runs in which the agent has not sent anything yet.
    fn is_silent(&self) -> bool {
        self.is_shown
            && self.asking.is_none()
            && self.chat_client.read_view(|view| {
                let is_busy = view.activity.is_some_and(|activity| !activity.trim().is_empty());
                let is_empty =
                    |part: &PartView<'_>| matches!(part.content, PartContent::Text("") | PartContent::Reasoning(""));
                !is_busy && view.active.as_ref().is_some_and(|turn| turn.parts.iter().all(is_empty))
            })
    }

    fn spin(&mut self) -> Result<(), Failure> {
        let turn = self.chat_client.read_view(|view| view.active.as_ref().map(|turn| turn.id.to_owned()));
        let since = match &self.silent_since {
            Some((known, since)) if Some(known) == turn.as_ref() => *since,
            Some(_) | None => {
                let now = tokio::time::Instant::now();
                self.silent_since = turn.map(|turn| (turn, now));
                now
            }
        };
        let seconds = since.elapsed().as_secs();
        let elapsed = if seconds == 0 { String::new() } else { format!(" ({seconds} s)") };
        Ok(self.screen.spin(&format!("waiting for the agent{elapsed}"))?)
    }

    /// The result, once following has ended.
    fn ended(&mut self) -> Option<Result<(), Failure>> {
        if self.chat_client.is_gone() {
            let gone = format!("the session {} was removed", id_of(self.chat_client.uri()));
            return Some(match self.until {
                FollowUntil::Turn(_) => Err(Failure::NotFound(gone)),
                FollowUntil::Left => self.screen.line(yellow(gone)).map_err(Failure::from),
            });
        }
        let FollowUntil::Turn(turn) = &self.until else { return None };
        let code = self.chat_client.read_view(|view| {
            let turn = view.turns.iter().rev().find(|done| done.id == turn)?;
            turn.end.map(|end| match end {
                TurnResult::Complete => None,
                TurnResult::Failed(_) => Some(exit::TURN_FAILED),
                TurnResult::Cancelled => Some(exit::TURN_CANCELLED),
            })
        })?;
        if !self.is_shown {
            let last = serde_json::json!({"session": self.chat_client.uri(), "turn": self.chat_client.finished(turn)});
            if let Err(error) = print(&last.to_string()) {
                return Some(Err(error.into()));
            }
        }
        Some(code.map_or(Ok(()), |code| Err(Failure::Exit(code))))
    }

    /// Withdraws a question that is no longer pending.
    fn withdraw(&mut self) -> Result<(), Failure> {
        if let Some(asking) = &self.asking
            && !self.chat_client.waiting().iter().any(|waiting| waiting.id() == asking.id())
        {
            self.asking = None;
            self.screen.mark(PROMPT)?;
            // A turn that was completed has had its answer.
            let is_broken_off = self.chat_client.read_view(|view| {
                let end = view.turns.last().and_then(|turn| turn.end.as_ref());
                view.active.is_none() && !matches!(end, Some(TurnResult::Complete))
            });
            match (&self.cancelling, is_broken_off) {
                // The user interrupted it.
                (Some(_), _) => self.screen.end_line()?,
                (None, true) => self.screen.line(dim("  (no longer needed: the turn has ended)"))?,
                (None, false) => self.screen.line(dim("  (answered elsewhere)"))?,
            }
        }
        Ok(())
    }

    /// Handles pending requests.
    async fn attend(&mut self, interactive: bool) -> Result<(), Failure> {
        let waiting = self.chat_client.waiting();
        self.dealt_with.retain(|id| waiting.iter().any(|waiting| waiting.id() == id));
        for waiting in waiting {
            if self.dealt_with.contains(waiting.id()) {
                continue;
            }
            match waiting {
                PendingRequest::ToolPermission(permission) if self.yes => {
                    self.dealt_with.insert(permission.request.clone());
                    let verdict = PermissionDecision { by: DecisionSource::Setting, ..PermissionDecision::new(true) };
                    self.act(ChatCommand::Permit { permission: Box::new(permission), verdict }).await?;
                }
                PendingRequest::ToolPermission(_) | PendingRequest::Questions { .. } if interactive => {
                    if self.asking.is_none() {
                        let waiting = self.with_details(waiting).await;
                        let asking = self.asking.insert(QuestionDialog::new(waiting));
                        ask(asking, &mut self.screen)?;
                    }
                }
                waiting => {
                    self.dealt_with.insert(waiting.id().to_owned());
                    self.tell(&waiting)?;
                }
            }
        }
        Ok(())
    }

    /// Fetches the changes that a permission request is about, and the rules that would answer it.
    async fn with_details(&self, waiting: PendingRequest) -> PendingRequest {
        let PendingRequest::ToolPermission(mut permission) = waiting else { return waiting };
        // Without an answer in time, nothing is offered.
        let offers = tokio::time::timeout(FETCH, self.chat_client.rule_offers(&permission)).await;
        *permission.offers = offers.unwrap_or_default();
        let current_folder = current_folder();
        for edit in permission.edits.iter().take(MAX_FILES) {
            let (name, verb) = edited(edit, current_folder.as_deref());
            let what = match verb {
                "Create" => " (new)",
                "Delete" => " (removed)",
                _ => "",
            };
            let body = match tokio::time::timeout(FETCH, self.diff(edit)).await {
                Ok(body) => body,
                Err(_) => DiffBody::Missing("the host does not send the text".to_owned()),
            };
            permission.diffs.push(FileDiff { head: format!("{name}{what}{}", counts(edit)), body });
        }
        PendingRequest::ToolPermission(permission)
    }

    async fn diff(&self, edit: &FileEdit) -> DiffBody {
        let mut texts = [String::new(), String::new()];
        for (side, text) in [&edit.before, &edit.after].into_iter().zip(&mut texts) {
            let Some(side) = side else { continue };
            if side.content.size_hint.is_some_and(|bytes| bytes > MAX_CONTENT_BYTES) {
                return DiffBody::Missing("the file is too large for a diff".to_owned());
            }
            match self.chat_client.content(&side.content.uri).await {
                Some(content) => *text = content,
                None => return DiffBody::Missing("cannot read the text from the host".to_owned()),
            }
        }
        DiffBody::Lines(diff_lines(&texts[0], &texts[1]))
    }

    /// Prints a pending request, and how to answer it.
    fn tell(&mut self, waiting: &PendingRequest) -> Result<(), Failure> {
        let id = id_of(self.chat_client.uri());
        let how = match waiting {
            PendingRequest::ToolPermission(_) => format!("`grove approve {id}` or `grove deny {id}` answers it"),
            PendingRequest::Questions { .. } => format!("`grove answer {id} TEXT` answers it"),
            PendingRequest::Elsewhere { .. } => "another client must answer it".to_owned(),
        };
        let what = sanitize(&waiting.summary());
        Ok(self.screen.line(format_args!("{} {what} ({how})", yellow("waiting:")))?)
    }

    /// Ctrl-C: cancels the running turn, else clears the input line, else leaves.
    async fn on_interrupt(&mut self, source: &mut InputSource) -> Result<Option<Result<(), Failure>>, Failure> {
        let is_idle = self.chat_client.read_view(|view| view.active.is_none());
        if let Some(editor) = source.editor_mut().filter(|editor| is_idle && !editor.text().is_empty()) {
            editor.clear();
            return Ok(None);
        }
        Ok(match self.interrupted().await? {
            InterruptOutcome::On => None,
            InterruptOutcome::Over => {
                self.screen.end_line()?;
                Some(match self.until {
                    FollowUntil::Turn(_) => Err(Failure::Exit(exit::LEFT)),
                    FollowUntil::Left => Ok(()),
                })
            }
        })
    }

    async fn line(&mut self, line: &str) -> Result<(), Failure> {
        // An empty line means nothing, unless a question is pending.
        if line.trim().is_empty() && self.asking.is_none() {
            self.screen.entered();
            return Ok(());
        }
        self.screen.entered_text(line)?;
        let Some(asking) = &mut self.asking else { return self.send(line).await };
        match asking.reply(line) {
            DialogStep::Next => ask(asking, &mut self.screen)?,
            DialogStep::Details(details) => {
                self.screen.line(details)?;
                self.screen.prompt(asking.words().1)?;
            }
            DialogStep::Again(why) => {
                self.screen.line(red(why))?;
                ask(asking, &mut self.screen)?;
            }
            DialogStep::AllowAlways(permission, choice) => {
                self.dealt_with.insert(asking.id().to_owned());
                self.asking = None;
                match self.chat_client.allow_always(&permission, choice).await {
                    Ok(allowed) => self.screen.line(dim(format!("  always: {}", sanitize(&allowed.text))))?,
                    Err(error) => {
                        self.dealt_with.remove(&permission.request);
                        self.screen.line(red(format!("failed: {}", sanitize(&format!("{error:#}")))))?;
                    }
                }
            }
            DialogStep::Done(command) => {
                self.dealt_with.insert(asking.id().to_owned());
                self.asking = None;
                self.act(*command).await?;
            }
        }
        Ok(())
    }

    /// Handles a line that answers nothing: it is a prompt, if the user stays for more than one turn.
    async fn send(&mut self, line: &str) -> Result<(), Failure> {
        let text = line.trim();
        if text.is_empty() || self.until != FollowUntil::Left {
            return Ok(());
        }
        let (id, text) = (new_id()?, text.to_owned());
        self.show.mine(&id);
        // A prompt that was just sent may not run yet.
        let is_busy = self.starting > 0 || self.chat_client.read_view(|view| view.active.is_some());
        let command =
            if is_busy { ChatCommand::Queue { id, text } } else { ChatCommand::Start { turn: id, text, model: None } };
        self.act(command).await
    }

    /// Cancels the running turn; a second Ctrl-C leaves without waiting.
    async fn interrupted(&mut self) -> Result<InterruptOutcome, Failure> {
        let active = self.chat_client.read_view(|view| view.active.as_ref().map(|turn| turn.id.to_owned()));
        let active = active.filter(|active| match &self.until {
            FollowUntil::Turn(turn) => turn == active,
            FollowUntil::Left => true,
        });
        match active {
            Some(turn) if self.cancelling.as_ref() != Some(&turn) => {
                self.screen.line(yellow("cancelling the turn (press Ctrl-C again to leave without waiting)"))?;
                self.cancelling = Some(turn.clone());
                self.act(ChatCommand::Cancel { turn }).await?;
                Ok(InterruptOutcome::On)
            }
            Some(_) | None => Ok(InterruptOutcome::Over),
        }
    }

    async fn act(&mut self, command: ChatCommand) -> Result<(), Failure> {
        match self.chat_client.act(command.clone()).await {
            Ok(sent) => {
                self.starting += usize::from(matches!(command, ChatCommand::Start { .. }));
                self.outcomes.push(Box::pin(async move { (command, sent.await) }));
                Ok(())
            }
            Err(error) => Ok(self.screen.line(red(format!("failed: {error:#}")))?),
        }
    }

    /// Handles the outcome of a command.
    fn on_outcome(&mut self, command: &ChatCommand, outcome: DispatchOutcome) -> Result<(), Failure> {
        self.starting -= usize::from(matches!(command, ChatCommand::Start { .. }));
        let problem = match outcome {
            DispatchOutcome::Confirmed(_) => return Ok(()),
            DispatchOutcome::Rejected(reason) => format!("the host refused it: {}", sanitize(&reason)),
            DispatchOutcome::Lost => {
                "the connection was lost before the host answered: it may have been done".to_owned()
            }
        };
        // Another client was faster, or the turn ended: there is nothing left to do.
        let active = self.chat_client.read_view(|view| view.active.as_ref().map(|turn| turn.id.to_owned()));
        let is_moot = match command {
            ChatCommand::Cancel { turn } => active.as_ref() != Some(turn),
            ChatCommand::Permit { permission, .. } => {
                !self.chat_client.waiting().iter().any(|waiting| waiting.id() == permission.request)
            }
            ChatCommand::Answer { request, .. } => {
                !self.chat_client.waiting().iter().any(|waiting| waiting.id() == request)
            }
            ChatCommand::Start { .. } | ChatCommand::Queue { .. } | ChatCommand::Configure { .. } => false,
        };
        if !is_moot {
            self.screen.line(red(problem))?;
        }
        Ok(())
    }

    fn connection(&mut self, status: &ConnectionStatus) -> Result<(), Failure> {
        match status {
            ConnectionStatus::Reconnecting { why, .. } if !self.is_lost => {
                self.is_lost = true;
                self.screen.line(yellow(format!("the connection was lost ({why}): reconnecting")))?;
            }
            ConnectionStatus::Connected if self.is_lost => {
                self.is_lost = false;
                // The answers may not have arrived.
                self.dealt_with.clear();
                self.screen.line(dim("connected again"))?;
            }
            ConnectionStatus::Reconnecting { .. } | ConnectionStatus::Connected | ConnectionStatus::ClientClosed(_) => {
            }
        }
        Ok(())
    }
}

/// Prints a line of JSON. A closed stdout ends the program.
fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", escape_controls(line))?;
    out.flush()
}

fn ask(asking: &QuestionDialog, screen: &mut ChatScreen) -> io::Result<()> {
    let (words, prompt) = asking.words();
    if !words.is_empty() {
        screen.line(words)?;
    }
    screen.prompt(prompt)
}

/// The failure after the end of the connection.
pub(crate) fn closed(why: ClientClosed, uri: &str) -> Failure {
    match why {
        ClientClosed::GaveUp { last, .. } => Failure::NoHost(format!(
            "the host is gone ({last}): `grove attach {}` continues the session where it stopped",
            id_of(uri)
        )),
        other => anyhow!(other).into(),
    }
}

async fn receive(envelopes: &mut EnvelopeReceiver) -> Option<String> {
    match envelopes {
        Some(envelopes) => envelopes.recv().await,
        None => std::future::pending().await,
    }
}
