//! `grove open`

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Failure, command_runtime, print_line};
use crate::background::find_or_start_host;
use crate::cli::{Common, OpenArgs, ServeArgs};
use crate::settings::Settings;

/// How long an opener may take to fail. One that still runs then has become the browser.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn run(common: &Common, args: &OpenArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let endpoint = command_runtime()?.block_on(find_or_start_host(&settings))?.endpoint;
    if !args.print && open(&endpoint.page()) {
        print_line(format!("opened {} in the browser", endpoint.http))?;
    } else {
        // The user asked for the address, so it is printed even if stdout is not a terminal.
        print_line(endpoint.page())?;
    }
    Ok(())
}

/// Opens an address in the browser, if there is one.
fn open(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if has_screen() {
        "xdg-open"
    } else {
        return false;
    };
    let mut command = Command::new(program);
    let spawned = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut process) = spawned else { return false };
    let since = Instant::now();
    while since.elapsed() < TIMEOUT {
        match process.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Err(_) => return false,
        }
    }
    true
}

/// Returns whether there is a graphical display. Without one, a browser could take over the terminal.
fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}
