#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::sync::Arc;
use std::time::Duration;

use grove_core::ClientTool;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::calls::Shown;
use super::relay::{self, RelayOptions};
use super::*;
use crate::agent::{ClientTools, OfferedTool, ToolStage, ToolUpdate};
use crate::setup::ToolFilter;

const DEADLINE: Duration = Duration::from_secs(20);

/// The tools that a client offers.
struct Offer(watch::Sender<Arc<[OfferedTool]>>);

impl Offer {
    fn of(names: &[&str]) -> Self {
        Self(watch::Sender::new(offered(names)))
    }

    fn tools(&self) -> ClientTools {
        ClientTools::new(self.0.subscribe())
    }
}

fn offered(names: &[&str]) -> Arc<[OfferedTool]> {
    let tool = |name: &&str| ClientTool {
        name: (*name).to_owned(),
        description: None,
        input_schema: Some(json!({"properties": {"a": {"type": "number"}}})),
        extra: None,
    };
    names.iter().map(|name| OfferedTool { client: "c".into(), tool: tool(name) }).collect()
}

/// The agent's end of the program that it starts.
struct RelayedAgent {
    stdin: tokio::io::WriteHalf<DuplexStream>,
    stdout: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl RelayedAgent {
    fn start(folder: &Path, secret: String) -> Self {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (from_agent, to_agent) = tokio::io::split(far);
        let options = RelayOptions { folder: folder.to_owned(), secret };
        tokio::spawn(relay::run(options, from_agent, to_agent));
        let (stdout, stdin) = tokio::io::split(near);
        Self { stdin, stdout: BufReader::new(stdout).lines() }
    }

    async fn send(&mut self, message: Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = timeout(DEADLINE, self.stdout.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, method: &str, id: u64) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}})).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].clone()
    }

    async fn tools(&mut self, id: u64) -> Vec<String> {
        let listed = self.ask("tools/list", id).await;
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn announced(id: &str, title: &str, stage: Option<ToolStage>) -> ToolUpdate {
    ToolUpdate { title: Some(title.to_owned()), stage, ..ToolUpdate::of(id.into()) }
}

#[tokio::test]
async fn who_does_not_know_the_secret_gets_no_tools() {
    let folder = tempfile::tempdir().unwrap();
    let offer = Offer::of(&["add"]);
    let calls = Arc::new(ToolCalls::start(folder.path(), offer.tools(), ToolFilter::default()).unwrap());
    let _server = ToolServer::start(Arc::clone(&calls)).unwrap();
    for secret in ["", "wrong", &"0".repeat(64)] {
        let stream = UnixStream::connect(address(folder.path()).unwrap().path()).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let hello = json!({"secret": secret, "process": "p"});
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        writer.write_all(format!("{hello}\n{list}\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        // The connection may be closed before all was sent.
        timeout(DEADLINE, reader.read_to_string(&mut answer)).await.unwrap().ok();
        assert_eq!(answer, "", "{secret:?}");
    }
    let mut agent = RelayedAgent::start(folder.path(), calls.secret());
    assert_eq!(agent.tools(1).await, ["add"]);
}

#[tokio::test]
async fn the_program_of_an_agent_outlives_the_host_and_hears_of_new_tools() {
    let folder = tempfile::tempdir().unwrap();
    let offer = Offer::of(&["add", "hidden"]);
    let filter = ToolFilter { excluded: ["hidden".to_owned()].into(), ..ToolFilter::default() };
    let calls = Arc::new(ToolCalls::start(folder.path(), offer.tools(), filter.clone()).unwrap());
    let server = ToolServer::start(Arc::clone(&calls)).unwrap();
    let mut agent = RelayedAgent::start(folder.path(), calls.secret());
    let greeted = agent.ask("initialize", 1).await;
    assert_eq!(greeted["capabilities"]["tools"]["listChanged"], true, "{greeted}");
    assert_eq!(agent.tools(2).await, ["add"], "a filtered tool is not listed");

    offer.0.send_replace(offered(&["add", "get"]));
    assert_eq!(agent.next().await["method"], "notifications/tools/list_changed");
    timeout(Duration::from_millis(50), calls.wait_until_listed()).await.unwrap_err();
    assert_eq!(agent.tools(3).await, ["add", "get"]);
    timeout(DEADLINE, calls.wait_until_listed()).await.unwrap();

    // Another host goes on where this one ends.
    drop((server, calls));
    let call = json!({"name": "add", "arguments": {"a": 1}});
    agent.send(json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let calls = ToolCalls::resume(folder.path(), offer.tools(), filter, Vec::new()).unwrap();
    let _server = ToolServer::start(Arc::new(calls)).unwrap();
    let answer = agent.next().await;
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(4), &json!(true)), "no turn runs: {answer}");
}

#[tokio::test]
async fn a_call_that_the_agent_announces_and_makes_is_shown_once() {
    let folder = tempfile::tempdir().unwrap();
    let offer = Offer::of(&["add"]);
    let calls = ToolCalls::start(folder.path(), offer.tools(), ToolFilter::default()).unwrap();
    let note = |id: &str, title: &str, stage| calls.note(&announced(id, title, stage));
    assert_eq!(note("a", "grove_add", None), Shown::No);
    calls.match_announced("add");
    assert_eq!(note("a", "", Some(ToolStage::Completed)), Shown::No);
    assert_eq!(note("b", "grove_add", None), Shown::No);
    assert_eq!(note("b", "", Some(ToolStage::Failed)), Shown::Yes, "nobody called the tool");
    // A call that is made before it is announced.
    calls.match_announced("add");
    assert_eq!(note("c", "grove_add", None), Shown::No);
    assert_eq!(note("c", "", Some(ToolStage::Completed)), Shown::No);
    assert_eq!(note("d", "touch x", None), Shown::Yes);

    let again = ToolCalls::resume(folder.path(), offer.tools(), ToolFilter::default(), Vec::new()).unwrap();
    assert_eq!(again.note(&announced("c", "", Some(ToolStage::Completed))), Shown::No, "another host knows it");
    again.end_turn();
    assert_eq!(again.note(&announced("c", "", Some(ToolStage::Completed))), Shown::Yes);
}
