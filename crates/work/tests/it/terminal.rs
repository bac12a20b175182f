//! Commands on real pseudo-terminals.

use std::time::Duration;

use grove_work::{
    ProcessError, Program, Terminal, TerminalError, TerminalLimits, TerminalRequest, TerminalSize, Terminals,
};
use tokio::time::timeout;

use crate::process::{is_alive, shell, until};

const DEADLINE: Duration = Duration::from_secs(20);

fn terminals() -> Terminals {
    Terminals::new(TerminalLimits { grace: Duration::from_millis(200), ..TerminalLimits::default() })
}

fn request(program: Program) -> TerminalRequest {
    TerminalRequest { program, output_bytes: None, size: TerminalSize::default() }
}

fn create(terminals: &Terminals, script: &str) -> Terminal {
    let (terminal, screen) = terminals.create(&request(shell("/", script))).unwrap();
    tokio::spawn(screen.run());
    terminal
}

async fn exit_of(terminal: &Terminal) -> grove_work::Exit {
    timeout(DEADLINE, terminal.wait_for_exit()).await.unwrap_or_else(|_| panic!("{:?}", terminal.output()))
}

#[tokio::test]
async fn a_command_sees_a_terminal_of_the_size_that_was_asked_for() {
    let terminals = terminals();
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size </dev/tty && echo $TERM";
    let size = TerminalSize { rows: 40, columns: 132 };
    let (terminal, screen) = terminals.create(&TerminalRequest { size, ..request(shell("/", script)) }).unwrap();
    tokio::spawn(screen.run());
    assert!(exit_of(&terminal).await.success(), "{:?}", terminal.output());
    let output = terminal.output();
    assert!(output.text.starts_with("40 132\r\n"), "{output:?}");
    assert!(output.exit.is_some() && !output.truncated);
}

#[tokio::test]
async fn all_output_is_there_when_the_exit_is() {
    let terminals = terminals();
    for _ in 0..20 {
        let terminal = create(&terminals, "seq 1 2000; exit 4");
        assert_eq!(exit_of(&terminal).await.code, Some(4));
        let text = terminal.output().text;
        assert!(text.starts_with("1\r\n2\r\n") && text.ends_with("1999\r\n2000\r\n"), "{text}");
        terminals.release(terminal.id()).await.unwrap();
    }
}

#[tokio::test]
async fn a_listener_is_told_everything_before_the_exit_is_known_however_slow_it_is() {
    let terminals = terminals();
    let (terminal, screen) = terminals.create(&request(shell("/", "seq 1 20000; sleep 600 & exit 4"))).unwrap();
    let (listener, mut told) = tokio::sync::mpsc::channel(1);
    tokio::spawn(screen.with_listener(listener).run());
    let listens = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(chunk) = told.recv().await {
            // Longer in total than the wait for a command's last output.
            if all.len() < 40_000 {
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            all.extend(chunk);
        }
        all
    });
    assert_eq!(exit_of(&terminal).await.code, Some(4));
    let all = timeout(DEADLINE, listens).await.unwrap().unwrap();
    let numbers: String = (1..=20_000).map(|number| format!("{number}\r\n")).collect();
    assert!(all == numbers.as_bytes(), "{} of {} bytes", all.len(), numbers.len());
    terminals.release(terminal.id()).await.unwrap();
}

#[tokio::test]
async fn a_command_goes_on_when_nobody_listens_any_longer() {
    let terminals = terminals();
    let (terminal, screen) = terminals.create(&request(shell("/", "seq 1 20000; exit 4"))).unwrap();
    let (listener, told) = tokio::sync::mpsc::channel(1);
    drop(told);
    tokio::spawn(screen.with_listener(listener).run());
    assert_eq!(exit_of(&terminal).await.code, Some(4));
    assert!(terminal.output().text.ends_with("20000\r\n"));
    terminals.release(terminal.id()).await.unwrap();
}

