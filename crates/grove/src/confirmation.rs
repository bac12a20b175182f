//! Asking the user before something is done.

use std::io::{BufRead, IsTerminal, stdin};

use anyhow::anyhow;

use crate::commands::Failure;

/// Asks a question with yes or no; `refused` is the message after a no. Without a terminal it fails, and names `--yes`.
pub(crate) fn confirm(question: &str, refused: &str) -> Result<(), Failure> {
    if !stdin().is_terminal() {
        return Err(anyhow!("cannot ask \"{question}\", since stdin is not a terminal: add --yes").into());
    }
    anstream::eprint!("{question} [y/n] ");
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(anyhow!("{refused}").into()),
    }
}
