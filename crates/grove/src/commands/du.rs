//! `grove du`

use anyhow::Context;

use super::{Failure, print_line};
use crate::cli::{Common, DuArgs, ServeArgs};
use crate::disk_usage::{bytes_shown, measure};
use crate::settings::Settings;
use crate::show::style::sanitize_line;
use crate::show::table;

/// The sessions that are listed without `--all`.
const LISTED: usize = 20;

pub(crate) fn run(common: &Common, args: &DuArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let data_dir = &settings.data_dir.value;
    let usage = measure(&settings).with_context(|| format!("{} cannot be read", data_dir.display()))?;
    if args.json {
        return Ok(print_line(serde_json::to_string(&usage)?)?);
    }
    print_line(format!("{} in {}", bytes_shown(usage.bytes), data_dir.display()))?;
    let row = |cells: [String; 3]| cells.to_vec();
    let mut rows = vec![row(["PART".into(), "SIZE".into(), "FILES".into()])];
    for part in usage.parts.iter().filter(|part| part.files > 0) {
        rows.push(row([part.name.to_owned(), bytes_shown(part.bytes), part.files.to_string()]));
    }
    table::lines(&rows).into_iter().try_for_each(print_line)?;
    if usage.sessions.is_empty() {
        return Ok(());
    }
    let shown = if args.all { usage.sessions.len() } else { LISTED };
    let titles = ["SESSION", "STORE", "SIZE", "LOGS", "CONTENT"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for session in usage.sessions.iter().take(shown) {
        let sizes = [session.bytes, session.log_bytes, session.content_bytes].map(bytes_shown);
        let names = [sanitize_line(&session.id), sanitize_line(&session.store)];
        rows.push(names.into_iter().chain(sizes).collect());
    }
    print_line("")?;
    table::lines(&rows).into_iter().try_for_each(print_line)?;
    if usage.sessions.len() > shown {
        print_line(format!("and {} more, with --all", usage.sessions.len() - shown))?;
    }
    Ok(())
}
