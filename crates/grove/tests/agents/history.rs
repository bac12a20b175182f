//! What real agents leave on the disk is read as what was said.

use std::collections::BTreeSet;

use grove_history::{Environment, Hints, Platform, Source, TurnOutcome, locations, read_whole, reader_of};
use grove_testkit::model::{FakeModel, Script, Step, Turn};

use crate::peer::Peer;
use crate::support::Place;

fn script() -> Script {
    Script::new([Turn::told(
        "run the command",
        [vec![Step::say("I will run it."), Step::shell("echo grove-was-here")], vec![Step::say("It has run.")]],
    )])
}

/// Runs one turn with the real agent, and reads the session that the agent itself has stored.
async fn what_an_agent_stored_is_read(peer: Peer, source: Source) {
    let Some(program) = peer.program() else { return };
    let place = Place::new();
    let model = FakeModel::start(script()).await;
    peer.settle(&place, &model, &program);
    let mut serve = place.serve_command(&[]);
    serve.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LANG", "C.UTF-8");
    let host = place.start(serve);
    let mut run = place.grove(&["run", "--agent", peer.name(), "--yes", "run the command"]);
    run.current_dir(place.path("work")).arg("--data-dir").arg(place.data());
    let ran = tokio::task::spawn_blocking(move || run.output().unwrap()).await.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    // The agent may hold back what it has not written until it ends.
    let place = host.stop();

    let environment = Environment {
        home: place.home().to_str().unwrap().to_owned(),
        codex_home: Some(place.path("codex").to_str().unwrap().to_owned()),
        ..Environment::default()
    };
    let roots = locations(Platform::Linux, &environment);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for root in roots.iter().filter(|root| root.source == source) {
        let finding = reader_of(source).find(root, Hints::Read);
        assert!(finding.problems.is_empty(), "{:?}", finding.problems);
        found.extend(finding.sessions);
    }
    for located in &found {
        let (session, turns) = read_whole(reader_of(source), located).unwrap();
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
    what_an_agent_stored_is_read(Peer::Codex, Source::Codex).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_real_copilot_cli_is_read() {
    what_an_agent_stored_is_read(Peer::Copilot, Source::CopilotCli).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_real_opencode_is_read() {
    what_an_agent_stored_is_read(Peer::OpenCode, Source::OpenCode).await;
}
