//! The lifetime of a shim, which leaves nothing behind.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use grove_shim::{EndReason, FromAgent, ShimError, ShimStream};
use grove_work::ProcessTable;
use rustix::process::{Pid, Signal};

use crate::fixture::{DEADLINE, SHORT, ShimFixture, end, is_alive, line, program, until, within};

/// Ignores its stdin and SIGTERM, and has a child that does, too.
const STUBBORN: &str = "trap '' TERM; (trap '' TERM; while :; do sleep 0.01; done) & echo $!; \
                        while :; do sleep 0.01; done";

fn signal(id: u32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn a_host_that_comes_back_finds_the_turn_going_on() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start("for i in $(seq 1 50); do echo $i; sleep 0.01; done; cat").await;
    let agent = stream.agent();
    for number in 1..=5_u64 {
        assert_eq!(line(&mut stream).await, (number, number.to_string()));
    }
    stream.acknowledge(3).await.unwrap();
    drop(stream);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut stream = fixture.attach(4).await.unwrap();
    assert_eq!(stream.agent(), agent);
    for number in 4..=50_u64 {
        assert_eq!(line(&mut stream).await, (number, number.to_string()));
    }
    let forgotten = fixture.attach(3).await.unwrap_err();
    assert!(matches!(forgotten, ShimError::Forgotten { from: 3, oldest: 4 }), "{forgotten}");
    let beyond = fixture.attach(100).await.unwrap_err();
    assert!(matches!(beyond, ShimError::Nonsense(_)), "{beyond}");
    let stream = fixture.attach(51).await.unwrap();
    within("end", stream.end(DEADLINE)).await.unwrap();
}

#[tokio::test]
async fn a_shim_survives_the_kill_of_the_host_that_started_it() {
    let fixture = ShimFixture::new();
    // A host in its own process: the test below, which waits to be killed.
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "lifecycle::a_host_that_is_about_to_be_killed", "--nocapture"])
        .env(FOLDER, &fixture.work)
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    until("the agent runs", || fixture.read("ticks").lines().count() > 3).await;
    let group = Pid::from_raw(i32::try_from(host.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, Signal::KILL).unwrap();
    host.wait().unwrap();
    let ticks = fixture.read("ticks").lines().count();
    until("the agent goes on", || fixture.read("ticks").lines().count() > ticks + 5).await;
    let mut stream = fixture.attach(1).await.unwrap();
    for number in 1..=10_u64 {
        assert_eq!(line(&mut stream).await, (number, number.to_string()), "all that it said is there");
    }
    let (shim, agent) = (stream.shim().unwrap(), stream.agent().unwrap());
    let session = |id| rustix::process::getsid(Pid::from_raw(i32::try_from(id).unwrap())).unwrap();
    assert_eq!(session(shim).as_raw_nonzero().get().unsigned_abs(), shim, "it leads a session of its own");
    // Its stdio, its socket and its files are its own: no pipe and no terminal of the host is among them.
    let descriptors = std::fs::read_dir(format!("/proc/{shim}/fd")).unwrap();
    let leads_to = descriptors.filter_map(|link| std::fs::read_link(link.unwrap().path()).ok());
    let inherited: Vec<_> = leads_to
        .filter(|path| path.starts_with("/") && !path.starts_with("/dev/null") && !path.starts_with(&fixture.shim))
        .collect();
    assert!(inherited.is_empty(), "{inherited:?}");
    within("end", stream.end(SHORT)).await.unwrap();
    assert!(!is_alive(agent));
}

const FOLDER: &str = "GROVE_SHIM_TEST_FOLDER";

#[tokio::test]
#[ignore = "it waits to be killed by another test"]
async fn a_host_that_is_about_to_be_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let mut fixture = ShimFixture::new();
    (fixture.work, fixture.shim) = (folder.clone().into(), std::path::Path::new(&folder).join("shim"));
    let script = "i=0; while :; do i=$((i+1)); echo $i; echo $i >> ticks; sleep 0.01; done";
    let _stream = fixture.start(script).await;
    tokio::time::sleep(DEADLINE).await;
}

