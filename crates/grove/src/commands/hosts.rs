//! `grove hosts`, `grove hosts add` and `grove hosts rm`

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use futures_util::StreamExt;
use grove_client::{Credentials, Fingerprint, HostAddress};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use super::{Failure, command_runtime, exit, print_line};
use crate::cli::{Common, HostsAddArgs, HostsArgs, HostsCommand, HostsRmArgs, ServeArgs};
use crate::hosts::{self, HostProbe, KnownHost, KnownHosts, UnusableHost, known_hosts, probe, shown_certificate};
use crate::settings::Settings;
use crate::show::style::{bold, sanitize};
use crate::show::table::{cut, lines};

/// The number of hosts that are asked at a time.
const ASKED_AT_ONCE: usize = 16;
/// The maximum length of a token.
const TOKEN: u64 = 4 << 10;
/// The number of characters shown of an invalid name.
const NAME: usize = 40;
/// The number of characters shown of a connection error.
const WHY: usize = 300;

pub(crate) fn run(common: &Common, args: &HostsArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let data_dir = &settings.data_dir.value;
    match &args.command {
        None => list(data_dir, args.json),
        Some(HostsCommand::Add(args)) => add(data_dir, args),
        Some(HostsCommand::Rm(args)) => rm(data_dir, args),
    }
}

fn list(data_dir: &Path, as_json: bool) -> Result<(), Failure> {
    let KnownHosts { hosts: all, unusable } = known_hosts(data_dir)?;
    let probe_result: Vec<Result<HostProbe>> =
        command_runtime()?.block_on(futures_util::stream::iter(&all).map(probe).buffered(ASKED_AT_ONCE).collect());
    let rows: Vec<(&KnownHost, &Result<HostProbe>)> = all.iter().zip(&probe_result).collect();
    if as_json {
        let mut hosts: Vec<Value> = rows.iter().map(|(host, probe_result)| row_json(host, probe_result)).collect();
        hosts.extend(unusable.iter().map(
            |UnusableHost { name, error }| json!({"name": name, "reachable": false, "error": cut(&error.to_string(), WHY)}),
        ));
        return Ok(print_line(json!({ "hosts": hosts }))?);
    }
    if rows.is_empty() && unusable.is_empty() {
        anstream::eprintln!("there are no other hosts: `grove hosts add NAME ssh://machine` adds one");
        return Ok(());
    }
    let head = ["NAME", "STATE", "VERSION", "SESSIONS", "ADDRESS"].map(str::to_owned).to_vec();
    let cells = rows.iter().map(|(host, probe_result)| {
        let (state, version, sessions) = match probe_result {
            Ok(probe_result) => ("reachable", version(probe_result), probe_result.sessions.to_string()),
            Err(_) => ("unreachable", String::new(), String::new()),
        };
        vec![host.name.clone(), state.to_owned(), version, sessions, host.address.to_string()]
    });
    let broken = unusable.iter().map(|UnusableHost { name, .. }| {
        vec![cut(name, NAME), "unusable".to_owned(), String::new(), String::new(), String::new()]
    });
    let table = lines(&std::iter::once(head).chain(cells).chain(broken).collect::<Vec<_>>());
    for (at, line) in table.iter().enumerate() {
        if at == 0 { print_line(bold(line))? } else { print_line(line)? }
    }
    for (host, probe_result) in rows {
        if let Err(error) = probe_result {
            anstream::eprintln!("{}: {}", host.name, cut(&format!("{error:#}"), WHY));
        }
    }
    for UnusableHost { name, error } in unusable {
        anstream::eprintln!("{}: {}", cut(&name, NAME), cut(&error.to_string(), WHY));
    }
    Ok(())
}

fn version(probe_result: &HostProbe) -> String {
    let named = probe_result.program.as_ref().map(|program| match &program.version {
        Some(version) => format!("{} {version}", program.name),
        None => program.name.clone(),
    });
    // The text comes from another machine: it must not contain control sequences.
    cut(&named.unwrap_or_default(), 30)
}

fn row_json(host: &KnownHost, probe_result: &Result<HostProbe>) -> Value {
    let mut row = json!({"name": host.name, "address": host.address.to_string(), "reachable": probe_result.is_ok()});
    match probe_result {
        Ok(probe_result) => {
            row["program"] = json!(probe_result.program.as_ref().map(|program| &program.name));
            row["version"] = json!(probe_result.program.as_ref().and_then(|program| program.version.as_ref()));
            row["sessions"] = json!(probe_result.sessions);
        }
        Err(error) => row["error"] = json!(cut(&format!("{error:#}"), WHY)),
    }
    if let Some(pin) = host.access.pin {
        row["pin"] = json!(pin.to_string());
    }
    row
}

