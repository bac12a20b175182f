//! The process that holds an agent's stdio, run by the real program.

use std::time::Duration;

use grove_shim::{EndReason, FromAgent, ShimError, ShimLimits, ShimOptions, ShimProgram, ShimStream};
use grove_work::Program;
use tokio::time::timeout;

use crate::support::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn program() -> ShimProgram {
    ShimProgram { program: env!("CARGO_BIN_EXE_grove").into(), args: vec!["agent-shim".into()] }
}

async fn read(stream: &mut ShimStream) -> FromAgent {
    timeout(PATIENCE, stream.read()).await.expect("something").unwrap()
}

#[tokio::test]
async fn an_agent_behind_the_programs_shim_outlives_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let options = ShimOptions {
        folder: folder.path().join("shim"),
        agent: Program::new("cat", folder.path()),
        limits: ShimLimits { alone: PATIENCE, linger: PATIENCE, ..ShimLimits::default() },
    };
    let stream = timeout(PATIENCE, ShimStream::start(&program(), &options)).await.expect("a start").unwrap();
    stream.write(b"hello").await.unwrap();
    drop(stream);
    let mut stream = timeout(PATIENCE, ShimStream::attach(&options.folder, 1)).await.expect("an answer").unwrap();
    let FromAgent::Line { number: 1, line } = read(&mut stream).await else { panic!("no line") };
    assert_eq!(line, &b"hello"[..]);
    let end = timeout(PATIENCE, stream.end(PATIENCE)).await.expect("an end").unwrap();
    assert_eq!((end.reason, end.exit.unwrap().code), (EndReason::Requested, Some(0)));
}

#[tokio::test]
async fn a_shim_that_fails_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let options = ShimOptions {
        folder: folder.path().join("shim"),
        agent: Program::new("no-such-agent", folder.path()),
        limits: ShimLimits::default(),
    };
    let failed = timeout(PATIENCE, ShimStream::start(&program(), &options)).await.expect("an answer").unwrap_err();
    assert!(matches!(&failed, ShimError::NotStarted(why) if why.contains("no-such-agent cannot be found")), "{failed}");
}

#[test]
fn nobody_is_offered_the_shim_and_whoever_types_it_learns_what_it_is() {
    let place = TestHome::new();
    assert!(!place.run(&["--help"]).stdout.contains("agent-shim"));
    let ran = place.run(&["agent-shim"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("only a host starts it"), "{}", ran.stderr);
}
