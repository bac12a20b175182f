//! Commands that an agent runs on terminals of the host.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use agent_client_protocol_schema::v1 as acp;
use grove_wire::jsonrpc::ErrorObject;
use grove_work::{Exit, FileAccess, Program, Terminal, TerminalError, TerminalOutput, TerminalRequest, TerminalSize};

use super::output_spill::OutputSpill;
use super::plain;
use super::{AgentServices, not_found, refused};
use crate::acp::session::TerminalText;

/// The number of terminals that stay known after their release. Each keeps up to a MiB.
pub const RECENT: usize = 16;

impl AgentServices {
    pub(crate) async fn create_terminal(
        &self,
        request: acp::CreateTerminalRequest,
    ) -> Result<acp::CreateTerminalResponse, ErrorObject> {
        let cwd = match &request.cwd {
            Some(cwd) => self.folder(cwd).await?,
            None => self.cwd.clone(),
        };
        let program = Program {
            env: request.env.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect(),
            cwd,
            ..command(request.command, request.args)
        };
        let output_bytes = request.output_byte_limit.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let wanted = TerminalRequest { program, output_bytes, size: TerminalSize::default() };
        let (terminal, screen) = self.terminals.create(&wanted).map_err(failed)?;
        let (output_spill, shown) = OutputSpill::begin(self.spills.begin());
        self.output_spills().insert(terminal.id().to_owned(), output_spill);
        self.remember(terminal.clone());
        // The task ends with the terminal, which ends with the services.
        tokio::spawn(screen.with_listener(shown).run());
        Ok(acp::CreateTerminalResponse::new(format!("{}-{}", self.tag, terminal.id())))
    }

    pub(crate) async fn terminal_output(
        &self,
        request: &acp::TerminalOutputRequest,
    ) -> Result<acp::TerminalOutputResponse, ErrorObject> {
        let output = self.terminal(&request.terminal_id)?.output();
        let screen = self.output_spills().get(self.own(&request.terminal_id)?).cloned();
        if let Some(screen) = screen
            && let Some(notice) = screen.notice().await
        {
            return Ok(acp::TerminalOutputResponse::new(notice, true).exit_status(output.exit.map(status)));
        }
        // A terminal ends its lines with CRLF, which means nothing here.
        let text = output.text.replace("\r\n", "\n");
        Ok(acp::TerminalOutputResponse::new(text, output.truncated).exit_status(output.exit.map(status)))
    }

    pub(crate) async fn wait_for_terminal_exit(
        &self,
        request: &acp::WaitForTerminalExitRequest,
    ) -> Result<acp::WaitForTerminalExitResponse, ErrorObject> {
        let terminal = self.terminal(&request.terminal_id)?;
        Ok(acp::WaitForTerminalExitResponse::new(status(terminal.wait_for_exit().await)))
    }

    pub(crate) async fn kill_terminal(
        &self,
        request: &acp::KillTerminalRequest,
    ) -> Result<acp::KillTerminalResponse, ErrorObject> {
        self.terminal(&request.terminal_id)?.kill().await;
        Ok(acp::KillTerminalResponse::new())
    }

    pub(crate) async fn release_terminal(
        &self,
        request: &acp::ReleaseTerminalRequest,
    ) -> Result<acp::ReleaseTerminalResponse, ErrorObject> {
        let own = self.own(&request.terminal_id)?;
        self.output_spills().remove(own);
        self.terminals.release(own).await.map_err(failed)?;
        Ok(acp::ReleaseTerminalResponse::new())
    }

    /// The output of a terminal of the running turn, for people. A released terminal stays known for a while.
    pub(crate) fn shown(&self, id: &str) -> Option<TerminalText> {
        let own = self.own(&acp::TerminalId::new(id)).ok()?.to_owned();
        let recent = || self.recent().iter().find(|terminal| terminal.id() == own).cloned();
        let terminal = self.terminals.get(&own).ok().or_else(recent)?;
        let TerminalOutput { text, truncated, exit } = terminal.output();
        let text = plain::screen(&text);
        let text = if truncated { format!("[earlier output is not shown]\n{text}") } else { text };
        Some(TerminalText { text, ended: exit.is_some() })
    }

    fn remember(&self, terminal: Terminal) {
        let mut recent = self.recent();
        if recent.len() >= RECENT {
            recent.pop_front();
        }
        recent.push_back(terminal);
    }

    // Nothing that can panic happens while it is held, so a poisoned lock still guards complete data.
    fn recent(&self) -> MutexGuard<'_, VecDeque<Terminal>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all commands.
    pub(crate) async fn release_terminals(&self) {
        self.output_spills().clear();
        self.recent().clear();
        self.terminals.release_all().await;
    }

    // Nothing that can panic happens while it is held, so a poisoned lock still guards complete data.
    fn output_spills(&self) -> MutexGuard<'_, HashMap<String, OutputSpill>> {
        self.output_spills.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn terminal(&self, id: &acp::TerminalId) -> Result<Terminal, ErrorObject> {
        self.terminals.get(self.own(id)?).map_err(failed)
    }

    /// The id without our prefix.
    fn own<'a>(&self, id: &'a acp::TerminalId) -> Result<&'a str, ErrorObject> {
        let own = id.0.strip_prefix(self.tag.as_str()).and_then(|rest| rest.strip_prefix('-'));
        own.ok_or_else(|| failed(TerminalError::Unknown(id.0.chars().take(80).collect())))
    }

    async fn folder(&self, path: &std::path::Path) -> Result<PathBuf, ErrorObject> {
        self.policy.allowed(path, FileAccess::Browse).await.map_err(|error| refused(&error))
    }
}