fn add(data_dir: &Path, args: &HostsAddArgs) -> Result<(), Failure> {
    let is_tls = matches!(args.address, HostAddress::Tls(_));
    if args.pin.is_some() && !is_tls {
        return Err(anyhow!("only a host behind TLS (wss://) has a certificate to pin").into());
    }
    let needs_token = matches!(args.address, HostAddress::Tls(_) | HostAddress::Plain(_));
    if args.token_file.is_some() && !needs_token {
        return Err(anyhow!("{} needs no token: leave out --token-file", args.address).into());
    }
    // Check this before asking any question.
    if hosts::named(data_dir, &args.name)?.is_some() {
        return Err(hosts::HostsError::Known(args.name.clone()).into());
    }
    if args.address.is_readable_by_others() {
        anstream::eprintln!(
            "grove: everybody between here and {} can read the host's token and all sessions: \
             wss:// and ssh:// encrypt them",
            args.address
        );
    }
    let pin = match args.pin {
        Some(pin) => Some(pin),
        None if is_tls => Some(ask_pin(&args.address)?),
        None => None,
    };
    let token = match &args.token_file {
        Some(file) => Some(token_in(file)?),
        None if needs_token => Some(ask_token()?),
        None => None,
    };
    let access = Credentials { token, pin, ssh: None };
    let host = KnownHost { name: args.name.clone(), address: args.address.clone(), access };
    // Detects a token that cannot be sent.
    host.endpoint()?;
    hosts::add(data_dir, &host)?;
    Ok(print_line(format!("{} is {}: `grove hosts` shows its status", host.name, host.address))?)
}

fn rm(data_dir: &Path, args: &HostsRmArgs) -> Result<(), Failure> {
    match hosts::remove(data_dir, &args.name)? {
        true => Ok(print_line(format!("{} was removed", args.name))?),
        false => Err(Failure::NotFound(format!(
            "no host is called {:?}: `grove hosts` lists them",
            args.name.chars().take(80).collect::<String>()
        ))),
    }
}

/// The certificate of the host, once the user has confirmed it.
fn ask_pin(address: &HostAddress) -> Result<Fingerprint, Failure> {
    let shown = command_runtime()?.block_on(shown_certificate(address))?;
    if !io::stdin().is_terminal() {
        return Err(anyhow!(
            "the host shows the certificate {shown}: compare it with what `grove serve` prints there, and add `--pin {shown}`"
        )
        .into());
    }
    anstream::eprintln!(
        "The host shows the certificate {shown}. `grove serve` prints its own certificate there.\nIs it the same? [y/n] "
    );
    let mut answer = String::new();
    io::stdin().lock().take(100).read_line(&mut answer).context("cannot read the answer")?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(shown),
        _ => Err(anyhow!("nothing was added: the certificate was not confirmed").into()),
    }
}

fn token_in(file: &Path) -> Result<String> {
    let opened = std::fs::File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
    read_token(&mut BufReader::new(opened)).with_context(|| file.display().to_string())
}

fn ask_token() -> Result<String, Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Ok(read_token(&mut stdin.lock()).context("cannot read the host's token from stdin")?);
    }
    // Hide the input before the prompt: text that is typed at once must not be visible either.
    let unseen = HiddenInput::begin(&stdin)?;
    anstream::eprint!("The host's token (`token` in its data folder; it is not shown): ");
    io::stderr().flush().ok();
    let typed = unseen.read(&mut stdin.lock());
    anstream::eprintln!();
    Ok(read_token(&mut typed?.as_bytes())?)
}

/// Reads a token from the first line.
fn read_token(input: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    input.take(TOKEN).read_line(&mut line).context("cannot be read")?;
    match line.trim() {
        "" => bail!("it contains no token: copy `token` from the host's data folder"),
        token if token.chars().any(|letter| letter.is_control() || letter.is_whitespace()) => {
            bail!("it does not contain a token: {:?}…", sanitize(&token.chars().take(4).collect::<String>()))
        }
        token => Ok(token.to_owned()),
    }
}

/// A terminal without echo. Ctrl-C is handled here, so that echo is always restored.
struct HiddenInput<'a> {
    terminal: &'a io::Stdin,
    before: Termios,
}

impl<'a> HiddenInput<'a> {
    fn begin(terminal: &'a io::Stdin) -> Result<Self> {
        let before = tcgetattr(terminal).context("cannot read the settings of the terminal")?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(terminal, OptionalActions::Flush, &hidden).context("cannot turn off the terminal's echo")?;
        Ok(Self { terminal, before })
    }

    fn read(self, input: &mut impl BufRead) -> Result<String, Failure> {
        let mut typed = Vec::new();
        for byte in input.take(TOKEN).bytes() {
            match byte.context("the terminal cannot be read")? {
                b'\n' | b'\r' | 4 => break,
                3 => return Err(Failure::Exit(exit::LEFT)),
                8 | 127 => drop(typed.pop()),
                byte => typed.push(byte),
            }
        }
        Ok(String::from_utf8_lossy(&typed).into_owned())
    }
}

impl Drop for HiddenInput<'_> {
    fn drop(&mut self) {
        // This only fails if the terminal is gone.
        tcsetattr(self.terminal, OptionalActions::Flush, &self.before).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_on_the_first_line() {
        let read = |text: &str| read_token(&mut text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(read(" abc \nmore"), Ok("abc".to_owned()));
        for wrong in ["", "\nabc", "a b", "a\u{7}b"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
