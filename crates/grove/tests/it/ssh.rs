//! Hosts behind ssh: through a replacement, which runs the command here, and through the real one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use grove_client::{
    Ahp, Backoff, Client, ConnectionStatus, Credentials, Dialect, DispatchOutcome, Endpoint, Options, Subscription, V1,
};
use grove_testkit::PATIENCE;
use grove_wire::ahp::{Action, ChatAction, ChatTurnStarted, CreateSessionParams, Message, SessionLifecycle};
use grove_wire::v1::{self, SessionChange, UserMessage};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::support::*;

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not happen in {PATIENCE:?}"))
}

/// A replacement for ssh on this machine: it runs its last argument in a shell, and logs its process id.
fn instead_of_ssh(place: &TestHome) -> PathBuf {
    let (bin, home) = (Path::new(env!("CARGO_BIN_EXE_grove")).parent().unwrap(), place.home());
    let script = format!(
        "#!/bin/sh\necho $$ >> {}\nfor last; do :; done\nexec env -i HOME={} PATH={}:/usr/bin:/bin sh -c \"exec $last\"\n",
        place.path("pids").display(),
        home.display(),
        bin.display()
    );
    let program = place.write("ssh", script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    program
}

/// An endpoint for the host of a place through ssh.
fn way(place: &TestHome, ssh: &Path) -> Endpoint {
    let address = format!("ssh://somewhere{}", place.data().display());
    let access = Credentials { ssh: Some(ssh.into()), ..Credentials::default() };
    Endpoint::new(&address.parse().unwrap(), &access).unwrap()
}

/// The processes that were started in place of ssh.
fn pids(place: &TestHome) -> Vec<Pid> {
    let text = fs::read_to_string(place.path("pids")).unwrap();
    text.lines().map(|line| Pid::from_raw(line.parse().unwrap()).unwrap()).collect()
}

fn is_running(pid: Pid) -> bool {
    // Zombies count, too.
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid).is_ok() && !stat.contains(") Z ")
}

async fn connect<D: Dialect>(endpoint: Endpoint, dialect: D) -> Client<D> {
    let reconnect = Backoff { first: Duration::from_millis(20), ..Backoff::default() };
    let options = Options { reconnect, ..Options::default() };
    soon("a connection", Client::connect(endpoint, dialect, options)).await.unwrap()
}

/// A complete turn in version 1.
async fn talk_v1(client: &Client<V1>, uri: &str) {
    let create =
        v1::CreateSessionParams { session: uri.to_owned(), provider: None, model: None, working_directory: None };
    client.request(create).await.unwrap();
    let mut session = client.subscribe(uri).await.unwrap();
    let ready = session.until(|state| (state.session()?.lifecycle == v1::Lifecycle::Ready).then_some(()));
    soon("a session", ready).await.unwrap();
    let user_message = UserMessage { text: "script:[{\"say\":\"from afar\"}]".to_owned(), attachments: None };
    session.dispatch(SessionChange::TurnStarted { turn_id: "t".to_owned(), user_message }).unwrap();
    let turn = session.until(|state| state.session()?.turns.first().cloned());
    let turn = soon("a turn", turn).await.unwrap();
    assert!(serde_json::to_string(&turn).unwrap().contains("from afar"));
}

async fn chat_of(client: &Client<Ahp>, uri: &str) -> Subscription<Ahp> {
    let mut session = client.subscribe(uri).await.unwrap();
    let ready = session.until(|state| {
        let session = state.session()?;
        (session.lifecycle == SessionLifecycle::Ready).then(|| session.default_chat.clone())?
    });
    let chat = soon("a session", ready).await.unwrap();
    client.subscribe(&chat).await.unwrap()
}

fn say(turn: &str, steps: &Value) -> Action {
    Action::Chat(ChatAction::TurnStarted(ChatTurnStarted {
        turn_id: turn.to_owned(),
        started_at: "2026-11-15T00:00:00.000Z".to_owned(),
        message: Message { text: format!("script:{steps}"), ..Message::default() },
        queued_message_id: None,
        meta: None,
    }))
}

