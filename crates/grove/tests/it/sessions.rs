//! `grove ls`, `send`, `cancel`, `approve`, `deny`, `answer`, `rm` and `agents`

use grove_client::{Ahp, Client, Options, Subscription};
use grove_wire::ahp::{
    Action, ChatState, CreateChatParams, Message, SessionAction, SessionIsArchivedChanged, SessionLifecycle,
};
use serde_json::{Value, json};

use crate::run::{BackgroundCommand, script};
use crate::support::*;
use crate::terminal::Terminal;

/// The output of a command that must succeed, as JSON.
pub(crate) fn asked(place: &TestHome, args: &[&str]) -> Value {
    let ran = place.run(args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

pub(crate) async fn ahp(host: &Host) -> Client<Ahp> {
    let endpoint = grove_client::Endpoint::tcp(&host.ws, Some(&host.token)).unwrap();
    Client::connect(endpoint, Ahp::default(), Options::default()).await.unwrap()
}

/// A ready session, and its main chat.
async fn session(client: &Client<Ahp>, uri: &str) -> (Subscription<Ahp>, Subscription<Ahp>) {
    let create = grove_wire::ahp::CreateSessionParams { channel: uri.to_owned(), ..Default::default() };
    client.request(create).await.unwrap();
    let mut session = client.subscribe(uri).await.unwrap();
    session.until(|state| (state.session()?.lifecycle == SessionLifecycle::Ready).then_some(())).await.unwrap();
    let chat = session.read(|state| state.session().unwrap().default_chat.clone().unwrap());
    let chat = client.subscribe(&chat).await.unwrap();
    (session, chat)
}

async fn until(chat: &mut Subscription<Ahp>, what: impl Fn(&ChatState) -> bool) {
    let wait = chat.until(|state| what(state.chat()?).then_some(()));
    tokio::time::timeout(grove_testkit::PATIENCE, wait).await.expect("it does not happen").unwrap();
}

#[tokio::test]
async fn ls_is_a_table_or_the_summaries() {
    let host = Host::start();
    let place = &host.place;
    let ran = place.run(&["ls"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.contains("no sessions") && ran.stderr.contains("grove run"), "{}", ran.stderr);
    assert_eq!(asked(place, &["ls", "--json"]), json!({"sessions": []}));

    let client = ahp(&host).await;
    let (_first, mut chat) = session(&client, "scripted:/0123456789ab").await;
    let hang = script(&json!([{"title": "A title that is far too long for a table, isn't it?"}, {"hang": true}]));
    assert_eq!(place.run(&["send", "0123", &hang]).code, Some(0));
    until(&mut chat, |chat| chat.active_turn.is_some()).await;
    let (old, _) = session(&client, "scripted:/archived").await;
    let archive = SessionAction::IsArchivedChanged(SessionIsArchivedChanged { is_archived: true });
    old.dispatch(Action::Session(archive)).unwrap().await;
    session(&client, "scripted:/waiting").await;
    let asks = script(&json!([{"tool": {"name": "sh", "permission": "shell"}}]));
    let mut beside = BackgroundCommand::start(place, &["send", "--wait", "waiting", &asks]);
    beside.until("waiting:");

    let ran = place.run(&["ls"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stdout);
    let column = lines[0].find("AGENT").unwrap();
    for line in &lines[1..] {
        let agent: String = line.chars().skip(column).take(8).collect();
        assert_eq!(agent, "scripted", "aligned: {}", ran.stdout);
    }
    let row = |id: &str| lines.iter().find(|line| line.starts_with(id)).unwrap();
    assert!(row("01234567  ").contains("working") && row("01234567").contains('…'), "{}", ran.stdout);
    assert!(row("waiting").contains(" waiting ") && row("waiting").ends_with(" s"), "{}", ran.stdout);

    assert!(place.run(&["ls", "--all"]).stdout.lines().any(|line| line.contains("archived")));
    assert_eq!(asked(place, &["ls", "--json"])["sessions"].as_array().unwrap().len(), 2);
    let mut all = asked(place, &["ls", "--json", "--all"]);
    for session in all["sessions"].as_array_mut().unwrap() {
        let members = session.as_object_mut().unwrap();
        assert_eq!(members.remove("source"), Some(json!("grove")), "each says whose it is");
        let id = members["resource"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        assert_eq!(members.remove("id"), Some(json!(id)));
        assert_eq!(members.remove("sourceId"), Some(json!(id)));
        assert_eq!(members.remove("host"), Some(json!("local")), "and where it is");
        assert_eq!(members.remove("agent"), Some(json!("scripted")));
        assert_eq!(members.remove("cwd"), Some(Value::Null));
        let does = if id == "0123456789ab" { "working" } else { id.as_str() };
        assert_eq!(members.remove("status"), Some(json!(does)), "in a word");
        let bits = members.remove("statusBits").expect("AHP's bits are there too");
        members.insert("status".to_owned(), bits);
    }
    let theirs = client.sessions();
    theirs.refresh().await.unwrap();
    let theirs = theirs.read(|list| serde_json::to_value(list.iter().collect::<Vec<_>>()).unwrap());
    assert_eq!(all["sessions"], theirs);
    let of_v1 = asked(place, &["ls", "--json", "--protocol", "v1"]);
    assert_eq!(of_v1["sessions"].as_array().unwrap().len(), 3, "version 1 has no archive");
    assert_eq!(place.run(&["ls", "--protocol", "v1"]).code, Some(0));

    let mut terminal = Terminal::run(place, &["ls"]);
    terminal.until("\x1b[1mID");
    assert_eq!(terminal.exit(), Some(0));
}

#[tokio::test]
async fn send_starts_a_turn_or_queues_it() {
    let host = Host::start();
    let place = &host.place;
    let client = ahp(&host).await;
    let (_session, mut chat) = session(&client, "scripted:/s").await;
    let ran = place.run(&["send", "s", &script(&json!([{"say": "x"}, {"hang": true}]))]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.contains("grove attach s"), "{}", ran.stdout);
    until(&mut chat, |chat| chat.active_turn.is_some()).await;

    let busy = place.run(&["send", "s", "more"]);
    assert_eq!((busy.code, busy.stdout.as_str()), (Some(1), ""));
    assert!(busy.stderr.contains("--queue") && busy.stderr.contains("grove cancel"), "{}", busy.stderr);
    let queued = asked(place, &["send", "--queue", "--json", "s", &script(&json!([{"say": "first"}]))]);
    assert_eq!((&queued["queued"], &queued["session"]), (&json!(true), &json!("scripted:/s")));
    until(&mut chat, |chat| chat.queued_messages.as_ref().is_some_and(|queued| queued.len() == 1)).await;
    let waiting = BackgroundCommand::start(
        place,
        &["send", "--queue", "--wait", "s", &script(&json!([{"say": "second"}, {"fail": "no"}]))],
    );
    until(&mut chat, |chat| chat.queued_messages.as_ref().is_some_and(|queued| queued.len() == 2)).await;
    let cancelled = asked(place, &["cancel", "--json", "s"]);
    assert_eq!(cancelled["cancelled"], true);
    let (code, stdout) = waiting.end();
    assert_eq!(code, Some(6), "as `grove run`");
    assert!(stdout.ends_with("second\n"), "{stdout}");
    let turn = queued["turnId"].as_str().unwrap().to_owned();
    until(&mut chat, |chat| chat.turns.iter().any(|done| done.id == turn)).await;

    let nothing = place.run(&["cancel", "s"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(8), ""));
    assert!(nothing.stderr.contains("nothing to cancel"), "{}", nothing.stderr);
    let unsupported = place.run(&["send", "--queue", "s", "x", "--protocol", "v1"]);
    assert_eq!(unsupported.code, Some(1));
    assert!(unsupported.stderr.contains("version 1"), "{}", unsupported.stderr);
    let ran = place.run(&["send", "--wait", "--json", "s", &script(&json!([{"say": "x"}]))]);
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((ran.code, &last["turn"]["state"]), (Some(0), &json!("complete")));
}

#[tokio::test]
async fn permissions_are_approved_and_denied() {
    let host = Host::start();
    let place = &host.place;
    let client = ahp(&host).await;
    let (mut session, mut chat) = session(&client, "scripted:/s").await;
    let nothing = place.run(&["approve", "s"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(8), ""));

    let options = json!([{"id": "always", "label": "Always", "allows": true},
        {"id": "never", "label": "Never", "allows": false}]);
    let steps = json!([{"tool": {"name": "one", "permission": "shell"}},
        {"tool": {"name": "two", "permission": "write", "options": options}}, {"tool": {"name": "three", "permission": "shell"}}]);
    assert_eq!(place.run(&["send", "s", &script(&steps)]).code, Some(0));
    let open = |number: usize| format!("call-{number}");
    let wait = async |session: &mut Subscription<Ahp>, number: usize| {
        let waits = session.until(|state| {
            let needed = state.session()?.input_needed.as_ref()?;
            serde_json::to_string(needed).unwrap().contains(&open(number)).then_some(())
        });
        tokio::time::timeout(grove_testkit::PATIENCE, waits).await.expect("nothing is asked").unwrap();
    };
    wait(&mut session, 0).await;
    let wrong = place.run(&["approve", "s", "--option", "always"]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(8), ""));
    let wrong = place.run(&["approve", "s", "nothing-of-that-name"]);
    assert_eq!(wrong.code, Some(8));
    let approved = place.run(&["approve", "s"]);
    assert_eq!((approved.code, approved.stdout.as_str()), (Some(0), "approved: Run this command? (one)\n"));
    wait(&mut session, 1).await;
    for (option, said) in [("sometimes", "always, never"), ("never", "grove deny")] {
        let wrong = place.run(&["approve", "s", "--option", option]);
        assert_ne!(wrong.code, Some(0));
        assert!(wrong.stderr.contains(said), "{}", wrong.stderr);
    }
    let approved = asked(place, &["approve", "--json", "s", "--option", "always"]);
    assert_eq!(approved["approved"], true);
    wait(&mut session, 2).await;

    // In another chat, too.
    let side = "ahp-chat:/side";
    let message =
        Message { text: script(&json!([{"tool": {"name": "sideways", "permission": "shell"}}])), ..Message::default() };
    let create = CreateChatParams {
        channel: "scripted:/s".to_owned(),
        chat: side.to_owned(),
        initial_message: Some(message),
        ..CreateChatParams::default()
    };
    client.request(create).await.unwrap();
    let both = session.until(|state| (state.session()?.input_needed.as_ref()?.len() == 2).then_some(()));
    tokio::time::timeout(grove_testkit::PATIENCE, both).await.expect("only one asks").unwrap();
    let which = place.run(&["deny", "s"]);
    assert_eq!((which.code, which.stdout.as_str()), (Some(1), ""));
    assert!(which.stderr.contains("2 permissions wait") && which.stderr.contains("sideways"), "{}", which.stderr);
    let line = which.stderr.lines().find(|line| line.contains("sideways")).unwrap();
    let request = line.split_whitespace().next().unwrap();
    let denied = place.run(&["deny", "s", request, "--reason", "not here"]);
    assert_eq!(denied.code, Some(0), "{}", denied.stderr);
    assert_eq!(place.run(&["deny", "s", "--reason", "too dangerous"]).code, Some(0));
    until(&mut chat, |chat| chat.turns.len() == 1).await;
    let turn = chat.read(|state| serde_json::to_value(&state.chat().unwrap().turns[0]).unwrap());
    assert_eq!(turn["responseParts"][1]["toolCall"]["selectedOption"]["id"], "always");
    assert_eq!(turn["responseParts"][2]["toolCall"]["status"], "cancelled");
    assert_eq!(turn["responseParts"][2]["toolCall"]["reasonMessage"], "too dangerous");
}

#[tokio::test]
async fn questions_are_answered() {
    let host = Host::start();
    let place = &host.place;
    let client = ahp(&host).await;
    let (mut session, mut chat) = session(&client, "scripted:/s").await;
    let wait = async |session: &mut Subscription<Ahp>| {
        let waits = session.until(|state| state.session()?.input_needed.as_ref().map(|_| ()));
        tokio::time::timeout(grove_testkit::PATIENCE, waits).await.expect("nothing is asked").unwrap();
    };
    let question =
        |id: &str, kind: Value| json!({"id": id, "title": null, "message": id, "required": true, "kind": kind});
    let steps = json!([{"ask": {"message": "Some things", "questions": [
        question("words", json!({"text": {"format": null, "min": null, "max": null, "default": null}})),
        question("count", json!({"number": {"whole": true, "min": null, "max": null, "default": null}}))]}},
        {"ask": "And?"}, {"say": "thanks"}]);
    let mut beside = BackgroundCommand::start(place, &["send", "--wait", "s", &script(&steps)]);
    let told = beside.until("waiting:");
    assert!(told.contains("Some things") && told.contains("grove answer s"), "{told}");
    wait(&mut session).await;
    let few = place.run(&["answer", "s", "only one"]);
    assert_eq!(few.code, Some(1));
    assert!(few.stderr.contains("2 answers are needed") && few.stderr.contains("count"), "{}", few.stderr);
    let wrong = place.run(&["answer", "s", "w", "many"]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("not a whole number"), "{}", wrong.stderr);
    let of_v1 = place.run(&["answer", "s", "w", "3", "--protocol", "v1"]);
    assert!(of_v1.code == Some(1) && of_v1.stderr.contains("version 1"), "{}", of_v1.stderr);
    assert_eq!(place.run(&["answer", "s", "some words", "3"]).code, Some(0));
    beside.until("waiting:");
    assert_eq!(asked(place, &["answer", "s", "--decline", "--json"])["answered"], false);
    assert_eq!(beside.end(), (Some(0), "thanks\n".to_owned()));
    until(&mut chat, |chat| chat.turns.len() == 1).await;
    let turn = chat.read(|state| serde_json::to_value(&state.chat().unwrap().turns[0]).unwrap());
    let first = &turn["responseParts"][0];
    assert_eq!(first["response"], "accept");
    assert_eq!(first["request"]["answers"]["count"]["value"]["value"], 3);
    assert_eq!(turn["responseParts"][1]["response"], "decline");
    assert_eq!(place.run(&["answer", "s", "x"]).code, Some(8));
}

#[tokio::test]
async fn rm_asks_first() {
    let host = Host::start();
    let place = &host.place;
    let client = ahp(&host).await;
    for name in ["one", "two", "three", "four"] {
        session(&client, &format!("scripted:/{name}")).await;
    }
    let ran = place.run(&["rm", "one"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    for (answer, code) in [("n", 1), ("y", 0)] {
        let mut terminal = Terminal::run(place, &["rm", "one"]);
        terminal.until("New session");
        terminal.until("[y/n]");
        terminal.enter(answer);
        assert_eq!(terminal.exit(), Some(code), "{}", terminal.screen());
    }
    let none = place.run(&["rm", "--yes", "two", "nowhere"]);
    assert_eq!(none.code, Some(8));
    assert_eq!(asked(place, &["ls", "--json"])["sessions"].as_array().unwrap().len(), 3, "all or none");
    let ran = place.run(&["rm", "--yes", "two", "three", "two"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "removed two\nremoved three\n"));
    assert_eq!(asked(place, &["rm", "--json", "--yes", "f", "--protocol", "v1"]), json!({"removed": "scripted:/four"}));
    assert_eq!(asked(place, &["ls", "--json"]), json!({"sessions": []}));
}

#[tokio::test]
async fn what_is_disposed_stays_on_the_disk_until_rm_takes_it_away_also_after_a_restart() {
    let host = Host::start();
    let folder = |host: &Host, id: &str| host.place.data().join("session-state").join(id);
    let mut client = host.client("a").await;
    for name in ["one", "two", "three"] {
        let uri = format!("scripted:/{name}");
        client.ready_session(&uri).await;
        client.run_script(&uri, "t", json!([{"title": name}, {"say": "x"}])).await;
    }
    for name in ["one", "two"] {
        client.get("disposeSession", json!({"session": format!("scripted:/{name}")})).await;
    }
    let disposed = |host: &Host| {
        let listed = asked(&host.place, &["ls", "--disposed", "--json"]);
        let uris = listed["sessions"].as_array().unwrap().iter().map(|row| row["session"].as_str().unwrap().to_owned());
        let mut uris: Vec<String> = uris.collect();
        uris.sort();
        uris
    };
    assert_eq!(disposed(&host), ["scripted:/one", "scripted:/two"]);
    assert!(host.place.run(&["ls", "--disposed"]).stdout.contains("two"));
    assert!(folder(&host, "one").join("events.jsonl").exists());
    for name in ["one", "three"] {
        assert_eq!(host.place.run(&["rm", "--yes", name]).code, Some(0));
        assert!(!folder(&host, name).exists(), "{name}");
    }
    assert_eq!(host.place.run(&["rm", "--yes", "one"]).code, Some(8));
    let host = host.kill().serve(&[]);
    assert_eq!(disposed(&host), ["scripted:/two"]);
    assert_eq!(asked(&host.place, &["ls", "--json"]), json!({"sessions": []}));
}

#[test]
fn every_command_can_start_a_host_or_refuse_to() {
    let place = TestHome::new();
    let commands: &[&[&str]] = &[
        &["run", "x"],
        &["ls"],
        &["attach", "s"],
        &["send", "s", "x"],
        &["cancel", "s"],
        &["approve", "s"],
        &["deny", "s"],
        &["answer", "s", "x"],
        &["rm", "--yes", "s"],
    ];
    for command in commands {
        let ran = place.run(&[command, &["--no-start"][..]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{command:?}");
        assert!(ran.stderr.contains("grove start"), "{}", ran.stderr);
    }
    assert!(!place.data().exists());
    let background = Background(place);
    let ran = background.0.run(&["ls"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(background.0.run(&["status"]).code, Some(0));
}
