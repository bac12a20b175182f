//! Hooks that are programs: JSON on stdin, JSON on stdout.
//!
//! A program gets the event as one line. Stdin stays open: its end means that the event was cancelled, and the program
//! is ended soon after. Its answer is a JSON object on stdout, or nothing. Its environment has an address and a token,
//! with which it can change the session's tree like hooks inside the host.

pub(crate) mod config_table;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_host::Host;
use grove_host::hooks::{Hook, HookAnswer, HookContext, HookError, HookEvent, HookKind};
use grove_work::{Process, Program};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::settings::Settings;
pub(crate) use config_table::{HookConfig, read};

/// The maximum size of a hook's answer.
pub(crate) const ANSWER: usize = 4 << 20;
/// The number of stderr bytes that are kept, and the number that are reported.
pub(crate) const COMPLAINT: usize = 64 << 10;
const TOLD: usize = 300;
/// How long a cancelled hook may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// A hook that is a program.
struct CommandHook {
    name: String,
    config: HookConfig,
    /// The address of the host for the hook's own requests.
    url: String,
}

/// The input of a hook.
#[derive(Serialize)]
struct HookInput<'a> {
    session: &'a str,
    #[serde(flatten)]
    event: &'a HookEvent,
}

/// Adds the configured hooks to a host at this address.
pub(crate) fn add_all(settings: &Settings, host: &Host, http: &str) {
    for (name, config) in &settings.hooks.value {
        let url = format!("{http}/x-grove");
        host.add_hook(Arc::new(CommandHook { name: name.clone(), config: config.clone(), url }));
    }
}

#[async_trait]
impl Hook for CommandHook {
    fn name(&self) -> String {
        format!("the hook {}", self.name)
    }

    fn wants(&self, kind: HookKind) -> bool {
        self.config.events.contains(&kind)
    }

    async fn call(&self, event: &HookEvent, at: &HookContext) -> Result<HookAnswer, HookError> {
        let lease = at.lease()?;
        let config = HookInput { session: at.session().as_str(), event };
        let mut line = serde_json::to_vec(&config).map_err(|error| HookError(error.to_string()))?;
        line.push(b'\n');
        let (command, args) =
            self.config.command.split_first().ok_or_else(|| HookError("it has no command".to_owned()))?;
        let program = Program::new(command, "/")
            .args(args)
            .env("GROVE_HOOK", event.kind().as_str())
            .env("GROVE_HOOK_URL", &self.url)
            .env("GROVE_HOOK_TOKEN", lease.token());
        let process = Process::start(&program).map_err(|error| HookError(error.to_string()))?;
        let mut running = HookProcess(Some(process));
        let too_long = |_| HookError(format!("it took longer than {} s", self.config.timeout.as_secs()));
        tokio::time::timeout(self.config.timeout, running.exchange_json(&line)).await.map_err(too_long)?
    }
}

/// A process that is ended gracefully when it is no longer needed.
struct HookProcess(Option<Process>);

impl Drop for HookProcess {
    fn drop(&mut self) {
        if let Some(process) = self.0.take() {
            tokio::spawn(async move { process.end(GRACE).await });
        }
    }
}

impl HookProcess {
    async fn exchange_json(&mut self, line: &[u8]) -> Result<HookAnswer, HookError> {
        let gone = || HookError("it has ended".to_owned());
        let process = self.0.as_mut().ok_or_else(gone)?;
        let (mut stdout, mut stderr) =
            (process.stdout.take().ok_or_else(gone)?, process.stderr.take().ok_or_else(gone)?);
        let stdin = process.stdin.as_mut().ok_or_else(gone)?;
        // A program may ignore its input.
        let write = async {
            stdin.write_all(line).await.ok();
            stdin.flush().await.ok();
        };
        let answer = async {
            let mut output = Vec::new();
            loop {
                let mut chunk = [0; 16 << 10];
                match stdout.read(&mut chunk).await {
                    Ok(0) | Err(_) => return Ok(output),
                    Ok(read) => output.extend_from_slice(&chunk[..read]),
                }
                if output.len() > ANSWER {
                    return Err(HookError(format!("it answered more than {ANSWER} bytes")));
                }
                // A complete answer does not need the end of the program.
                if output.trim_ascii_end().ends_with(b"}") && serde_json::from_slice::<HookAnswer>(&output).is_ok() {
                    return Ok(output);
                }
            }
        };
        let complaint = async {
            let mut stderr_tail = Vec::new();
            let mut chunk = [0; 4 << 10];
            while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
                stderr_tail.extend_from_slice(&chunk[..read]);
                stderr_tail.drain(..stderr_tail.len().saturating_sub(COMPLAINT));
            }
            stderr_tail
        };
        let mut complaint = std::pin::pin!(complaint);
        let mut complained = None;
        let output = {
            let mut talk = std::pin::pin!(async { tokio::join!(write, answer).1 });
            loop {
                tokio::select! {
                    output = &mut talk => break output?,
                    text = &mut complaint, if complained.is_none() => complained = Some(text),
                }
            }
        };
        if !output.trim_ascii().is_empty() {
            let wrong = |error| HookError(format!("its answer is not a valid JSON object: {error}"));
            return serde_json::from_slice(&output).map_err(wrong);
        }
        let exit = match self.0.as_mut() {
            Some(process) => process.wait().await,
            None => return Err(gone()),
        };
        if exit.success() {
            return Ok(HookAnswer::default());
        }
        let text = match complained {
            Some(text) => text,
            None => complaint.await,
        };
        let text = String::from_utf8_lossy(&text);
        let text = text.trim();
        let from = text.ceil_char_boundary(text.len().saturating_sub(TOLD));
        Err(HookError(format!("it failed ({exit}): {}", &text[from..])))
    }
}