#[tokio::test]
async fn a_stubborn_agent_is_ended_with_all_that_it_started() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start(STUBBORN).await;
    let grandchild = line(&mut stream).await.1;
    let agent = stream.agent().unwrap();
    assert!(is_alive(&grandchild));
    let ended = within("end", stream.end(SHORT)).await.unwrap();
    assert_eq!((ended.reason, ended.exit.unwrap().signal_name()), (EndReason::Requested, Some("SIGKILL")));
    assert!(!is_alive(&grandchild) && !is_alive(agent));
}

#[tokio::test]
async fn what_an_agent_leaves_behind_ends_when_it_does() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start("(trap '' TERM; while :; do sleep 0.01; done) & echo $!; exit 0").await;
    let grandchild = line(&mut stream).await.1;
    let (_, ended) = end(&mut stream).await;
    assert!(ended.reason == EndReason::Exited && ended.exit.unwrap().success(), "{ended:?}");
    assert!(!is_alive(grandchild));
}

#[tokio::test]
async fn an_agent_whose_stdout_somebody_else_keeps_open_has_ended_all_the_same() {
    let fixture = ShimFixture::new();
    // The daemon says its id when it has left the group; before that, it would end with the group.
    let script = "setsid sh -c 'echo $$; exec sleep 60' & read -r _; echo bye; exit 0";
    let mut stream = fixture.start(script).await;
    let daemon = line(&mut stream).await.1;
    stream.write(b"leave").await.unwrap();
    assert_eq!(line(&mut stream).await.1, "bye");
    let (number, _) = end(&mut stream).await;
    assert_eq!(number, 3);
    signal(daemon.parse().unwrap(), Signal::KILL);
}

/// The parent of a process, which has to exist, and whether it has ended.
fn parent_and_end(id: &str) -> (u32, bool) {
    let stat = grove_work::ProcFolder.stat(id.trim().parse().unwrap()).unwrap();
    (stat.parent, stat.has_ended)
}

#[tokio::test]
async fn a_process_that_forks_twice_stays_below_the_shim() {
    let fixture = ShimFixture::new();
    // Both parents of the last one end at once, and it is in a session of its own.
    let script = "setsid sh -c 'nohup sh -c \"echo \\$\\$; exec sleep 60\" & exit 0' & wait; echo forked; cat";
    let mut stream = fixture.start(script).await;
    let lines = [line(&mut stream).await.1, line(&mut stream).await.1];
    let daemon = lines.iter().find(|line| *line != "forked").unwrap();
    let shim = stream.shim().unwrap();
    until("the shim adopts it", || parent_and_end(daemon).0 == shim).await;
    let key = grove_work::ProcFolder.key(shim).unwrap();
    let found = grove_work::ancestry(&grove_work::ProcFolder, daemon.parse().unwrap(), &[key].into());
    assert_eq!(found, grove_work::Ancestry::Below(key));
    signal(daemon.parse().unwrap(), Signal::KILL);
    until("nothing is left of it, not even a zombie", || grove_work::ProcFolder.key(daemon.parse().unwrap()).is_none())
        .await;
    // The agent itself is left to its owner, which reports its exit.
    signal(stream.agent().unwrap(), Signal::KILL);
    assert_eq!(end(&mut stream).await.1.exit.unwrap().signal, Some(9));
}

#[tokio::test]
async fn a_shim_reaps_a_flood_of_orphans() {
    let fixture = ShimFixture::new();
    let script = "for i in $(seq 1 40); do (setsid sleep 0.05 &) ; done; echo $$; cat";
    let mut stream = fixture.start(script).await;
    line(&mut stream).await;
    let shim = stream.shim().unwrap();
    let children = || grove_work::ProcFolder.all().filter(|process| process.parent == shim).count();
    until("the agent alone is left", || children() == 1).await;
    within("end", stream.end(DEADLINE)).await.unwrap();
}

