//! `x-grove/agents/…`: the list of agents, installing one, logging in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use grove_testkit::acp::{AgentBehavior, BEHAVIOR_VARIABLE, agent_program};
use sha2::{Digest, Sha256};

use super::*;
use crate::agent_install::{archive, binary, catalog};
use crate::file_server::FileServer;

const LIST: &str = "x-grove/agents/list";
const CHECK: &str = "x-grove/agents/check";
const STATUS: &str = "x-grove/agents/installStatus";

/// Puts a program into the place's `bin`. Another process writes it, so that it can be executed at once.
fn program(place: &TestHome, name: &str, script: &str) -> PathBuf {
    let draft = place.write(&format!("drafts/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(place.path("bin")).unwrap();
    let path = place.path("bin").join(name);
    assert!(Command::new("cp").arg(&draft).arg(&path).status().unwrap().success());
    path
}

/// A host whose `PATH` begins with the place's `bin`.
fn serve(place: &TestHome) -> Host {
    fs::create_dir_all(place.path("bin")).unwrap();
    let mut command = place.serve_command(&[]);
    command.env("PATH", format!("{}:/usr/bin:/bin", place.path("bin").display()));
    place.start(command)
}

fn agent<'a>(listed: &'a Value, id: &str) -> &'a Value {
    let agents = listed["agents"].as_array().unwrap();
    agents.iter().find(|agent| agent["id"] == id).unwrap_or_else(|| panic!("no {id} in {listed}"))
}

#[tokio::test]
async fn agents_are_listed_with_what_to_do_and_a_new_one_is_found_by_a_check() {
    let place = TestHome::new();
    let codex = program(&place, "codex-acp", "echo 0.0.1");
    let host = serve(&place);
    let mut page = page(&host).await;
    let listed = answer(&mut page, LIST, json!({})).await;
    assert!(listed["catalogDate"].as_str().unwrap().starts_with("20"));
    let scripted = agent(&listed, "scripted");
    assert_eq!((&scripted["availability"], &scripted["isDefault"]), (&json!("built-in"), &json!(true)));
    assert_eq!(scripted["models"][0], "scripted");
    let known = agent(&listed, "codex");
    assert_eq!((&known["version"], &known["outdated"]), (&json!("0.0.1"), &json!(true)), "{known}");
    assert_eq!((&known["command"], &known["installedBy"]), (&json!([codex]), &json!("path")));
    assert_eq!(known["install"]["command"], "grove agents install codex");
    let gemini = agent(&listed, "gemini");
    assert_eq!((&gemini["availability"], &gemini["installed"]), (&json!("missing"), &json!(false)));
    assert_eq!((&gemini["install"]["kind"], &gemini["lookedFor"]), (&json!("npm"), &json!(["gemini"])));
    assert!(gemini["login"]["hint"].as_str().unwrap().contains("GEMINI_API_KEY"));
    let cursor = agent(&listed, "cursor");
    assert_eq!((&cursor["install"]["possible"], &cursor["install"]["kind"]), (&json!(false), &json!("manual")));
    assert!(cursor["install"]["reason"].as_str().unwrap().contains("cannot install"), "{cursor}");

    program(&place, "gemini", "echo 0.61.0");
    program(&place, "codex-acp", "echo 0.0.22");
    let checked = answer(&mut page, CHECK, json!({})).await;
    assert_eq!(
        (&agent(&checked, "gemini")["version"], &agent(&checked, "gemini")["installed"]),
        (&json!("0.61.0"), &json!(true))
    );
    assert_eq!(agent(&checked, "codex")["version"], "0.0.22");
    let session = json!({"channel": "gemini:/1", "provider": "gemini"});
    assert!(page.ask("createSession", session).await.is_ok(), "the host uses it without a restart");
    let unknown = page.ask(CHECK, json!({"id": "nobody"})).await.unwrap_err();
    assert_eq!(unknown.code, NOT_FOUND, "{}", unknown.message);
}

