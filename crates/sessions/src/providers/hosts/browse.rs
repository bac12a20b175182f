//! Looking for a folder of the host, and what a folder is as a workspace.

use grove_client::{Ahp, Client, RequestError};
use grove_wire::ahp::{DirectoryEntryType, ROOT, ResourceListParams, ResourceResolveParams, ResourceType, error_code};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::drafts::request_error;
use super::state::{path_of, workspace};
use super::table::Shared;
use crate::ids::{BrowseActionId, Icon, Uri};
use crate::provider::{BrowseAction, BrowseOffer, BrowseRequest, Browsed, ProviderError};
use crate::session::Workspace;

const FOLDERS: &str = "folders";
/// How many folders are offered at once. Who misses one types more of its name.
const MAX_OFFERS: usize = 200;
/// What may stand in a path of a URI as it is.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

pub(super) fn actions(shared: &Shared) -> Vec<BrowseAction> {
    let provider_id = shared.host.id.clone();
    vec![BrowseAction {
        id: BrowseActionId::from(FOLDERS),
        label: "Folders".into(),
        icon: Icon::from("folder"),
        provider_id,
    }]
}

/// Offers the folders that what was typed begins, in the host's default folder unless it is a path of its own.
pub(super) async fn browse(shared: &Shared, request: &BrowseRequest) -> Result<Browsed, ProviderError> {
    if request.action.as_str() != FOLDERS {
        return Ok(Browsed::Nothing);
    }
    if let Some(chosen) = &request.chosen {
        return Ok(resolve(shared, chosen).await?.map_or(Browsed::Nothing, Browsed::Chosen));
    }
    let client = shared.client()?;
    let home = client.server().and_then(|server| server.default_directory).map(|uri| path_of(&uri));
    let Some((folder, begins)) = place(home.as_deref(), request.query.as_deref().unwrap_or_default()) else {
        return Ok(Browsed::Nothing);
    };
    let mut names = match list(&client, &folder).await {
        Ok(names) => names,
        Err(RequestError::Refused { error, .. }) if error.code == error_code::NOT_FOUND => Vec::new(),
        Err(error) => return Err(request_error(shared, error)),
    };
    names.retain(|name| name.to_lowercase().starts_with(&begins.to_lowercase()));
    // A name that begins with a dot is looked for by its dot.
    names.retain(|name| !name.starts_with('.') || begins.starts_with('.'));
    names.sort_unstable();
    let offer = |name: String| {
        let path = format!("{}/{name}", folder.trim_end_matches('/'));
        BrowseOffer { uri: file_uri(&path), label: name.into(), description: Some(path.into()) }
    };
    let offers: Vec<BrowseOffer> = names.into_iter().take(MAX_OFFERS).map(offer).collect();
    Ok(if offers.is_empty() { Browsed::Nothing } else { Browsed::Offered(offers) })
}

/// The folder that is looked into, and what names in it must begin with.
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

/// The workspace that a folder of the host is.
pub(super) async fn resolve(shared: &Shared, uri: &Uri) -> Result<Option<Workspace>, ProviderError> {
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
    Ok(workspace(&metadata).filter(|_| is_folder).map(|workspace| Workspace { uri: uri.clone(), ..workspace }))
}

fn file_uri(path: &str) -> Uri {
    Uri::from(format!("file://{}", utf8_percent_encode(path, PATH)))
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
}
