//! `grove plan`

use std::io::Write;
use std::process::Command;

use anyhow::{Context, anyhow, bail};
use grove_wire::x_grove::Method;
use grove_wire::x_grove::workspace::{self, PlanResult, SetPlanParams, SetPlanResult};
use serde_json::json;

use super::{print, read};
use crate::chat_client::tree::TreeClient;
use crate::cli::{Common, PlanArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::connect::{HostConnector, id_of};

/// How large a plan may be that is written here.
const MOST: usize = 2 << 20;

pub(crate) fn run(common: &Common, args: &PlanArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let session = TreeClient::of_session(&connector, &args.session, args.connect.protocol).await?;
        if args.delete {
            return set(&session, None, args.json).await;
        }
        if let Some(file) = &args.set {
            let bytes = read(file, MOST)?;
            if bytes.len() > MOST {
                return Err(anyhow!("a plan may have {MOST} bytes, and this has more").into());
            }
            let text = String::from_utf8(bytes).context("a plan is text, and this is none")?;
            return set(&session, Some(text), args.json).await;
        }
        let text = plan(&session).await?;
        if args.edit {
            return edit(&session, text.unwrap_or_default(), args.json).await;
        }
        match text {
            text if args.json => Ok(print_line(json!({"session": session.session(), "text": text}))?),
            Some(text) => print(text.as_bytes()),
            None => {
                let id = id_of(session.session());
                Err(Failure::NotFound(format!("{id} has no plan: `grove plan {id} --edit` writes one")))
            }
        }
    })
}

async fn plan(session: &TreeClient) -> Result<Option<String>, Failure> {
    let plan: PlanResult = session.ask(Method::Workspace(workspace::WorkspaceMethod::Plan), &()).await?;
    Ok(plan.text)
}

async fn set(session: &TreeClient, text: Option<String>, as_json: bool) -> Result<(), Failure> {
    let words = if text.is_some() { "the plan is written" } else { "the plan is gone" };
    let method = Method::Workspace(workspace::WorkspaceMethod::SetPlan);
    let SetPlanResult { changed } = session.ask(method, &SetPlanParams { text }).await?;
    match (as_json, changed) {
        (true, changed) => Ok(print_line(json!({"session": session.session(), "changed": changed}))?),
        (false, true) => Ok(print_line(words)?),
        (false, false) => Ok(print_line("there was no plan")?),
    }
}

/// Lets a person change the plan. What somebody else wrote meanwhile is not written over.
async fn edit(session: &TreeClient, before: String, as_json: bool) -> Result<(), Failure> {
    let mut file = tempfile::Builder::new().prefix("plan-").suffix(".md").tempfile().context("a file to edit")?;
    file.write_all(before.as_bytes()).and_then(|()| file.flush()).context("a file to edit")?;
    let path = file.into_temp_path();
    open_editor(&path)?;
    let after = std::fs::read_to_string(&path).context("reading what was edited")?;
    if after == before {
        return match as_json {
            true => Ok(print_line(json!({"session": session.session(), "changed": false}))?),
            false => Ok(print_line("the plan stays as it is")?),
        };
    }
    if plan(session).await?.unwrap_or_default() != before {
        let kept = path.keep().context("keeping what was edited")?;
        let kept = kept.display();
        return Err(anyhow!("somebody else has changed the plan meanwhile: what you wrote is in {kept}").into());
    }
    set(session, Some(after), as_json).await
}

fn open_editor(file: &std::path::Path) -> anyhow::Result<()> {
    let named = |name: &str| std::env::var_os(name).filter(|editor| !editor.is_empty());
    let Some(editor) = named("VISUAL").or_else(|| named("EDITOR")) else {
        bail!("there is no editor: set $EDITOR, or write the plan with --set FILE");
    };
    // An editor may be named with flags of its own, as a shell takes them.
    let mut shell = Command::new("/bin/sh");
    let ended = shell.arg("-c").arg("eval \"$GROVE_EDITOR\" '\"$1\"'").arg("sh").arg(file).env("GROVE_EDITOR", editor);
    let ended = ended.status().context("starting the editor")?;
    if !ended.success() {
        bail!("the editor ended with {ended}: the plan stays as it is");
    }
    Ok(())
}
