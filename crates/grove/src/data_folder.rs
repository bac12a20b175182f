//! The data folder: its lock for one host at a time, the token, and the address of the running host.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use grove_host::{Random, Token};

use crate::endpoint::HostEndpoint;
use crate::secret_files::{self, SecretError};

/// The data folder, locked while this lives.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    /// The operating system releases the lock when the process ends, however it ends.
    _lock: File,
    /// The folder itself, locked as well: deleting the lock file does not admit a second host.
    folder: Arc<File>,
}

/// The inner folders whose owner and mode are checked.
const INNER_FOLDERS: [&str; 6] = ["journal", "session-state", "agents", "programs", "history", "hosts-seen"];
/// The number of attempts to lock the folder, and the pause between them.
///
/// A command that looks for a running host holds the lock for a moment.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Another host uses the folder.
#[derive(Debug, thiserror::Error)]
#[error("{} is in use by another host ({by}): stop it with `grove stop`, or choose another --data-dir", .path.display())]
pub(crate) struct DataFolderInUse {
    path: PathBuf,
    by: String,
}

impl DataFolder {
    /// Locks the folder for this process, and creates it if it is missing.
    pub(crate) fn take(path: &Path) -> Result<Self> {
        make(path)?;
        for inner in INNER_FOLDERS.iter().map(|name| path.join(name)).filter(|inner| inner.exists()) {
            secret_files::check_folder(&inner)?;
        }
        let mut lock = lock(path)?;
        let folder = lock_folder(path)?;
        lock.set_len(0)
            .and_then(|()| lock.write_all(format!("process {}\n", std::process::id()).as_bytes()))
            .with_context(|| format!("{} cannot be written", lock_path(path).display()))?;
        check_version(path)?;
        // The address of a killed host: another program may have taken its port, and would get the token.
        fs::remove_file(endpoint_path(path)).ok();
        Ok(Self { path: path.to_owned(), _lock: lock, folder: Arc::new(folder) })
    }

    /// The folder and the journal in it, each with the path that it had.
    fn places(&self) -> Vec<(PathBuf, Arc<File>)> {
        let journal = self.path.join("journal");
        let opened = File::open(&journal).ok().map(|opened| (journal, Arc::new(opened)));
        std::iter::once((self.path.clone(), self.folder.clone())).chain(opened).collect()
    }

    /// Looks whether the folder and the journal in it are still those that this host has; gives what is wrong.
    pub(crate) fn check(&self) -> impl Fn() -> Option<String> + Send + Sync + use<> {
        let places = self.places();
        move || {
            let (gone, _) = places.iter().find(|(path, opened)| !is_same(opened, path))?;
            Some(format!(
                "{} was removed or replaced while the host runs, and nothing can be stored: put it back, or stop the host \
                 and start it again",
                gone.display()
            ))
        }
    }

    /// Looks whether the folder, or the journal in it, was deleted: it cannot come back then, as one that was moved can.
    pub(crate) fn deletion_check(&self) -> impl Fn() -> Option<String> + Send + Sync + use<> {
        let places = self.places();
        move || {
            let is_deleted = |opened: &File| opened.metadata().is_ok_and(|found| found.nlink() == 0);
            let (gone, _) = places.iter().find(|(_, opened)| is_deleted(opened))?;
            Some(format!("{} was deleted while the host runs, and nothing can be stored any more", gone.display()))
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The stored token, or a new one.
    pub(crate) fn token(&self, random: &dyn Random) -> Result<Token> {
        read_or_create_token(&self.path.join("token"), random)
    }

    /// Writes the addresses of this host.
    pub(crate) fn announce(&self, endpoint: &HostEndpoint) -> Result<()> {
        write_private(&endpoint_path(&self.path), &serde_json::to_string(endpoint)?)
    }

    /// The loopback port of the last host, if it is stored.
    pub(crate) fn last_port(&self) -> Option<u16> {
        fs::read_to_string(port_path(&self.path)).ok()?.trim().parse().ok().filter(|port| *port != 0)
    }

    /// Stores the loopback port for the next start.
    pub(crate) fn store_port(&self, port: u16) -> Result<()> {
        if self.last_port() == Some(port) {
            return Ok(());
        }
        write_private(&port_path(&self.path), &format!("{port}\n"))
    }

    /// The path of the host's own socket.
    pub(crate) fn socket_path(&self) -> PathBuf {
        // Processes with another current folder read it.
        std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()).join("host.sock")
    }

    /// Removes the addresses.
    pub(crate) fn retract(&self) {
        // If another folder has replaced ours, the files belong to another host.
        if !is_same(&self.folder, &self.path) {
            return;
        }
        // A remaining file does no harm: readers check the host that it names.
        fs::remove_file(endpoint_path(&self.path)).ok();
        fs::remove_file(self.socket_path()).ok();
    }
}

/// Makes a data folder, where it is missing. One that another user has prepared is refused before anything is written there.
pub(crate) fn make(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("the data folder {} cannot be made", path.display()))?;
    Ok(secret_files::check_folder(path)?)
}