/// Some agents give a whole command line in place of a program.
fn command(command: String, args: Vec<String>) -> Program {
    const SHELL: [char; 14] = [' ', '\t', '\n', '|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '"'];
    let is_line = args.is_empty() && command.contains(SHELL) && !std::path::Path::new(&command).is_file();
    match is_line {
        true => Program::new("sh", "/").args(["-c".to_owned(), command]),
        false => Program::new(command, "/").args(args),
    }
}

fn status(exit: Exit) -> acp::TerminalExitStatus {
    let signal = exit.signal.map(|number| exit.signal_name().map_or_else(|| number.to_string(), ToOwned::to_owned));
    let code = exit.code.and_then(|code| u32::try_from(code).ok());
    acp::TerminalExitStatus::new().exit_code(code).signal(signal)
}

fn failed(error: TerminalError) -> ErrorObject {
    match error {
        TerminalError::Unknown(id) => not_found(&id),
        TerminalError::TooMany { .. }
        | TerminalError::Process(_)
        | TerminalError::Open(_)
        | TerminalError::InputFull { .. }
        | TerminalError::Ended => ErrorObject::internal(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::acp::pool::NoDocuments;
    use crate::acp::serve::{NOT_FOUND, ServiceScope};

    fn services(work: &std::path::Path) -> AgentServices {
        let service_scope = ServiceScope {
            session: "s".into(),
            cwd: work.to_owned(),
            directories: vec![work.to_owned()],
            private: vec![],
            documents: Arc::new(NoDocuments),
            spills: Arc::new(()),
            files: crate::acp::program::FileScope::Workspace,
        };
        AgentServices::new(service_scope, "tag".to_owned())
    }

    async fn run(
        services: &AgentServices,
        request: acp::CreateTerminalRequest,
    ) -> (acp::TerminalOutputResponse, acp::TerminalId) {
        let id = services.create_terminal(request).await.unwrap().terminal_id;
        let waits = acp::WaitForTerminalExitRequest::new("s", id.clone());
        timeout(Duration::from_secs(30), services.wait_for_terminal_exit(&waits)).await.unwrap().unwrap();
        (services.terminal_output(&acp::TerminalOutputRequest::new("s", id.clone())).await.unwrap(), id)
    }

    #[tokio::test]
    async fn a_command_runs_in_the_working_directory_with_what_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        let services = services(&work);
        let request = acp::CreateTerminalRequest::new("s", "sh")
            .args(vec!["-c".to_owned(), "pwd; echo $A; exit 3".to_owned()])
            .env(vec![acp::EnvVariable::new("A", "b")]);
        let (output, id) = run(&services, request).await;
        assert_eq!(output.output, format!("{}\nb\n", work.display()));
        let shown = TerminalText { text: output.output.clone(), ended: true };
        assert_eq!(services.shown(&id.0), Some(shown.clone()));
        assert_eq!(output.exit_status.unwrap().exit_code, Some(3));
        services.release_terminal(&acp::ReleaseTerminalRequest::new("s", id.clone())).await.unwrap();
        let gone = services.terminal_output(&acp::TerminalOutputRequest::new("s", id)).await.unwrap_err();
        assert_eq!(gone.code, NOT_FOUND);
        assert_eq!(services.shown("tag-terminal-1"), Some(shown), "people see it to the end of the turn");
        services.release_terminals().await;
        assert_eq!(services.shown("tag-terminal-1"), None);
        let elsewhere =
            services.terminal_output(&acp::TerminalOutputRequest::new("s", "old-terminal-1")).await.unwrap_err();
        assert_eq!(elsewhere.code, NOT_FOUND);
    }

    #[tokio::test]
    async fn a_command_line_in_place_of_a_program_is_given_to_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let services = services(folder.path());
        let (output, _) = run(&services, acp::CreateTerminalRequest::new("s", "echo one && echo two")).await;
        assert_eq!(output.output, "one\ntwo\n");
    }

    #[tokio::test]
    async fn no_command_runs_outside_the_working_directories() {
        let folder = tempfile::tempdir().unwrap();
        let services = services(folder.path());
        let request = acp::CreateTerminalRequest::new("s", "pwd").cwd(PathBuf::from("/"));
        assert!(services.create_terminal(request).await.is_err());
    }

    #[tokio::test]
    async fn whoever_waits_for_a_command_is_told_when_all_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let services = Arc::new(services(folder.path()));
        let request = acp::CreateTerminalRequest::new("s", "sleep").args(vec!["600".to_owned()]);
        let id = services.create_terminal(request).await.unwrap().terminal_id;
        let waiting = tokio::spawn({
            let services = Arc::clone(&services);
            async move { services.wait_for_terminal_exit(&acp::WaitForTerminalExitRequest::new("s", id)).await }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        timeout(Duration::from_secs(30), services.release_terminals()).await.unwrap();
        let exit = timeout(Duration::from_secs(30), waiting).await.unwrap().unwrap();
        // If nobody waits any more, the terminal is gone.
        assert!(exit.is_err() || exit.is_ok_and(|exit| exit.exit_status.exit_code.is_none()));
    }
}
