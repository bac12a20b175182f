//! Reproducible logs of any length.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::json;

/// The percentage of entries that begin a new branch.
const BRANCH_PERCENT: u64 = 5;
/// The maximum distance of a new branch from the leaf.
const BRANCH_STEPS: u64 = 20;

const WORDS: [&str; 16] = [
    "the",
    "session",
    "fn open(path: &str)",
    "\"quoted\"",
    "returns",
    "\n    ",
    "café",
    "index",
    "C:\\temp",
    "and",
    "->",
    "entry",
    "was read;",
    "\n",
    "of",
    "line",
];

/// The end of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Entries(usize),
    Bytes(u64),
}

/// Writes a log of version 3 and returns the number of its entries.
pub(crate) fn log(path: &Path, until: Until) -> io::Result<usize> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let header = json!({
        "type": "session", "version": 3, "id": "019b7ca9-8c88-71d5-ab6b-941b1e5f1370", "timestamp": time(0), "cwd": "/",
    });
    let mut written = line(&mut out, &header)?;
    let mut chance = Chance(1);
    let mut parents: Vec<Option<usize>> = Vec::new();
    loop {
        let number = parents.len();
        let over = match until {
            Until::Entries(entries) => number == entries,
            Until::Bytes(bytes) => written >= bytes,
        };
        if over {
            out.into_inner()?.sync_all()?;
            return Ok(number);
        }
        let mut parent = number.checked_sub(1);
        if chance.below(100) < BRANCH_PERCENT {
            for _ in 0..=chance.below(BRANCH_STEPS) {
                parent = parent.and_then(|at| parents[at].or(Some(at)));
            }
        }
        let entry = json!({
            "type": "message", "id": id(number), "parentId": parent.map(id), "timestamp": time(number),
            "message": message(number, &mut chance),
        });
        written += line(&mut out, &entry)?;
        parents.push(parent);
    }
}

/// A message of the user, an agent or a tool, of about one KiB.
pub(crate) fn message(number: usize, chance: &mut Chance) -> serde_json::Value {
    let text = text(600 + chance.below(500) as usize, chance);
    let timestamp = 1_767_322_800_000u64 + number as u64 * 1_000;
    match number % 3 {
        0 => json!({"role": "user", "content": text, "timestamp": timestamp}),
        1 => json!({
            "role": "assistant",
            "content": [
                {"type": "text", "text": text},
                {"type": "toolCall", "id": format!("call-{number}"), "name": "read", "arguments": {"path": "src/lib.rs"}},
            ],
            "api": "bench", "provider": "bench", "model": "bench-1",
            "usage": {
                "input": number, "output": 250, "cacheRead": 0, "cacheWrite": 0, "totalTokens": number + 250,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
            },
            "stopReason": "toolUse", "timestamp": timestamp,
        }),
        _ => json!({
            "role": "toolResult", "toolCallId": format!("call-{}", number - 1), "toolName": "read",
            "content": [{"type": "text", "text": text}], "isError": false, "timestamp": timestamp,
        }),
    }
}

fn text(length: usize, chance: &mut Chance) -> String {
    let mut text = String::with_capacity(length + 32);
    while text.len() < length {
        text.push_str(WORDS[chance.below(WORDS.len() as u64) as usize]);
        text.push(' ');
    }
    text
}

fn line(out: &mut impl Write, value: &serde_json::Value) -> io::Result<u64> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)?;
    Ok(line.len() as u64)
}

/// Eight digits that look random. Multiplying by an odd number keeps different numbers different.
fn id(number: usize) -> String {
    format!("{:08x}", (number as u32).wrapping_mul(0x9e37_79b1) ^ 0x5bd1_e995)
}

/// A second per entry, in a month that is long enough for all of them.
fn time(number: usize) -> String {
    let (days, seconds) = (number / 86_400, number % 86_400);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("2026-01-{:02}T{hours:02}:{minutes:02}:{seconds:02}.000Z", 2 + days)
}

/// Reproducible random numbers (splitmix64).
#[derive(Debug)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
