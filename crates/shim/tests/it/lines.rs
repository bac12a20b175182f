//! Lines through a shim, in both directions.

use grove_shim::{EndReason, ShimError, ShimStream, stderr_tail};
use grove_work::Program;

use crate::fixture::{DEADLINE, SHORT, ShimFixture, end, is_alive, line, program, until, within};

#[tokio::test]
async fn an_agent_hears_its_host_and_the_host_its_agent() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start("pwd; cat").await;
    assert_eq!(line(&mut stream).await, (1, fixture.work.to_str().unwrap().to_owned()));
    for (number, said) in (1..).zip(["hello", "", "ä€😀", &"x".repeat(300_000)]) {
        assert_eq!(stream.write(said.as_bytes()).await.unwrap(), number);
        assert_eq!(line(&mut stream).await, (number + 1, said.to_owned()));
        assert_eq!(stream.taken(), number);
        stream.acknowledge(number + 1).await.unwrap();
    }
    let (shim, agent) = (stream.shim().unwrap(), stream.agent().unwrap());
    let ended = within("end", stream.end(DEADLINE)).await.unwrap();
    assert_eq!((ended.reason, ended.exit.unwrap().code), (EndReason::Requested, Some(0)));
    assert!(!is_alive(agent));
    until("the shim ends", || !is_alive(shim)).await;
    assert!(matches!(fixture.attach(1).await, Err(ShimError::Gone { .. })));
}

#[tokio::test]
async fn a_line_that_would_be_two_or_is_too_long_is_not_sent() {
    let mut fixture = ShimFixture::new();
    fixture.limits.line_bytes = 100;
    let mut stream = fixture.start("cat").await;
    assert!(matches!(stream.write(b"a\nb").await, Err(ShimError::LineBreak)));
    let long = stream.write(&[b'x'; 101]).await;
    assert!(matches!(long, Err(ShimError::LineTooLong { length: 101, limit: 100 })));
    assert_eq!(stream.write(b"fine").await.unwrap(), 1, "they took no number");
    assert_eq!(line(&mut stream).await, (1, "fine".to_owned()));
}

#[tokio::test]
async fn the_end_of_an_agent_comes_last() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start("seq 1 5000; printf 'no line end'; exit 3").await;
    for number in 1..=5_000_u64 {
        assert_eq!(line(&mut stream).await, (number, number.to_string()));
    }
    assert_eq!(line(&mut stream).await, (5_001, "no line end".to_owned()));
    let (number, ended) = end(&mut stream).await;
    assert_eq!((number, ended.reason, ended.exit.unwrap().code), (5_002, EndReason::Exited, Some(3)));
    let shim = stream.shim().unwrap();
    assert!(is_alive(shim), "it waits for the acknowledgement");
    stream.acknowledge(number).await.unwrap();
    until("it ends", || !is_alive(shim)).await;
    assert!(!fixture.shim.join("socket").exists());
}

#[tokio::test]
async fn a_crash_is_told_as_such_and_its_last_words_are_there() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start("echo before; echo why >&2; kill -SEGV $$").await;
    assert_eq!(line(&mut stream).await.1, "before");
    let (number, ended) = end(&mut stream).await;
    assert_eq!((number, ended.reason), (2, EndReason::Exited));
    assert_eq!(ended.exit.unwrap().signal_name(), Some("SIGSEGV"));
    until("its complaint is there", || stderr_tail(&fixture.shim, 100).unwrap() == "why\n").await;
    assert_eq!(stream.write(b"nobody hears it").await.unwrap(), 1, "that is no error");
    stream.acknowledge(number).await.unwrap();
}

#[tokio::test]
async fn what_an_agent_complains_of_is_kept_within_its_bound() {
    let mut fixture = ShimFixture::new();
    fixture.limits.log_bytes = 10_000;
    let mut stream = fixture.start("seq 1 100000 >&2; echo done; cat").await;
    assert_eq!(line(&mut stream).await.1, "done");
    until("the newest is there", || stderr_tail(&fixture.shim, 14).unwrap() == "99999\n100000\n").await;
    assert!(stderr_tail(&fixture.shim, 1 << 20).unwrap().len() <= 10_000);
    within("end", stream.end(DEADLINE)).await.unwrap();
    assert_eq!(stderr_tail(&fixture.shim, 8).unwrap(), "100000\n", "it outlives the shim");
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_is_an_error_that_says_why() {
    let fixture = ShimFixture::new();
    let mut options = fixture.options("");
    options.agent = Program::new("no-such-agent", &fixture.work);
    let failed = within("start", ShimStream::start(&program(), &options)).await.unwrap_err();
    assert_eq!(
        failed.to_string(),
        "the agent could not be started: no-such-agent cannot be found: install it, or give its full path"
    );
    let folder = fixture.shim.clone();
    until("the shim ends", || !folder.join("socket").exists()).await;
}

#[tokio::test]
async fn an_agent_gets_what_it_is_given_and_no_secret_of_the_host() {
    let fixture = ShimFixture::new();
    let mut options = fixture.options("env | sort; cat");
    options.agent = options.agent.env("API_KEY", "given");
    let mut stream = within("start", ShimStream::start(&program(), &options)).await.unwrap();
    let mut environment = Vec::new();
    while environment.last().is_none_or(|last: &String| !last.starts_with("USER=") && !last.starts_with("PWD=")) {
        environment.push(line(&mut stream).await.1);
    }
    assert!(environment.contains(&"API_KEY=given".to_owned()), "{environment:?}");
    assert!(!environment.iter().any(|line| line.starts_with("CARGO")), "{environment:?}");
    // Neither in the list of processes, nor in a file.
    let arguments = std::fs::read(format!("/proc/{}/cmdline", stream.shim().unwrap())).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains("given"));
    for file in std::fs::read_dir(&fixture.shim).unwrap() {
        let content = std::fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&content).contains("given"));
    }
    within("end", stream.end(SHORT)).await.unwrap();
}
