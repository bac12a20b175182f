//! The process's use of the machine, as the system reports it.

use std::fs;

/// The process's use of the machine. A number that the system does not tell is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    pub open_files: Option<u64>,
    pub open_files_limit: Option<u64>,
    pub resident_bytes: Option<u64>,
    pub threads: Option<u64>,
}

impl ProcessUsage {
    /// Reads the numbers of this process from `/proc`; elsewhere all are missing.
    pub fn read() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Self {
            // The folder itself is open while it is read.
            open_files: fs::read_dir("/proc/self/fd").ok().map(|files| files.count().saturating_sub(1) as u64),
            open_files_limit: limits.lines().find_map(|line| first_number(line.strip_prefix("Max open files")?)),
            resident_bytes: status_number(&status, "VmRSS:").map(|kilobytes| kilobytes << 10),
            threads: status_number(&status, "Threads:"),
        }
    }
}

fn status_number(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| first_number(line.strip_prefix(name)?))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_memory_and_its_open_files() {
        let before = ProcessUsage::read();
        let _file = fs::File::open("/proc/self/status").unwrap();
        let after = ProcessUsage::read();
        assert!(after.resident_bytes.unwrap() > 1 << 16, "{after:?}");
        assert!(after.open_files.unwrap() > 0 && before.open_files.is_some(), "{before:?} {after:?}");
        assert!(after.threads.unwrap() >= 1 && after.open_files_limit.unwrap() > 16, "{after:?}");
    }
}