#[tokio::test]
async fn a_shim_that_is_told_to_terminate_ends_its_agent_first() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start(STUBBORN).await;
    let grandchild = line(&mut stream).await.1;
    let (shim, agent) = (stream.shim().unwrap(), stream.agent().unwrap());
    signal(shim, Signal::HUP);
    signal(shim, Signal::TERM);
    let (number, ended) = end(&mut stream).await;
    assert_eq!(ended.reason, EndReason::Requested);
    assert!(!is_alive(&grandchild) && !is_alive(agent));
    stream.acknowledge(number).await.unwrap();
    until("it ends", || !is_alive(shim)).await;
}

#[tokio::test]
async fn an_agent_without_a_host_is_ended_after_a_while() {
    let mut fixture = ShimFixture::new();
    fixture.limits.alone = Duration::from_millis(400);
    let mut stream = fixture.start(STUBBORN).await;
    let grandchild = line(&mut stream).await.1;
    let (shim, agent) = (stream.shim().unwrap(), stream.agent().unwrap());
    // A shim without a host that begins later is ended meanwhile.
    let mut other = ShimFixture::new();
    other.limits.alone = Duration::from_millis(800);
    let alone = other.start("sleep 600").await;
    let its_agent = alone.agent().unwrap();
    drop(alone);
    until("the other ends", || !is_alive(its_agent)).await;
    assert!(is_alive(agent), "it has a host");
    drop(stream);
    until("all end", || ![shim, agent].iter().any(is_alive) && !is_alive(&grandchild)).await;
    assert!(!fixture.shim.join("socket").exists());
}

#[tokio::test]
async fn an_agent_that_no_host_can_find_any_more_is_ended() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start(STUBBORN).await;
    let grandchild = line(&mut stream).await.1;
    let (shim, agent) = (stream.shim().unwrap(), stream.agent().unwrap());
    drop(stream);
    std::fs::remove_dir_all(&fixture.shim).unwrap();
    until("all end", || ![shim, agent].iter().any(is_alive) && !is_alive(&grandchild)).await;
}

#[tokio::test]
async fn the_last_words_of_an_agent_wait_a_while_for_a_host() {
    let mut fixture = ShimFixture::new();
    fixture.limits.linger = Duration::from_secs(2);
    let stream = fixture.start("sleep 0.1; echo done").await;
    let (shim, agent) = (stream.shim().unwrap(), stream.agent().unwrap());
    drop(stream);
    until("the agent ends", || !is_alive(agent)).await;
    let mut stream = fixture.attach(1).await.unwrap();
    assert_eq!(line(&mut stream).await, (1, "done".to_owned()));
    assert_eq!(end(&mut stream).await.0, 2);
    let left = Instant::now();
    drop(stream);
    until("the shim ends", || !is_alive(shim)).await;
    assert!(left.elapsed() > Duration::from_secs(1), "it waited");
}

#[tokio::test]
async fn a_second_host_takes_over_and_the_first_is_told() {
    let fixture = ShimFixture::new();
    let mut first = fixture.start("cat").await;
    first.write(b"one").await.unwrap();
    assert_eq!(line(&mut first).await, (1, "one".to_owned()));
    let mut second = fixture.attach(1).await.unwrap();
    assert_eq!(second.taken(), 1);
    let closed = within("the reason", first.read()).await.unwrap_err();
    assert!(matches!(closed, ShimError::TakenOver), "{closed}");
    assert!(matches!(first.write(b"nobody hears it").await, Err(ShimError::TakenOver)));
    assert_eq!(second.write(b"two").await.unwrap(), 2);
    assert_eq!(line(&mut second).await, (1, "one".to_owned()), "it was not acknowledged");
    assert_eq!(line(&mut second).await, (2, "two".to_owned()));
    within("end", second.end(DEADLINE)).await.unwrap();
}

