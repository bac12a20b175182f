//! The shim as a separate program.

use std::io::Write;
use std::process::ExitCode;

use grove_shim::{ShimOptions, run};

fn main() -> ExitCode {
    match ShimOptions::from_stdin().and_then(run) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(std::io::stderr(), "grove-shim: {error}").ok();
            ExitCode::FAILURE
        }
    }
}