/// The file whose lock permits starting a host in the background.
///
/// It is not the host's own lock, which must be free for the host.
pub(crate) fn start_lock(data_dir: &Path) -> Result<File> {
    let path = data_dir.join("start.lock");
    private(OpenOptions::new().write(true).create(true).truncate(false))
        .open(&path)
        .with_context(|| format!("{} cannot be opened", path.display()))
}

/// The log of a host in the background.
pub(crate) fn log_path(data_dir: &Path) -> PathBuf {
    data_dir.join("host.log")
}

/// The file with the connection token for Copilot SDK clients, used if `COPILOT_CONNECTION_TOKEN` is not set.
pub(crate) fn copilot_token_path(data_dir: &Path) -> PathBuf {
    data_dir.join("copilot-token")
}

/// The connection token of Copilot SDK clients, created by the first program that needs one.
pub(crate) fn copilot_token(data_dir: &Path, random: &dyn Random) -> Result<Token> {
    // Two programs that start at once must end up with one token.
    let lock = start_lock(data_dir)?;
    lock.lock().with_context(|| format!("{} cannot be locked", data_dir.join("start.lock").display()))?;
    read_or_create_token(&copilot_token_path(data_dir), random)
}

/// Reads the token of a file, or creates the file with a new one.
fn read_or_create_token(path: &Path, random: &dyn Random) -> Result<Token> {
    match secret_files::read(path)? {
        Some(secret) => {
            if secret.was_readable {
                tracing::warn!(
                    file = %path.display(),
                    "other users could read the token: it is private now; remove the file and start the host again for a new one"
                );
            }
            Token::parse(&secret.text)
                .with_context(|| format!("{} contains no token: remove it to get a new one", path.display()))
        }
        None => {
            let token = Token::generate(random).context("cannot get random numbers for a token")?;
            write_private(path, token.reveal())?;
            Ok(token)
        }
    }
}

/// Replaces the host's own token, also in the addresses of the running host.
pub(crate) fn replace_token(data_dir: &Path, token: &Token) -> Result<()> {
    write_private(&data_dir.join("token"), token.reveal())?;
    let path = endpoint_path(data_dir);
    let Some(text) = secret_files::read(&path)? else { return Ok(()) };
    let mut endpoint: HostEndpoint =
        serde_json::from_str(&text.text).with_context(|| format!("{} is damaged", path.display()))?;
    endpoint.token = token.reveal().to_owned();
    write_private(&path, &serde_json::to_string(&endpoint)?)
}

