//! Commands for a session's tree: `grove tree`, `grove label` and `grove rename`.
//!
//! The submodules have the commands for navigation, new sessions and summaries.

mod entry;
mod navigate;
mod progress;
mod sessions;
mod summaries;

pub(crate) use navigate::goto;
pub(crate) use sessions::{branch, fork, migrate};
pub(crate) use summaries::{compact, merge};

use grove_wire::x_grove::{LabelParams, RenameParams, TreeRow};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Failure, command_runtime, print_line};
use crate::chat_client::tree::TreeClient;
use crate::cli::{Common, LabelArgs, RenameArgs, TreeArgs, TreeFilter};
use crate::connect::{HostConnector, id_of};
use crate::show::style::sanitize;
use crate::show::table::terminal_width;
use crate::show::tree::lines;

pub(crate) fn run(common: &Common, args: &TreeArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.of.connect)?;
    command_runtime()?.block_on(async {
        let tree = TreeClient::find(&connector, &args.session.reference, &args.of).await?;
        let rows = tree.rows(args.filter.name(), args.search.as_deref()).await?;
        if args.json {
            return Ok(print_line(json!({"session": tree.session(), "rows": rows}))?);
        }
        if !rows.is_empty() {
            print_line(lines(&rows, terminal_width()).join("\n"))?;
        }
        // The leaf is always shown, whatever the filter, unless there is none.
        if !rows.iter().any(|row| row.leaf) {
            anstream::eprintln!(
                "before the first entry: `grove send {} TEXT` continues from there",
                id_of(tree.session())
            );
        }
        Ok(())
    })
}

pub(crate) fn label(common: &Common, args: &LabelArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.of.connect)?;
    command_runtime()?.block_on(async {
        let tree = TreeClient::find(&connector, &args.session.reference, &args.of).await?;
        let target = find(&tree, &args.entry).await?;
        // An empty label deletes it.
        let label = args.text.clone().filter(|text| !text.is_empty());
        let done = tree.label(&LabelParams { entry: target.id.clone(), label: label.clone() }).await?;
        if args.json {
            let session = tree.session();
            return Ok(print_line(json!({"session": session, "entry": target.id, "label": label, "leaf": done.leaf}))?);
        }
        let id = sanitize(&target.id);
        match label {
            Some(label) => Ok(print_line(format!("{id} has the label {}", sanitize(&label)))?),
            None => Ok(print_line(format!("{id} has no label"))?),
        }
    })
}

pub(crate) fn rename(common: &Common, args: &RenameArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.of.connect)?;
    command_runtime()?.block_on(async {
        let tree = TreeClient::find(&connector, &args.session.reference, &args.of).await?;
        tree.rename(&RenameParams { title: args.title.clone() }).await?;
        if args.json {
            return Ok(print_line(json!({"session": tree.session(), "chat": tree.chat(), "title": args.title}))?);
        }
        let what = tree.chat().unwrap_or_else(|| id_of(tree.session()));
        Ok(print_line(format!("{} is now called {}", sanitize(what), sanitize(&args.title)))?)
    })
}

/// All entries of a tree.
async fn all(tree: &TreeClient) -> Result<Vec<TreeRow>, Failure> {
    tree.rows(TreeFilter::All.name(), None).await
}

/// The entry for an argument.
async fn find(tree: &TreeClient, wanted: &str) -> Result<TreeRow, Failure> {
    let rows = all(tree).await?;
    Ok(entry::find(&rows, wanted, id_of(tree.session())).map_err(Failure::NotFound)?.clone())
}

/// A result of the host for programs, with its session.
fn in_session(session: &str, result: &impl Serialize) -> serde_json::Result<Value> {
    let mut output = serde_json::to_value(result)?;
    if let Some(output) = output.as_object_mut() {
        output.insert("session".to_owned(), session.into());
    }
    Ok(output)
}

/// The command that sends a message again.
fn sending(session: &str, text: &str) -> String {
    format!("to send it again: grove send {} -- {}", id_of(session), quoted(text))
}

/// Names the attachments of a message, which its text does not contain.
fn left_out(attachments: &[Value]) -> Option<String> {
    let name = |attachment: &Value| attachment.get("label").and_then(Value::as_str).map(sanitize);
    let names: Vec<String> =
        attachments.iter().map(|attachment| name(attachment).unwrap_or_else(|| "an attachment".to_owned())).collect();
    (!names.is_empty()).then(|| format!("without its attachments: {}", names.join(", ")))
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", sanitize(text).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_back_is_one_word_to_a_shell() {
        assert_eq!(quoted("it's $HOME\n`x`\x1b[2J"), "'it'\\''s $HOME\n`x`[2J'");
    }

    #[test]
    fn what_does_not_go_with_a_text_is_named() {
        assert_eq!(left_out(&[]), None);
        let attachments = [json!({"label": "a\x1b[2J.txt"}), json!({})];
        assert_eq!(left_out(&attachments).as_deref(), Some("without its attachments: a[2J.txt, an attachment"));
    }
}
