//! `grove agents login`

use std::io::{IsTerminal, stdin};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, anyhow};
use grove_agents::acp::{AcpAgent, AcpProgram, LoginKind, LoginMethod, TerminalLogin};
use serde_json::json;

use super::{installed_program, tell_host};
use crate::agents::one_shot::OneShotPool;
use crate::cli::{AgentsLoginArgs, Common, ServeArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::settings::Settings;
use crate::show::style::sanitize;

/// The way in which a login happens.
enum LoginPlan {
    /// The agent is asked to log in.
    Agent(LoginMethod),
    /// A program runs in this terminal.
    Terminal { program: PathBuf, args: Vec<String>, login: TerminalLogin },
}

pub(super) fn run(common: &Common, args: &AgentsLoginArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let program = installed_program(&settings, &args.agent)?;
    let runtime = command_runtime()?;
    let pool = OneShotPool::new(&settings)?;
    let agent = {
        let _context = runtime.enter();
        AcpAgent::new(program.clone(), pool.pool())
    };
    let probe = runtime.block_on(agent.probe()).context("the agent cannot tell its ways to log in")?;
    let methods = &probe.login_methods;
    if args.list {
        return list(args, methods);
    }
    let plan = plan(args, &program, methods)?;
    match &plan {
        LoginPlan::Agent(method) => {
            anstream::eprintln!(
                "{} logs in with {}; it may open a browser (Ctrl-C stops)",
                sanitize(&program.display_name),
                sanitize(&method.name)
            );
            runtime.block_on(agent.log_in(&method.id)).map_err(|error| anyhow!("the login failed: {error}"))?;
        }
        LoginPlan::Terminal { program: command, args: words, login } => {
            in_terminal(&program, command, words, login)?;
        }
    }
    // An agent that waits for a login is asked again with its next turn; new ones read it anyway.
    let host_told = tell_host(&settings)?;
    if args.json {
        let method = match &plan {
            LoginPlan::Agent(method) => Some(&method.id),
            LoginPlan::Terminal { .. } => None,
        };
        return Ok(print_line(json!({ "loggedIn": args.agent, "method": method, "hostTold": host_told }))?);
    }
    Ok(print_line(format!("logged in to {}", args.agent))?)
}

fn list(args: &AgentsLoginArgs, methods: &[LoginMethod]) -> Result<(), Failure> {
    let kind = |method: &LoginMethod| if method.is_of_agent() { "agent" } else { "terminal" };
    if args.json {
        let methods: Vec<_> = methods
            .iter()
            .map(|method| {
                json!({
                    "id": method.id, "name": method.name, "description": method.description, "kind": kind(method),
                })
            })
            .collect();
        return Ok(print_line(json!({ "agent": args.agent, "methods": methods }))?);
    }
    for method in methods {
        let description = method.description.as_deref().unwrap_or_default();
        let line = format!("{}  {}  {}  {description}", method.id, kind(method), method.name);
        print_line(sanitize(line.trim_end()))?;
    }
    Ok(())
}

/// Chooses the way: the named method, else the agent's or the catalog's login in a terminal, else its only method.
fn plan(args: &AgentsLoginArgs, program: &AcpProgram, methods: &[LoginMethod]) -> Result<LoginPlan, Failure> {
    let of_method = |method: &LoginMethod| match &method.kind {
        LoginKind::Agent => LoginPlan::Agent(method.clone()),
        LoginKind::Terminal(login) => {
            // The protocol adds to the agent's own arguments; a program of the method has its own.
            let (command, mut words) = match &login.program {
                Some(other) => (other.clone(), Vec::new()),
                None => (program.program.clone(), program.args.clone()),
            };
            words.extend(login.args.iter().cloned());
            LoginPlan::Terminal { program: command, args: words, login: login.clone() }
        }
    };
    let ids = || methods.iter().map(|method| method.id.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = &args.method {
        let method = methods.iter().find(|method| method.id == *wanted);
        let unknown = || {
            let name = &args.agent;
            Failure::NotFound(format!(
                "{name} has no login {wanted:?}, but {}: `grove agents login {name} --list`",
                ids()
            ))
        };
        return Ok(of_method(method.ok_or_else(unknown)?));
    }
    let in_terminal: Vec<&LoginMethod> = methods.iter().filter(|method| !method.is_of_agent()).collect();
    if let [only] = in_terminal.as_slice() {
        return Ok(of_method(only));
    }
    let own = program.known.as_ref().and_then(|known| known.log_in_args.clone());
    if let (Some(words), []) = (own, in_terminal.as_slice()) {
        let command = program.program.clone();
        return Ok(LoginPlan::Terminal { program: command, args: words, login: TerminalLogin::default() });
    }
    match methods {
        [only] => Ok(of_method(only)),
        [] => {
            let name = &args.agent;
            let words = program.known.as_ref().map_or("use its own program", |known| known.log_in.as_str());
            Err(anyhow!("{name} offers no login over the protocol: {words}").into())
        }
        several => {
            let name = &args.agent;
            Err(anyhow!("{name} has {} logins ({}): `grove agents login {name} METHOD` chooses", several.len(), ids())
                .into())
        }
    }
}

/// Runs a login in the person's terminal.
fn in_terminal(agent: &AcpProgram, program: &PathBuf, args: &[String], login: &TerminalLogin) -> Result<(), Failure> {
    let words =
        std::iter::once(program.display().to_string()).chain(args.iter().cloned()).collect::<Vec<_>>().join(" ");
    anstream::eprintln!("$ {}", sanitize(&words));
    if !stdin().is_terminal() {
        return Err(anyhow!("this login needs a terminal: run `grove agents login {}` in one", agent.id).into());
    }
    // It runs for the person, with the person's own environment.
    let status = Command::new(program).args(args).envs(&agent.env).envs(&login.env).status();
    let status = status.with_context(|| format!("{} cannot be run", program.display()))?;
    match status.success() {
        true => Ok(()),
        false => {
            Err(anyhow!("the login failed ({status}): try again, or `grove agents login {} --list`", agent.id).into())
        }
    }
}
