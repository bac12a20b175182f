//! The version control state of a session's folder.
//!
//! It is read outside the session's task when the task starts and at the end of each turn: an agent may have switched
//! the branch or made a pull request. A disk that does not answer holds up only the next scan.

use std::path::PathBuf;

use grove_core::*;
use grove_work::{GitRepository, MAX_PATH_BYTES, local_path, pull_request_address};

use super::{EndedTurn, SessionTask, ToSession};
use crate::env::Spawn;
use crate::sequencer::HostStopped;

/// The end of the output of a turn's commands that is searched, in bytes.
const MAX_SCANNED_BYTES: usize = 4 << 20;

/// The state of a session's scans.
#[derive(Debug, Default)]
pub(super) struct CheckoutScan {
    look: CheckoutScanState,
    /// The newest pull request that a turn made, until the session has it.
    made: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CheckoutScanState {
    #[default]
    None,
    UnderWay,
    /// One is running that may have read an outdated state.
    UnderWayAndDue,
}

/// The checkout in a folder. `None` if the folder is missing, or not on this machine.
pub(crate) async fn read_checkout(spawn: &dyn Spawn, folder: Option<&str>) -> Option<Checkout> {
    let path = local_path(folder?).ok()?;
    spawn.run_blocking(move || seen(path)).await.ok().flatten()
}

fn seen(folder: PathBuf) -> Option<Checkout> {
    let is_there = folder.is_dir();
    is_there.then(|| GitRepository::of(&folder).as_ref().map(checkout_of).unwrap_or_default())
}

/// The checkout of a repository, with texts that fit into rows of lists.
///
/// The texts come from files that anybody may have written.
fn checkout_of(repository: &GitRepository) -> Checkout {
    let text = |path: &PathBuf| listed(path.to_string_lossy().into_owned());
    Checkout {
        root: text(&repository.root),
        worktree_of: repository.worktree_of.as_ref().and_then(text),
        remote: repository.origin.clone().and_then(listed),
        github: repository.github_name().and_then(listed),
        branch: repository.branch.clone().and_then(listed),
        base_branch: repository.base_branch.clone().and_then(listed),
        branch_pull_request: repository.pull_request.clone().and_then(listed),
        own_pull_request: None,
    }
}

/// A text that is short enough for a row in a list. Half a name would be another one, so a longer one is dropped.
fn listed(text: String) -> Option<String> {
    (text.len() <= MAX_PATH_BYTES).then_some(text)
}

/// The newest pull request that a command of a turn made: tools print its address on a line of its own.
fn pull_request_in(turn: &Turn) -> Option<&str> {
    let mut left = MAX_SCANNED_BYTES;
    let outputs = turn.parts.iter().rev().filter_map(|part| match part {
        Part::ToolCall(call) if call.kind == Some(ToolKind::Terminal) => match &call.status {
            ToolCallStatus::Completed(result) if result.success => result.output.as_deref(),
            _ => None,
        },
        _ => None,
    });
    for output in outputs {
        left = left.checked_sub(output.len())?;
        let made = output.lines().rev().find_map(|line| pull_request_address(line.trim()));
        if made.is_some() {
            return made;
        }
    }
    None
}

impl CheckoutScan {
    /// Says whether a scan starts now. If one is running, another one follows it.
    fn begin(&mut self) -> bool {
        let is_free = self.look == CheckoutScanState::None;
        self.look = if is_free { CheckoutScanState::UnderWay } else { CheckoutScanState::UnderWayAndDue };
        is_free
    }

    /// Ends the running scan. Returns whether another one follows.
    fn end(&mut self) -> bool {
        std::mem::take(&mut self.look) == CheckoutScanState::UnderWayAndDue
    }

    /// Notes the pull request that a turn made.
    fn note(&mut self, turn: &Turn) {
        if let Some(made) = pull_request_in(turn) {
            self.made = listed(made.to_owned());
        }
    }

    /// The checkout after a scan. A missing folder leaves the earlier one.
    fn result(&self, known: &Checkout, seen: Option<Checkout>) -> Checkout {
        let own_pull_request = self.made.clone().or_else(|| known.own_pull_request.clone());
        Checkout { own_pull_request, ..seen.unwrap_or_else(|| known.clone()) }
    }
}

impl SessionTask {
    /// Starts a scan. If one is running, another one follows.
    pub(super) fn scan_checkout(&mut self) {
        if !self.workspace.checkout.begin() {
            return;
        }
        let (folder, inbox) = (self.tip.working_directories.first().cloned(), self.inbox_sender.clone());
        let spawn = self.session_context.env.spawn.clone();
        self.session_context.env.spawn.spawn(Box::pin(async move {
            let seen = read_checkout(spawn.as_ref(), folder.as_deref()).await.map(Box::new);
            // A session that is gone does not listen any more.
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(ToSession::CheckoutScanned(seen)).await.ok();
            }
        }));
    }

