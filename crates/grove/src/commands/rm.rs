//! `grove rm`

use std::io::{BufRead, IsTerminal, stdin};

use anyhow::anyhow;
use grove_client::dialect::ahp::DisposeSession;
use grove_client::{Ahp, Client, Dialect, V1};
use grove_wire::v1;
use serde_json::json;

use super::{Failure, errand, say};
use crate::cli::{Common, Protocol, RmArgs};
use crate::connect::{Reach, find_session, id_of};
use crate::show::style::harmless;

pub(crate) fn run(common: &Common, args: &RmArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        match args.connect.protocol {
            Protocol::Ahp => {
                let client = reach.ahp(None).await?;
                let title = |row: &<Ahp as Dialect>::Summary| row.title.clone();
                let sessions = chosen(&client, args, title).await?;
                for uri in &sessions {
                    client.request(DisposeSession { channel: uri.clone() }).await?;
                    removed(uri, args)?;
                }
            }
            Protocol::V1 => {
                let client = reach.v1(None).await?;
                let title = |row: &<V1 as Dialect>::Summary| row.title.clone();
                let sessions = chosen(&client, args, title).await?;
                for uri in &sessions {
                    client.request(v1::DisposeSessionParams { session: uri.clone() }).await?;
                    removed(uri, args)?;
                }
            }
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

/// The sessions that are meant, once the person has said that they mean it. All are found before any is removed.
async fn chosen<D: Dialect>(
    client: &Client<D>,
    args: &RmArgs,
    title: impl Fn(&D::Summary) -> String,
) -> Result<Vec<String>, Failure> {
    let mut sessions: Vec<String> = Vec::new();
    for wanted in &args.sessions {
        let uri = find_session(client, wanted).await?;
        if !sessions.contains(&uri) {
            sessions.push(uri);
        }
    }
    if args.yes {
        return Ok(sessions);
    }
    if !stdin().is_terminal() {
        return Err(anyhow!("nobody can be asked whether to remove them: say --yes").into());
    }
    let list = client.sessions();
    for uri in &sessions {
        let title = list.read(|list| list.get(uri).map(&title)).unwrap_or_default();
        anstream::eprintln!("  {}  {}", id_of(uri), harmless(&title));
    }
    anstream::eprint!("remove for good, with everything that was said? [y/n] ");
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(sessions),
        _ => Err(anyhow!("nothing was removed").into()),
    }
}
