//! Three hosts on three ports in one list.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use grove_host::Config;
use grove_sessions::management::{Management, TrustPrompt, TrustQuestion};
use grove_sessions::provider::Availability;
use grove_sessions::providers::hosts::{HostIdentity, HostProvider};
use grove_sessions::session::SessionStatus;
use grove_sessions::{InMemoryState, ProviderError, Registration, Registry, Session, SessionsProvider, Trust};
use grove_wire::ahp::ResponsePart;
use serde_json::{Value, json};

use super::harness::{approve, options, script, soon, until, workspace};
use super::law::EventListener;

/// Hosts with a journal, which can be killed.
#[allow(dead_code, reason = "the client's tests use more of it")]
#[path = "../../../../client/tests/it/harness.rs"]
mod real;

#[derive(Debug)]
struct TrustEveryFolder;

#[async_trait]
impl TrustPrompt for TrustEveryFolder {
    async fn ask(&self, _question: &TrustQuestion) -> Option<Trust> {
        Some(Trust::Trusted)
    }
}

/// Three hosts, each with its provider, under one management.
struct ThreeHostsFixture {
    hosts: Vec<real::TestHost>,
    providers: Vec<Arc<HostProvider>>,
    management: Management,
    listener: EventListener,
    _registered: Vec<Registration>,
}

const HERE: usize = 0;
const EAST: usize = 1;
const WEST: usize = 2;

impl ThreeHostsFixture {
    async fn new() -> Self {
        let registry = Registry::new();
        let (management, driver) = Management::new(registry.clone(), Arc::new(InMemoryState::default())).unwrap();
        tokio::spawn(driver.run());
        let listener = EventListener::new(&management);
        let (mut hosts, mut providers, mut registered) = (Vec::new(), Vec::new(), Vec::new());
        for name in ["here", "east", "west"] {
            let host = real::TestHost::on_tcp(Config::default()).await;
            let identity = match name {
                "here" => HostIdentity::this_host("Grove"),
                name => HostIdentity::other_host(&format!("{name}:1"), name),
            };
            let (provider, driver) = HostProvider::new(identity.unwrap(), host.endpoint(), options());
            tokio::spawn(driver.run());
            let provider = Arc::new(provider);
            registered.push(registry.register(provider.clone()).unwrap());
            until("a connected host", || !provider.session_types().is_empty()).await;
            hosts.push(host);
            providers.push(provider);
        }
        Self { hosts, providers, management, listener, _registered: registered }
    }

    /// Sends the first message of a session on a host.
    async fn send(&self, host: usize, steps: Value) -> Session {
        let draft = self.draft(host).await;
        let sent = self.management.send_and_create_chat(draft.id(), script(steps), &TrustEveryFolder);
        soon("the first message", sent).await.unwrap()
    }

    async fn draft(&self, host: usize) -> Session {
        let provider = &self.providers[host];
        let folder = workspace(provider, "/").await;
        self.management.create_new_session(provider.id(), &folder).await.unwrap()
    }

    fn is_away(&self, host: usize) -> bool {
        matches!(self.providers[host].availability(), Availability::Away { .. })
    }

    async fn until_back(&self, host: usize) {
        until("the return", || self.providers[host].availability() == Availability::Ready).await;
        until("its agents", || !self.providers[host].session_types().is_empty()).await;
    }

    /// The text of each turn of a session's main chat, as its host has it.
    async fn said(&self, host: usize, session: &Session) -> Vec<String> {
        let client = self.hosts[host].ahp("reader").await;
        let chat = self.providers[host].host().host_uri(session.main_chat().resource()).unwrap().to_owned();
        let mut chat = client.subscribe(&chat).await.unwrap();
        let turns = chat.until(|state| {
            let chat = state.chat()?;
            chat.active_turn.is_none().then(|| chat.turns.clone())
        });
        let text = |parts: &[ResponsePart]| -> String {
            let texts = parts.iter().filter_map(|part| match part {
                ResponsePart::Markdown(part) => Some(part.content.as_str()),
                _ => None,
            });
            texts.collect()
        };
        soon("its turns", turns).await.unwrap().iter().map(|turn| text(&turn.response_parts)).collect()
    }

