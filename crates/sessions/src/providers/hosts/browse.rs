//! Finding a folder of the host, or a repository of its sessions, and the workspace of a folder.

use std::cmp::Reverse;
use std::collections::HashSet;

use grove_client::{Ahp, Client, RequestError};
use grove_wire::ahp::{DirectoryEntryType, ROOT, ResourceListParams, ResourceResolveParams, ResourceType, error_code};

use super::drafts::request_error;
use super::identity::HostIdentity;
use super::state::{path_of, workspace};
use super::table::HostState;
use crate::ids::{BrowseActionId, Icon, Uri};
use crate::metadata::{
    Metadata, REPOSITORY, REPOSITORY_NWO, REPOSITORY_PATH, REPOSITORY_URL, WORKING_DIRECTORY_PATH, WORKTREE_PATH,
    file_uri,
};
use crate::provider::{BrowseAction, BrowseOffer, BrowseOutcome, BrowseRequest, ProviderError};
use crate::session::SessionWorkspace;

const FOLDERS: &str = "folders";
const REPOSITORIES: &str = "repositories";
/// The most offers at once. The person types more of a name to find others.
pub const MAX_OFFERS: usize = 200;

/// A repository that a session of the host works in.
struct KnownRepository {
    /// Its folder: for a worktree, that of the main repository.
    path: String,
    /// The metadata that identifies it.
    identity: Vec<(&'static str, String)>,
}

impl KnownRepository {
    /// The repository of a session. `None` if it is unknown, or in no folder of the host.
    fn of(session: &Metadata) -> Option<Self> {
        let is_known = session.workspace(None).is_some_and(|workspace| !workspace.repositories.is_empty());
        let path =
            [REPOSITORY_PATH, WORKTREE_PATH, WORKING_DIRECTORY_PATH].into_iter().find_map(|key| session.text(key));
        let path = path.filter(|path| is_known && !path.contains("://"))?.to_owned();
        let names = [REPOSITORY_NWO, REPOSITORY, REPOSITORY_URL].into_iter();
        let mut identity: Vec<_> = names.filter_map(|key| Some((key, session.text(key)?.to_owned()))).collect();
        identity.push((REPOSITORY_PATH, path.clone()));
        Some(Self { path, identity })
    }

    fn uri(&self) -> Uri {
        file_uri(&self.path)
    }

    /// Adds its metadata to others.
    fn with(&self, metadata: Metadata) -> Metadata {
        self.identity.iter().fold(metadata, |metadata, (key, value)| metadata.with(key, value))
    }

    /// Its workspace for a new session.
    fn workspace(&self, host: &HostIdentity) -> Option<SessionWorkspace> {
        workspace(&self.with(host.metadata(Some(&self.path))))
    }

    /// Without the host: the action is already listed under its name.
    fn offer(&self) -> BrowseOffer {
        let label = self.with(Metadata::default()).repository_name(None).unwrap_or_else(|| self.path.clone());
        BrowseOffer { uri: self.uri(), label: label.into(), description: Some(self.path.as_str().into()) }
    }

