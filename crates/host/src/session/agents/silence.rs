//! Running turns whose agents are silent.

use std::time::Duration;

use grove_core::*;

use crate::config::Limits;

/// The turns that have been silent for a while, and when to look again.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct SilenceReport {
    /// Chats whose turns were silent for too long, and end.
    pub(in crate::session) silent: Vec<ChatId>,
    /// Chats whose turns are silent without an explanation, each with the seconds.
    pub(in crate::session) quiet: Vec<(ChatId, u64)>,
    pub(in crate::session) next: Duration,
}

impl SilenceReport {
    /// Looks at running turns, each with the time of its last report.
    ///
    /// Turns that wait for the user or a client are left alone.
    pub(super) fn of<'a>(
        running: impl Iterator<Item = (&'a ChatId, &'a TurnId, Timestamp)>,
        session: &Session,
        now: Timestamp,
        limits: &Limits,
    ) -> Self {
        let (limit, quiet) = (limits.turn_silence, limits.turn_quiet);
        let mut report = Self { silent: Vec::new(), quiet: Vec::new(), next: limit };
        for (chat, turn, last_report) in running {
            let Some(state) = session.chat(chat) else { continue };
            let Some(active) = state.active_turn(turn) else { continue };
            if active.waits_for_person() || active.waits_for_client() {
                continue;
            }
            let past = Duration::from_millis(now.0.saturating_sub(last_report.0));
            match (limit.saturating_sub(past), quiet.saturating_sub(past)) {
                (Duration::ZERO, _) => report.silent.push(chat.clone()),
                (left, Duration::ZERO) => {
                    report.next = report.next.min(left);
                    // A running tool explains the silence.
                    if !active.runs_tool() && state.activity.is_none() {
                        report.quiet.push((chat.clone(), past.as_secs()));
                    }
                }
                (_, left) => report.next = report.next.min(left),
            }
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::reports::tests::{TURN, session_with};

    fn report(session: &Session, seconds: u64) -> SilenceReport {
        let (chat, turn) = (ChatId::from(Session::MAIN_CHAT), TurnId::from(TURN));
        let limits =
            Limits { turn_quiet: Duration::from_secs(15), turn_silence: Duration::from_secs(60), ..Limits::default() };
        let running = std::iter::once((&chat, &turn, Timestamp(0)));
        SilenceReport::of(running, session, Timestamp(seconds * 1_000), &limits)
    }

    fn seconds(report: &SilenceReport) -> u64 {
        report.next.as_secs()
    }

    #[test]
    fn a_turn_is_quiet_first_and_silent_for_too_long_later() {
        let session = session_with(vec![]);
        let main = ChatId::from(Session::MAIN_CHAT);
        let early = report(&session, 5);
        assert_eq!((early.quiet.is_empty(), early.silent.is_empty(), seconds(&early)), (true, true, 10));
        let quiet = report(&session, 20);
        assert_eq!((quiet.quiet.clone(), seconds(&quiet)), (vec![(main.clone(), 20)], 40));
        let late = report(&session, 60);
        assert_eq!((late.silent.clone(), late.quiet.is_empty()), (vec![main], true));
    }

    #[test]
    fn a_running_tool_explains_silence_and_a_permission_request_suspends_it() {
        let call = || NewToolCall {
            id: "c".into(),
            name: "n".into(),
            display_name: "n".into(),
            kind: None,
            language: None,
            client: None,
            extra: None,
        };
        let ready = |gate| ChatEvent::ToolCallReady {
            turn: TURN.into(),
            call: call(),
            invocation_message: String::new(),
            input: None,
            gate,
        };
        let started = ChatEvent::ToolCallStarted { turn: TURN.into(), call: call() };
        let runs = report(&session_with(vec![started.clone(), ready(Gate::None)]), 20);
        assert_eq!((runs.quiet.is_empty(), seconds(&runs)), (true, 40));
        let request = PermissionRequest {
            id: "r".into(),
            kind: PermissionKind::Shell,
            path: None,
            full_command_text: None,
            intention: None,
            title: None,
            options: vec![],
            edits: vec![],
            editable: false,
        };
        let gated = ToolCallGate { call: "c".into(), request, invocation_message: None, input: None, hook: None };
        let gated = ChatEvent::ToolCallGated { turn: TURN.into(), gated: Box::new(gated) };
        let waits = report(&session_with(vec![started, ready(Gate::Follows), gated]), 600);
        assert_eq!((waits.silent.is_empty(), waits.quiet.is_empty(), seconds(&waits)), (true, true, 60));
    }

    #[test]
    fn a_turn_that_is_over_is_not_watched() {
        let ended = ChatEvent::TurnCompleted { turn: TURN.into(), duration: None };
        assert_eq!(report(&session_with(vec![ended]), 600).silent, Vec::<ChatId>::new());
    }
}
