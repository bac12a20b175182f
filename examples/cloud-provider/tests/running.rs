//! Registers a cloud in a running host, uses it over the wire from connected clients, and unregisters it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../examples/serve.rs"]
pub mod serve;

use std::collections::BTreeMap;
use std::time::Duration;

use grove_example_cloud_provider::cloud::{Cloud, Progress, Task};
use grove_testkit::Client;
use serde_json::{Value, json};

const CLOUD: &str = "example-cloud";
/// The time limit of every step.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client that keeps the list up to date by notifications, without requesting it again.
struct Page {
    client: Client,
    rows: BTreeMap<String, Value>,
    replaced: Vec<(String, String)>,
    last_id: u64,
}

impl Page {
    async fn open(served: &serve::Served, name: &str, hello: Value) -> Self {
        let client = Client::connect(&served.address, served.token.reveal(), name).await;
        let mut page = Self { client, rows: BTreeMap::new(), replaced: Vec::new(), last_id: 0 };
        page.ask("initialize", hello).await.unwrap();
        page.get("subscribe", json!({})).await;
        page.rows = page.listed().await;
        page
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.client.send(request.to_string()).await;
        loop {
            let mut frame = self.frame().await;
            if frame.get("id").is_some() {
                return match frame.get("error") {
                    None => Ok(frame["result"].take()),
                    Some(error) => Err(error.clone()),
                };
            }
        }
    }

    async fn get(&mut self, method: &str, params: Value) -> Value {
        self.ask(&format!("x-grove/sessions/{method}"), params).await.unwrap()
    }

    /// The next frame. Its changes are applied to the list, which must never contain a task twice.
    async fn frame(&mut self) -> Value {
        let text = tokio::time::timeout(PATIENCE, self.client.frame()).await.unwrap().unwrap();
        let frame: Value = serde_json::from_str(&text).unwrap();
        if frame["method"] != "x-grove/sessions/changed" {
            return frame;
        }
        let told = &frame["params"];
        let all = |list: &str| told[list].as_array().cloned().unwrap_or_default();
        assert_ne!(told["reset"], true, "{told}");
        for gone in all("removed") {
            self.rows.remove(gone.as_str().unwrap());
        }
        for row in all("added").into_iter().chain(all("changed")) {
            self.rows.insert(row["id"].as_str().unwrap().to_owned(), row);
        }
        for replaced in all("replaced") {
            let of = |end: &str| replaced[end].as_str().unwrap().to_owned();
            self.replaced.push((of("from"), of("to")));
        }
        let mut titles: Vec<&str> = self.rows.values().map(|row| row["title"].as_str().unwrap()).collect();
        titles.sort_unstable();
        assert!(titles.windows(2).all(|two| two[0] != two[1]), "a row is there twice: {titles:?}");
        frame
    }

    async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            self.frame().await;
        }
    }

    /// The list from a request.
    async fn listed(&mut self) -> BTreeMap<String, Value> {
        let listed = self.get("list", json!({})).await;
        let rows = listed["sessions"].as_array().unwrap().iter();
        rows.map(|row| (row["id"].as_str().unwrap().to_owned(), row.clone())).collect()
    }

    fn titled(&self, title: &str) -> Option<&Value> {
        self.rows.values().find(|row| row["title"] == title)
    }

    /// The cloud's features: whether it is a provider, has types, and can be browsed.
    async fn offered(&mut self) -> [bool; 3] {
        let has = |answer: &Value, list: &str, key: &str, is: &str| {
            answer[list].as_array().unwrap().iter().any(|item| item[key] == is)
        };
        let providers = self.get("providers", json!({})).await;
        let types = self.get("types", json!({})).await;
        let actions = self.get("browseActions", json!({})).await;
        [
            has(&providers, "providers", "id", CLOUD),
            has(&types, "types", "id", "cloud-agent"),
            has(&actions, "actions", "providerId", CLOUD),
        ]
    }
}

#[tokio::test]
async fn a_cloud_comes_to_a_host_that_runs_is_used_over_the_wire_and_goes() {
    let served = serve::start().await.unwrap();
    let mut one = Page::open(&served, "one", json!({"protocolVersion": 1, "clientId": "one"})).await;
    let hello = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "two"});
    let mut two = Page::open(&served, "two", hello).await;
    assert_eq!((one.rows.len(), one.offered().await), (0, [false; 3]));

    // Another user started this one, on the cloud's own page.
    let cloud = Cloud::new(&[("acme", "site"), ("acme", "app")]);
    let (repository, prompt) = (("acme".into(), "site".into()), "Their task".to_owned());
    cloud.start(Task { repository, prompt, reference: None, progress: Progress::Queued }).await.unwrap();
    let (registration, following) = serve::plug_in(&served.hub, cloud.clone()).unwrap();
    for page in [&mut one, &mut two] {
        page.until(|page| page.titled("Their task").is_some()).await;
        assert_eq!(page.offered().await, [true; 3]);
    }

    let action = json!({"providerId": CLOUD, "action": "repositories", "query": "site"});
    let offers = one.get("browse", action.clone()).await["offers"].take();
    assert_eq!((offers.as_array().unwrap().len(), &offers[0]["label"]), (1, &json!("acme/site")));
    let mut chosen = action;
    chosen["chosen"] = offers[0]["uri"].clone();
    assert_eq!(one.get("browse", chosen).await["workspace"]["label"], "site");

    let created = one.get("create", json!({"folder": offers[0]["uri"], "providerId": CLOUD})).await;
    let draft = created["session"]["id"].as_str().unwrap().to_owned();
    assert_eq!(one.listed().await.len(), 1, "a new session is not listed");
    let sent = one.get("sendAndCreateChat", json!({"session": draft, "query": "Fix the build"})).await;
    let committed = sent["session"]["id"].as_str().unwrap().to_owned();
    assert_ne!(draft, committed, "the cloud names its tasks");
    for page in [&mut one, &mut two] {
        page.until(|page| page.titled("Fix the build").is_some_and(|row| row["status"] == "completed")).await;
        assert_eq!(page.replaced, [(draft.clone(), committed.clone())]);
        assert_eq!(page.titled("Fix the build").unwrap()["id"], committed.as_str());
        assert_eq!(page.titled("Fix the build").unwrap()["workspace"]["label"], "site");
        page.until(|page| page.rows.values().all(|row| row["status"] == "completed")).await;
        let listed = page.listed().await;
        assert_eq!(page.rows.keys().collect::<Vec<_>>(), listed.keys().collect::<Vec<_>>());
        assert_eq!(listed.len(), 2);
    }

    registration.unregister();
    following.abort();
    for page in [&mut one, &mut two] {
        page.until(|page| page.rows.is_empty()).await;
        assert_eq!((page.offered().await, page.listed().await.len()), ([false; 3], 0));
    }
    let refused = one.ask("x-grove/sessions/delete", json!({"sessions": [committed]})).await.unwrap();
    assert!(refused["error"].as_str().unwrap().contains(CLOUD), "{refused}");

    // Its sessions are back when it is registered again.
    let _again = serve::plug_in(&served.hub, cloud).unwrap();
    two.until(|page| page.rows.len() == 2).await;
}
