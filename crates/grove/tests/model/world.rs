//! A real host with its clients, and the model of it.

use std::collections::{BTreeMap, BTreeSet};

use grove_testkit::ahp::{Client, markdown};
use serde_json::{Value, json};

use crate::expected::{ExpectedPart, ExpectedSession};
use crate::operation::HostEnd;
use crate::support::{Host, TestHome};

/// Compactions keep next to nothing, so that there is something to compact.
const SERVE: [&str; 2] = ["--compact-keep", "1"];

pub(crate) struct World {
    pub(crate) place: TestHome,
    /// `None` only during a restart.
    host: Option<Host>,
    pub(crate) client: Client,
    /// Another host, once a session is moved there.
    pub(crate) lab: Option<Host>,
    pub(crate) sessions: Vec<ExpectedSession>,
    /// The URIs of subscribed main chats.
    followed: BTreeMap<String, String>,
    tokens: u64,
    clients: u64,
}

/// A row of the tree.
#[derive(Debug)]
pub(crate) struct ListedRow {
    pub(crate) id: String,
    pub(crate) role: String,
    pub(crate) text: String,
    pub(crate) label: Option<String>,
    pub(crate) is_leaf: bool,
}

impl World {
    pub(crate) async fn new() -> Self {
        let place = TestHome::new();
        let host = place.serve(&SERVE);
        let client = connected(&host, "client-0").await;
        Self {
            place,
            host: Some(host),
            client,
            lab: None,
            sessions: Vec::new(),
            followed: BTreeMap::new(),
            tokens: 0,
            clients: 0,
        }
    }

    /// A number that no turn has.
    pub(crate) fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    /// The session that a number selects, if there is any.
    pub(crate) fn choose(&self, number: u64) -> Option<usize> {
        (!self.sessions.is_empty()).then(|| (number % self.sessions.len() as u64) as usize)
    }

    /// The same, if its tree is intact.
    pub(crate) fn choose_whole(&self, number: u64) -> Option<usize> {
        self.choose(number).filter(|session| !self.sessions[*session].is_damaged)
    }

    /// Subscribes to a session's main chat, and returns its URI.
    pub(crate) async fn follow(&mut self, session: usize) -> String {
        let uri = self.sessions[session].uri.clone();
        if let Some(chat) = self.followed.get(&uri) {
            return chat.clone();
        }
        let chat = self.client.follow(&uri).await;
        self.followed.insert(uri, chat.clone());
        chat
    }

    pub(crate) fn forget(&mut self, uri: &str) {
        self.followed.remove(uri);
    }

    /// Ends the host, and starts it again on the same data.
    pub(crate) async fn restart(&mut self, end: HostEnd) {
        let host = self.host.take().expect("there is a host between restarts");
        match end {
            HostEnd::Kill => drop(host.kill()),
            HostEnd::Stop => {
                let ran = self.place.run(&["stop"]);
                assert_eq!(ran.code, Some(0), "grove stop: {ran:?}");
                let mut host = host;
                assert_eq!(host.exit().code(), Some(0), "the host's own end");
            }
        }
        let host = self.place.serve(&SERVE);
        self.clients += 1;
        self.client = connected(&host, &format!("client-{}", self.clients)).await;
        self.followed.clear();
        self.host = Some(host);
    }

