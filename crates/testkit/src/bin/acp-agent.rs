//! An agent that speaks ACP on its stdio and needs no model: `grove_testkit::acp` says what it does.

use std::io::Write;
use std::process::ExitCode;

use grove_testkit::acp::{AgentBehavior, run};

fn main() -> ExitCode {
    match AgentBehavior::from_env() {
        Ok(behavior) => run(behavior),
        Err(error) => {
            writeln!(std::io::stderr(), "acp-agent: {error}").ok();
            ExitCode::from(2)
        }
    }
}