/// A complete turn in the Agent Host Protocol.
async fn talk_ahp(client: &Client<Ahp>, uri: &str) -> Subscription<Ahp> {
    let create = CreateSessionParams { channel: uri.to_owned(), ..CreateSessionParams::default() };
    client.request(create).await.unwrap();
    let mut chat = chat_of(client, uri).await;
    chat.dispatch(say("t", &json!([{"say": "from afar"}]))).unwrap();
    let turn = soon("a turn", chat.until(|state| state.chat()?.turns.first().cloned())).await.unwrap();
    assert!(serde_json::to_string(&turn).unwrap().contains("from afar"));
    chat
}

#[tokio::test]
async fn both_protocols_go_through_ssh_to_a_host_that_it_starts() {
    let background = Background(TestHome::new());
    let place = &background.0;
    let ssh = instead_of_ssh(place);
    let client = connect(way(place, &ssh), Ahp::default()).await;
    let status = place.run(&["status", "--json"]);
    assert_eq!(status.code, Some(0), "a host was started: {}", status.stderr);
    talk_ahp(&client, "scripted:/a").await;
    let old = connect(way(place, &ssh), V1::default()).await;
    talk_v1(&old, "scripted:/b").await;
    client.close().await;
    old.close().await;
    let deadline = Deadline::new("somebody in the place of ssh still runs");
    while pids(place).into_iter().any(is_running) {
        deadline.check();
    }
    assert_eq!(place.run(&["status"]).code, Some(0), "the host outlives its clients");
}