    /// Scans after the end of a turn.
    pub(super) fn scan_checkout_after(&mut self, ended: &EndedTurn) {
        let turn = self.tip.chat(&ended.chat).and_then(|chat| chat.turns.get(chat.position(&ended.turn)?));
        if let Some(turn) = turn {
            self.workspace.checkout.note(turn);
        }
        self.scan_checkout();
    }

    /// Publishes the result of a scan, if it is new. A missing folder leaves the earlier one.
    pub(super) async fn publish_checkout(&mut self, seen: Option<Box<Checkout>>) -> Result<(), HostStopped> {
        if self.workspace.checkout.end() {
            self.scan_checkout();
        }
        let checkout = self.workspace.checkout.result(&self.tip.checkout, seen.map(|seen| *seen));
        if checkout != self.tip.checkout {
            let changed = SessionEvent::CheckoutChanged(Box::new(checkout));
            if let Err(error) = self.attempt(EventReport::Session(changed), None).await? {
                // The next scan reports it.
                tracing::warn!(session = %self.tip.id, %error, "clients were not told what is checked out");
                return Ok(());
            }
        }
        self.workspace.checkout.made = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PULL: &str = "https://github.com/acme/site/pull/";

    fn call(kind: ToolKind, success: bool, output: &str) -> Part {
        let result = ToolResult {
            success,
            past_tense_message: String::new(),
            output: Some(output.to_owned()),
            attached: Vec::new(),
            extra: None,
        };
        Part::ToolCall(Box::new(ToolCall {
            id: "c".into(),
            name: "shell".into(),
            display_name: "Shell".into(),
            kind: Some(kind),
            language: None,
            invocation_message: String::new(),
            intention: None,
            client: None,
            input: None,
            confirmed: None,
            output: None,
            status: ToolCallStatus::Completed(result),
            ready_rank: None,
            announced: None,
            extra: None,
            running_since: None,
            ran_ms: None,
        }))
    }

    fn made(parts: Vec<Part>) -> Option<String> {
        let turn = Turn {
            id: "t".into(),
            message: Message::user("go"),
            parts,
            usage: None,
            outcome: Outcome::Complete,
            started_at: Timestamp(0),
            ended_at: Timestamp(0),
            derived: DerivedCache::default(),
        };
        pull_request_in(&turn).map(str::to_owned)
    }

    #[test]
    fn a_pull_request_is_what_a_command_said_last_in_a_line_of_its_own() {
        let shell = |output: &str| call(ToolKind::Terminal, true, output);
        let one = shell(&format!("Creating pull request\n\n{PULL}1\n"));
        let two = shell(&format!("{PULL}2\r\n{PULL}3\r\ndone"));
        assert_eq!(made(vec![one.clone(), shell("ok")]), Some(format!("{PULL}1")));
        assert_eq!(made(vec![one, two]), Some(format!("{PULL}3")));
        let not = [
            shell(&format!("see {PULL}1")),
            shell(&format!("{PULL}1/files")),
            call(ToolKind::Terminal, false, &format!("{PULL}1")),
            call(ToolKind::Fetch, true, &format!("{PULL}1")),
        ];
        for part in not {
            assert_eq!(made(vec![part.clone()]), None, "{part:?}");
        }
    }

    #[test]
    fn a_scan_that_may_have_seen_an_outdated_state_is_repeated_once() {
        let mut scan = CheckoutScan::default();
        assert!(scan.begin() && !scan.begin() && !scan.begin());
        assert!(scan.end());
        assert!(scan.begin() && !scan.end() && scan.begin());
    }

    #[test]
    fn a_pull_request_stays_until_a_turn_makes_another_one() {
        let known =
            Checkout { own_pull_request: Some(format!("{PULL}1")), branch: Some("a".into()), ..Checkout::default() };
        let seen = Checkout { branch: Some("b".into()), ..Checkout::default() };
        let mut scan = CheckoutScan::default();
        assert_eq!(scan.result(&known, None), known, "a missing folder changes nothing");
        let after = scan.result(&known, Some(seen.clone()));
        assert_eq!(
            (after.own_pull_request.clone(), after.branch),
            (known.own_pull_request.clone(), seen.branch.clone())
        );
        scan.made = Some(format!("{PULL}2"));
        assert_eq!(scan.result(&known, Some(seen)).own_pull_request, Some(format!("{PULL}2")));
    }

    #[test]
    fn only_so_much_output_is_looked_through() {
        let made_long_ago = call(ToolKind::Terminal, true, &format!("{PULL}1"));
        let long = call(ToolKind::Terminal, true, &"x".repeat(MAX_SCANNED_BYTES));
        assert_eq!(made(vec![made_long_ago, long]), None);
    }

    #[test]
    fn a_folder_that_is_gone_is_told_apart_from_one_without_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(seen(folder.path().to_owned()), Some(Checkout::default()));
        assert_eq!(seen(folder.path().join("gone")), None);
    }
}
