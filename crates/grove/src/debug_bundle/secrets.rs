//! Leaving secrets out of the files of a bundle.

use std::path::Path;

use grove_frames::{Redaction, RedactionRules, SecretMark, is_secret_name};
use serde_json::Value;

use crate::hosts;
use crate::settings::Settings;

static RULES: RedactionRules = RedactionRules {
    is_secret_name,
    environment: Some("env"),
    marks: &[
        SecretMark { text: "bearer ", min_bytes: 16, is_header: true },
        SecretMark { text: "tkn=", min_bytes: 1, is_header: false },
        SecretMark { text: "token=", min_bytes: 1, is_header: false },
        SecretMark { text: "ticket=", min_bytes: 1, is_header: false },
    ],
    shows_missing: true,
};

/// The files of the data folder that hold a secret and nothing else.
const SECRET_FILES: [&str; 2] = ["token", "copilot-token"];

/// Leaves out what is secret by its name, by the mark before it, or because it is a known secret of this host.
#[derive(Debug)]
pub(super) struct SecretFilter(Redaction);

impl SecretFilter {
    /// A filter that knows the secrets of these settings and of their data folder.
    pub(super) fn of(settings: &Settings) -> Self {
        let mut values: Vec<String> = Vec::new();
        let data_dir = &settings.data_dir.value;
        values.extend(SECRET_FILES.iter().filter_map(|name| file_text(&data_dir.join(name))));
        values.extend(settings.agents.value.values().flat_map(|agent| agent.env.values().cloned()));
        if let Ok(known) = hosts::known_hosts(data_dir) {
            values.extend(known.hosts.into_iter().filter_map(|host| host.access.token));
        }
        Self(Redaction::new(&RULES).without_values(&values))
    }

    /// A value without its secrets, for people to read.
    pub(super) fn json(&self, value: &Value) -> String {
        let mut out = String::new();
        if !self.0.redact(&value.to_string(), &mut out) {
            return String::new();
        }
        let shown = serde_json::from_str::<Value>(&out).and_then(|value| serde_json::to_string_pretty(&value));
        shown.unwrap_or(out)
    }

    /// A text without its secrets, line by line.
    pub(super) fn text(&self, text: &str) -> String {
        text.lines().map(|line| self.line(line) + "\n").collect()
    }

    fn line(&self, line: &str) -> String {
        // A line of JSON is searched member by member.
        let mut out = String::new();
        if line.starts_with('{') && self.0.redact(line, &mut out) {
            return out;
        }
        out.clear();
        let is_redacted = serde_json::to_string(line).is_ok_and(|json| self.0.redact(&json, &mut out));
        let text = if is_redacted { serde_json::from_str(&out).ok() } else { None };
        text.unwrap_or_else(|| "[a line that could not be searched for secrets]".to_owned())
    }
}

fn file_text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
