//! `grove merge` and `grove compact`

use grove_wire::x_grove::{CompactParams, MergeParams};

use super::waiting::waited;
use super::{find, in_session};
use crate::cli::{Common, CompactArgs, MergeArgs};
use crate::commands::{Failure, errand, say};
use crate::connect::Reach;
use crate::show::style::harmless;
use crate::talk::tree::Tree;

pub(crate) fn merge(common: &Common, args: &MergeArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.of.connect)?.patient();
    errand()?.block_on(async {
        let tree = Tree::find(&reach, &args.session, &args.of).await?;
        let entry = find(&tree, &args.entry).await?.id;
        let wanted = MergeParams { entry, instructions: args.instructions.clone() };
        let merged = waited(&tree, "summarizing the other branch", tree.merge(&wanted)).await?;
        if args.json {
            return Ok(say(in_session(tree.session(), &merged)?)?);
        }
        say(format!("what came of {} is in {} now:", harmless(&wanted.entry), harmless(&merged.summary_entry)))?;
        Ok(say(harmless(&merged.summary))?)
    })
}

pub(crate) fn compact(common: &Common, args: &CompactArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.of.connect)?.patient();
    errand()?.block_on(async {
        let tree = Tree::find(&reach, &args.session, &args.of).await?;
        let wanted = CompactParams { instructions: args.instructions.clone() };
        let compacted = waited(&tree, "compacting the conversation", tree.compact(&wanted)).await?;
        if args.json {
            return Ok(say(in_session(tree.session(), &compacted)?)?);
        }
        let (entry, tokens) = (harmless(&compacted.compaction_entry), compacted.tokens_before);
        let kept = compacted.first_kept_entry.as_deref().map(harmless);
        let kept = kept.map(|kept| format!(", and what came from {kept} on stays")).unwrap_or_default();
        say(format!("compacted about {tokens} tokens: {entry} stands for what is older{kept}"))?;
        Ok(say(harmless(&compacted.summary))?)
    })
}
