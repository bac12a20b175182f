//! `grove agent-shim`

use grove_shim::ShimOptions;

use super::Failure;

pub(crate) fn run() -> Result<(), Failure> {
    let end = grove_shim::run(ShimOptions::from_stdin()?)?;
    // Stderr is a log file in the shim's folder.
    if let Some(message) = end.message {
        anstream::eprintln!("grove: the agent has ended: {message}");
    }
    Ok(())
}
