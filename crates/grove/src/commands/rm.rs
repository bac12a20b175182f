//! `grove rm`

use std::io::{BufRead, IsTerminal, stdin};
use std::rc::Rc;

use anyhow::anyhow;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::removal::{self, EraseParams, EraseResult};
use serde_json::json;

use super::{Failure, command_runtime, ls, print_line};
use crate::chat_client::tree::AnyClient;
use crate::cli::{Common, RmArgs};
use crate::connect::{HostConnector, choose, find_session, id_of};
use crate::show::style::sanitize;

pub(crate) fn run(common: &Common, args: &RmArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        for RemovalTarget { client, uri, .. } in chosen(&connector, args).await? {
            let erase = EraseParams { session: uri.clone() };
            let EraseResult { erased } = client.ask(Method::Removal(removal::RemovalMethod::Erase), &erase).await?;
            if !erased {
                return Err(Failure::NotFound(format!("session {} was already deleted", id_of(&uri))));
            }
            removed(&uri, args)?;
        }
        Ok(())
    })
}

fn removed(uri: &str, args: &RmArgs) -> Result<(), Failure> {
    match args.json {
        true => Ok(print_line(json!({ "removed": uri }))?),
        false => Ok(print_line(format!("removed {}", id_of(uri)))?),
    }
}

/// A session to delete, and a client of its host.
struct RemovalTarget {
    host: String,
    client: Rc<AnyClient>,
    uri: String,
    title: String,
}

/// The sessions to delete, once the user has confirmed.
///
/// All are found before any is deleted. Disposed sessions can be named, too.
async fn chosen(connector: &HostConnector, args: &RmArgs) -> Result<Vec<RemovalTarget>, Failure> {
    let mut sessions: Vec<RemovalTarget> = Vec::new();
    for wanted in &args.sessions {
        let (at, wanted) = connector.at_session(wanted).await?;
        // One connection per host is enough.
        let known = sessions.iter().find(|target| target.host == at.host_name()).map(|target| target.client.clone());
        let client = match known {
            Some(client) => client,
            None => Rc::new(AnyClient::connect(&at, args.connect.protocol).await?),
        };
        let found = match &*client {
            AnyClient::Ahp(client) => find_session(client, &wanted).await.map(|uri| {
                let title = client.sessions().read(|list| list.get(&uri).map(|row| row.title.clone()));
                (uri, title.unwrap_or_default())
            }),
            AnyClient::V1(client) => find_session(client, &wanted).await.map(|uri| {
                let title = client.sessions().read(|list| list.get(&uri).map(|row| row.title.clone()));
                (uri, title.unwrap_or_default())
            }),
        };
        let (uri, title) = match found {
            Err(Failure::NotFound(reason)) => disposed(&client, &wanted).await?.ok_or(Failure::NotFound(reason))?,
            found => found?,
        };
        let host = at.host_name().to_owned();
        if !sessions.iter().any(|target| target.host == host && target.uri == uri) {
            sessions.push(RemovalTarget { host, client, uri, title });
        }
    }
    if args.yes {
        return Ok(sessions);
    }
    if !stdin().is_terminal() {
        return Err(anyhow!("cannot ask whether to delete them, since stdin is not a terminal: add --yes").into());
    }
    for RemovalTarget { uri, title, .. } in &sessions {
        anstream::eprintln!("  {}  {}", id_of(uri), sanitize(title));
    }
    anstream::eprint!("delete for good, with all messages? [y/n] ");
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(sessions),
        _ => Err(anyhow!("nothing was deleted").into()),
    }
}

/// The disposed session that a name refers to, if there is one.
async fn disposed(client: &AnyClient, wanted: &str) -> Result<Option<(String, String)>, Failure> {
    let disposed = ls::fetch_disposed(client).await?;
    let uris: Vec<String> = disposed.iter().map(|session| session.session.clone()).collect();
    let uri = choose(&uris, wanted).ok();
    let target = disposed.into_iter().find(|session| Some(&session.session) == uri.as_ref());
    Ok(target.map(|session| (session.session, session.title)))
}
