//! Programs and their leftover processes, with real processes.

use std::path::Path;
use std::time::{Duration, Instant};

use grove_work::{Process, ProcessError, Program};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use crate::test_folder::TestFolder;

const DEADLINE: Duration = Duration::from_secs(20);
/// The timeout for operations that are expected to hang.
const SHORT: Duration = Duration::from_millis(200);

pub(crate) fn shell(cwd: impl AsRef<Path>, script: &str) -> Program {
    Program::new("sh", cwd.as_ref()).args(["-c", script])
}

/// Returns whether a process is running.
pub(crate) fn is_alive(id: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", id.trim()))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < DEADLINE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A process, and its first lines.
async fn started(script: &str, lines: usize) -> (Process, Vec<String>) {
    let mut process = Process::start(&shell("/", script)).unwrap();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let mut said = Vec::new();
    for _ in 0..lines {
        let mut line = String::new();
        timeout(DEADLINE, stdout.read_line(&mut line)).await.expect(script).unwrap();
        said.push(line.trim().to_owned());
    }
    (process, said)
}

#[tokio::test]
async fn a_program_gets_its_stdio_its_folder_and_an_environment_without_our_secrets() {
    let place = TestFolder::new();
    let folder = place.folder("here");
    let program = shell(&folder, "read line; echo \"$line\"; pwd; env; echo oops >&2; exit 3").env("KEY", "given");
    let mut process = Process::start(&program).unwrap();
    process.stdin.as_mut().unwrap().write_all(b"hello\n").await.unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    process.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    process.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("hello"));
    assert_eq!(lines.next(), folder.to_str());
    let environment: Vec<&str> = lines.collect();
    assert!(environment.contains(&"KEY=given"), "{environment:?}");
    assert!(environment.iter().any(|line| line.starts_with("PATH=")), "{environment:?}");
    // Cargo gives every test many of these.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")));
    assert!(!environment.iter().any(|line| line.starts_with("CARGO")), "{environment:?}");
    assert_eq!(err, "oops\n");
    let exit = process.wait().await;
    assert_eq!((exit.code, exit.signal, exit.success()), (Some(3), None, false));
    assert_eq!(process.end(SHORT).await.unwrap(), exit, "it is still known how it ended");
}

#[tokio::test]
async fn a_program_inherits_no_descriptor_of_ours() {
    // A descriptor without the close-on-exec flag, like those that we inherited ourselves.
    let leak = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let (process, said) =
        started("for n in $(seq 0 99); do test -e /proc/$$/fd/$n && echo has $n; done; echo", 4).await;
    assert_eq!(said, ["has 0", "has 1", "has 2", ""]);
    process.end(DEADLINE).await.unwrap();
}

#[tokio::test]
async fn a_program_that_ends_with_its_stdin_is_not_signalled() {
    let (process, _) = started("trap 'exit 9' TERM; echo ready; cat; exit 5", 1).await;
    assert_eq!(process.end(DEADLINE).await.unwrap().code, Some(5));
}

#[tokio::test]
async fn a_program_that_keeps_running_is_asked_and_then_killed() {
    let (process, _) = started("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done", 1).await;
    assert_eq!(process.end(SHORT).await.unwrap().code, Some(7), "it was asked");
    let (process, _) = started("trap '' TERM; echo ready; while :; do sleep 0.01; done", 1).await;
    let exit = process.end(SHORT).await.unwrap();
    assert_eq!((exit.signal, exit.signal_name()), (Some(9), Some("SIGKILL")), "it did not listen");
}

#[tokio::test]
async fn nothing_of_the_group_is_left_also_where_the_program_ended_first() {
    let grandchild = "(trap '' TERM; while :; do sleep 0.01; done) & echo $!";
    let (mut process, said) = started(&format!("{grandchild}; exit 0"), 1).await;
    assert!(timeout(DEADLINE, process.wait()).await.unwrap().success());
    assert!(is_alive(&said[0]), "it outlives the program");
    assert!(process.end(SHORT).await.unwrap().success());
    assert!(!is_alive(&said[0]), "it does not outlive the end");

    let (process, said) = started(&format!("trap '' TERM; {grandchild}; while :; do sleep 0.01; done"), 1).await;
    assert_eq!(process.end(SHORT).await.unwrap().signal, Some(9));
    assert!(!is_alive(&said[0]));
}

#[tokio::test]
async fn a_dropped_program_is_killed_with_its_group() {
    let (process, said) = started("echo $$; sleep 1000 & echo $!; wait", 2).await;
    drop(process);
    until("both end", || !said.iter().any(|id| is_alive(id))).await;
    // Nobody else waits for it, and yet no zombie stays.
    until("it is buried", || !Path::new(&format!("/proc/{}", said[0])).exists()).await;
}

#[tokio::test]
async fn what_cannot_be_started_says_what_to_do() {
    let missing = Process::start(&Program::new("no-such-program", "/")).unwrap_err();
    assert!(matches!(missing, ProcessError::NotFound { .. }));
    assert_eq!(missing.to_string(), "no-such-program cannot be found: install it, or give its full path");
    let nowhere = Process::start(&shell("/no/such/folder", "true")).unwrap_err();
    assert!(matches!(nowhere, ProcessError::NoFolder { .. }), "{nowhere}");
    let folder = Process::start(&Program::new("/tmp", "/")).unwrap_err();
    assert!(matches!(folder, ProcessError::Start { .. }), "{folder}");
}