    /// Returns whether its name, its remote or its folder contains the typed text.
    fn has(&self, typed: &str) -> bool {
        self.identity.iter().any(|(_, value)| value.to_lowercase().contains(typed))
    }
}

pub(super) fn actions(shared: &HostState) -> Vec<BrowseAction> {
    let action = |id: &str, label: &str, icon: &str| BrowseAction {
        id: BrowseActionId::from(id),
        label: label.into(),
        icon: Icon::from(icon),
        provider_id: shared.host.id.clone(),
    };
    vec![action(FOLDERS, "Folders", "folder"), action(REPOSITORIES, "Repositories", "repo")]
}

/// Runs a browse action: returns its offers, or the workspace of the chosen one.
pub(super) async fn browse(shared: &HostState, request: &BrowseRequest) -> Result<BrowseOutcome, ProviderError> {
    let typed = request.query.as_deref().unwrap_or_default();
    match (request.action.as_str(), &request.chosen) {
        (FOLDERS, Some(chosen)) => {
            Ok(resolve(shared, chosen).await?.map_or(BrowseOutcome::Nothing, BrowseOutcome::Chosen))
        }
        (FOLDERS, None) => folders(shared, typed).await,
        (REPOSITORIES, Some(chosen)) => choose_repository(shared, chosen).await,
        (REPOSITORIES, None) => {
            // Folders of an unreachable host are not offered.
            shared.client()?;
            Ok(offered(
                known_repositories(shared).filter(|known| known.has(&typed.to_lowercase())).map(|it| it.offer()),
            ))
        }
        (unknown, _) => {
            let provider = shared.host.label.to_string();
            Err(ProviderError::UnknownBrowseAction { provider, action: unknown.into() })
        }
    }
}

fn offered(offers: impl Iterator<Item = BrowseOffer>) -> BrowseOutcome {
    let offers: Vec<BrowseOffer> = offers.take(MAX_OFFERS).collect();
    if offers.is_empty() { BrowseOutcome::Nothing } else { BrowseOutcome::Offered(offers) }
}

/// The folders that begin with the typed text, in the host's default folder unless it is an absolute path.
async fn folders(shared: &HostState, typed: &str) -> Result<BrowseOutcome, ProviderError> {
    let client = shared.client()?;
    let home = client.server().and_then(|server| server.default_directory).map(|uri| path_of(&uri));
    let Some((folder, begins)) = place(home.as_deref(), typed) else { return Ok(BrowseOutcome::Nothing) };
    let mut names = match list(&client, &folder).await {
        Ok(names) => names,
        Err(RequestError::Refused { error, .. }) if error.code == error_code::NOT_FOUND => Vec::new(),
        Err(error) => return Err(request_error(shared, error)),
    };
    names.retain(|name| name.to_lowercase().starts_with(&begins.to_lowercase()));
    // Hidden folders are offered if the typed name begins with a dot.
    names.retain(|name| !name.starts_with('.') || begins.starts_with('.'));
    names.sort_unstable();
    Ok(offered(names.into_iter().map(|name| {
        let path = format!("{}/{name}", folder.trim_end_matches('/'));
        BrowseOffer { uri: file_uri(&path), label: name.into(), description: Some(path.into()) }
    })))
}

/// The repositories of the host's sessions, that of the newest session first, each folder once.
fn known_repositories(shared: &HostState) -> impl Iterator<Item = KnownRepository> {
    let mut sessions = shared.sessions();
    sessions.sort_by_cached_key(|session| Reverse(session.updated_at()));
    let mut seen = HashSet::new();
    let known = sessions.into_iter().filter_map(|session| KnownRepository::of(&session.metadata()));
    known.filter(move |known| seen.insert(known.path.clone()))
}

/// The workspace of a repository, with its known metadata. If no session knows it any more, it is a plain folder.
async fn choose_repository(shared: &HostState, chosen: &Uri) -> Result<BrowseOutcome, ProviderError> {
    let Some(folder) = resolve(shared, chosen).await? else { return Ok(BrowseOutcome::Nothing) };
    let known = known_repositories(shared).find(|known| known.uri() == *chosen);
    let whole = known.and_then(|known| known.workspace(&shared.host));
    Ok(BrowseOutcome::Chosen(whole.unwrap_or(folder)))
}

/// The folder to list, and the beginning of the names to offer.
fn place(home: Option<&str>, query: &str) -> Option<(String, String)> {
    let home = home.filter(|home| !home.is_empty());
    let whole = match (query.starts_with('/'), home) {
        (true, _) => query.to_owned(),
        (false, Some(home)) => format!("{}/{query}", home.trim_end_matches('/')),
        (false, None) => format!("/{query}"),
    };
    let (folder, begins) = whole.rsplit_once('/')?;
    Some((if folder.is_empty() { "/".to_owned() } else { folder.to_owned() }, begins.to_owned()))
}

async fn list(client: &Client<Ahp>, folder: &str) -> Result<Vec<String>, RequestError> {
    let uri = file_uri(folder).to_string();
    let listed = client.request(ResourceListParams { channel: ROOT.to_owned(), uri, meta: None }).await?;
    let folders = listed.entries.into_iter().filter(|entry| entry.kind == DirectoryEntryType::Directory);
    Ok(folders.map(|entry| entry.name).collect())
}

/// The workspace of a folder of the host.
pub(super) async fn resolve(shared: &HostState, uri: &Uri) -> Result<Option<SessionWorkspace>, ProviderError> {
    if uri.scheme() != "file" {
        return Ok(None);
    }
    let client = shared.client()?;
    let ask = ResourceResolveParams { channel: ROOT.to_owned(), uri: uri.to_string(), ..Default::default() };
    let is_folder = match client.request(ask).await {
        Ok(found) => found.kind == ResourceType::Directory,
        Err(RequestError::Refused { error, .. }) => match error.code {
            error_code::NOT_FOUND => false,
            // A host that does not show a folder may let an agent work in it: `createSession` decides.
            error_code::PERMISSION_DENIED | error_code::METHOD_NOT_FOUND => true,
            _ => return Err(ProviderError::Refused(error.message)),
        },
        Err(error) => return Err(request_error(shared, error)),
    };
    let metadata = shared.host.metadata(Some(&path_of(uri.as_str())));
    Ok(workspace(&metadata).filter(|_| is_folder).map(|workspace| SessionWorkspace { uri: uri.clone(), ..workspace }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_leads_into_folders() {
        let cases = [
            ("", ("/home/u", "")),
            ("pro", ("/home/u", "pro")),
            ("projects/ap", ("/home/u/projects", "ap")),
            ("/srv/ap", ("/srv", "ap")),
            ("/s", ("/", "s")),
        ];
        for (query, (folder, begins)) in cases {
            assert_eq!(place(Some("/home/u"), query), Some((folder.to_owned(), begins.to_owned())), "{query}");
        }
        assert_eq!(place(None, "srv/"), Some(("/srv".to_owned(), String::new())));
    }

    #[test]
    fn a_repository_is_that_of_the_worktree_and_has_a_folder() {
        let tree = Metadata::worktree("/r/app", "/r/app.worktrees/fix").with(REPOSITORY_NWO, "acme/site");
        let known = KnownRepository::of(&tree).unwrap();
        let offer = known.offer();
        assert_eq!((offer.uri.as_str(), &*offer.label), ("file:///r/app", "site"));
        assert_eq!(offer.description.as_deref(), Some("/r/app"));
        for (typed, is_found) in [("", true), ("acme", true), ("site", true), ("r/a", true), ("fix", false)] {
            assert_eq!(known.has(typed), is_found, "{typed}");
        }
        // Some hosts name the repository, and not its root folder.
        let elsewhere = Metadata::remote("box", "/r/copy").with(REPOSITORY_URL, "https://example.org/acme/site.git");
        assert_eq!(KnownRepository::of(&elsewhere).unwrap().uri().as_str(), "file:///r/copy");
        for none in [Metadata::local("/r/plain"), Metadata::default().with(REPOSITORY_PATH, "vscode-remote://x/y")] {
            assert!(KnownRepository::of(&none).is_none(), "{none:?}");
        }
    }
}
