//! The debug bundle: facts about a host for a report of a problem, without its secrets and its conversations.
//!
//! The list of files is here, and each is made of known members: no file of the data folder is copied as it is, except
//! for the host's log and the list of damage, line by line through the filter.

mod secrets;
mod tar;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use self::secrets::SecretFilter;
use self::tar::Archive;
use crate::background::find_host;
use crate::commands::serve;
use crate::damage_file;
use crate::data_folder;
use crate::disk_usage;
use crate::settings::Settings;

/// The end of the host's log that is included, in bytes.
const LOG_BYTES: u64 = 1 << 20;
/// The sessions that are listed, the largest first.
const MAX_SESSIONS: usize = 10_000;

const README: &str = "\
A debug bundle of Grove: facts about a host, for a report of a problem.

versions.json  the program, the system, and this machine's size
config.json    every setting and its source; of agents, hooks and stores the names
status.json    what the running host says of itself
metrics.txt    its numbers, in Prometheus' text format
limits.txt     the bounds of queues, buffers and messages
sessions.json  ids and sizes of sessions; titles only with --with-titles
damage.jsonl   damage that hosts found when they started
host.log       the end of the host's log

Tokens, values of environment variables and texts of conversations are not in
it. Look through it before you send it all the same.
";

/// The treatment of sessions' titles, which may repeat parts of prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TitlePolicy {
    Included,
    LeftOut,
}

/// The archive, and the names of its files.
pub(crate) struct DebugBundle {
    pub(crate) bytes: Vec<u8>,
    pub(crate) files: Vec<&'static str>,
}

/// Gathers everything. What cannot be read is replaced by the reason.
pub(crate) async fn gather(settings: &Settings, titles: TitlePolicy) -> DebugBundle {
    let filter = SecretFilter::of(settings);
    let data_dir = &settings.data_dir.value;
    let (status, metrics) = ask_host(data_dir).await;
    let config = serde_json::to_value(settings).unwrap_or_default();
    let log = end_of(&data_folder::log_path(data_dir)).unwrap_or_else(|error| error.to_string());
    let damage = damage_file::read(data_dir).into_iter().filter_map(|finding| serde_json::to_string(&finding).ok());
    let damage: String = damage.map(|line| line + "\n").collect();
    let files = [
        ("README.txt", README.to_owned()),
        ("versions.json", filter.json(&versions(data_dir))),
        ("config.json", filter.json(&config)),
        ("status.json", filter.json(&status)),
        ("metrics.txt", metrics),
        ("limits.txt", limits(settings)),
        ("sessions.json", filter.json(&sessions(settings, titles))),
        ("damage.jsonl", filter.text(&damage)),
        ("host.log", filter.text(&log)),
    ];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut archive = Archive::default();
    for (name, text) in &files {
        archive.add(&format!("grove-debug/{name}"), text.as_bytes(), now);
    }
    DebugBundle { bytes: archive.finish(), files: files.iter().map(|(name, _)| *name).collect() }
}

/// The status of the running host and its metrics.
async fn ask_host(data_dir: &Path) -> (Value, String) {
    match find_host(data_dir).await {
        Ok(Some(host)) => {
            let metrics = host.endpoint.metrics().await.unwrap_or_else(|error| format!("# {error:#}\n"));
            (serde_json::to_value(&host.health).unwrap_or_default(), metrics)
        }
        Ok(None) => (json!({"running": false}), "# no host is running\n".to_owned()),
        Err(error) => {
            let error = format!("{error:#}");
            (json!({"running": true, "error": error}), format!("# {error}\n"))
        }
    }
}

fn versions(data_dir: &Path) -> Value {
    let system = rustix::system::uname();
    let disk = rustix::fs::statvfs(data_dir).ok();
    json!({
        "grove": env!("CARGO_PKG_VERSION"),
        "protocols": {"v1": grove_wire::registry::PROTOCOL_VERSION, "ahp": "1.0"},
        "system": system.sysname().to_string_lossy(),
        "release": system.release().to_string_lossy(),
        "machine": system.machine().to_string_lossy(),
        "processors": std::thread::available_parallelism().map_or(1, usize::from),
        "memoryKilobytes": memory_kilobytes(),
        "freeDiskBytes": disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        "watchesFolders": grove_work::can_watch(),
    })
}

/// The memory of the machine, where the system tells it.
fn memory_kilobytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn sessions(settings: &Settings, titles: TitlePolicy) -> Value {
    let usage = match disk_usage::measure(settings) {
        Ok(usage) => usage,
        Err(error) => return json!({"error": error.to_string()}),
    };
    let mut value = serde_json::to_value(&usage).unwrap_or_default();
    if let Some(rows) = value.get_mut("sessions").and_then(Value::as_array_mut) {
        rows.truncate(MAX_SESSIONS);
        if titles == TitlePolicy::Included {
            let stores = crate::stores::folders(settings);
            for row in rows.iter_mut() {
                let store = stores.iter().find(|store| row["store"] == store.name.to_string());
                let file = store.zip(row["id"].as_str()).map(|(store, id)| store.folder.join(id).join("session.json"));
                let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
                let session: Value = serde_json::from_str(&text).unwrap_or_default();
                row["title"] = session["title"].clone();
            }
        }
    }
    value
}

/// The end of a file, from the beginning of a line. A file that does not exist is empty.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        file => file?,
    };
    let from = file.metadata()?.len().saturating_sub(LOG_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        // The first line is cut off.
        Some((_, rest)) if from > 0 => rest.to_owned(),
        _ => text,
    })
}

/// The bounds of the host, and those of single tokens.
fn limits(settings: &Settings) -> String {
    let config = serve::config(settings);
    format!("{:#?}\n{:#?}\n", config.limits, config.token_limits)
}
