//! The certificates that the system trusts, for connections to push services and webhooks.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The variable that names another file, as for other programs.
const VARIABLE: &str = "SSL_CERT_FILE";
/// The places of the file on Debian and Arch, Fedora, SUSE, and on macOS, Alpine and the BSDs.
const PLACES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The largest file, many times larger than the usual ones.
pub(crate) const MAX_BYTES: u64 = 16 << 20;

/// Reads them, in PEM.
pub(crate) fn read() -> io::Result<Vec<u8>> {
    match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => read_file(&PathBuf::from(path)),
        None => {
            let found = PLACES.iter().map(Path::new).find(|path| path.exists());
            read_file(found.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "no file with them was found"))?)
        }
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other(format!("{} has more than {MAX_BYTES} bytes", path.display()))),
        false => Ok(bytes),
    }
}