#[tokio::test]
async fn an_agent_is_installed_after_its_commands_were_shown() {
    let place = TestHome::new();
    let made =
        place.write("made/agent/bin/tested-agent", format!("#!/bin/sh\nexec {} \"$@\"\n", agent_program().display()));
    fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
    let content = archive(&place, &place.path("made"), "agent");
    let server = FileServer::start([("agent.tar.gz", content.clone())]);
    let url = server.url("agent.tar.gz");
    catalog(&place, &binary(&url, &hex::encode(Sha256::digest(&content))));
    let host = serve(&place);
    let mut page = page(&host).await;
    assert_eq!(answer(&mut page, STATUS, json!({})).await, json!({}));
    let plan = answer(&mut page, "x-grove/agents/planInstall", json!({"id": "tested"})).await;
    assert_eq!((&plan["version"], &plan["name"]), (&json!("1.2.3"), &json!("Tested")));
    let commands = plan["commands"].to_string();
    assert!(commands.contains(&url) && commands.contains("tar --extract"), "{commands}");
    assert!(!place.data().join("programs/tested").exists(), "nothing ran");

    let install = "x-grove/agents/install";
    let other = page.ask(install, json!({"id": "tested", "version": "1.2.2"})).await.unwrap_err();
    assert_eq!(other.code, INVALID_REQUEST);
    assert!(other.message.contains("version 1.2.3"), "{}", other.message);
    let nobody = page.ask(install, json!({"id": "nobody", "version": "1"})).await.unwrap_err();
    assert_eq!(nobody.code, NOT_FOUND);
    let begun = answer(&mut page, install, json!({"id": "tested", "version": "1.2.3"})).await;
    assert_eq!(begun["installation"]["id"], "tested");
    let ended = |status: &Value| status["installation"]["state"] != "running";
    let done = until(&mut page, STATUS, json!({}), ended).await;
    assert_eq!(done["installation"]["state"], "done", "{done}");
    let lines = done["installation"]["lines"].as_array().unwrap();
    assert!(lines[0].as_str().unwrap().starts_with("$ curl"), "{done}");
    let rest = answer(&mut page, STATUS, json!({"after": lines.len() - 1})).await;
    assert_eq!(rest["installation"]["lines"], json!([lines[lines.len() - 1]]));

    let listed = answer(&mut page, LIST, json!({})).await;
    let tested = agent(&listed, "tested");
    assert_eq!((&tested["version"], &tested["installedBy"]), (&json!("1.2.3"), &json!("grove")), "{tested}");
    assert!(tested["install"].is_null(), "there is nothing to install");
    let session = json!({"channel": "tested:/1", "provider": "tested"});
    assert!(page.ask("createSession", session).await.is_ok());
}

#[tokio::test]
async fn an_installation_is_the_only_one_and_cancelling_it_leaves_nothing() {
    let place = TestHome::new();
    // An installer that does not end by itself.
    program(&place, "npm", "echo working; exec sleep 600");
    catalog(&place, r#"package = { kind = "npm", name = "tested-package", version = "4.5.6" }"#);
    let host = serve(&place);
    let mut page = page(&host).await;
    let (install, params) = ("x-grove/agents/install", json!({"id": "tested", "version": "4.5.6"}));
    answer(&mut page, install, params.clone()).await;
    let works = |status: &Value| status["installation"]["lines"].to_string().contains("working");
    until(&mut page, STATUS, json!({}), works).await;
    let second = page.ask(install, params).await.unwrap_err();
    assert_eq!(second.code, INVALID_REQUEST, "{}", second.message);
    let cancel = "x-grove/agents/cancelInstall";
    assert_eq!(answer(&mut page, cancel, json!({})).await, json!({"cancelled": true}));
    assert_eq!(answer(&mut page, cancel, json!({})).await, json!({"cancelled": false}));
    let status = answer(&mut page, STATUS, json!({})).await;
    assert_eq!(status["installation"]["state"], "cancelled");
    let deadline = Deadline::new("the folder is still there");
    while place.data().join("programs/tested").exists() {
        deadline.check();
    }
}

#[tokio::test]
async fn an_agent_tells_its_ways_to_log_in_and_logs_in() {
    let place = TestHome::new();
    let credentials = place.path("credentials");
    let behavior = AgentBehavior {
        needs_auth: true,
        auth_methods: vec!["browser".to_owned()],
        terminal_login: true,
        credentials: Some(credentials.clone()),
        ..AgentBehavior::default()
    };
    let toml = format!(
        "[agents.mine]\ncommand = [{:?}]\nenv = {{ {BEHAVIOR_VARIABLE} = {:?} }}\n",
        agent_program(),
        behavior.to_json()
    );
    place.write("home/.config/grove/grove.toml", toml);
    let host = serve(&place);
    let mut page = page(&host).await;
    let before = answer(&mut page, LIST, json!({})).await;
    assert!(agent(&before, "mine")["login"]["methods"].is_null(), "nobody has asked it");
    let checked = answer(&mut page, CHECK, json!({"id": "mine"})).await;
    let methods = agent(&checked, "mine")["login"]["methods"].as_array().unwrap().clone();
    assert_eq!(methods[0]["id"], "browser");
    assert!(methods[0]["command"].is_null(), "{methods:?}");
    let terminal = methods.iter().find(|method| method["command"].is_string()).unwrap();
    let command = format!("grove agents login mine {}", terminal["id"].as_str().unwrap());
    assert_eq!(terminal["command"], command.as_str());

    let login = "x-grove/agents/login";
    let refused = page.ask(login, json!({"id": "mine", "method": terminal["id"]})).await.unwrap_err();
    assert_eq!(refused.code, INVALID_REQUEST);
    assert!(refused.message.contains(&command), "{}", refused.message);
    let wrong = page.ask(login, json!({"id": "mine", "method": "nothing"})).await.unwrap_err();
    assert!(wrong.message.contains("the login failed"), "{}", wrong.message);
    assert!(!credentials.exists());
    answer(&mut page, login, json!({"id": "mine", "method": "browser"})).await;
    assert!(credentials.exists());
}
