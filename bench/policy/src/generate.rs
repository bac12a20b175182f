//! A home with answered permission requests in every place that records them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use grove_core::{AgentId, SessionId, Timestamp};
use grove_transcript::{
    Approval, CallState, TranscriptPart, TranscriptToolCall, TranscriptToolKind, TranscriptTurn, core_turn,
};
use grove_tree::turns::{TurnAttribution, turn_lines};
use serde_json::{Value, json};

/// The requests in one session.
const PER_SESSION: usize = 250;
/// The rules of the home: some allow, some deny, many match nothing.
const RULES: usize = 60;

const COMMANDS: [&str; 12] = [
    "git status -s",
    "cargo test -p crate-N -- --nocapture",
    "cd src && grep -rn 'word N' . | head -20",
    "npm run build-N",
    "rm -rf target/dir-N",
    "cat file-N.txt > out/copy-N.txt",
    "sh -c 'git push origin branch-N'",
    "python3 -c 'print(N)'",
    "for f in a-N b; do echo $f; done",
    "FOO=N make -C dir-N all 2>&1 | tee log-N",
    "curl -s https://host-N.example.com/x",
    "git -c core.pager=cat log -n N && git diff --stat",
];

/// Writes the settings and `count` requests below a home.
pub(crate) fn history(home: &Path, count: usize) -> Result<()> {
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    settings(&home.join(".config/grove"))?;
    let (logged, audited) = (count / 2, count * 3 / 10);
    session_logs(&home.join("data/session-state"), 0..logged, now)?;
    audit_log(&home.join("data/audit"), logged..logged + audited, now)?;
    copilot_sessions(&home.join(".copilot/session-state"), logged + audited..count, now)
}

fn command(number: usize) -> String {
    let template = COMMANDS.get(number % COMMANDS.len()).copied().unwrap_or_default();
    template.replace('N', &(number / COMMANDS.len()).to_string())
}

fn is_approved(number: usize) -> bool {
    !number.is_multiple_of(7)
}

fn settings(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = fs::File::create(folder.join("grove.toml"))?;
    let named = [("allow", "git status *"), ("allow", "cargo test *"), ("deny", "git push *"), ("deny", "rm *")];
    for (verdict, pattern) in named {
        writeln!(file, "[[policy.rules]]\n{verdict} = \"shell\"\ncommand = \"{pattern}\"\n")?;
    }
    for number in 0..RULES {
        writeln!(
            file,
            "[[policy.rules]]\nallow = \"shell\"\ncommand = [\"tool-{number} *\", \"other-{number} x *\"]\n"
        )?;
        writeln!(file, "[[policy.rules]]\ndeny = [\"read\", \"edit\"]\npath = \"secret-{number}/**\"\n")?;
    }
    Ok(())
}

