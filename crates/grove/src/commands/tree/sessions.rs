//! `grove branch` and `grove fork`

use grove_wire::x_grove::{BranchParams, ForkParams};
use serde_json::json;

use super::{find, left_out, sending};
use crate::cli::{BranchArgs, Common, ForkArgs};
use crate::commands::{Failure, errand, say};
use crate::connect::{Reach, id_of};
use crate::talk::tree::Tree;

pub(crate) fn branch(common: &Common, args: &BranchArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.of.connect)?;
    errand()?.block_on(async {
        let tree = Tree::find(&reach, &args.session, &args.of).await?;
        let entry = find(&tree, &args.entry).await?.id;
        let made = tree.branch(&BranchParams { entry }).await?;
        if args.json {
            let said = json!({"session": made.session, "text": made.text, "attachments": made.attachments});
            return Ok(say(said)?);
        }
        say(format!("branched off into session {}", id_of(&made.session)))?;
        if let Some(text) = &made.text {
            say(sending(&made.session, text))?;
        }
        left_out(&made.attachments).map_or(Ok(()), |words| Ok(say(words)?))
    })
}

pub(crate) fn fork(common: &Common, args: &ForkArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.of.connect)?;
    errand()?.block_on(async {
        let tree = Tree::find(&reach, &args.session, &args.of).await?;
        let made = tree.fork(&ForkParams { title: args.title.clone() }).await?;
        match args.json {
            true => Ok(say(json!({"session": made.session}))?),
            false => Ok(say(format!("forked into session {}", id_of(&made.session)))?),
        }
    })
}
