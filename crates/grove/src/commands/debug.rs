//! `grove debug bundle`

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::Context;

use super::{Failure, command_runtime, print_line};
use crate::cli::{BundleArgs, Common, ServeArgs};
use crate::debug_bundle::{TitlePolicy, gather};
use crate::disk_usage::bytes_shown;
use crate::settings::Settings;

pub(crate) fn bundle(common: &Common, args: &BundleArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let titles = if args.with_titles { TitlePolicy::Included } else { TitlePolicy::LeftOut };
    let bundle = command_runtime()?.block_on(gather(&settings, titles));
    let path = args.output.clone().unwrap_or_else(default_path);
    let failed = || format!("{} cannot be written: name another file with --output", path.display());
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    opened.and_then(|mut file| file.write_all(&bundle.bytes)).with_context(failed)?;
    print_line(format!(
        "{} ({}): {}",
        path.display(),
        bytes_shown(bundle.bytes.len() as u64),
        bundle.files.join(", ")
    ))?;
    anstream::eprintln!("look through it before you send it: `tar -xf {}`", path.display());
    Ok(())
}

/// A name that sorts by time.
fn default_path() -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    PathBuf::from(format!("grove-debug-{now}.tar"))
}