fn session_logs(store: &Path, numbers: std::ops::Range<usize>, now: u64) -> Result<()> {
    let numbers: Vec<usize> = numbers.collect();
    for (at, numbers) in numbers.chunks(PER_SESSION).enumerate() {
        let (session, agent) = (SessionId::from(format!("s{at}")), AgentId::from("claude"));
        let folder = store.join(session.as_str());
        fs::create_dir_all(&folder)?;
        let facts = json!({
            "id": session, "provider": agent, "modifiedAt": now, "workingDirectories": ["file:///work/project"],
        });
        fs::write(folder.join("session.json"), facts.to_string())?;
        let mut log = fs::File::create(folder.join("events.jsonl"))?;
        writeln!(
            log,
            "{}",
            json!({"type": "session", "version": 3, "id": session, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/work/project"})
        )?;
        let mut leaf: Option<String> = None;
        for number in numbers {
            let turn = core_turn(&transcript_turn(*number), Timestamp(now - 60_000 + *number as u64 % 50_000)).turn;
            let origin = TurnAttribution { session: &session, agent: &agent, model: None, spent: None, seen_end: None };
            let lines = turn_lines(&turn, origin, leaf.as_deref(), &|_| false);
            log.write_all(&lines.bytes)?;
            leaf = lines.leaf.or(leaf);
        }
    }
    Ok(())
}

fn transcript_turn(number: usize) -> TranscriptTurn {
    let approved = is_approved(number);
    let call = TranscriptToolCall {
        id: format!("toolu_{number}"),
        name: "Bash".to_owned(),
        kind: TranscriptToolKind::Shell,
        raw_input: Some(json!({"command": command(number)})),
        approval: if approved { Approval::Person { button: None } } else { Approval::Denied },
        state: if approved { CallState::Complete } else { CallState::Refused },
        ..TranscriptToolCall::default()
    };
    let parts = vec![TranscriptPart::Text("Looking at it. ".repeat(20)), TranscriptPart::ToolCall(Box::new(call))];
    TranscriptTurn { id: format!("t{number}"), parts, ..TranscriptTurn::default() }
}

fn audit_log(folder: &Path, numbers: std::ops::Range<usize>, now: u64) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = fs::File::create(folder.join("audit.jsonl"))?;
    for number in numbers {
        let command = command(number);
        let record = json!({
            "time": now - 60_000, "token": "host", "address": "127.0.0.1:1",
            "action": if is_approved(number) { "approve" } else { "deny" },
            "operation": "chat/toolCallConfirmed", "session": format!("claude:/gone-{}", number / PER_SESSION),
            "detail": command, "outcome": "done",
            "request": {
                "agent": "claude", "call": format!("toolu_{number}"), "directory": "/work/project", "kind": "shell",
                "subject": [command],
            },
        });
        writeln!(file, "{record}")?;
    }
    Ok(())
}

fn copilot_sessions(store: &Path, numbers: std::ops::Range<usize>, now: u64) -> Result<()> {
    let at = grove_wire::ahp::time::text(Timestamp(now - 60_000));
    let numbers: Vec<usize> = numbers.collect();
    for (index, numbers) in numbers.chunks(PER_SESSION).enumerate() {
        let id = format!("00000000-0000-4000-8000-{index:012}");
        let folder = store.join(&id);
        fs::create_dir_all(&folder)?;
        let mut log = fs::File::create(folder.join("events.jsonl"))?;
        let mut last: Option<String> = None;
        let mut write = |kind: &str, data: Value| {
            let event = format!("{id}-{}", log.metadata().map(|found| found.len()).unwrap_or_default());
            let line = json!({"type": kind, "id": event, "parentId": last, "timestamp": at, "data": data});
            last = Some(event);
            writeln!(log, "{line}")
        };
        let context = json!({"cwd": "/work/project"});
        write(
            "session.start",
            json!({"sessionId": id, "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.0", "startTime": at, "context": context}),
        )?;
        for number in numbers {
            let call = format!("call_{number}");
            let arguments = json!({"command": command(*number)});
            let word = if is_approved(*number) { "approve-once" } else { "denied-interactively-by-user" };
            write("user.message", json!({"content": "Go on"}))?;
            write(
                "assistant.message",
                json!({"messageId": format!("m{number}"), "content": "", "toolRequests": [{"toolCallId": call, "name": "bash", "arguments": arguments}]}),
            )?;
            write("tool.execution_start", json!({"toolCallId": call, "toolName": "bash", "arguments": arguments}))?;
            write(
                "permission.requested",
                json!({"requestId": format!("r{number}"), "permissionRequest": {"kind": "shell", "toolCallId": call}}),
            )?;
            write(
                "permission.completed",
                json!({"requestId": format!("r{number}"), "toolCallId": call, "result": {"kind": word}}),
            )?;
            write(
                "tool.execution_complete",
                json!({"toolCallId": call, "success": true, "result": {"content": "ok"}}),
            )?;
        }
    }
    Ok(())
}
