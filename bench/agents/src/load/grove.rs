//! Clients of Grove, alternating between version 1 and AHP.
//!
//! They connect like the tests' clients, which keep states and check every frame. During the streams they only look for
//! chunks, so that the clients are not what is measured.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use grove_testkit::{Client, ahp};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::tally::Tally;
use super::{Crowd, Follower};
use crate::job::{PROVIDER, Shape};

/// The turn that starts the agents, and the measured one.
const WARM: &str = "warm";
const STREAM: &str = "stream";

enum BenchClient {
    V1(Box<Client>),
    Ahp(Box<ahp::Client>),
}

/// The needed part of a frame, of either dialect.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    envelope: Option<Envelope<'a>>,
    channel: Option<Cow<'a, str>>,
    #[serde(borrow)]
    action: Option<Action<'a>>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    action: Action<'a>,
}

#[derive(Deserialize)]
struct Action<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    session: Option<Cow<'a, str>>,
    /// Other actions have other values there.
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    part: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// The beginning of a streamed part.
#[derive(Deserialize)]
struct Part {
    kind: String,
    content: Option<String>,
}

fn session(n: usize) -> String {
    format!("{PROVIDER}:/bench-{n}")
}

pub(super) async fn gather(ws: &str, token: &str, folder: &Path, shape: &Shape) -> Result<Crowd> {
    let mut first = Client::connect(ws, token, "bench-0").await;
    first.initialize(&[]).await;
    for n in 0..shape.agents {
        // Each works in its own folder, as many agents in one folder would be unusual.
        let folder = folder.join(n.to_string());
        std::fs::create_dir_all(&folder)?;
        let params = json!({
            "session": session(n), "provider": PROVIDER, "workingDirectory": format!("file://{}", folder.display()),
        });
        first
            .call::<()>("createSession", params)
            .await
            .ok()
            .with_context(|| format!("{} was not created", session(n)))?;
    }
    let mut clients = vec![BenchClient::V1(Box::new(first))];
    for n in 1..shape.clients {
        let name = format!("bench-{n}");
        clients.push(if n % 2 == 1 {
            let mut client = ahp::Client::connect(ws, token, &name).await;
            client.initialize(&[]).await;
            BenchClient::Ahp(Box::new(client))
        } else {
            let mut client = Client::connect(ws, token, &name).await;
            client.initialize(&[]).await;
            BenchClient::V1(Box::new(client))
        });
    }
    let mut subjects = Vec::new();
    for client in &mut clients {
        subjects.push(client.subscribe(shape.agents).await);
    }

    let began = Instant::now();
    if let Some(BenchClient::V1(first)) = clients.first_mut() {
        for n in 0..shape.agents {
            first.start_turn(&session(n), WARM, "hello").await;
        }
    }
    for (client, subjects) in clients.iter_mut().zip(&subjects) {
        client.until_warm(subjects).await?;
    }
    let start_seconds = Some(began.elapsed().as_secs_f64());
    let followers = clients
        .into_iter()
        .zip(subjects)
        .map(|(client, subjects)| -> Follower { Box::pin(client.follow(subjects, *shape)) });
    Ok(Crowd { followers: followers.collect(), start_seconds })
}

/// Disposes of the sessions, so that their agents end.
pub(super) async fn leave(ws: &str, token: &str, shape: &Shape) -> Result<()> {
    let mut client = Client::connect(ws, token, "bench-goodbye").await;
    client.initialize(&[]).await;
    for n in 0..shape.agents {
        let gone = client.call::<()>("disposeSession", json!({ "session": session(n) })).await;
        ensure!(gone.is_ok(), "{} was not removed", session(n));
    }
    Ok(())
}

impl BenchClient {
    /// Subscribes to every session, and returns the channel of its chunks: the session or its main chat.
    async fn subscribe(&mut self, sessions: usize) -> Vec<String> {
        let mut subjects = Vec::new();
        for n in 0..sessions {
            let uri = session(n);
            subjects.push(match self {
                Self::V1(client) => {
                    // A failure panics, as in tests.
                    client.subscribe(&uri).await.map(drop).unwrap_or_else(|error| panic!("{uri}: {error}"));
                    uri
                }
                Self::Ahp(client) => client.follow(&uri).await,
            });
        }
        subjects
    }

