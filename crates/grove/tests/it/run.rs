//! `grove run`

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::*;
use crate::terminal::Terminal;

pub(crate) fn script(steps: &Value) -> String {
    format!("script:{steps}")
}

/// `grove run` on a place with a host, to its end.
fn run(place: &TestHome, args: &[&str], steps: &Value) -> CommandResult {
    place.run(&[&["run", "--no-start"], args, &[&script(steps)]].concat())
}

/// A command that runs beside the test.
pub(crate) struct BackgroundCommand {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl BackgroundCommand {
    pub(crate) fn start(place: &TestHome, args: &[&str]) -> Self {
        let mut command = place.grove(args);
        command.arg("--data-dir").arg(place.data()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Reads lines of stderr until one has these words, and returns it.
    pub(crate) fn until(&mut self, words: &str) -> String {
        let mut before = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "no {words} in {before}");
            if line.contains(words) {
                return line;
            }
            before.push_str(&line);
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// The exit code and stdout.
    pub(crate) fn end(self) -> (Option<i32>, String) {
        let Self { child, mut stderr } = self;
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }
}

#[test]
fn the_answer_goes_to_stdout_and_everything_about_it_to_stderr() {
    let host = Host::start();
    let steps = json!([{"reason": "Hm."}, {"say": "Hello, ", "chunks": 3},
        {"tool": {"name": "sh", "input": "ls -l", "output": "one\ntwo\n", "permission": "shell"}},
        {"say": "world!"}, {"tool": {"name": "bad", "output": "went wrong", "success": false}}]);
    for protocol in ["ahp", "v1"] {
        let ran = run(&host.place, &["--yes", "--protocol", protocol], &steps);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.stdout.replace('\n', ""), "Hello, world!", "{protocol}");
        for words in ["session ", "Hm.\n", "✓ Ran sh", ": one … (2 lines)", "✗ bad failed", "wrong"] {
            assert!(ran.stderr.contains(words), "{protocol} says nothing of {words}: {}", ran.stderr);
        }
        // Version 1 drops the input at the end of the turn, which may be before it is shown.
        assert!(protocol == "v1" || ran.stderr.contains("sh ls -l"), "{}", ran.stderr);
        assert!(!ran.stderr.contains('\x1b'), "colours are for terminals: {}", ran.stderr);
    }
}

#[test]
fn what_would_steer_the_terminal_is_not_passed_on() {
    let host = Host::start();
    let steps = json!([{"say": "a\u{1b}[2Jb\u{7}c\td\n"}, {"tool": {"name": "x\u{1b}]0;t", "output": "\u{1b}c"}}]);
    let mut terminal = Terminal::run(&host.place, &["run", &script(&steps)]);
    terminal.until("a[2Jbc\td");
    terminal.until("✓");
    assert_eq!(terminal.exit(), Some(0));
    let screen = terminal.screen();
    for steering in ["\x1b[2J", "\x07", "\x1b]0", "\x1bc"] {
        assert!(!screen.contains(steering), "{screen:?}");
    }
}

#[test]
fn a_turn_that_fails_or_is_cancelled_has_an_exit_code_of_its_own() {
    let host = Host::start();
    let ran = run(&host.place, &[], &json!([{"say": "so far"}, {"fail": "no more"}]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(6), "so far\n"));
    assert!(ran.stderr.contains("✗ failed: no more"), "{}", ran.stderr);

    let hang = script(&json!([{"reason": "begun\n"}, {"hang": true}]));
    let mut beside = BackgroundCommand::start(&host.place, &["run", &hang]);
    beside.until("begun");
    beside.signal(Signal::INT);
    beside.until("cancelling");
    beside.until("cancelled");
    assert_eq!(beside.end(), (Some(7), String::new()));

    let mut beside = BackgroundCommand::start(&host.place, &["run", &hang]);
    let id = beside.until("session ").trim().strip_prefix("session ").unwrap().to_owned();
    beside.until("begun");
    assert_eq!(host.place.run(&["cancel", &id]).code, Some(0));
    assert_eq!(beside.end().0, Some(7), "any client may cancel it");
}

#[test]
fn a_second_interrupt_leaves_the_turn_to_itself() {
    let host = Host::start();
    let mut beside =
        BackgroundCommand::start(&host.place, &["run", &script(&json!([{"reason": "begun\n"}, {"hang": true}]))]);
    beside.until("begun");
    // A host that does not answer.
    host.signal(Signal::STOP);
    beside.signal(Signal::INT);
    beside.until("Ctrl-C again");
    beside.signal(Signal::INT);
    assert_eq!(beside.end().0, Some(130));
    host.signal(Signal::CONT);
}

#[test]
fn json_is_the_envelopes_and_the_finished_turn() {
    let host = Host::start();
    let steps = json!([{"say": "Hello", "chunks": 5},
        {"tool": {"name": "sh", "output": "x", "permission": "shell"}}, {"usage": {"inputTokens": 3}}]);
    for protocol in ["ahp", "v1"] {
        let ran = run(&host.place, &["--yes", "--json", "--protocol", protocol], &steps);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let mut lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let last = lines.pop().unwrap();
        assert_eq!(last["turn"]["state"], "complete", "{last}");
        assert!(last["session"].as_str().unwrap().starts_with("scripted:/"), "{last}");
        let seqs: Vec<u64> = lines.iter().map(|line| line["serverSeq"].as_u64().unwrap()).collect();
        assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
        let kinds: Vec<&str> = lines.iter().map(|line| line["action"]["type"].as_str().unwrap()).collect();
        let expected = match protocol {
            "ahp" => ["chat/turnStarted", "chat/delta", "chat/toolCallConfirmed", "chat/usage", "chat/turnComplete"],
            _ => [
                "session/turnStarted",
                "session/delta",
                "session/permissionResolved",
                "session/usage",
                "session/turnComplete",
            ],
        };
        for kind in expected {
            assert!(kinds.contains(&kind), "no {kind} in {kinds:?}");
        }
    }
    let ran = run(&host.place, &["--json"], &json!([{"fail": "no"}]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(6), ""));
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["turn"]["state"], "error");
}

#[test]
fn a_prompt_may_come_from_stdin() {
    let host = Host::start();
    let mut command = host.place.grove(&["run", "-"]);
    command.arg("--data-dir").arg(host.place.data());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let prompt = script(&json!([{"say": "from a pipe"}]));
    child.stdin.take().unwrap().write_all(format!("{prompt}\n").as_bytes()).unwrap();
    let ran = CommandResult::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "from a pipe\n"), "{}", ran.stderr);
}

