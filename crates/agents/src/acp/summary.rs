//! Summaries by an agent that speaks ACP: a one-shot process answers one prompt and ends.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_core::*;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::agent::AgentProfile;
use super::pool::ProcessPool;
use super::program::AcpProgram;
use super::session::{AcpChat, AcpSession, ONE_SHOT_CHAT, one_shot_session};
use super::settings::MODE;
use crate::agent::*;
use crate::sink::ChatSink;

/// The longest summary. Text beyond it is not waited for.
pub const LONGEST: usize = 64 << 10;
/// The time limit of a summary.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The number of reports that the agent may run ahead.
const REPORTS: usize = 64;

/// Writes summaries with a program that speaks ACP.
#[derive(Debug)]
pub(super) struct AcpSummarizer {
    program: Arc<AcpProgram>,
    pool: Arc<ProcessPool>,
    profile: Arc<AgentProfile>,
}

impl AcpSummarizer {
    pub(super) fn new(program: Arc<AcpProgram>, pool: Arc<ProcessPool>, profile: Arc<AgentProfile>) -> Self {
        Self { program, pool, profile }
    }

    async fn ask(&self, wanted: SummaryRequest) -> Result<String, AgentError> {
        let SummaryRequest { prompt, instructions: _, model, working_directories, mut settings } = wanted;
        // It only answers: a mode in which it may act without asking must not apply.
        settings.remove(MODE);
        self.program.find()?;
        let (sender, reports) = mpsc::channel(REPORTS);
        let sink = ChatSink::new(ONE_SHOT_CHAT.into(), sender);
        let opening = OpenSession {
            session: one_shot_session(&self.program),
            chat: ONE_SHOT_CHAT.into(),
            model: model.clone(),
            working_directories,
            agent_session_id: None,
            settings,
            reports: sink.clone(),
            spills: Arc::new(()),
            start: AgentStart::FirstTurn,
            setup: Arc::default(),
            client_tools: ClientTools::default(),
        };
        let (program, pool, profile) = (&self.program, &self.pool, &self.profile);
        let chat = AcpChat::new(Arc::clone(program), Arc::clone(pool), Arc::clone(profile), &opening)?;
        let session = Arc::new(AcpSession::new(Arc::new(chat.without_services()), opening));
        let mut brief = SummaryConversation { session: Arc::clone(&session), reports };
        let mut answer = String::new();
        let message = Message::user(prompt);
        let prompt = Prompt { message, model, client_tools: Vec::new(), memory: Arc::new(()) };
        let mut turn = session.prompt(prompt, sink.turn(ONE_SHOT_CHAT.into()));
        while answer.len() < LONGEST {
            tokio::select! {
                Some(report) = brief.reports.recv() => brief.take(report, &mut answer),
                ended = &mut turn => {
                    ended?;
                    // Take the reports that came before the end.
                    while let Ok(report) = brief.reports.try_recv() {
                        brief.take(report, &mut answer);
                    }
                    break;
                }
            }
        }
        answer.truncate(answer.floor_char_boundary(LONGEST));
        match answer.trim() {
            "" => Err(AgentError::TurnFailed(format!(
                "{} gave no summary: try again, or with another model",
                self.program.display_name
            ))),
            summary => Ok(summary.to_owned()),
        }
    }
}

#[async_trait]
impl Summarizer for AcpSummarizer {
    async fn summarize(&self, wanted: SummaryRequest) -> Result<String, AgentError> {
        let late = || {
            let (name, seconds) = (&self.program.display_name, PATIENCE.as_secs());
            AgentError::TurnFailed(format!(
                "{name} gave no summary within {seconds} s: try again, or with another model"
            ))
        };
        timeout(PATIENCE, self.ask(wanted)).await.unwrap_or_else(|_| Err(late()))
    }
}

/// A conversation that ends when nobody waits for it any more. Nothing of it stays.
struct SummaryConversation {
    session: Arc<AcpSession>,
    reports: mpsc::Receiver<Report>,
}

impl SummaryConversation {
    /// Takes the agent's text; every action that it requests is refused.
    fn take(&self, report: Report, answer: &mut String) {
        for event in report.events {
            match event {
                AgentEvent::Text(text) | AgentEvent::MessageText(MessageChunk { content: text, .. }) => {
                    answer.push_str(&text)
                }
                AgentEvent::Tool(update) => {
                    if let Some(permission) = update.permission {
                        // It may have stopped waiting.
                        permission.answer.send(Decision::Denied.into()).ok();
                    }
                }
                _ => {}
            }
        }
        if let Some(mark) = report.mark {
            self.session.stored(&mark);
        }
    }
}

impl Drop for SummaryConversation {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let session = Arc::clone(&self.session);
        let mut reports = std::mem::replace(&mut self.reports, mpsc::channel(1).1);
        runtime.spawn(async move {
            let over = async {
                session.cancel(&ONE_SHOT_CHAT.into()).await;
                session.close(CloseReason::Removed).await;
            };
            tokio::pin!(over);
            // Read until then: an agent whose reports nobody receives is left to the next host.
            loop {
                tokio::select! {
                    () = &mut over => return,
                    Some(_) = reports.recv() => {}
                }
            }
        });
    }
}
