//! The folder of a shim: its permissions, and its files.
//!
//! - `socket`: the shim's listening socket.
//! - `lock`: locked for as long as the shim runs.
//! - `stderr.log`, `stderr.old.log`: the newest part of the agent's stderr.
//! - `shim.log`: the error of the shim itself, if it failed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use grove_checks::Check;
use tokio::net::UnixStream;

use crate::ShimError;

pub(crate) const SHIM_LOG: &str = "shim.log";
pub(crate) const LOG: &str = "stderr.log";
pub(crate) const OLD_LOG: &str = "stderr.old.log";
const SOCKET: &str = "socket";
const LOCK: &str = "lock";

/// The longest socket path that every system accepts, with some room.
const ADDRESS_BYTES: usize = 100;

/// The address of a socket in a folder, in a form that the system accepts however long the folder's path is.
#[derive(Debug)]
pub struct SocketAddress {
    path: PathBuf,
    /// The path leads through this open folder.
    _folder: Option<File>,
}

impl SocketAddress {
    /// The address of the shim's own socket.
    pub(crate) fn of_shim(folder: &Path) -> io::Result<Self> {
        Self::of(folder, SOCKET)
    }

    /// The address of the socket of this name.
    pub fn of(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(name);
        if path.as_os_str().as_bytes().len() <= ADDRESS_BYTES || !cfg!(target_os = "linux") {
            return Ok(Self { path, _folder: None });
        }
        let opened = File::open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())).join(name);
        Ok(Self { path, _folder: Some(opened) })
    }

    /// The path to bind or to connect to, while this exists.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Creates the folder if it is missing, and ensures that nobody else can enter it.
pub(crate) fn make_private(folder: &Path) -> Result<(), ShimError> {
    let failed = |error| ShimError::Folder { path: folder.to_owned(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let found = fs::symlink_metadata(folder).map_err(failed)?;
    let ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
    if ours || !Check::ShimFolder.is_enforced() {
        Ok(())
    } else {
        Err(ShimError::NotPrivate { path: folder.to_owned() })
    }
}

/// Takes the lock of the shim that runs here. It ends with the process.
pub(crate) fn lock(folder: &Path) -> Result<File, ShimError> {
    let failed = |error| ShimError::Folder { path: folder.to_owned(), error };
    let file = create(&folder.join(LOCK)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(ShimError::InUse { folder: folder.to_owned() }),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Opens a file that only its owner can read, to append to.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Creates a file without a name, which disappears with its last handle.
pub(crate) fn unnamed_file(folder: &Path) -> io::Result<File> {
    let path = folder.join("spool");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Returns whether the other end of a connection runs as our user.
pub(crate) fn is_ours(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}
