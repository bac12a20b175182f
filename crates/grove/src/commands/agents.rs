//! `grove agents`

use grove_wire::ahp;
use serde_json::json;

use super::{Failure, errand, say};
use crate::cli::{AgentsArgs, Common, Protocol};
use crate::connect::Reach;
use crate::show::style::{bold, dim, harmless};
use crate::show::table::lines;

pub(crate) fn run(common: &Common, args: &AgentsArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let agents = match args.connect.protocol {
            Protocol::Ahp => {
                let root = reach.ahp(None).await?.subscribe(ahp::ROOT).await?;
                root.read(|state| serde_json::to_value(state.root().map(|root| &root.agents)))?
            }
            Protocol::V1 => {
                let root = reach.v1(None).await?.subscribe(grove_wire::v1::ROOT).await?;
                root.read(|state| serde_json::to_value(state.root().map(|root| &root.agents)))?
            }
        };
        if args.json {
            return Ok(say(json!({ "agents": agents }))?);
        }
        // Both protocols write an agent alike.
        let text = |value: &serde_json::Value| harmless(value.as_str().unwrap_or_default());
        let empty = Vec::new();
        let agents = agents.as_array().unwrap_or(&empty);
        let head = ["AGENT", "NAME", "ABOUT"].map(str::to_owned).to_vec();
        let row = |agent: &serde_json::Value| {
            vec![text(&agent["provider"]), text(&agent["displayName"]), text(&agent["description"])]
        };
        let table = lines(&std::iter::once(head).chain(agents.iter().map(row)).collect::<Vec<_>>());
        let mut lines = table.iter();
        if let Some(head) = lines.next() {
            say(bold(head))?;
        }
        for (line, agent) in lines.zip(agents) {
            say(line)?;
            let models: Vec<String> =
                agent["models"].as_array().into_iter().flatten().map(|model| text(&model["id"])).collect();
            if !models.is_empty() {
                say(dim(format!("  models: {}", models.join(", "))))?;
            }
        }
        Ok(())
    })
}