#[tokio::test]
async fn a_socket_that_a_killed_shim_left_behind_is_in_nobodys_way() {
    let fixture = ShimFixture::new();
    let stream = fixture.start("cat").await;
    let (shim, agent) = (stream.shim().unwrap(), stream.agent().unwrap());
    signal(shim, Signal::KILL);
    until("it ends", || !is_alive(shim)).await;
    until("the agent ends with its stdin", || !is_alive(agent)).await;
    assert!(fixture.shim.join("socket").exists());
    assert!(matches!(fixture.attach(1).await, Err(ShimError::Gone { .. })));
    let mut stream = fixture.start("echo again; cat").await;
    assert_eq!(line(&mut stream).await, (1, "again".to_owned()));
    within("end", stream.end(DEADLINE)).await.unwrap();
}

#[tokio::test]
async fn a_folder_has_one_shim_at_a_time() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start("cat").await;
    let refused = within("start", ShimStream::start(&program(), &fixture.options("cat"))).await.unwrap_err();
    assert!(matches!(refused, ShimError::InUse { .. }), "{refused}");
    stream.write(b"still here").await.unwrap();
    assert_eq!(line(&mut stream).await.1, "still here");
    within("end", stream.end(DEADLINE)).await.unwrap();
}

#[tokio::test]
async fn a_folder_that_others_may_enter_is_refused_and_a_new_one_is_private() {
    let fixture = ShimFixture::new();
    let stream = fixture.start("cat").await;
    assert_eq!(std::fs::metadata(&fixture.shim).unwrap().permissions().mode() & 0o777, 0o700);
    within("end", stream.end(DEADLINE)).await.unwrap();
    std::fs::set_permissions(&fixture.shim, std::fs::Permissions::from_mode(0o750)).unwrap();
    let refused = within("start", ShimStream::start(&program(), &fixture.options("cat"))).await.unwrap_err();
    assert!(matches!(refused, ShimError::NotPrivate { .. }), "{refused}");
}

#[tokio::test]
async fn a_folder_may_have_a_longer_path_than_a_socket() {
    let mut fixture = ShimFixture::new();
    fixture.shim = fixture.work.join("a-long-name".repeat(12)).join("shim");
    let mut stream = fixture.start("echo hello; cat").await;
    assert_eq!(line(&mut stream).await.1, "hello");
    drop(stream);
    let stream = fixture.attach(2).await.unwrap();
    within("end", stream.end(DEADLINE)).await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_no_shim_is_said_to_be_none() {
    let fixture = ShimFixture::new();
    let mut program = program();
    program.program = "/bin/false".into();
    let failed = within("start", ShimStream::start(&program, &fixture.options("cat"))).await.unwrap_err();
    assert!(matches!(failed, ShimError::Start(_)), "{failed}");
    program.program = "/no/such/program".into();
    let failed = within("start", ShimStream::start(&program, &fixture.options("cat"))).await.unwrap_err();
    assert!(matches!(failed, ShimError::Start(_)), "{failed}");
}

#[tokio::test]
async fn whoever_talks_nonsense_keeps_nobody_from_being_heard() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let fixture = ShimFixture::new();
    let mut stream = fixture.start("cat").await;
    let silent = tokio::net::UnixStream::connect(fixture.shim.join("socket")).await.unwrap();
    let mut noisy = tokio::net::UnixStream::connect(fixture.shim.join("socket")).await.unwrap();
    noisy.write_all(&[0xff; 100]).await.ok();
    let mut heard = Vec::new();
    within("it is closed", noisy.read_to_end(&mut heard)).await.ok();
    stream.write(b"still here").await.unwrap();
    match within("a line", stream.read()).await.unwrap() {
        FromAgent::Line { line, .. } => assert_eq!(line, &b"still here"[..]),
        other => panic!("{other:?}"),
    }
    drop(silent);
    within("end", stream.end(DEADLINE)).await.unwrap();
}
