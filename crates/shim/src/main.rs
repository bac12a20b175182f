//! The shim as a program of its own.

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
