//! `grove tree`, `grove goto` and `grove label`

mod entry;

use grove_wire::x_grove::{LabelParams, NavigateParams, TreeRow};
use serde_json::json;

use super::{Failure, errand, say};
use crate::cli::{Common, GotoArgs, LabelArgs, TreeArgs, TreeFilter};
use crate::connect::{Reach, id_of};
use crate::show::style::harmless;
use crate::show::table::cut;
use crate::show::tree::{lines, width};
use crate::talk::tree::Tree;

/// What is before the first entry.
const ROOT: &str = "root";
/// How much of an entry is shown where one is told of it.
const SHOWN: usize = 60;

pub(crate) fn run(common: &Common, args: &TreeArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.of.connect)?;
    errand()?.block_on(async {
        let tree = Tree::find(&reach, &args.session, &args.of).await?;
        let rows = tree.rows(args.filter.name(), args.search.as_deref()).await?;
        if args.json {
            return Ok(say(json!({"session": tree.session(), "rows": rows}))?);
        }
        if !rows.is_empty() {
            say(lines(&rows, width()).join("\n"))?;
        }
        // The leaf is shown whatever is left out, unless there is none.
        if !rows.iter().any(|row| row.leaf) {
            anstream::eprintln!("before the first entry: `grove send {} TEXT` begins there", id_of(tree.session()));
        }
        Ok(())
    })
}

pub(crate) fn goto(common: &Common, args: &GotoArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.of.connect)?;
    errand()?.block_on(async {
        let tree = Tree::find(&reach, &args.session, &args.of).await?;
        let rows = tree.rows(TreeFilter::All.name(), None).await?;
        let target = match args.entry.as_str() {
            ROOT => None,
            wanted => Some(entry::find(&rows, wanted, id_of(tree.session())).map_err(Failure::NotFound)?),
        };
        let wanted = NavigateParams { entry: target.map(|row| row.id.clone()), label: args.label.clone() };
        let mut gone = tree.navigate(&wanted).await?;
        // Who is there already does not move, and nothing is named on the way.
        if let (false, NavigateParams { entry: Some(entry), label: label @ Some(_) }) = (gone.moved, wanted) {
            gone.leaf = tree.label(&LabelParams { entry, label }).await?.leaf;
        }
        if args.json {
            let mut said = json!({"session": tree.session(), "moved": gone.moved, "leaf": gone.leaf});
            if let Some(text) = gone.text {
                said["text"] = text.into();
            }
            return Ok(say(said)?);
        }
        // A message that was taken back is left behind. A label that came with it is the leaf, and no place to name.
        let here = match (&gone.text, target) {
            (Some(_), Some(target)) => rows.iter().find(|row| Some(&row.id) == target.parent.as_ref()),
            (_, target) => target,
        };
        let still = if gone.moved { "now" } else { "still" };
        say(format!("{still} {}", place(here)))?;
        match gone.text {
            None => Ok(()),
            Some(text) if args.of.chat.is_some() => Ok(say(format!("taken back: {}", harmless(&text)))?),
            Some(text) => {
                let session = id_of(tree.session());
                Ok(say(format!("taken back; to send it again: grove send {session} -- {}", quoted(&text)))?)
            }
        }
    })
}

pub(crate) fn label(common: &Common, args: &LabelArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.of.connect)?;
    errand()?.block_on(async {
        let tree = Tree::find(&reach, &args.session, &args.of).await?;
        let rows = tree.rows(TreeFilter::All.name(), None).await?;
        let target = entry::find(&rows, &args.entry, id_of(tree.session())).map_err(Failure::NotFound)?;
        // An empty label is none.
        let label = args.text.clone().filter(|text| !text.is_empty());
        let done = tree.label(&LabelParams { entry: target.id.clone(), label: label.clone() }).await?;
        if args.json {
            let session = tree.session();
            return Ok(say(json!({"session": session, "entry": target.id, "label": label, "leaf": done.leaf}))?);
        }
        let id = harmless(&target.id);
        match label {
            Some(label) => Ok(say(format!("{id} is called {}", harmless(&label)))?),
            None => Ok(say(format!("{id} has no label"))?),
        }
    })
}

/// Where one is, in words.
fn place(row: Option<&TreeRow>) -> String {
    match row {
        None => "before the first entry".to_owned(),
        Some(row) => cut(&format!("at {} ({}: {})", row.id, row.role, cut(&row.text, SHOWN)), usize::MAX),
    }
}

/// A text as a shell takes it for one word.
fn quoted(text: &str) -> String {
    format!("'{}'", harmless(text).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_back_is_one_word_to_a_shell() {
        assert_eq!(quoted("it's $HOME\n`x`\x1b[2J"), "'it'\\''s $HOME\n`x`[2J'");
    }
}