    /// Asserts so many sessions, none twice, and the same for a list that is updated by events alone.
    fn must_list(&mut self, count: usize) {
        let listed = self.management.sessions();
        let names: BTreeSet<_> = listed.iter().map(|session| session.resource().clone()).collect();
        assert_eq!((listed.len(), names.len()), (count, count), "{listed:?}");
        self.listener.must_agree(&self.management);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_dies_in_the_middle_of_a_turn_comes_back_with_its_question_which_is_answered_from_here() {
    let mut world = ThreeHostsFixture::new().await;
    let tool = json!({"tool": {"name": "make", "output": "ok", "permission": "shell", "input": "make test"}});
    let far = world.send(EAST, json!([{"say": "one "}, tool, {"say": "two"}])).await;
    let near = world.send(HERE, json!([{"say": "near"}])).await;
    let west = world.send(WEST, json!([{"say": "slowly but surely", "chunks": 17, "delayMs": 40}])).await;
    until("a question", || far.status() == SessionStatus::NeedsInput).await;
    world.must_list(3);
    let draft = world.draft(EAST).await;
    assert_eq!(world.management.new_session().as_ref(), Some(&draft));

    world.hosts[EAST].front.refuse(true);
    world.hosts[EAST].front.cut();
    until("the loss", || world.is_away(EAST)).await;
    world.must_list(3);
    assert_eq!(far.status(), SessionStatus::NeedsInput, "it is shown as it was last seen");
    until("no draft", || world.management.new_session().is_none()).await;
    let refused = world.providers[EAST].archive_session(far.id()).await.unwrap_err();
    assert!(matches!(refused, ProviderError::Away { .. }), "{refused}");
    assert!(world.providers[EAST].session_types().is_empty());
    // The others go on unaffected.
    assert!(!world.is_away(HERE) && !world.is_away(WEST));
    until("the others' turns", || [&near, &west].iter().all(|session| session.status() == SessionStatus::Completed))
        .await;
    let another = world.send(WEST, json!([{"say": "meanwhile"}])).await;
    world.must_list(4);

    world.hosts[EAST].kill_and_restart(Config::default()).await;
    world.hosts[EAST].front.refuse(false);
    world.until_back(EAST).await;
    until("the question again", || far.status() == SessionStatus::NeedsInput).await;
    world.must_list(4);
    assert_eq!(world.management.session(far.resource()), Some(far.clone()), "the same session as before");
    let gone = world.management.send_and_create_chat(draft.id(), script(json!([])), &TrustEveryFolder).await;
    assert!(gone.is_err(), "a new session does not outlive the connection");

    let chat = world.providers[EAST].host().host_uri(far.main_chat().resource()).unwrap().to_owned();
    approve(&world.hosts[EAST].endpoint(), &chat).await;
    until("the turn's end", || far.status() == SessionStatus::Completed).await;
    assert_eq!(world.said(EAST, &far).await, ["one two"]);
    assert_eq!(world.said(WEST, &west).await, ["slowly but surely"]);
    until("the last turn", || another.status() == SessionStatus::Completed).await;
    world.must_list(4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_goes_on_while_its_host_cannot_be_reached_and_is_whole_afterwards() {
    let mut world = ThreeHostsFixture::new().await;
    let far = world.send(EAST, json!([{"say": "a b c d e f g h", "chunks": 15, "delayMs": 200}])).await;
    until("a running turn", || far.status() == SessionStatus::InProgress).await;
    world.hosts[EAST].front.refuse(true);
    world.hosts[EAST].front.cut();
    until("the loss", || world.is_away(EAST)).await;
    assert_eq!(far.status(), SessionStatus::InProgress, "nobody knows better");
    world.must_list(1);
    world.hosts[EAST].front.refuse(false);
    world.until_back(EAST).await;
    until("the turn's end", || far.status() == SessionStatus::Completed).await;
    assert_eq!(world.said(EAST, &far).await, ["a b c d e f g h"]);
    world.must_list(1);
    // It is as before: the next message arrives.
    let main = far.main_chat().resource().clone();
    world.management.send_request(far.id(), &main, script(json!([{"say": "more"}])), &TrustEveryFolder).await.unwrap();
    until("a second turn", || far.status() == SessionStatus::Completed).await;
    assert_eq!(world.said(EAST, &far).await.last().map(String::as_str), Some("more"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_one_name_on_three_hosts_are_three_sessions() {
    let mut world = ThreeHostsFixture::new().await;
    for host in &world.hosts {
        let client = host.ahp("maker").await;
        super::harness::create(&client, "scripted:/same", "/srv/app").await;
    }
    until("three rows", || world.management.sessions().len() == 3).await;
    world.must_list(3);
    let labels: Vec<String> =
        world.management.sessions().iter().map(|session| session.workspace().unwrap().label.to_string()).collect();
    assert_eq!(labels, ["app", "app [east]", "app [west]"]);
    let groups = grove_sessions::grouping::group(world.management.sessions());
    assert_eq!(groups.len(), 3, "folders of one name on three hosts are three places");
    let ids: Vec<_> = world.management.sessions().iter().map(|session| session.id().clone()).collect();
    world.management.archive_session(&ids[1]).await.unwrap();
    until("the archive", || world.management.session_by_id(&ids[1]).unwrap().is_archived()).await;
    let archived = |id| world.management.session_by_id(id).unwrap().is_archived();
    assert!(!archived(&ids[0]) && !archived(&ids[2]), "it is done where it belongs");
}