    /// The other host, known by name to the command line.
    pub(crate) fn lab(&mut self) -> &Host {
        if self.lab.is_none() {
            let lab = TestHome::new().serve(&SERVE);
            let socket = format!("unix:{}", lab.place.data().join("host.sock").display());
            let ran = self.place.run(&["hosts", "add", "lab", &socket]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            self.lab = Some(lab);
        }
        self.lab.as_ref().expect("it was started")
    }

    pub(crate) async fn ask(&mut self, method: &str, session: usize, params: Value) -> Result<Value, String> {
        let mut all = json!({"channel": self.sessions[session].uri});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        self.client.ask(method, all).await.map_err(|error| error.message)
    }

    pub(crate) async fn rows(&mut self, session: usize, filter: &str) -> Vec<ListedRow> {
        let answer = self.ask("x-grove/tree", session, json!({"filter": filter, "limit": 10_000})).await;
        let answer = answer.unwrap_or_else(|error| panic!("the tree of {}: {error}", self.sessions[session].uri));
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let rows = answer["rows"].as_array().unwrap().iter();
        rows.map(|row| ListedRow {
            id: text(row, "id"),
            role: text(row, "role"),
            text: text(row, "text"),
            label: row["label"].as_str().map(str::to_owned),
            is_leaf: row["leaf"] == true,
        })
        .collect()
    }

    /// The id of the entry of a turn.
    pub(crate) async fn entry(&mut self, session: usize, turn: usize, part: ExpectedPart) -> String {
        let rows = self.rows(session, "all").await;
        let found = row_of(&rows, &self.sessions[session], turn, part);
        found.unwrap_or_else(|| panic!("turn {turn} has no {part:?} in the tree: {rows:#?}")).id.clone()
    }

    pub(crate) fn log(&self, session: usize) -> Vec<u8> {
        let folder = self.place.data().join("session-state").join(self.sessions[session].id());
        std::fs::read(folder.join("events.jsonl")).unwrap_or_default()
    }

    /// Compares a session with the model.
    pub(crate) async fn check(&mut self, session: usize) {
        let chat = self.follow(session).await;
        let expected = self.sessions[session].clone();
        let uri = &expected.uri;
        let title = expected.title.clone();
        if self.client.session(uri).title != title {
            self.client.barrier().await;
        }
        assert_eq!(self.client.session(uri).title, title, "the title of {uri}");
        let shown: Vec<(String, String)> = expected
            .shown()
            .into_iter()
            .map(|turn| &expected.turns[turn])
            .map(|turn| (turn.id.clone(), turn.answer.clone()))
            .collect();
        if turns(&self.client, &chat) != shown {
            self.client.barrier().await;
        }
        assert_eq!(turns(&self.client, &chat), shown, "the turns of {uri}");
        self.check_tree(session).await;
        for (chat, answers) in &expected.chats {
            if !self.client_follows(chat) {
                self.client.subscribe(chat).await.unwrap_or_else(|error| panic!("{chat}: {error:?}"));
                self.followed.insert(chat.clone(), chat.clone());
            }
            let said: Vec<String> = turns(&self.client, chat).into_iter().map(|(_, answer)| answer).collect();
            assert_eq!(said, *answers, "the turns of {chat}");
        }
    }

    fn client_follows(&self, uri: &str) -> bool {
        self.followed.contains_key(uri)
    }

    async fn check_tree(&mut self, session: usize) {
        let all = self.rows(session, "all").await;
        let once = self.log(session);
        let shown = self.rows(session, "default").await;
        let users = self.rows(session, "user-only").await;
        assert_eq!(self.log(session), once, "looking at a tree changes nothing on disk");
        let expected = &self.sessions[session];
        let ids: BTreeSet<&str> = all.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids.len(), all.len(), "each entry has one row: {all:#?}");
        for turn in 0..expected.turns.len() {
            for part in [ExpectedPart::Prompt, ExpectedPart::Answer] {
                let row = row_of(&all, expected, turn, part);
                let row = row.unwrap_or_else(|| panic!("{part:?} of turn {turn} is not in the tree: {all:#?}"));
                let label = expected.labels.get(&(turn, part));
                assert_eq!(row.label.as_ref(), label, "the label of {row:?}");
            }
        }
        assert_eq!(users.iter().filter(|row| row.role == "user").count(), expected.turns.len(), "{users:#?}");
        if !expected.turns.is_empty() && expected.position.turn.is_some() {
            assert!(users.iter().all(|row| row.role == "user"), "user-only shows something else: {users:#?}");
        }
        let at: Vec<&ListedRow> = shown.iter().filter(|row| row.is_leaf).collect();
        match (expected.position.turn, expected.position.is_summary) {
            (_, true) => {
                let is_summary =
                    |row: &&ListedRow| row.role.to_lowercase().contains("summary") || row.role.contains("compaction");
                assert!(matches!(at[..], [row] if is_summary(&row)), "the position is a summary: {shown:#?}");
            }
            (None, false) => assert!(at.is_empty(), "the position is before the first entry: {shown:#?}"),
            (Some(turn), false) => {
                let answer = row_of(&shown, expected, turn, ExpectedPart::Answer).map(|row| row.id.as_str());
                let at: Vec<&str> = at.iter().map(|row| row.id.as_str()).collect();
                assert_eq!(at, answer.into_iter().collect::<Vec<_>>(), "the position is turn {turn}: {shown:#?}");
            }
        }
    }

    /// Compares the list of sessions with the model.
    pub(crate) async fn check_list(&mut self) {
        let list = self.client.ask("listSessions", json!({"channel": "ahp-root://"})).await.unwrap();
        let items = list["items"].as_array().unwrap().iter();
        let listed: BTreeMap<String, String> = items
            .map(|item| (item["resource"].as_str().unwrap().to_owned(), item["title"].as_str().unwrap().to_owned()))
            .collect();
        let expected: BTreeMap<String, String> =
            self.sessions.iter().map(|session| (session.uri.clone(), session.title.clone())).collect();
        assert_eq!(listed, expected, "the list of sessions");
    }

    /// Compares everything, and runs `grove check` on every log.
    pub(crate) async fn check_everything(&mut self) {
        self.check_list().await;
        for session in 0..self.sessions.len() {
            self.check(session).await;
            let expected = &self.sessions[session];
            if !expected.is_damaged && !expected.turns.is_empty() {
                let ran = self.place.run(&["check", expected.id()]);
                assert_eq!(ran.code, Some(0), "grove check {}: {}{}", expected.id(), ran.stdout, ran.stderr);
            }
        }
    }
}

pub(crate) async fn connected(host: &Host, client_id: &str) -> Client {
    let mut client = Client::connect(&host.ws, &host.token, client_id).await;
    client.initialize(&[]).await;
    client
}

/// The turns of a chat as a client sees them: id and answer.
pub(crate) fn turns(client: &Client, chat: &str) -> Vec<(String, String)> {
    client.chat(chat).turns.iter().map(|turn| (turn.id.clone(), markdown(&turn.response_parts))).collect()
}

/// The row of a turn's entry. Each turn's text contains a unique number.
fn row_of<'a>(
    rows: &'a [ListedRow],
    session: &ExpectedSession,
    turn: usize,
    part: ExpectedPart,
) -> Option<&'a ListedRow> {
    let token = session.turns[turn].prompt.split('#').nth(1).unwrap_or_default();
    let token = format!("#{token}#");
    // The answer of a turn with a tool call is several entries, of which the last counts.
    rows.iter().rfind(|row| match part {
        ExpectedPart::Prompt => row.role == "user" && row.text.contains(&token),
        ExpectedPart::Answer => row.role == "assistant" && row.text.contains(&token),
    })
}