#[test]
fn an_agent_and_a_folder_can_be_chosen() {
    let host = Host::start();
    let place = &host.place;
    let steps = json!([{"say": "x"}]);
    let ran = run(place, &["--agent", "nobody"], &steps);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(8), ""));
    assert!(ran.stderr.contains("\"nobody\"") && ran.stderr.contains("scripted"), "{}", ran.stderr);
    for wrong in ["nowhere", "data/token"] {
        let ran = run(place, &["--cwd", wrong], &steps);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
        assert!(ran.stderr.contains(wrong), "{}", ran.stderr);
    }
    std::fs::create_dir(place.path("work")).unwrap();
    assert_eq!(run(place, &["--agent", "scripted", "--cwd", "work"], &steps).code, Some(0));
    let list: Value = serde_json::from_str(&place.run(&["ls", "--json"]).stdout).unwrap();
    let folder = file_uri(&place.path("work"));
    assert_eq!(list["sessions"][0]["workingDirectories"], json!([folder]));
}

#[test]
fn without_a_terminal_it_says_what_waits_and_how_to_answer() {
    let host = Host::start();
    let steps = json!([{"tool": {"name": "sh", "input": "rm x", "output": "gone", "permission": "shell"}},
        {"say": "after"}]);
    for (answer, told) in [("approve", "Ran sh"), ("deny", "denied")] {
        let mut beside = BackgroundCommand::start(&host.place, &["run", &script(&steps)]);
        let line = beside.until("waiting:");
        assert!(line.contains("Run this command? rm x"), "{line}");
        let command = line.split('`').find(|word| word.starts_with(&format!("grove {answer}"))).unwrap();
        let args: Vec<&str> = command.split(' ').skip(1).collect();
        let ran = host.place.run(&args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        beside.until(told);
        assert_eq!(beside.end(), (Some(0), "after\n".to_owned()));
    }
}

#[test]
fn in_a_terminal_it_asks() {
    let host = Host::start();
    let option = |id: &str, label: &str, allows: bool| json!({"id": id, "label": label, "allows": allows});
    let options = [option("once", "Only this time", true), option("never", "Never", false)];
    let steps = json!([{"tool": {"name": "sh", "input": "rm x", "output": "gone", "permission": "shell"}},
        {"tool": {"name": "two", "permission": "write"}},
        {"tool": {"name": "three", "output": "3", "permission": "write", "options": options}},
        {"ask": "What is your name?"}, {"say": "done"}]);
    let mut terminal = Terminal::run(&host.place, &["run", &script(&steps)]);
    terminal.until("Run this command?");
    terminal.until("rm x");
    terminal.until("[y/n]");
    terminal.enter("perhaps");
    terminal.until("y or n");
    terminal.enter("y");
    terminal.until("Ran sh");
    terminal.until("[y/n]");
    terminal.enter("n");
    terminal.until("denied");
    terminal.until("Only this time");
    terminal.until("[y/n, or a number]");
    terminal.enter("1");
    terminal.until("Ran three");
    terminal.until("What is your name?");
    terminal.until(">");
    terminal.enter("");
    terminal.until("an answer is required");
    terminal.enter("Ada");
    terminal.until("done");
    assert_eq!(terminal.exit(), Some(0), "{}", terminal.screen());
    assert!(terminal.screen().contains("\x1b["), "a terminal has colours");
}

#[test]
fn a_host_is_started_in_the_background_unless_that_is_not_wanted() {
    let background = Background(TestHome::new());
    let steps = script(&json!([{"say": "hello"}]));
    let ran = background.0.run(&["run", "--no-start", &steps]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert!(ran.stderr.contains("grove start"), "{}", ran.stderr);
    assert!(!background.0.data().exists(), "asking leaves nothing behind");
    let ran = background.0.run(&["run", &steps]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
    assert_eq!(background.0.run(&["status"]).code, Some(0), "it stays");
    assert_eq!(background.0.run(&["run", "--no-start", &steps]).code, Some(0));
}

#[test]
fn output_that_nobody_reads_ends_it_without_a_word() {
    let host = Host::start();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = host.place.grove(&["run", &script(&json!([{"say": "x", "chunks": 1}, {"hang": true}]))]);
    command.arg("--data-dir").arg(host.place.data());
    let ran =
        CommandResult::from(command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("grove:"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_version_1_client_and_the_command_line_share_a_session() {
    let host = Host::start();
    let mut client = host.client_with_session("old").await;
    let steps =
        json!([{"tool": {"name": "sh", "input": "ls", "permission": "shell", "output": "out"}}, {"say": "end"}]);
    client.script(S, "t1", steps).await;
    client.asked(S).await;
    let approved = host.place.run(&["approve", "s"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    client.until(|client| client.session(S).turns.len() == 1).await;
    let sent = host.place.run(&["send", "--wait", "s", &script(&json!([{"say": "from the command line"}]))]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "from the command line\n"), "{}", sent.stderr);
    client.until(|client| client.session(S).turns.len() == 2).await;
}
