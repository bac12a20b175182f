//! `grove merge` and `grove compact`

use grove_wire::x_grove::{CompactParams, MergeParams};

use super::progress::wait_or_abort;
use super::{find, in_session};
use crate::chat_client::tree::TreeClient;
use crate::cli::{Common, CompactArgs, MergeArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::connect::HostConnector;
use crate::show::style::sanitize;

pub(crate) fn merge(common: &Common, args: &MergeArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.of.connect)?.with_summary_timeout();
    command_runtime()?.block_on(async {
        let tree = TreeClient::find(&connector, &args.session.reference, &args.of).await?;
        let entry = find(&tree, &args.entry).await?.id;
        let wanted = MergeParams { entry, instructions: args.instructions.clone() };
        let merged = wait_or_abort(&tree, "summarizing the other branch", tree.merge(&wanted)).await?;
        if args.json {
            return Ok(print_line(in_session(tree.session(), &merged)?)?);
        }
        print_line(format!("merged {} into {}:", sanitize(&wanted.entry), sanitize(&merged.summary_entry)))?;
        Ok(print_line(sanitize(&merged.summary))?)
    })
}

pub(crate) fn compact(common: &Common, args: &CompactArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.of.connect)?.with_summary_timeout();
    command_runtime()?.block_on(async {
        let tree = TreeClient::find(&connector, &args.session.reference, &args.of).await?;
        let wanted = CompactParams { instructions: args.instructions.clone() };
        let compacted = wait_or_abort(&tree, "compacting the conversation", tree.compact(&wanted)).await?;
        if args.json {
            return Ok(print_line(in_session(tree.session(), &compacted)?)?);
        }
        let (entry, tokens) = (sanitize(&compacted.compaction_entry), compacted.tokens_before);
        let first_kept = compacted.first_kept_entry.as_deref().map(sanitize);
        let kept_note = first_kept.map(|entry| format!(", and entries from {entry} on are kept")).unwrap_or_default();
        print_line(format!("compacted about {tokens} tokens: {entry} replaces the older part{kept_note}"))?;
        Ok(print_line(sanitize(&compacted.summary))?)
    })
}
