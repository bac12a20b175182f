//! `grove completions`

use clap::CommandFactory;

use super::Failure;
use crate::cli::Cli;

pub(crate) fn run(shell: clap_complete::Shell) -> Result<(), Failure> {
    clap_complete::generate(shell, &mut Cli::command(), "grove", &mut std::io::stdout());
    Ok(())
}
