//! `grove branch`, `grove fork` and `grove migrate`

use grove_wire::x_grove::{BranchParams, ForkParams, MigrateParams};
use serde_json::json;

use super::{find, in_session, left_out, sending};
use crate::chat_client::tree::TreeClient;
use crate::cli::{BranchArgs, Common, ForkArgs, MigrateArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::connect::{HostConnector, id_of};

pub(crate) fn branch(common: &Common, args: &BranchArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.of.connect)?;
    command_runtime()?.block_on(async {
        let tree = TreeClient::find(&connector, &args.session.reference, &args.of).await?;
        let entry = find(&tree, &args.entry).await?.id;
        let made = tree.branch(&BranchParams { entry }).await?;
        if args.json {
            let output = json!({"session": made.session, "text": made.text, "attachments": made.attachments});
            return Ok(print_line(output)?);
        }
        print_line(format!("created session {}", id_of(&made.session)))?;
        if let Some(text) = &made.text {
            print_line(sending(&made.session, text))?;
        }
        left_out(&made.attachments).map_or(Ok(()), |words| Ok(print_line(words)?))
    })
}

pub(crate) fn fork(common: &Common, args: &ForkArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.of.connect)?;
    command_runtime()?.block_on(async {
        let tree = TreeClient::find(&connector, &args.session.reference, &args.of).await?;
        let made = tree.fork(&ForkParams { title: args.title.clone(), store: args.to.clone() }).await?;
        match args.json {
            true => Ok(print_line(json!({"session": made.session}))?),
            false => Ok(print_line(format!("forked into session {}", id_of(&made.session)))?),
        }
    })
}

pub(crate) fn migrate(common: &Common, args: &MigrateArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let tree = TreeClient::of_session(&connector, &args.session.reference, args.connect.protocol).await?;
        let done = tree.migrate(&MigrateParams { store: args.to.clone() }).await?;
        if args.json {
            return Ok(print_line(in_session(tree.session(), &done)?)?);
        }
        let (id, store) = (id_of(tree.session()), &done.store);
        let message = match done.files {
            0 => format!("session {id} is already stored in {store}"),
            files => format!("session {id} is now stored in {store}: {files} files, {} bytes, verified", done.bytes),
        };
        Ok(print_line(message)?)
    })
}
