//! Who is measured, what the node process is told, and what it prints.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::Stored;

/// What both contestants are to answer.
pub(crate) const ANSWER: &str = "All is well.";

/// Who is measured.
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

    /// What has it answer. The fake model says the same to whatever it is told.
    pub(crate) fn prompt(self) -> String {
        match self {
            Self::Grove => format!("script:{}", serde_json::json!([{ "say": ANSWER }])),
            Self::Copilot => "Is all well?".to_owned(),
        }
    }
}

/// How the SDK talks to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wire {
    /// A connection on loopback to a server that runs.
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

/// Where the SDK finds a server.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Reached {
    Tcp { address: String, token: String },
    Stdio { program: PathBuf, args: Vec<String>, env: BTreeMap<String, String> },
}

/// What is done at one server.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Job {
    pub(crate) server: Option<Reached>,
    /// What the SDK is told of every session.
    pub(crate) session: Value,
    pub(crate) prompt: String,
    pub(crate) answer: &'static str,
    /// How long a prompt may take.
    pub(crate) patience_ms: u64,
    /// How often everything but resuming is done before anything counts.
    pub(crate) warmups: u32,
    pub(crate) pings: u32,
    pub(crate) creates: u32,
    pub(crate) sends: u32,
    /// Each is resumed once: the server has not seen it before.
    pub(crate) resumes: Vec<Stored>,
    /// Whether the events of what was resumed are read.
    pub(crate) reads: bool,
    /// Whether what was resumed is to answer a prompt, which is not measured.
    pub(crate) sends_after_resume: bool,
}

/// Milliseconds that each thing took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) ping: Vec<f64>,
    pub(crate) create: Vec<f64>,
    pub(crate) send: Vec<f64>,
    pub(crate) resume: Vec<f64>,
    pub(crate) read: Vec<f64>,
}

impl Found {
    pub(crate) fn add(&mut self, other: Self) {
        self.ping.extend(other.ping);
        self.create.extend(other.create);
        self.send.extend(other.send);
        self.resume.extend(other.resume);
        self.read.extend(other.read);
    }
}
