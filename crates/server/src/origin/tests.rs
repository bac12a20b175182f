use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::*;

/// A shell that plays the process of an agent, and ends with the test.
struct AgentShell(Child);

impl AgentShell {
    /// Runs a script in Bash, and waits for its first line.
    fn run(script: &str) -> (Self, String) {
        let mut child =
            Command::new("bash").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(child), line.trim().to_owned())
    }

    fn root(&self) -> AgentRoot {
        AgentRoot { process: ProcFolder.key(self.0.id()).unwrap(), session: "of-the-agent".into() }
    }
}

impl Drop for AgentShell {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A process that is an ancestor of this test's children and of no other, so that they count as outside.
fn no_host() -> Option<ProcessKey> {
    Some(ProcessKey { id: 0, started: 0 })
}

fn its_session() -> Origin {
    Origin::Agent(Some("of-the-agent".into()))
}

#[test]
fn a_peer_of_the_unix_socket_is_judged_by_its_parents() {
    let (agent, child) = AgentShell::run("bash -c 'echo $$; read line' <&0");
    let peer = |pid| {
        let started = ProcFolder.key(pid).map(|process| process.started);
        PeerAddress::Unix { pid: Some(pid), started, uid: 0 }
    };
    let child: u32 = child.parse().unwrap();
    let lookup = ProcessLookup::below(no_host(), vec![agent.root()]);
    assert_eq!(lookup.judge(peer(child)), its_session());
    assert_eq!(lookup.judge(peer(std::process::id())), Origin::Other);
    assert_eq!(lookup.judge(PeerAddress::Unix { pid: None, started: None, uid: 0 }), Origin::Other);
    assert_eq!(lookup.judge(PeerAddress::InProcess), Origin::Other);
    // What the host itself starts, as it does for an agent's terminal, is no person either.
    let host = ProcessLookup::below(ProcFolder.key(std::process::id()), Vec::new());
    assert_eq!(host.judge(peer(child)), Origin::Agent(None));
    assert_eq!(host.judge(peer(std::process::id())), Origin::Other, "the host itself");
    let (mut ended, _) = AgentShell::run("echo");
    ended.0.wait().unwrap();
    assert_eq!(lookup.judge(peer(ended.0.id())), Origin::Unknown);
    let later = PeerAddress::Unix { pid: Some(child), started: Some(1), uid: 0 };
    assert_eq!(lookup.judge(later), Origin::Unknown, "another process has had that number");
    let begin = Instant::now();
    (0..100).for_each(|_| drop(lookup.judge(peer(child))));
    println!("the parents of a process: {:?}", begin.elapsed() / 100);
}

#[test]
fn a_peer_of_a_local_address_is_judged_by_the_process_that_has_its_socket() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let local = listener.local_addr().unwrap();
    let tcp = |peer| PeerAddress::Tcp { peer, local };
    // It forks twice and hands the socket down.
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}; (bash -c 'echo $$; read line' <&0)", local.port());
    let (agent, _) = AgentShell::run(&script);
    let (of_agent, its_address) = listener.accept().unwrap();
    let own = std::net::TcpStream::connect(local).unwrap();
    let (_accepted, own_address) = listener.accept().unwrap();

    let lookup = ProcessLookup::below(no_host(), vec![agent.root()]);
    assert_eq!(lookup.judge(tcp(its_address)), its_session());
    assert_eq!(lookup.judge(tcp(own_address)), Origin::Other);
    let begin = Instant::now();
    lookup.judge(tcp(own_address));
    println!("the process of an address: {:?}", begin.elapsed());
    assert_eq!(lookup.judge(tcp("203.0.113.7:80".parse().unwrap())), Origin::Other, "another machine");
    // It is gone before it was looked up, as a program that sends one message and ends.
    drop((own, agent, of_agent));
    assert_eq!(lookup.judge(tcp(own_address)), Origin::Unknown);
}
