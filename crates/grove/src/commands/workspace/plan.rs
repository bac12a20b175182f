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

/// The maximum size of a plan.
const MOST: usize = 2 << 20;

pub(crate) fn run(common: &Common, args: &PlanArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let session = TreeClient::of_session(&connector, &args.session.reference, args.connect.protocol).await?;
        if args.delete {
            return set(&session, None, args.json).await;
        }
        if let Some(file) = &args.set {
            let bytes = read(file, MOST)?;
            if bytes.len() > MOST {
                return Err(anyhow!("the plan has more than {MOST} bytes: shorten it").into());
            }
            let text = String::from_utf8(bytes).context("the plan is not UTF-8 text")?;
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
    let words = if text.is_some() { "saved the plan" } else { "deleted the plan" };
    let method = Method::Workspace(workspace::WorkspaceMethod::SetPlan);
    let SetPlanResult { changed } = session.ask(method, &SetPlanParams { text }).await?;
    match (as_json, changed) {
        (true, changed) => Ok(print_line(json!({"session": session.session(), "changed": changed}))?),
        (false, true) => Ok(print_line(words)?),
        (false, false) => Ok(print_line("there was no plan")?),
    }
}

/// Opens the plan in an editor. Changes that another client made meanwhile are not overwritten.
async fn edit(session: &TreeClient, before: String, as_json: bool) -> Result<(), Failure> {
    let mut file =
        tempfile::Builder::new().prefix("plan-").suffix(".md").tempfile().context("creating a file to edit")?;
    file.write_all(before.as_bytes()).and_then(|()| file.flush()).context("creating a file to edit")?;
    let path = file.into_temp_path();
    open_editor(&path)?;
    let after = std::fs::read_to_string(&path).context("reading the edited file")?;
    if after == before {
        return match as_json {
            true => Ok(print_line(json!({"session": session.session(), "changed": false}))?),
            false => Ok(print_line("the plan has not changed")?),
        };
    }
    if plan(session).await?.unwrap_or_default() != before {
        let kept_path = path.keep().context("keeping the edited file")?;
        let kept_path = kept_path.display();
        return Err(anyhow!("another client changed the plan meanwhile: your text is in {kept_path}").into());
    }
    set(session, Some(after), as_json).await
}

fn open_editor(file: &std::path::Path) -> anyhow::Result<()> {
    let named = |name: &str| std::env::var_os(name).filter(|editor| !editor.is_empty());
    let Some(editor) = named("VISUAL").or_else(|| named("EDITOR")) else {
        bail!("there is no editor: set $EDITOR, or write the plan with --set FILE");
    };
    // The variable may contain flags of the editor, in shell syntax.
    let mut shell = Command::new("/bin/sh");
    let ended = shell.arg("-c").arg("eval \"$GROVE_EDITOR\" '\"$1\"'").arg("sh").arg(file).env("GROVE_EDITOR", editor);
    let ended = ended.status().context("starting the editor")?;
    if !ended.success() {
        bail!("the editor ended with {ended}: the plan has not changed");
    }
    Ok(())
}
