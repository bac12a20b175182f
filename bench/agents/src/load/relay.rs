//! Clients of the relay, which get the agents' lines unchanged.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::tally::Tally;
use super::{Crowd, Follower};
use crate::job::Shape;

/// The needed part of a line.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    update: Update<'a>,
}

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow)]
    content: Text<'a>,
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

pub(super) async fn gather(address: SocketAddr, shape: &Shape) -> Result<Crowd> {
    let mut followers: Vec<Follower> = Vec::new();
    for n in 0..shape.clients {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        followers.push(Box::pin(follow(stream, *shape, n == 0)));
    }
    Ok(Crowd { followers, start_seconds: None })
}

async fn follow(stream: TcpStream, shape: Shape, is_first: bool) -> Result<Tally> {
    let mut tally = Tally::new(shape.agents, shape.chunks());
    let mut stream = BufReader::new(stream);
    if is_first {
        stream.write_all(b"go").await?;
    }
    let mut sessions: HashMap<String, usize> = HashMap::new();
    let mut line = String::new();
    while !tally.is_whole() {
        line.clear();
        let read = stream.read_line(&mut line).await?;
        anyhow::ensure!(read > 0, "the relay ended");
        let read: Line<'_> = serde_json::from_str(&line).with_context(|| line.clone())?;
        // The answer to a prompt has none.
        let Some(params) = read.params else { continue };
        let next = sessions.len();
        let session = match sessions.get(params.session_id.as_ref()) {
            Some(session) => *session,
            None => *sessions.entry(params.session_id.into_owned()).or_insert(next),
        };
        tally.take(session, &params.update.content.text);
    }
    Ok(tally)
}
