//! The steps of each operation, on the host and on the model.

use std::time::{Duration, Instant};

use grove_testkit::ahp::markdown;
use grove_wire::ahp::{Method, ResponsePart, ToolCallState};
use serde_json::{Value, json};

use crate::expected::{ExpectedPart, ExpectedSession, Position};
use crate::logs;
use crate::operation::{HostEnd, Operation, Rename};
use crate::world::{World, connected, turns};

/// The maximum number of sessions.
const MOST_SESSIONS: usize = 8;
/// The maximum length of a label.
const LONGEST_LABEL: usize = 200;

impl World {
    pub(crate) async fn carry_out(&mut self, operation: &Operation) {
        let concerned = match operation {
            Operation::Create => self.create().await,
            Operation::Prompt { session, text } => self.prompt(*session, json!([]), text).await,
            Operation::AgentTitle { session, title } => {
                let concerned = self.prompt(*session, json!([{"title": title}]), "named").await;
                if let Some(session) = concerned {
                    self.sessions[session].named_by_agent(title);
                }
                concerned
            }
            Operation::Rename { session, title, by } => self.rename(*session, title, *by).await,
            Operation::Navigate { session, to } => self.navigate(*session, *to).await,
            Operation::Label { session, entry, label } => self.label(*session, *entry, label).await,
            Operation::Fork { session, title } => self.fork(*session, title.as_deref()).await,
            Operation::Branch { session, at } => self.branch(*session, *at).await,
            Operation::Merge { session, from } => self.merge(*session, *from).await,
            Operation::Compact { session } => self.compact(*session).await,
            Operation::Chat { session, text } => self.chat(*session, text).await,
            Operation::Import { kind, title } => self.import(*kind, title),
            Operation::Move { session } => self.move_there_and_back(*session).await,
            Operation::Delete { session } => self.delete(*session).await,
            Operation::Look { session } => self.choose(*session),
            Operation::Restart(end) => {
                self.restart(*end).await;
                return self.check_everything().await;
            }
            Operation::AskThenEnd { session, end, approve } => self.ask_then_end(*session, *end, *approve).await,
            Operation::KillWhileStreaming { session } => self.kill_while_streaming(*session).await,
        };
        if let Some(session) = concerned {
            self.check(session).await;
        }
        self.check_list().await;
    }

    async fn create(&mut self) -> Option<usize> {
        if self.sessions.len() >= MOST_SESSIONS {
            return None;
        }
        let uri = format!("scripted:/m{}", self.token());
        self.client.create_session(&uri).await.unwrap();
        self.sessions.push(ExpectedSession::new(&uri));
        Some(self.sessions.len() - 1)
    }

    /// Runs a turn to its end: some steps, then a text.
    async fn prompt(&mut self, number: u64, steps: Value, text: &str) -> Option<usize> {
        let session = self.choose(number)?;
        let chat = self.follow(session).await;
        let token = self.token();
        let answer = format!("#{token}# {text}");
        let mut script = vec![json!({"say": answer})];
        script.extend(steps.as_array().unwrap().iter().cloned());
        let (turn, prompt) = (format!("t{token}"), format!("script:{}", Value::from(script)));
        self.client.start_turn(&chat, &turn, &prompt).await;
        self.client.turn_end(&chat, &turn).await;
        self.sessions[session].say(&turn, &prompt, &answer);
        Some(session)
    }

    async fn rename(&mut self, number: u64, title: &str, by: Rename) -> Option<usize> {
        let session = self.choose(number)?;
        self.follow(session).await;
        let uri = self.sessions[session].uri.clone();
        match by {
            Rename::CommandLine if !title.contains('\0') && !title.starts_with('-') => {
                let ran = self.place.run(&["rename", self.sessions[session].id(), title]);
                assert_eq!(ran.code, Some(0), "grove rename {title:?}: {ran:?}");
            }
            Rename::Action => {
                let action = json!({"type": "session/titleChanged", "title": title});
                let client_seq = self.client.dispatch(&uri, action).await;
                self.client.answer_to(client_seq).await;
            }
            Rename::Request | Rename::CommandLine => {
                self.ask("x-grove/rename", session, json!({"title": title})).await.unwrap();
            }
        }
        self.sessions[session].renamed(title);
        Some(session)
    }