#[tokio::test]
async fn output_can_be_read_while_the_command_runs_and_the_newest_is_kept() {
    let terminals = terminals();
    let script = "echo begin; for i in $(seq 1 300); do printf 'ä€😀'; done; echo end; cat";
    let program = shell("/", script).env("LC_ALL", "C.UTF-8");
    let asked = TerminalRequest { output_bytes: Some(100), ..request(program) };
    let (terminal, screen) = terminals.create(&asked).unwrap();
    tokio::spawn(screen.run());
    until("it says its end", || terminal.output().text.ends_with("end\r\n")).await;
    let output = terminal.output();
    assert!(output.truncated && output.exit.is_none());
    assert!(output.text.len() > 90 && output.text.len() <= 100, "{}", output.text.len());
    assert!(!output.text.contains('\u{fffd}'), "{output:?}");
}

#[tokio::test]
async fn a_killed_command_keeps_its_output_until_it_is_released() {
    let terminals = terminals();
    let terminal = create(&terminals, "trap '' TERM HUP; echo working; while :; do sleep 0.01; done");
    until("it works", || terminal.output().text.contains("working")).await;
    let exit = timeout(DEADLINE, terminal.kill()).await.unwrap();
    assert_eq!(exit.signal_name(), Some("SIGKILL"));
    assert_eq!(terminals.get(terminal.id()).unwrap().output().text, "working\r\n");
    terminals.release(terminal.id()).await.unwrap();
    assert!(matches!(terminals.get(terminal.id()), Err(TerminalError::Unknown(_))));
    assert_eq!(terminal.output().exit, Some(exit), "a remaining handle can still read it");
}

#[tokio::test]
async fn a_released_terminal_leaves_nothing_behind_not_even_jobs_of_a_shell() {
    let terminals = terminals();
    // With job control each job is its own group, in the terminal's session.
    let script = "set -m; (trap '' HUP TERM; while :; do sleep 0.01; done) & echo job $!; wait";
    let terminal = create(&terminals, script);
    until("the job is started", || terminal.output().text.contains("job ")).await;
    until("its number is there", || terminal.output().text.ends_with('\n')).await;
    let text = terminal.output().text;
    let job = text.lines().find_map(|line| line.strip_prefix("job ")).unwrap();
    assert!(is_alive(job));
    timeout(DEADLINE, terminals.release(terminal.id())).await.unwrap().unwrap();
    assert!(!is_alive(job), "{text}");
}

#[tokio::test]
async fn a_command_whose_terminal_nobody_has_any_longer_ends() {
    let terminals = terminals();
    let terminal = create(&terminals, "echo $$; exec sleep 1000");
    until("it runs", || terminal.output().text.ends_with('\n')).await;
    let id = terminal.output().text;
    drop((terminal, terminals));
    until("it ends", || !is_alive(&id)).await;
}

#[tokio::test]
async fn a_screen_that_is_dropped_ends_its_command() {
    let terminals = terminals();
    let (terminal, screen) = terminals.create(&request(shell("/", "sleep 1000"))).unwrap();
    drop(screen);
    exit_of(&terminal).await;
    assert!(terminal.output().exit.is_some());
    terminals.release(terminal.id()).await.unwrap();
}

#[tokio::test]
async fn there_are_only_so_many_terminals_until_one_is_released() {
    let terminals = Terminals::new(TerminalLimits { terminals: 2, ..TerminalLimits::default() });
    let first = create(&terminals, "sleep 1000");
    let _second = create(&terminals, "true");
    let refused = terminals.create(&request(shell("/", "true"))).unwrap_err();
    assert!(matches!(refused, TerminalError::TooMany { limit: 2 }));
    terminals.release(first.id()).await.unwrap();
    let third = create(&terminals, "true");
    assert!(exit_of(&third).await.success());
    terminals.release_all().await;
    assert!(terminals.get(third.id()).is_err());
}

#[tokio::test]
async fn a_command_that_cannot_be_started_takes_no_place() {
    let terminals = Terminals::new(TerminalLimits { terminals: 1, ..TerminalLimits::default() });
    let refused = terminals.create(&request(Program::new("no-such-program", "/"))).unwrap_err();
    assert!(matches!(refused, TerminalError::Process(ProcessError::NotFound { .. })), "{refused}");
    create(&terminals, "true");
}
