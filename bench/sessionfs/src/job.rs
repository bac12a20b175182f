//! The contestants, and the input and output of the node process.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::Stored;

/// The answer of both contestants.
pub(crate) const ANSWER: &str = "All is well.";

/// The compared programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Contestant {
    #[serde(rename = "grove")]
    Grove,
    #[serde(rename = "copilot")]
    Copilot,
}

impl Contestant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grove => "grove",
            Self::Copilot => "copilot",
        }
    }

    /// The prompt that causes the answer. The fake model gives the same answer to every prompt.
    pub(crate) fn prompt(self) -> String {
        match self {
            Self::Grove => format!("script:{}", serde_json::json!([{ "say": ANSWER }])),
            Self::Copilot => "Is all well?".to_owned(),
        }
    }
}

/// The connection of the SDK to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wire {
    /// A connection on loopback to a running server.
    Tcp,
    /// The pipes of a program that the SDK starts.
    Stdio,
}

impl Wire {
    pub(crate) const ALL: [Self; 2] = [Self::Tcp, Self::Stdio];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Stdio => "stdio",
        }
    }
}

/// The address of a server for the SDK.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Reached {
    Tcp { address: String, token: String },
    Stdio { program: PathBuf, args: Vec<String>, env: BTreeMap<String, String> },
}

/// The job at one server.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Job {
    pub(crate) server: Option<Reached>,
    /// The SDK's options of every session.
    pub(crate) session: Value,
    pub(crate) prompt: String,
    pub(crate) answer: &'static str,
    /// How long a prompt may take.
    pub(crate) patience_ms: u64,
    /// The number of warm-ups of everything except resuming.
    pub(crate) warmups: u32,
    pub(crate) pings: u32,
    pub(crate) creates: u32,
    pub(crate) sends: u32,
    /// Each is resumed once: the server has not seen it before.
    pub(crate) resumes: Vec<Stored>,
    /// Read the events of resumed sessions.
    pub(crate) reads: bool,
    /// Send a prompt to resumed sessions, which is not measured.
    pub(crate) sends_after_resume: bool,
}

/// The times of each step in milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StepTimes {
    pub(crate) ping: Vec<f64>,
    pub(crate) create: Vec<f64>,
    pub(crate) send: Vec<f64>,
    pub(crate) resume: Vec<f64>,
    pub(crate) read: Vec<f64>,
}

impl StepTimes {
    pub(crate) fn add(&mut self, other: Self) {
        self.ping.extend(other.ping);
        self.create.extend(other.create);
        self.send.extend(other.send);
        self.resume.extend(other.resume);
        self.read.extend(other.read);
    }
}
