//! Notifications: the settings of the owner, the files of the service, and its start.

pub(crate) mod config_table;
mod roots;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_host::Host;
use grove_host::tokens::TokenRegistry;
use grove_notify::{Devices, HttpsTransport, Notifier, NotifyFile, NotifyStorage};

pub(crate) use config_table::{NotifySettings, read};

use crate::data_folder::write_private;
use crate::secret_files;

/// The files of the service in the data folder.
#[derive(Debug)]
struct NotifyFiles {
    data_dir: PathBuf,
}

impl NotifyFiles {
    fn path(&self, file: NotifyFile) -> PathBuf {
        self.data_dir.join(match file {
            NotifyFile::Key => "push-key",
            NotifyFile::Devices => "push-devices.json",
        })
    }
}

impl NotifyStorage for NotifyFiles {
    fn load(&self, file: NotifyFile) -> io::Result<Option<String>> {
        Ok(secret_files::read(&self.path(file)).map_err(io::Error::other)?.map(|secret| secret.text))
    }

    fn store(&self, file: NotifyFile, text: &str) -> io::Result<()> {
        write_private(&self.path(file), text).map_err(|error| io::Error::other(format!("{error:#}")))
    }
}

/// Gives the host its notifications. It works without them.
pub(crate) fn start(host: &Host, tokens: &TokenRegistry, data_dir: &Path, settings: &NotifySettings) {
    let storage = Arc::new(NotifyFiles { data_dir: data_dir.to_owned() });
    let devices = match Devices::open(storage.clone(), tokens.clone(), settings.reach()) {
        Ok(devices) => devices,
        Err(error) => return tracing::warn!("nobody is notified: push-devices.json cannot be read: {error}"),
    };
    let transport = Arc::new(HttpsTransport::new(Box::new(roots::read)));
    let notifier = Notifier::new(host, settings.config(), storage, devices, transport);
    host.set_notifications(Arc::new(notifier.clone()));
    tokio::spawn(notifier.run());
}