    /// Waits until every agent has answered its first prompt.
    async fn until_warm(&mut self, subjects: &[String]) -> Result<()> {
        for subject in subjects {
            let turn_json = match self {
                Self::V1(client) => {
                    let turn = client.turn_end(subject, WARM).await;
                    serde_json::to_string(&turn)?
                }
                Self::Ahp(client) => {
                    let turn = client.turn_end(subject, WARM).await;
                    serde_json::to_string(&turn)?
                }
            };
            ensure!(turn_json.contains("You said: hello"), "{subject}: the agent did not answer: {turn_json}");
        }
        Ok(())
    }

    async fn follow(mut self, subjects: Vec<String>, shape: Shape) -> Result<Tally> {
        if let Self::V1(client) = &mut self
            && client.client_id == "bench-0"
        {
            for subject in &subjects {
                client.start_turn(subject, STREAM, &shape.prompt()).await;
            }
        }
        let numbers: HashMap<String, usize> = subjects.into_iter().enumerate().map(|(n, uri)| (uri, n)).collect();
        let mut tally = Tally::new(shape.agents, shape.chunks());
        while !tally.is_whole() {
            let text = match &mut self {
                Self::V1(client) => client.frame().await,
                Self::Ahp(client) => client.frame().await,
            };
            let text = text.with_context(|| format!("a connection ended: {:?}", self.ended()))?;
            take(&text, &numbers, &mut tally)?;
        }
        Ok(tally)
    }

    fn ended(&self) -> Option<&grove_testkit::ConnectionEnd> {
        match self {
            Self::V1(client) => client.ended(),
            Self::Ahp(client) => client.ended(),
        }
    }
}

fn take(text: &str, numbers: &HashMap<String, usize>, tally: &mut Tally) -> Result<()> {
    let frame: Frame<'_> = serde_json::from_str(text).with_context(|| text.to_owned())?;
    let Some(params) = frame.params else { return Ok(()) };
    let (subject, action) = match (params.envelope, params.action) {
        (Some(Envelope { action }), _) => (action.session.clone(), action),
        (None, Some(action)) => (params.channel, action),
        (None, None) => return Ok(()),
    };
    let Some(session) = subject.and_then(|subject| numbers.get(subject.as_ref()).copied()) else { return Ok(()) };
    match action.kind.as_ref() {
        "session/delta" | "chat/delta" => {
            let content = action.content.context("a delta without a content")?;
            tally.take(session, &serde_json::from_str::<Cow<'_, str>>(content.get())?);
        }
        // In AHP the first text of a part is in the part itself.
        "chat/responsePart" => {
            let part = action.part.context("no part")?;
            if let Ok(Part { kind, content: Some(content) }) = serde_json::from_str(part.get())
                && kind == "markdown"
            {
                tally.take(session, &content);
            }
        }
        "session/error" | "chat/error" => {
            let error = action.error.map(RawValue::get).unwrap_or_default();
            anyhow::bail!("session {session}: the turn failed: {error}");
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_found_in_both_dialects() {
        let numbers: HashMap<String, usize> = [("a:/1".to_owned(), 0), ("ahp-chat:/x".to_owned(), 0)].into();
        let mut tally = Tally::new(1, 4);
        let v1 = |action: &str| {
            format!(r#"{{"method":"action","params":{{"envelope":{{"action":{action},"serverSeq":1}}}}}}"#)
        };
        let ahp = |action: &str| {
            format!(r#"{{"method":"action","params":{{"channel":"ahp-chat:/x","action":{action},"serverSeq":1}}}}"#)
        };
        let frames = [
            v1(
                r#"{"session":"a:/1","type":"session/turnStarted","turnId":"t","userMessage":{"text":"content \"5:0;\""}}"#,
            ),
            ahp(r#"{"type":"chat/responsePart","turnId":"t","part":{"kind":"markdown","id":"p","content":"1:0;"}}"#),
            v1(r#"{"session":"a:/1","type":"session/delta","turnId":"t","content":"2:0;"}"#),
            ahp(r#"{"type":"chat/delta","turnId":"t","partId":"p","content":"3:0;4:0;"}"#),
            ahp(r#"{"type":"chat/toolCallContentChanged","turnId":"t","content":[{"type":"text"}]}"#),
            v1(r#"{"session":"b:/2","type":"session/delta","turnId":"t","content":"9:0;"}"#),
        ];
        frames.iter().for_each(|frame| take(frame, &numbers, &mut tally).unwrap());
        assert_eq!((tally.messages, tally.faults, tally.is_whole()), (4, 0, true));
        let failed = ahp(r#"{"type":"chat/error","turnId":"t","error":{"message":"no"}}"#);
        assert!(take(&failed, &numbers, &mut tally).is_err());
    }
}