#[tokio::test]
async fn a_client_comes_back_when_its_ssh_is_killed_and_misses_nothing() {
    let host = Host::start();
    let ssh = instead_of_ssh(&host.place);
    let client = connect(way(&host.place, &ssh), Ahp::default()).await;
    let mut chat = talk_ahp(&client, "scripted:/a").await;
    for round in 1..=2 {
        let turn = format!("t{round}");
        let steps = json!([{"say": "before "}, {"sleepMs": 300}, {"say": "after"}]);
        let begun = soon("the turn's beginning", chat.dispatch(say(&turn, &steps)).unwrap().into_future()).await;
        assert!(matches!(begun, DispatchOutcome::Confirmed(_)), "{begun:?}");
        kill_process(*pids(&host.place).last().unwrap(), Signal::KILL).unwrap();
        let another = async {
            while pids(&host.place).len() == round {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon("another ssh", another).await;
        soon("a new connection", client.connected()).await.unwrap();
        let ended = chat.until(|state| state.chat()?.turns.iter().find(|done| done.id == turn).cloned());
        let ended = soon("the turn's end", ended).await.unwrap();
        let ended = serde_json::to_string(&ended).unwrap();
        assert!(ended.contains("before ") && ended.contains("after"), "{ended}");
        assert_eq!(pids(&host.place).len(), 1 + round);
    }
    client.close().await;
    host.until_connections(0);
}

#[tokio::test]
async fn two_clients_of_one_id_do_not_push_each_other_out_for_ever() {
    let host = Host::start();
    let ssh = instead_of_ssh(&host.place);
    let options = || Options { client_id: Some("one".to_owned()), ..Options::default() };
    let first = Client::connect(way(&host.place, &ssh), V1::default(), options()).await.unwrap();
    let second = Client::connect(way(&host.place, &ssh), V1::default(), options()).await.unwrap();
    let mut status = first.status();
    let closed = soon("the end", status.wait_for(ConnectionStatus::is_closed)).await.unwrap().clone();
    assert_eq!(closed, ConnectionStatus::ClientClosed(grove_client::ClientClosed::TakenOver));
    talk_v1(&second, "scripted:/a").await;
}

#[test]
fn a_host_behind_ssh_is_known_by_name_and_one_that_is_away_says_why() {
    let background = Background(TestHome::new());
    let (far, near) = (&background.0, TestHome::new());
    let ssh = instead_of_ssh(far);
    let run = |ssh: &Path, args: &[&str]| {
        CommandResult::from(near.grove(args).arg("--data-dir").arg(near.data()).env("GROVE_SSH", ssh).output().unwrap())
    };
    let address = format!("ssh://me@dev-box{}", far.data().display());
    assert_eq!(run(&ssh, &["hosts", "add", "dev-box", &address]).code, Some(0));
    let ran = run(&ssh, &["hosts", "--json"]);
    let row = serde_json::from_str::<Value>(&ran.stdout).unwrap()["hosts"][0].clone();
    assert_eq!((&row["reachable"], &row["sessions"]), (&json!(true), &json!(0)), "{ran:?}");

    let broken = near.write("broken", "#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n");
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o700)).unwrap();
    let ran = run(&broken, &["hosts"]);
    assert_eq!(ran.code, Some(0), "an unreachable host does not fail the command");
    assert!(ran.stdout.contains("unreachable"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("Permission denied (publickey)") && ran.stderr.contains("ssh dev-box"),
        "{}",
        ran.stderr
    );
}

/// A real OpenSSH server on loopback, with its own keys, stopped with the test.
struct Sshd {
    child: Child,
    /// The real client, which knows only this server.
    ssh: PathBuf,
    port: u16,
}

impl Sshd {
    const PROGRAM: &str = "/usr/sbin/sshd";

    fn start(place: &TestHome) -> Option<Self> {
        let missing =
            [Self::PROGRAM, "/usr/bin/ssh", "/usr/bin/ssh-keygen"].into_iter().find(|it| !Path::new(it).exists());
        if let Some(missing) = missing {
            skipped(&format!("{missing} is missing (on Debian: apt-get install openssh-server)"));
            return None;
        }
        for key in ["host-key", "user-key"] {
            let mut keygen = Command::new("/usr/bin/ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(place.path(key));
            assert!(keygen.status().unwrap().success());
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = |name: &str| place.path(name).display().to_string();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\nSetEnv GROVE_CONFIG={}\n",
            path("host-key"),
            path("user-key.pub"),
            path("grove.toml"),
        );
        let config = place.write("sshd_config", config);
        let host_key = fs::read_to_string(place.path("host-key.pub")).unwrap();
        place.write("known_hosts", format!("[127.0.0.1]:{port} {host_key}"));
        let ssh = format!(
            "#!/bin/sh\nexec /usr/bin/ssh -F none -o IdentitiesOnly=yes -o IdentityAgent=none -o IdentityFile={} \
             -o UserKnownHostsFile={} -o StrictHostKeyChecking=yes \"$@\"\n",
            path("user-key"),
            path("known_hosts"),
        );
        let ssh = place.write("real-ssh", ssh);
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700)).unwrap();
        // Root needs this folder; other users do not.
        fs::create_dir_all("/run/sshd").ok();
        let log = fs::File::create(place.path("sshd.log")).unwrap();
        let mut command = Command::new(Self::PROGRAM);
        command.args(["-D", "-e", "-f"]).arg(config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut sshd = Self { child: command.spawn().unwrap(), ssh, port };
        let deadline = Deadline::new("sshd does not answer");
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if sshd.child.try_wait().unwrap().is_some() {
                skipped(&format!("sshd cannot run here: {}", fs::read_to_string(place.path("sshd.log")).unwrap()));
                return None;
            }
            deadline.check();
        }
        Some(sshd)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[allow(clippy::print_stderr, reason = "the user who runs the tests should know")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[tokio::test]
async fn the_real_ssh_reaches_a_host_and_starts_it() {
    let background = Background(TestHome::new());
    let place = &background.0;
    let Some(sshd) = Sshd::start(place) else { return };
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let address = format!(
        "ssh://{}@127.0.0.1:{}{}?grove={}",
        user.trim(),
        sshd.port,
        place.data().display(),
        env!("CARGO_BIN_EXE_grove")
    );
    let access = Credentials { ssh: Some(sshd.ssh.clone().into()), ..Credentials::default() };
    let endpoint = Endpoint::new(&address.parse().unwrap(), &access).unwrap();
    let client = connect(endpoint.clone(), Ahp::default()).await;
    talk_ahp(&client, "scripted:/a").await;
    let old = connect(endpoint, V1::default()).await;
    talk_v1(&old, "scripted:/b").await;
    client.close().await;
    old.close().await;
    let deadline = Deadline::new("the host still counts its clients");
    while serde_json::from_str::<Value>(&place.run(&["status", "--json"]).stdout).unwrap()["connections"] != 0 {
        deadline.check();
    }

    let nobody = format!("ssh://nobody-like-that@127.0.0.1:{}", sshd.port);
    let endpoint = Endpoint::new(&nobody.parse().unwrap(), &access).unwrap();
    let error = Client::connect(endpoint, Ahp::default(), Options::default()).await.unwrap_err().to_string();
    assert!(error.contains("Permission denied"), "{error}");
}
