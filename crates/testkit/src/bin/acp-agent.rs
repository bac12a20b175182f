//! An agent that speaks ACP on its stdio and needs no model: see `grove_testkit::acp`.

use std::io::Write;
use std::process::ExitCode;

use grove_testkit::acp::{AgentBehavior, run};

fn main() -> ExitCode {
    match AgentBehavior::from_env() {
        Ok(behavior) if std::env::args().any(|arg| arg == "--login") => match behavior.log_in() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                writeln!(std::io::stderr(), "acp-agent: {error}").ok();
                ExitCode::FAILURE
            }
        },
        Ok(behavior) => run(behavior),
        Err(error) => {
            writeln!(std::io::stderr(), "acp-agent: {error}").ok();
            ExitCode::from(2)
        }
    }
}
