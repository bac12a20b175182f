//! Administration over the wire: `x-grove/agents/…`, `x-grove/hosts/…`, `x-grove/policy/…`, `x-grove/settings/list`.

mod agents;
mod hosts;
mod rules;

use grove_wire::scopes::{further, x_grove_method};
use grove_wire::x_grove::Method;
use serde_json::{Value, json};

use crate::session_hub::{Page, Protocol};
use crate::support::*;

const NOT_FOUND: i64 = -32008;
const PERMISSION_DENIED: i64 = -32009;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

async fn page(host: &Host) -> Page {
    Page::open(host, "page", Protocol::Ahp).await
}

/// The answer to a request that must succeed.
async fn answer(page: &mut Page, method: &str, params: Value) -> Value {
    page.ask(method, params).await.unwrap_or_else(|error| panic!("{method}: {error:?}"))
}

/// Asks until the answer fits.
async fn until(page: &mut Page, method: &str, params: Value, fits: impl Fn(&Value) -> bool) -> Value {
    let deadline = Deadline::new("the answer does not change");
    loop {
        let found = answer(page, method, params.clone()).await;
        if fits(&found) {
            return found;
        }
        deadline.check();
    }
}

/// A client whose token has these scopes.
async fn with_scopes(host: &Host, name: &str, scopes: &str) -> Page {
    let added = host.place.run(&["token", "add", name, "--can", scopes, "--json"]);
    let token: Value = serde_json::from_str(&added.stdout).unwrap_or_else(|_| panic!("{added:?}"));
    Page::with_token(host, name, Protocol::Ahp, token["token"].as_str().unwrap()).await
}

#[tokio::test]
async fn administration_is_announced_and_refused_without_its_scopes() {
    let host = Host::start();
    let ours: Vec<Method> =
        Method::ALL.into_iter().filter(|method| matches!(method, Method::Administration(_))).collect();
    assert_eq!(ours.len(), 18);
    let mut owner = host.connect("owner").await;
    let hello = json!({"protocolVersion": 1, "clientId": "owner"});
    let announced = owner.get("initialize", hello).await["_meta"]["x-grove"]["methods"].clone();
    for method in &ours {
        assert!(announced.as_array().unwrap().contains(&json!(method.as_str())), "{method:?}");
    }
    // Each token lacks one scope; `read` is in all of them, since no client can do without.
    for (name, scopes) in [("reader", "read"), ("prompter", "read,prompt"), ("approver", "read,prompt,approve")] {
        let mut client = with_scopes(&host, name, scopes).await;
        for method in &ours {
            let needed = further::x_grove_method(*method, None).with(x_grove_method(*method).unwrap());
            let missing: Vec<String> =
                needed.iter().map(|scope| scope.as_str().to_owned()).filter(|scope| !scopes.contains(scope)).collect();
            if missing.is_empty() {
                continue;
            }
            let refused = client.ask(method.as_str(), json!({})).await.expect_err(method.as_str());
            assert_eq!(refused.code, PERMISSION_DENIED, "{method:?} with {scopes}: {}", refused.message);
            assert!(refused.message.contains("needs the scope"), "{}", refused.message);
        }
    }
}

#[tokio::test]
async fn settings_are_listed_with_their_sources_and_without_secrets() {
    let place = TestHome::new();
    place.write(
        "home/.config/grove/grove.toml",
        "replay-actions = 5\n[agents.mine]\ncommand = [\"/bin/false\"]\nenv = { KEY = \"a-secret-value\" }\n",
    );
    let host = place.serve(&["--session-idle", "77"]);
    let mut page = page(&host).await;
    let listed = answer(&mut page, "x-grove/settings/list", json!({})).await;
    assert!(listed["configFile"].as_str().unwrap().ends_with(".config/grove/grove.toml"));
    assert_eq!(listed["configFileExists"], true);
    let row = |name: &str| {
        let rows = listed["settings"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {listed}")).clone()
    };
    assert_eq!((&row("replay-actions")["value"], &row("replay-actions")["source"]), (&json!(5), &json!("file")));
    assert_eq!((&row("session-idle")["value"], &row("session-idle")["source"]), (&json!(77), &json!("flag")));
    assert_eq!(row("durability")["source"], "default");
    assert_eq!(row("agents")["value"], json!(["mine"]));
    assert!(!listed.to_string().contains("a-secret-value"));
    let printed = host.place.run(&["config", "show", "--json"]).stdout;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    for row in listed["settings"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        // A command does not know the flags of the host.
        if row["source"] == "file" || row["source"] == "default" {
            assert_eq!(row["value"], printed[name]["value"], "{name}");
        }
    }
}