/// The JSON of the stores that a data folder has had.
pub(crate) fn read_stores(data_dir: &Path) -> Result<Option<String>> {
    let path = stores_path(data_dir);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

pub(crate) fn write_stores(data_dir: &Path, text: &str) -> Result<()> {
    write_private(&stores_path(data_dir), text)
}

fn stores_path(data_dir: &Path) -> PathBuf {
    data_dir.join("stores.json")
}

/// The `PATH` of a command that knew an agent which the host did not; the host looks for agents there as well. Its folders
/// name programs that the host starts, so the file is checked like one with a secret.
pub(crate) fn read_client_path(data_dir: &Path) -> Result<Option<String>, SecretError> {
    let read = secret_files::read(&client_path_file(data_dir))?;
    Ok(read.map(|read| read.text).filter(|path| path.len() <= CLIENT_PATH_BYTES))
}

/// The maximum length of a stored `PATH`.
const CLIENT_PATH_BYTES: usize = 64 << 10;

pub(crate) fn write_client_path(data_dir: &Path, path: &str) -> Result<()> {
    if path.len() > CLIENT_PATH_BYTES {
        bail!("PATH has more than {CLIENT_PATH_BYTES} bytes");
    }
    write_private(&client_path_file(data_dir), path)
}

fn client_path_file(data_dir: &Path) -> PathBuf {
    data_dir.join("client-path")
}

/// The folder of the agents' shims.
pub(crate) fn agents_path(data_dir: &Path) -> PathBuf {
    data_dir.join("agents")
}

/// The catalog of agents that takes the place of the included one.
pub(crate) fn catalog_path(data_dir: &Path) -> PathBuf {
    data_dir.join("agents.toml")
}

/// The folder of the agents that `grove agents install` has installed.
pub(crate) fn programs_path(data_dir: &Path) -> PathBuf {
    data_dir.join("programs")
}

/// The format version of a data folder. A newer one is refused; an older one would be migrated here.
const VERSION: u32 = 1;

fn check_version(data_dir: &Path) -> Result<()> {
    let path = data_dir.join("version");
    match fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse::<u32>() {
            Ok(VERSION) => Ok(()),
            Ok(other) => bail!(
                "{} is of version {other}, and this Grove knows version {VERSION}: use the Grove that made it, or \
                 another --data-dir",
                data_dir.display()
            ),
            Err(_) => bail!("{} contains no version: restore it, or use another --data-dir", path.display()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => write_private(&path, &format!("{VERSION}\n")),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// The stored addresses of a data folder's host.
pub(crate) fn read_endpoint(data_dir: &Path) -> Result<Option<HostEndpoint>> {
    let path = endpoint_path(data_dir);
    if data_dir.exists() {
        secret_files::check_folder(data_dir)?;
    }
    match secret_files::read(&path)? {
        Some(secret) => {
            serde_json::from_str(&secret.text).map(Some).with_context(|| format!("{} is damaged", path.display()))
        }
        None => Ok(None),
    }
}

/// Returns whether a host uses the folder.
pub(crate) fn is_taken(data_dir: &Path) -> bool {
    [lock_path(data_dir), data_dir.to_owned()].iter().any(|path| match File::open(path) {
        Ok(lock) => matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    })
}

/// Locks the lock file of the folder.
fn lock(data_dir: &Path) -> Result<File> {
    let path = lock_path(data_dir);
    for _ in 0..LOCK_TRIES {
        let mut lock = private(OpenOptions::new().read(true).write(true).create(true).truncate(false))
            .open(&path)
            .with_context(|| format!("{} cannot be opened", path.display()))?;
        match lock.try_lock() {
            // The file was deleted in between.
            Ok(()) if !is_same(&lock, &path) => {}
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => {
                let mut by = String::new();
                lock.read_to_string(&mut by).ok();
                let by = if by.is_empty() { "a process that is starting".to_owned() } else { by.trim().to_owned() };
                return Err(DataFolderInUse { path: data_dir.to_owned(), by }.into());
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
            }
        }
    }
    bail!("{} is deleted repeatedly: find the program that does so, then try again", path.display())
}

/// Locks the folder itself. On a file system without such locks, only the lock file is used.
fn lock_folder(data_dir: &Path) -> Result<File> {
    let folder = File::open(data_dir).with_context(|| format!("{} cannot be opened", data_dir.display()))?;
    for attempt in 1.. {
        match folder.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if attempt < LOCK_TRIES => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                let by = "whose lock file was deleted".to_owned();
                return Err(DataFolderInUse { path: data_dir.to_owned(), by }.into());
            }
            Err(TryLockError::Error(error)) => {
                tracing::debug!(%error, "the data folder itself cannot be locked");
                break;
            }
        }
    }
    Ok(folder)
}

/// Tells whether a path still names an open file or folder.
fn is_same(opened: &File, path: &Path) -> bool {
    let place = |found: fs::Metadata| (found.dev(), found.ino());
    match (opened.metadata(), fs::metadata(path)) {
        (Ok(opened), Ok(named)) => place(opened) == place(named),
        _ => false,
    }
}

fn lock_path(data_dir: &Path) -> PathBuf {
    data_dir.join("lock")
}

fn port_path(data_dir: &Path) -> PathBuf {
    data_dir.join("port")
}

fn endpoint_path(data_dir: &Path) -> PathBuf {
    data_dir.join("host.json")
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Writes a file atomically, readable only by its owner.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let failed = || format!("{} cannot be written", path.display());
    let temporary = path.with_extension("new");
    // A failed attempt may have left it; a link there must not be followed.
    fs::remove_file(&temporary).ok();
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(&temporary).with_context(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(failed)?;
    fs::rename(&temporary, path).with_context(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_path_of_a_command_is_read_from_a_file_of_ours_alone() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        assert_eq!(read_client_path(data).unwrap(), None);
        write_client_path(data, "/opt/agents").unwrap();
        assert_eq!(read_client_path(data).unwrap().as_deref(), Some("/opt/agents"));
        let file = client_path_file(data);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(matches!(read_client_path(data), Err(SecretError::Writable { .. })));
        let other = data.join("other");
        fs::rename(&file, &other).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&other, &file).unwrap();
        assert!(matches!(read_client_path(data), Err(SecretError::Link { .. })));
    }

    #[test]
    fn the_port_of_the_last_start_is_read_back_and_what_is_no_port_counts_as_none() {
        let place = tempfile::tempdir().unwrap();
        let folder = DataFolder::take(&place.path().join("data")).unwrap();
        assert_eq!(folder.last_port(), None);
        folder.store_port(4748).unwrap();
        assert_eq!(folder.last_port(), Some(4748));
        for text in ["", "0", "seventy", "99999"] {
            fs::write(port_path(folder.path()), text).unwrap();
            assert_eq!(folder.last_port(), None, "{text}");
        }
    }
}
