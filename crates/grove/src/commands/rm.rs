//! `grove rm`

use std::io::{BufRead, IsTerminal, stdin};

use anyhow::anyhow;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::removal::{self, EraseParams, EraseResult};
use serde_json::json;

use super::{Failure, errand, ls, say};
use crate::cli::{Common, RmArgs};
use crate::connect::{Reach, choose, find_session, id_of};
use crate::show::style::harmless;
use crate::talk::tree::AnyClient;

pub(crate) fn run(common: &Common, args: &RmArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let client = AnyClient::connect(&reach, args.connect.protocol).await?;
        for Meant { uri, .. } in chosen(&client, args).await? {
            let erase = EraseParams { session: uri.clone() };
            let EraseResult { erased } = client.ask(Method::Removal(removal::Method::Erase), &erase).await?;
            if !erased {
                return Err(Failure::NotFound(format!("session {} is gone already", id_of(&uri))));
            }
            removed(&uri, args)?;
        }
        Ok(())
    })
}

fn removed(uri: &str, args: &RmArgs) -> Result<(), Failure> {
    match args.json {
        true => Ok(say(json!({ "removed": uri }))?),
        false => Ok(say(format!("removed {}", id_of(uri)))?),
    }
}

/// A session that is meant.
#[derive(PartialEq, Eq)]
struct Meant {
    uri: String,
    title: String,
}

/// The sessions that are meant, once the person has said that they mean it. All are found before any is removed. Disposed ones
/// may be meant, too.
async fn chosen(client: &AnyClient, args: &RmArgs) -> Result<Vec<Meant>, Failure> {
    let mut sessions: Vec<Meant> = Vec::new();
    for wanted in &args.sessions {
        let found = match client {
            AnyClient::Ahp(client) => find_session(client, wanted).await.map(|uri| {
                let title = client.sessions().read(|list| list.get(&uri).map(|row| row.title.clone()));
                Meant { uri, title: title.unwrap_or_default() }
            }),
            AnyClient::V1(client) => find_session(client, wanted).await.map(|uri| {
                let title = client.sessions().read(|list| list.get(&uri).map(|row| row.title.clone()));
                Meant { uri, title: title.unwrap_or_default() }
            }),
        };
        let meant = match found {
            Err(Failure::NotFound(reason)) => disposed(client, wanted).await?.ok_or(Failure::NotFound(reason))?,
            found => found?,
        };
        if !sessions.contains(&meant) {
            sessions.push(meant);
        }
    }
    if args.yes {
        return Ok(sessions);
    }
    if !stdin().is_terminal() {
        return Err(anyhow!("nobody can be asked whether to remove them: say --yes").into());
    }
    for Meant { uri, title } in &sessions {
        anstream::eprintln!("  {}  {}", id_of(uri), harmless(title));
    }
    anstream::eprint!("remove for good, with everything that was said? [y/n] ");
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(sessions),
        _ => Err(anyhow!("nothing was removed").into()),
    }
}

/// A session that was disposed, if one is meant.
async fn disposed(client: &AnyClient, wanted: &str) -> Result<Option<Meant>, Failure> {
    let disposed = ls::fetch_disposed(client).await?;
    let uris: Vec<String> = disposed.iter().map(|session| session.session.clone()).collect();
    let uri = choose(&uris, wanted).ok();
    let meant = disposed.into_iter().find(|session| Some(&session.session) == uri.as_ref());
    Ok(meant.map(|session| Meant { uri: session.session, title: session.title }))
}
