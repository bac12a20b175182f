//! A Unix socket, for the owner of the host alone.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use async_trait::async_trait;
use grove_checks::Check;
use grove_work::ProcFolder;
use rustix::process::geteuid;
use tokio::net::UnixListener;

use crate::listener::{AcceptedStream, Listener, PeerAddress};

/// A listener in the file system. Only processes of the same user have access, whatever the file's mode.
#[derive(Debug)]
pub struct UnixSocket(UnixListener);

impl UnixSocket {
    /// Listens at a path, replacing a socket that was left there.
    ///
    /// The caller makes sure that no other host uses it.
    pub fn bind(path: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = UnixListener::bind(path)?;
        if Check::SocketMode.is_enforced() {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        }
        Ok(Self(listener))
    }
}

#[async_trait]
impl Listener for UnixSocket {
    async fn accept(&mut self) -> io::Result<AcceptedStream> {
        loop {
            let (stream, _) = self.0.accept().await?;
            // The file's mode lets other users in for the moment before it is set.
            let credentials = stream.peer_cred()?;
            let (uid, pid) = (credentials.uid(), credentials.pid().and_then(|pid| u32::try_from(pid).ok()));
            if may_connect(uid, geteuid().as_raw()) {
                let started = pid.and_then(|pid| ProcFolder.key(pid)).map(|process| process.started);
                let peer = PeerAddress::Unix { pid, started, uid };
                return Ok(AcceptedStream { stream: Box::new(stream), peer });
            }
            tracing::warn!(user = uid, "another user tried to use the host's socket");
        }
    }
}

/// Says whether a user may use the socket of a host: its owner, and the administrator, who can read everything anyhow.
fn may_connect(user: u32, owner: u32) -> bool {
    !Check::SocketUser.is_enforced() || user == owner || user == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn another_user_may_not_use_the_socket() {
        assert!(may_connect(1_000, 1_000) && may_connect(0, 1_000));
        assert!(!may_connect(1_001, 1_000) && !may_connect(1_000, 0));
    }

    #[tokio::test]
    async fn the_socket_can_be_opened_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = UnixSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }
}
