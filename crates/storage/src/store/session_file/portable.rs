//! `session.json` for another host, and from one.

use grove_core::*;
use grove_fs::SessionFs;

use super::chat_file::ChatFile;
use super::load::{LoadError, read};
use super::{SessionFile, VERSION, save_at};
use crate::store::paths;

impl SessionFile {
    /// The file for another host, or from one.
    ///
    /// It lacks this host's permissions, the folders of this machine, and the data that an agent or a client keeps
    /// here. It also lacks everything that reading changes: the same session gives the same file.
    fn portable(self) -> Self {
        let here = |chat: ChatFile| ChatFile {
            agent_session: None,
            is_agent_retold: false,
            begun: None,
            log: None,
            is_read: true,
            ..chat
        };
        Self {
            seq: 0,
            disposed: false,
            backend: StoreName::default(),
            working_directories: Vec::new(),
            is_read: true,
            config: self.config.map(SessionConfig::without_mode),
            details: self.details.without_permissions(),
            checkout: Checkout { own_pull_request: self.checkout.own_pull_request, ..Checkout::default() },
            active_clients: Vec::new(),
            chat: here(self.chat),
            chats: self.chats.into_iter().map(here).collect(),
            ..self
        }
    }

    /// Removes the permissions, which a storage that others may write must not decide.
    pub fn without_permissions(self) -> Self {
        let config = self.config.map(SessionConfig::without_mode);
        Self { details: self.details.without_permissions(), config, ..self }
    }
}

/// The bytes of the file for another host.
pub async fn read_portable(fs: &dyn SessionFs, session: &SessionId) -> Result<Vec<u8>, LoadError> {
    Ok(serde_json::to_vec_pretty(&read(fs, session).await?.portable())?)
}

/// Reads another host's file in the folder in which its session is staged, and adapts it to this host.
///
/// `checkout` is that of the session's folder on this machine.
pub async fn adopt_staged(
    fs: &dyn SessionFs,
    staging: &str,
    new: &NewSession,
    seq: u64,
    from: RemoteSession,
    checkout: Checkout,
) -> Result<SessionFile, LoadError> {
    let path = paths::session_file_in(staging);
    let file: SessionFile = serde_json::from_slice(&fs.read_file(&path).await?)?;
    if file.version > VERSION {
        return Err(LoadError::Version(file.version));
    }
    // An agent keeps its own conversation on the machine that it ran on: here it is told what was said. Whatever the other
    // host left in, it allows nothing here, and no folder is used that nobody named here.
    let file = file.with_plausible_times().portable();
    let folders = new.working_directories.clone();
    // A pull request is valid everywhere.
    let checkout = Checkout { own_pull_request: file.checkout.own_pull_request, ..checkout };
    let mut details = SessionDetails { moved_from: Some(from), ..file.details };
    if let Some(left) = details.moved_to.take() {
        // The session is back here.
        details.warnings.retain(|words| *words != warning::moved(&left));
    }
    let file = SessionFile {
        seq,
        disposed: false,
        id: new.id.clone(),
        uri: new.uri.clone(),
        backend: new.store.clone(),
        agent: new.agent.clone(),
        lifecycle: Lifecycle::Ready,
        working_directories: folders,
        details,
        checkout,
        ..file
    };
    save_at(fs, path, &file).await?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use grove_fs::MemoryFs;

    use super::super::{Disposition, save, write_staged};

    #[tokio::test]
    async fn of_another_machines_checkout_the_pull_request_alone_comes_along() {
        let new = NewSession {
            id: "s".into(),
            uri: "scripted:/s".into(),
            agent: "scripted".into(),
            model: None,
            working_directories: vec!["/there/only".into()],
            config: None,
            store: StoreName::default(),
        };
        let mut session = Session::new(&new, Timestamp(1));
        let own_pull_request = Some("https://github.com/acme/site/pull/7".to_owned());
        session.checkout = Checkout { branch: Some("fix".into()), own_pull_request, ..Checkout::default() };
        let fs = MemoryFs::default();
        write_staged(&fs, "s~import", &session, 1, Disposition::Kept).await.unwrap();
        let adopted =
            adopt_staged(&fs, "s~import", &new, 2, RemoteSession::default(), Checkout::default()).await.unwrap();
        let expected = Checkout { branch: None, ..session.checkout };
        assert_eq!(adopted.checkout, expected);
    }

    #[tokio::test]
    async fn what_was_allowed_on_one_host_never_comes_to_another() {
        let new = |folders: Vec<String>| NewSession {
            id: "s".into(),
            uri: "scripted:/s".into(),
            agent: "scripted".into(),
            model: None,
            working_directories: folders,
            config: Some(SessionConfig::of(
                serde_json::from_str(r#"{"mode": "bypassPermissions", "effort": "high"}"#).unwrap(),
            )),
            store: StoreName::default(),
        };
        let mut session = Session::new(&new(vec!["/there/only".into()]), Timestamp(1));
        session.details.permissions = Some(Permissions { allow_all: true, ..Permissions::default() });
        session.details.remembered = vec![RememberedPermission {
            kind: PermissionKind::Shell,
            about: "rm -rf /".into(),
            option: PermissionOption { id: "a".into(), label: "Always".into(), allows: true, lasting: true },
        }];
        let fs = MemoryFs::default();
        save(&fs, &SessionFile::of(&session, 7, Disposition::Kept).unwrap()).await.unwrap();
        let portable = read_portable(&fs, &session.id).await.unwrap();
        let text = String::from_utf8(portable).unwrap();
        for secret in ["allowAll", "rm -rf", "/there/only", "bypassPermissions"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        // A host that hands over too much changes nothing.
        write_staged(&fs, "s~import", &session, 1, Disposition::Kept).await.unwrap();
        let here = new(vec!["/here".into()]);
        let adopted =
            adopt_staged(&fs, "s~import", &here, 2, RemoteSession::default(), Checkout::default()).await.unwrap();
        assert_eq!(adopted.working_directories, ["/here"]);
        assert_eq!(adopted.details.permissions, None);
        assert_eq!(adopted.details.remembered, Vec::new());
        let values = adopted.config.unwrap().values;
        assert_eq!((values.get("mode"), values.get("effort").and_then(|value| value.as_str())), (None, Some("high")));
        let none = adopt_staged(&fs, "s~import", &new(Vec::new()), 2, RemoteSession::default(), Checkout::default())
            .await
            .unwrap();
        assert_eq!(none.working_directories, Vec::<String>::new());
    }
}
