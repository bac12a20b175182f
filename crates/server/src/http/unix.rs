//! A Unix socket, for the owner of the host alone.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use async_trait::async_trait;
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
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
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
            if uid == geteuid().as_raw() || uid == 0 {
                return Ok(AcceptedStream { stream: Box::new(stream), peer: PeerAddress::Unix { pid, uid } });
            }
            tracing::warn!(user = uid, "another user tried to use the host's socket");
        }
    }
}