    async fn navigate(&mut self, number: u64, to: u64) -> Option<usize> {
        let session = self.choose_whole(number)?;
        self.follow(session).await;
        let count = self.sessions[session].turns.len() as u64;
        // Each turn's prompt and answer, and the position before the first entry.
        let choice = to % (2 * count + 1);
        if choice == 2 * count {
            self.ask("x-grove/navigate", session, json!({"entry": null})).await.unwrap();
            self.sessions[session].position = Position::default();
            return Some(session);
        }
        let turn = (choice / 2) as usize;
        let part = if choice.is_multiple_of(2) { ExpectedPart::Prompt } else { ExpectedPart::Answer };
        let entry = self.entry(session, turn, part).await;
        self.ask("x-grove/navigate", session, json!({"entry": entry})).await.unwrap();
        self.sessions[session].position = match part {
            ExpectedPart::Prompt => self.sessions[session].turns[turn].after,
            ExpectedPart::Answer => Position { turn: Some(turn), is_summary: false },
        };
        Some(session)
    }

    async fn label(&mut self, number: u64, entry: u64, label: &str) -> Option<usize> {
        let session = self.choose_whole(number)?;
        let count = self.sessions[session].turns.len() as u64;
        let choice = entry.checked_rem(2 * count)?;
        let (turn, part) =
            ((choice / 2) as usize, if choice % 2 == 0 { ExpectedPart::Prompt } else { ExpectedPart::Answer });
        let entry = self.entry(session, turn, part).await;
        let labelled = self.ask("x-grove/label", session, json!({"entry": entry, "label": label})).await;
        if label.chars().count() > LONGEST_LABEL {
            let refused = labelled.unwrap_err();
            assert!(refused.contains("a label may have"), "{refused}");
            return Some(session);
        }
        labelled.unwrap();
        let labels = &mut self.sessions[session].labels;
        match label {
            "" => drop(labels.remove(&(turn, part))),
            label => drop(labels.insert((turn, part), label.to_owned())),
        }
        Some(session)
    }

    async fn fork(&mut self, number: u64, title: Option<&str>) -> Option<usize> {
        let session = self.choose_whole(number).filter(|_| self.sessions.len() < MOST_SESSIONS)?;
        let made = self.ask("x-grove/fork", session, json!({"title": title})).await.unwrap();
        let fork = self.sessions[session].forked(title);
        // Its other chats have other names.
        let chats = Default::default();
        self.sessions.push(ExpectedSession { uri: made["session"].as_str().unwrap().to_owned(), chats, ..fork });
        self.note_of_fork(session).await;
        self.check(session).await;
        Some(self.sessions.len() - 1)
    }

    async fn branch(&mut self, number: u64, at: u64) -> Option<usize> {
        let session = self.choose_whole(number).filter(|_| self.sessions.len() < MOST_SESSIONS)?;
        let turn = at.checked_rem(self.sessions[session].turns.len() as u64)? as usize;
        let entry = self.entry(session, turn, ExpectedPart::Prompt).await;
        let made = self.ask("x-grove/branch", session, json!({"entry": entry})).await.unwrap();
        assert_eq!(made["text"], json!(self.sessions[session].turns[turn].prompt), "the prompt to begin with");
        let branch = self.sessions[session].branched(turn);
        self.sessions.push(ExpectedSession { uri: made["session"].as_str().unwrap().to_owned(), ..branch });
        self.note_of_fork(session).await;
        self.check(session).await;
        Some(self.sessions.len() - 1)
    }

