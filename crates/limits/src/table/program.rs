//! Limits of the program `grove`, as far as they concern a host.
//!
//! A program cannot be a dependency, so the values are written here. A test of the program compares them with its constants
//! (`crates/grove/src/limits.rs`).

use std::time::Duration;

use crate::{Limit, LimitGroup, bytes, count, time};

pub(super) fn groups() -> Vec<LimitGroup> {
    vec![program()]
}

fn program() -> LimitGroup {
    let rows = vec![
        Limit::new("audit-files", count(8), "audit log", "the oldest file is deleted"),
        Limit::new("audit-file", bytes(8 << 20), "file of the audit log", "the next file begins"),
        Limit::new("audit-line", bytes(64 << 10), "line of the audit log", "the line is damage, and is left out"),
        Limit::new("audit-queue", count(4_096), "host", "further records are counted as lost, and the log says so"),
        Limit::new("host-log", bytes(8 << 20), "log of a host in the background", "a new log begins at the next start"),
        Limit::new("damage-file", bytes(1 << 20), "data folder", "further reports of damage are not written"),
        Limit::new("secret-file", bytes(1 << 20), "file with a token, or `grove.toml`", "the file is refused"),
        Limit::new("exported-spans", count(2_048), "host", "further spans are dropped"),
        Limit::new("export-time", time(Duration::from_secs(5)), "request to a collector", "its spans are dropped"),
        Limit::new("agents", count(16), "host", "the agent that was idle longest is ended, or the next one waits")
            .set_by("max-agents"),
        Limit::new("agent-idle", time(Duration::from_secs(600)), "agent without a turn", "the agent is ended")
            .set_by("agent-idle"),
        Limit::new("agent-start", time(Duration::from_secs(15)), "start of an agent", "the turn fails and says so")
            .set_by("agent-start"),
        Limit::new("agent-cancel", time(Duration::from_secs(5)), "cancelled turn", "the agent's process is ended")
            .set_by("agent-cancel"),
        Limit::new(
            "agent-answer",
            time(Duration::from_secs(60)),
            "request to an agent that needs no model",
            "the request fails",
        ),
        Limit::new(
            "catalog-download",
            time(Duration::from_secs(60)),
            "download of a catalog of agents",
            "the download fails",
        ),
        Limit::new(
            "installed-program",
            bytes(1 << 30),
            "downloaded program of an agent",
            "the installation fails, and leaves nothing",
        ),
        Limit::new(
            "install-step",
            time(Duration::from_secs(20 * 60)),
            "step of an installation",
            "the installation fails, and leaves nothing",
        ),
        Limit::new("install-lines", count(500), "installation that a client follows", "the oldest lines are dropped"),
        Limit::new("agent-starts", count(2), "host, for clients that check agents or log in", "further ones wait"),
        Limit::new("administration-id", bytes(200), "id in a request about agents", "the request is refused (-32602)"),
        Limit::new("checked-hosts", count(16), "request, at a time", "further hosts are asked later"),
        Limit::new(
            "added-address",
            bytes(2 << 10),
            "address of a host that a client adds",
            "the request is refused (-32602)",
        ),
        Limit::new(
            "added-token",
            bytes(4 << 10),
            "token of a host that a client adds",
            "the request is refused (-32602)",
        ),
        Limit::new(
            "rules-text",
            bytes(64 << 10),
            "rules that a client tries or adds",
            "the request is refused (-32602)",
        ),
        Limit::new(
            "judged-request",
            bytes(64 << 10),
            "request that a client has judged",
            "the request is refused (-32602)",
        ),
        Limit::new("replay-differences", count(2_000), "replay of past requests", "the oldest are counted, not listed"),
        Limit::new("replay-page", count(500), "page of differences", "the rest is on the next page"),
        Limit::new("suggested-rules", count(100), "request", "those that match fewer answers are left out"),
        Limit::new("agent-name", bytes(32), "agent of `grove.toml`", "`grove.toml` is refused"),
        Limit::new("idle-exit", time(Duration::from_secs(600)), "host in the background, unused", "the host exits")
            .set_by("idle-exit"),
        Limit::new("hook-time", time(Duration::from_secs(3_600)), "timeout of a hook", "`grove.toml` is refused"),
        Limit::new("hook-answer", bytes(4 << 20), "answer of a hook", "the hook has failed"),
        Limit::new("hook-stderr", bytes(64 << 10), "call of a hook", "only the end is reported"),
        Limit::new("hosts", count(256), "host", "the host is refused"),
        Limit::new("host-name", bytes(40), "other host", "the name is refused"),
        Limit::new("host-cache", bytes(4 << 20), "cached list of another host", "only the newest sessions are cached"),
        Limit::new("known-stores", count(256), "host", "the oldest store is forgotten"),
        Limit::new("trusted-folders", count(10_000), "host", "the oldest must be trusted again"),
        Limit::new("trusted-policies", count(10_000), "host", "the oldest must be trusted again"),
        Limit::new("cached-policies", count(256), "host", "the file is read again"),
        Limit::new("history-readings", count(4), "host, at a time", "further sessions of other tools wait"),
        Limit::new(
            "history-subagents",
            count(1_000),
            "session of another tool",
            "the results of further subagents are in their tool calls",
        ),
    ];
    LimitGroup { subject: "The program", about: "", limits: rows }
}
