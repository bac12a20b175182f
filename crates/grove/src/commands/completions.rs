//! `grove completions`

use clap::CommandFactory;

use super::{Failure, print_line};
use crate::cli::Cli;

pub(crate) fn run(shell: clap_complete::Shell) -> Result<(), Failure> {
    // The script is generated into memory first: the generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "grove", &mut script);
    print_line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(())
}