    /// Waits until the log of a session names the newest fork: that is written when the fork's own log is complete, at any
    /// time after the answer.
    async fn note_of_fork(&self, source: usize) {
        let Some(fork) = self.sessions.last().map(ExpectedSession::id) else { return };
        let begun = Instant::now();
        while !self.log(source).is_empty() && !String::from_utf8_lossy(&self.log(source)).contains(fork) {
            assert!(begun.elapsed() < Duration::from_secs(10), "the log does not name the fork {fork}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn merge(&mut self, number: u64, from: u64) -> Option<usize> {
        let session = self.choose_whole(number)?;
        let shown = self.sessions[session].shown();
        let others: Vec<usize> = (0..self.sessions[session].turns.len()).filter(|turn| !shown.contains(turn)).collect();
        let turn = others[from.checked_rem(others.len() as u64)? as usize];
        let entry = self.entry(session, turn, ExpectedPart::Answer).await;
        let merged = self.ask("x-grove/merge", session, json!({"entry": entry})).await.unwrap();
        assert_ne!(merged["summary"].as_str().unwrap_or_default().trim(), "", "{merged}");
        self.sessions[session].position.is_summary = true;
        Some(session)
    }

    async fn compact(&mut self, number: u64) -> Option<usize> {
        let session = self.choose_whole(number)?;
        match self.ask("x-grove/compact", session, json!({})).await {
            Ok(compacted) => {
                assert_ne!(compacted["summary"].as_str().unwrap_or_default().trim(), "", "{compacted}");
                self.sessions[session].position.is_summary = true;
            }
            Err(error) => assert!(error.contains("nothing to compact"), "{error}"),
        }
        Some(session)
    }

    async fn chat(&mut self, number: u64, text: &str) -> Option<usize> {
        let session = self.choose_whole(number)?;
        self.follow(session).await;
        let token = self.token();
        let (uri, chat) = (self.sessions[session].uri.clone(), format!("ahp-chat:/c{token}"));
        self.client.call::<Value>(Method::CreateChat, json!({"channel": uri, "chat": chat})).await.unwrap();
        self.client.subscribe(&chat).await.unwrap();
        let answer = format!("#{token}# {text}");
        self.client.run_script(&chat, &format!("t{token}"), json!([{"say": answer}])).await;
        self.client.unsubscribe(&chat).await;
        self.sessions[session].chats.insert(chat, vec![answer]);
        Some(session)
    }

    fn import(&mut self, kind: u64, title: &str) -> Option<usize> {
        if self.sessions.len() >= MOST_SESSIONS {
            return None;
        }
        let first = self.token();
        for _ in 0..3 {
            self.token();
        }
        let log = logs::log(kind, title, first);
        let file = self.place.write(&format!("import-{first}.jsonl"), &log.text);
        let ran = self.place.run(&["import", "--new-id", "--json", file.to_str().unwrap()]);
        assert!(ran.code == Some(0), "grove import of kind {}: {ran:?}", kind % 6);
        let imported: Value = serde_json::from_str(&ran.stdout).unwrap();
        let mut session = ExpectedSession::new(imported["session"].as_str().unwrap());
        if let Some(name) = &log.name {
            session.renamed(name);
        }
        for (id, prompt, answer) in &log.turns {
            session.say(id, prompt, answer);
        }
        session.is_damaged = log.is_damaged;
        self.sessions.push(session);
        Some(self.sessions.len() - 1)
    }

    async fn move_there_and_back(&mut self, number: u64) -> Option<usize> {
        let session = self.choose_whole(number).filter(|session| !self.sessions[*session].turns.is_empty())?;
        self.lab();
        let (id, uri) = (self.sessions[session].id().to_owned(), self.sessions[session].uri.clone());
        let ran = self.place.run(&["move", &format!("local/{id}"), "lab"]);
        assert_eq!(ran.code, Some(0), "grove move {id} lab: {ran:?}");
        let client_id = format!("mover-{}", self.token());
        let mut there = connected(self.lab(), &client_id).await;
        let chat = there.follow(&uri).await;
        let expected = &self.sessions[session];
        let shown: Vec<String> = expected.shown().iter().map(|turn| expected.turns[*turn].answer.clone()).collect();
        let said: Vec<String> = turns(&there, &chat).into_iter().map(|(_, answer)| answer).collect();
        assert_eq!(
            (said, there.session(&uri).title.clone()),
            (shown, expected.title.clone()),
            "{uri} at the other host"
        );
        let ran = self.place.run(&["move", &format!("lab/{id}"), "local"]);
        assert_eq!(ran.code, Some(0), "grove move {id} local: {ran:?}");
        self.forget(&uri);
        Some(session)
    }

    async fn delete(&mut self, number: u64) -> Option<usize> {
        let session = self.choose(number).filter(|_| self.sessions.len() > 1)?;
        let gone = self.sessions.remove(session);
        self.client.call::<Value>(Method::DisposeSession, json!({"channel": gone.uri})).await.unwrap();
        self.forget(&gone.uri);
        gone.chats.keys().for_each(|chat| self.forget(chat));
        None
    }

    /// A permission request outlives the host, however the host ends.
    async fn ask_then_end(&mut self, number: u64, end: HostEnd, approve: bool) -> Option<usize> {
        let session = self.choose(number)?;
        let chat = self.follow(session).await;
        let token = self.token();
        let turn = format!("t{token}");
        let steps = json!([
            {"say": format!("#{token}# asks")},
            {"tool": {"name": "sh", "permission": "shell", "input": "ls", "output": "ok"}},
            {"say": format!(" and goes on #{token}#")},
        ]);
        let prompt = format!("script:{steps}");
        self.client.start_turn(&chat, &turn, &prompt).await;
        let waits = |call: &ToolCallState| matches!(call, ToolCallState::PendingConfirmation(_));
        self.client.call_that(&chat, waits).await;
        self.restart(end).await;
        let chat = self.follow(session).await;
        let is_running = self.client.chat(&chat).active_turn.is_some();
        assert!(is_running, "a turn that waited for a permission has ended with its host ({end:?})");
        let call = self.client.call_that(&chat, waits).await;
        let verdict = match approve {
            true => json!({"approved": true, "confirmed": "user-action"}),
            false => json!({"approved": false, "reason": "denied"}),
        };
        let mut action = json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": call.id().unwrap()});
        action.as_object_mut().unwrap().extend(verdict.as_object().unwrap().clone());
        self.client.dispatch(&chat, action).await;
        let ended = self.client.turn_end(&chat, &turn).await;
        assert_eq!(serde_json::to_value(ended.state).unwrap(), "complete", "{ended:?}");
        let answer = markdown(&ended.response_parts);
        assert!(answer.starts_with(&format!("#{token}# asks")) && answer.contains("and goes on"), "{answer:?}");
        self.sessions[session].say(&turn, &prompt, &answer);
        Some(session)
    }

    /// Text that a client saw is there after `kill -9`.
    async fn kill_while_streaming(&mut self, number: u64) -> Option<usize> {
        let session = self.choose(number)?;
        let chat = self.follow(session).await;
        let token = self.token();
        let turn = format!("t{token}");
        let words = format!("#{token}# {}", "word ".repeat(200));
        let prompt = format!("script:{}", json!([{"say": words, "chunks": 200, "delayMs": 10}]));
        self.client.start_turn(&chat, &turn, &prompt).await;
        let streamed = |parts: &[ResponsePart]| markdown(parts);
        self.client
            .until(|client| {
                let active = client.chat(&chat).active_turn.as_ref();
                active.is_some_and(|active| streamed(&active.response_parts).len() > 20)
            })
            .await;
        let seen = self.client.chat(&chat).active_turn.as_ref().map(|active| streamed(&active.response_parts));
        self.restart(HostEnd::Kill).await;
        let chat = self.follow(session).await;
        let ended = self.client.turn_end(&chat, &turn).await;
        let answer = markdown(&ended.response_parts);
        assert!(answer.starts_with(&seen.unwrap_or_default()), "what was seen is lost: {answer:?}");
        self.sessions[session].say(&turn, &prompt, &answer);
        Some(session)
    }
}
