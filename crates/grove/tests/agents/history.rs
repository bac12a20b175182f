//! Sessions that real agents stored are read correctly.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use grove_history::{Hints, Platform, StoreEnvironment, read_with_turns, reader_of, store_roots};
use grove_testkit::model::{FakeModel, MODEL, ReplyStep, Script, Turn};
use grove_transcript::{TranscriptSource, TurnOutcome};
use serde_json::{Value, json};

use crate::peer::{Peer, installed};
use crate::support::{CommandResult, TestHome};

fn script() -> Script {
    Script::new([Turn::told(
        "run the command",
        [
            vec![ReplyStep::say("I will run it."), ReplyStep::shell("echo grove-was-here")],
            vec![ReplyStep::say("It has run.")],
        ],
    )])
}

/// Runs one turn with the real agent, and reads the session that the agent itself has stored.
async fn what_an_agent_stored_is_read(peer: Peer, source: TranscriptSource) {
    let Some(program) = peer.program() else { return };
    let place = TestHome::new();
    let model = FakeModel::start(script()).await;
    peer.settle(&place, &model, &program);
    let mut serve = place.serve_command(&[]);
    serve.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LANG", "C.UTF-8");
    let host = place.start(serve);
    let mut run = place.grove(&["run", "--agent", peer.name(), "--yes", "run the command"]);
    run.current_dir(place.path("work")).arg("--data-dir").arg(place.data());
    let ran = tokio::task::spawn_blocking(move || run.output().unwrap()).await.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    // The agent may write some of it only when it ends.
    let place = host.stop();

    let environment = StoreEnvironment {
        home: place.home().to_str().unwrap().to_owned(),
        codex_home: Some(place.path("codex").to_str().unwrap().to_owned()),
        ..StoreEnvironment::default()
    };
    let roots = store_roots(Platform::Linux, &environment);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for root in roots.iter().filter(|root| root.source == source) {
        let finding = reader_of(source).find(root, Hints::Read);
        assert!(finding.problems.is_empty(), "{:?}", finding.problems);
        found.extend(finding.sessions);
    }
    for location in &found {
        let (session, turns) = read_with_turns(reader_of(source), location).unwrap();
        assert!(!session.damage.is_recovered(), "{:?}", session.damage);
        for turn in turns.iter().filter(|turn| turn.message.text.contains("run the command")) {
            let calls: Vec<_> = turn.tool_calls().collect();
            assert!(calls.iter().any(|call| call.output.as_ref().is_some_and(|it| it.text.contains("grove-was-here"))));
            assert!(turn.text().contains("It has run."), "{turn:?}");
            assert_eq!(turn.outcome, TurnOutcome::Complete);
            seen.insert(session.source_id.clone());
        }
    }
    assert_eq!(seen.len(), 1, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_real_codex_is_read() {
    what_an_agent_stored_is_read(Peer::Codex, TranscriptSource::Codex).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_real_copilot_cli_is_read() {
    what_an_agent_stored_is_read(Peer::Copilot, TranscriptSource::CopilotCli).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_real_opencode_is_read() {
    what_an_agent_stored_is_read(Peer::OpenCode, TranscriptSource::OpenCode).await;
}

/// Runs a prompt with the real pi and the fake model.
fn ask_pi(program: &Path, place: &TestHome, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", place.home()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("PI_OFFLINE", "1").current_dir(place.path("work")).stdin(std::process::Stdio::null());
    let ran = command.args(["-p", "--provider", "fake", "--model", MODEL]).args(args).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_real_pi_is_listed_and_shown_and_pi_goes_on_with_its_export() {
    let Some(program) = installed("mariozechner-pi-coding-agent", "pi") else { return };
    let place = TestHome::new();
    let model = FakeModel::start(Script::new([
        Turn::told("go on", [vec![ReplyStep::say("I went on.")]]),
        Turn::told(
            "run the command",
            [
                vec![ReplyStep::say("I will run it."), ReplyStep::shell("echo grove-was-here")],
                vec![ReplyStep::say("It has run.")],
            ],
        ),
    ]))
    .await;
    let models = json!([{"id": MODEL, "contextWindow": 100_000, "maxTokens": 4_096, "input": ["text"]}]);
    let provider =
        json!({"baseUrl": format!("{}/v1", model.url()), "api": "openai-completions", "apiKey": "x", "models": models});
    place.write("home/.pi/agent/models.json", json!({"providers": {"fake": provider}}).to_string());
    place.write("work/README.md", "# A folder to work in\n");
    let work = move || {
        let said = ask_pi(&program, &place, &["run the command"]);
        assert!(said.contains("It has run."), "{said}");

        let json_of = |ran: CommandResult| -> Value {
            assert_eq!(ran.code, Some(0), "{ran:?}");
            serde_json::from_str(&ran.stdout).unwrap()
        };
        let host = place.serve(&[]);
        let listed = json_of(place.run(&["ls", "--all", "--source", "pi", "--json"]));
        let [session] = listed["sessions"].as_array().unwrap().as_slice() else { panic!("{listed}") };
        assert_eq!((&session["turns"], &session["state"]), (&json!(1), &json!("complete")), "{listed}");
        assert_eq!((&session["models"], &session["tools"]), (&json!([MODEL]), &json!(["bash"])), "{listed}");
        assert_eq!(session["workingDirectory"], json!(place.path("work")), "{listed}");
        let id = session["sourceId"].as_str().unwrap();
        let shown = json_of(place.run(&["show", id, "--json"]));
        let turn = &shown["turns"][0];
        assert_eq!(turn["message"]["text"], "run the command", "{shown}");
        let parts = turn["parts"].as_array().unwrap();
        let call = parts.iter().find_map(|part| part.get("toolCall")).unwrap();
        assert_eq!(call["input"]["command"]["command"], "echo grove-was-here", "{call}");
        assert!(call["output"]["text"].as_str().unwrap().contains("grove-was-here"), "{call}");
        assert_eq!(parts.last().unwrap()["text"], "It has run.", "{turn}");
        assert_eq!(place.run(&["doctor"]).code, Some(0));

        // pi continues a session that Grove wrote.
        let exported = json_of(place.run(&["export", id, "--format", "pi", "--out", "exported", "--json"]));
        let file = exported["path"].as_str().unwrap();
        let said = ask_pi(&program, &place, &["--session", file, "go on"]);
        assert!(said.contains("I went on."), "{said}");
        let again = json_of(place.run(&["show", file, "--json"]));
        let texts: Vec<&Value> =
            again["turns"].as_array().unwrap().iter().map(|turn| &turn["message"]["text"]).collect();
        assert_eq!(texts, ["run the command", "go on"]);
        host.stop();
    };
    tokio::task::spawn_blocking(work).await.unwrap();
    let asked = model.requests();
    let last = asked.last().unwrap();
    assert!(last.body.to_string().contains("It has run."), "pi told the model what was in the export");
}
