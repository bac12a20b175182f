//! `grove goto`

use grove_wire::x_grove::{NavigateParams, TreeRow};

use super::progress::wait_or_abort;
use super::{all, entry, in_session, left_out, sending};
use crate::chat_client::tree::TreeClient;
use crate::cli::{Common, GotoArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::connect::{HostConnector, id_of};
use crate::show::style::sanitize;
use crate::show::table::cut;

/// The name of the position before the first entry.
const ROOT: &str = "root";
/// The number of characters shown of an entry.
const SHOWN: usize = 60;

pub(crate) fn goto(common: &Common, args: &GotoArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.of.connect)?.with_summary_timeout();
    command_runtime()?.block_on(async {
        let tree = TreeClient::find(&connector, &args.session.reference, &args.of).await?;
        let rows = all(&tree).await?;
        let target = match args.entry.as_str() {
            ROOT => None,
            wanted => Some(entry::find(&rows, wanted, id_of(tree.session())).map_err(Failure::NotFound)?),
        };
        let wanted = NavigateParams {
            entry: target.map(|row| row.id.clone()),
            label: args.label.clone(),
            summarize: args.summarize,
            instructions: args.instructions.clone(),
            replace_instructions: args.replace_instructions,
        };
        let gone = if args.summarize {
            wait_or_abort(&tree, "summarizing the abandoned branch", tree.navigate(&wanted)).await?
        } else {
            tree.navigate(&wanted).await?
        };
        if args.json {
            return Ok(print_line(in_session(tree.session(), &gone)?)?);
        }
        // Going to a user message leaves the message itself behind. Its label stays, but marks no position.
        let here = match (&gone.text, target) {
            (Some(_), Some(target)) => rows.iter().find(|row| Some(&row.id) == target.parent.as_ref()),
            (_, target) => target,
        };
        let still = if gone.moved { "now" } else { "still" };
        print_line(format!("{still} {}", place(here)))?;
        match &gone.summary_entry {
            Some(id) => print_line(format!("summarized in {}: {}", sanitize(id), summary(&tree, id).await?))?,
            None if args.summarize => print_line("there was nothing to summarize")?,
            None => {}
        }
        let Some(text) = gone.text else { return Ok(()) };
        match args.of.chat.name {
            Some(_) => print_line(format!("left the message: {}", sanitize(&text)))?,
            None => print_line(format!("left the message; {}", sending(tree.session(), &text)))?,
        }
        left_out(&gone.attachments).map_or(Ok(()), |words| Ok(print_line(words)?))
    })
}

/// The beginning of an entry's summary.
async fn summary(tree: &TreeClient, id: &str) -> Result<String, Failure> {
    let rows = all(tree).await?;
    Ok(rows.iter().find(|row| row.id == id).map(|row| sanitize(&row.text)).unwrap_or_default())
}

/// A description of the current position.
fn place(row: Option<&TreeRow>) -> String {
    match row {
        None => "before the first entry".to_owned(),
        Some(row) => cut(&format!("at {} ({}: {})", row.id, row.role, cut(&row.text, SHOWN)), usize::MAX),
    }
}
