//! Runs the contestants.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::Options;
use crate::measure::Figures;
use crate::peers;
use crate::report::Report;

/// The share of each tool among many sessions.
const MIX: &str = "claude=.35,vscode=.3,copilot-cli=.1,codex=.1,pi=.1,gemini=.05";
/// One of each format of each tool.
const EACH: &str = "claude=1,vscode-log=1,vscode-flat=1,copilot-cli=1,codex=1,pi=1,gemini=1";

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let temporary = tempfile::tempdir()?;
    let corpora = options.corpora.clone().unwrap_or_else(|| temporary.path().join("corpora"));
    let usual = corpora.join("usual");
    generate(&usual, &["--sessions", "2000", "--mb", "300", "--giants", "2", "--giant-mb", "50", "--mix", MIX])?;
    let many = corpora.join(if options.full { "many-3gb" } else { "many" });
    // The time of a list depends on the number of sessions, not on their length.
    let size = if options.full { "3000" } else { "200" };
    generate(&many, &["--sessions", "20000", "--mb", size, "--giants", "0", "--mix", MIX])?;
    let long = corpora.join("long");
    generate(&long, &["--sessions", "7", "--mb", "350", "--giants", "7", "--giant-mb", "50", "--mix", EACH])?;

    let peers = match options.no_peers {
        true => Vec::new(),
        false => {
            let folder = options.peers_dir.clone().unwrap_or_else(|| temporary.path().join("peers"));
            peers::measure(&folder, &usual)
        }
    };
    let [usual, many, long] = [&usual, &many, &long].map(|home| median(home, options.runs));
    let report = Report::new(usual?, many?, long?, peers);
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&report.json()?)?),
        false => report.print(),
    }
    Ok(if report.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn generate(home: &Path, options: &[&str]) -> Result<()> {
    if home.join("manifest.json").exists() {
        return Ok(());
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("gen_corpus.py");
    let output = Command::new("python3").arg(script).arg("--root").arg(home).args(options).output();
    let output = output.context("python3 is missing, which generates the homes")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The figures of the run with the median scan time.
fn median(home: &Path, runs: usize) -> Result<Figures> {
    let program = std::env::current_exe()?;
    let mut all = Vec::new();
    for _ in 0..runs.max(1) {
        let output = Command::new(&program).arg("measure").arg(home).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        all.push(serde_json::from_slice::<Figures>(&output.stdout)?);
    }
    all.sort_by(|a, b| a.scan.total_cmp(&b.scan));
    let middle = all.len() / 2;
    Ok(all.swap_remove(middle))
}
