//! Downloading a file, with bounds and a checksum.
//!
//! `curl` does the transfer: it has the system's certificates and proxies, and a command line has no need of a TLS client
//! with roots of its own.

use std::io::Write;
use std::time::Duration;

use grove_agents::catalog::is_safe_address;
use grove_checks::Check;
use grove_work::{Process, ProcessError, Program};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// The bytes of curl's stderr that an error shows.
const COMPLAINT_BYTES: u64 = 4 << 10;
/// The bytes that are read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// The bounds of a download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DownloadLimits {
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

/// The reason why a file was not downloaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    #[error("{address} is not used: an address begins with https://, or with http:// and names this machine")]
    Unsafe { address: String },
    #[error("curl is missing, which downloads {address}: install it, or download the file by hand")]
    NoCurl { address: String },
    #[error("curl cannot be run: {0}")]
    Start(ProcessError),
    #[error("{address} cannot be downloaded: {complaint}")]
    Transfer { address: String, complaint: String },
    #[error("{address} has more than {limit} bytes")]
    TooLarge { address: String, limit: u64 },
    #[error("{address} was not downloaded within {} s: try again", .limit.as_secs())]
    Slow { address: String, limit: Duration },
    #[error(
        "{address} has the SHA-256 checksum {found}, and {wanted} is required: it is not the expected file, and is not used"
    )]
    Checksum { address: String, wanted: String, found: String },
    #[error("the download cannot be written: {0}")]
    Write(std::io::Error),
}

/// Compares the checksum of a file with the required one.
pub(crate) fn check_sha256(address: &str, wanted: &str, found: &str) -> Result<(), DownloadError> {
    if !Check::DownloadChecksum.is_enforced() || wanted.eq_ignore_ascii_case(found) {
        return Ok(());
    }
    let (address, wanted, found) = (address.to_owned(), wanted.to_owned(), found.to_owned());
    Err(DownloadError::Checksum { address, wanted, found })
}

/// The SHA-256 checksum of bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Downloads a file, and returns its SHA-256 checksum. Must be called inside a runtime; dropping the future ends it.
pub(crate) async fn download(
    address: &str,
    limits: DownloadLimits,
    into: &mut (impl Write + Send),
) -> Result<String, DownloadError> {
    if Check::DownloadAddress.is_enforced() && !is_safe_address(address) {
        return Err(DownloadError::Unsafe { address: address.to_owned() });
    }
    let slow = |_| DownloadError::Slow { address: address.to_owned(), limit: limits.time };
    timeout(limits.time, transfer(address, limits.bytes, into)).await.unwrap_or_else(|late| Err(slow(late)))
}

async fn transfer(address: &str, limit: u64, into: &mut (impl Write + Send)) -> Result<String, DownloadError> {
    // A redirect must not lead to an address that would be refused.
    let schemes = if address.starts_with("https://") { "=https" } else { "=http" };
    let size = limit.to_string();
    let curl = Program::new("curl", "/").args([
        "--silent",
        "--show-error",
        "--fail",
        "--location",
        "--max-redirs",
        "5",
        "--proto",
        schemes,
        "--proto-redir",
        "=https",
        "--noproxy",
        "localhost,127.0.0.1,::1",
        "--connect-timeout",
        "30",
        "--max-filesize",
        &size,
        "--",
        address,
    ]);
    let mut process = Process::start(&curl).map_err(|error| match error {
        ProcessError::NotFound { .. } => DownloadError::NoCurl { address: address.to_owned() },
        other => DownloadError::Start(other),
    })?;
    drop(process.stdin.take());
    let complaint = read_complaint(process.stderr.take());
    let content = copy(address, process.stdout.take(), limit, into);
    let (checksum, complaint) = tokio::join!(content, complaint);
    let checksum = checksum?;
    let exit = process.wait().await;
    if !exit.success() {
        let complaint = if complaint.is_empty() { format!("curl ended with {exit}") } else { complaint };
        return Err(DownloadError::Transfer { address: address.to_owned(), complaint });
    }
    Ok(checksum)
}

async fn copy(
    address: &str,
    from: Option<impl AsyncRead + Unpin>,
    limit: u64,
    into: &mut (impl Write + Send),
) -> Result<String, DownloadError> {
    let Some(mut from) = from else { return Ok(sha256(&[])) };
    let (mut digest, mut chunk, mut total) = (Sha256::new(), vec![0; CHUNK_BYTES], 0_u64);
    loop {
        // A pipe fails only together with its program, whose exit is looked at.
        let read = from.read(&mut chunk).await.unwrap_or(0);
        let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        total += read as u64;
        if total > limit {
            return Err(DownloadError::TooLarge { address: address.to_owned(), limit });
        }
        digest.update(bytes);
        into.write_all(bytes).map_err(DownloadError::Write)?;
    }
    Ok(hex::encode(digest.finalize()))
}

async fn read_complaint(from: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        (&mut from).take(COMPLAINT_BYTES).read_to_end(&mut bytes).await.ok();
        // Whatever follows is dropped, so that curl does not wait.
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await.ok();
    }
    String::from_utf8_lossy(&bytes).trim().replace('\n', " ")
}
