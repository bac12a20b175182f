//! Connecting to the host of the data folder as a client, and finding sessions by what people call them.

use std::time::Duration;

use anyhow::Context;
use grove_client::{Ahp, Backoff, Client, Dialect, FrameLog, Limits, Options, RequestError, V1};
use grove_wire::ahp::{Implementation, error_code};
use grove_wire::x_grove;
use serde_json::json;

use crate::background::{find_host, find_or_start_host};
use crate::cli::{Common, ConnectArgs, ServeArgs};
use crate::commands::Failure;
use crate::endpoint::Endpoint;
use crate::exchange::stores::Stores;
use crate::history::{DATABASE, possible_roots};
use crate::settings::Settings;

/// How often a lost connection is tried again, for about twenty seconds; then the host is gone.
const RECONNECT: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(2),
    attempts: Some(14),
    steady: Duration::from_secs(10),
};

/// How long a summary may take. A model that reads a long conversation needs minutes; after this the command fails, and
/// says that it may have been done all the same.
const SUMMARY: Duration = Duration::from_secs(30 * 60);

/// How a command reaches its host.
#[derive(Debug)]
pub(crate) struct Reach {
    settings: Settings,
    starts: Starts,
    limits: Limits,
}

/// Whether a host may be started where none is running.
#[derive(Clone, Copy, Debug)]
enum Starts {
    Yes,
    No,
}

impl Reach {
    pub(crate) fn new(common: &Common, args: &ConnectArgs) -> Result<Self, Failure> {
        let settings = Settings::load(common, &ServeArgs::default())?;
        let starts = if args.no_start { Starts::No } else { Starts::Yes };
        Ok(Self { settings, starts, limits: Limits::default() })
    }

    /// The same for commands that wait for a model: others take so long a silence for a failure.
    pub(crate) fn patient(mut self) -> Self {
        self.limits.answer = SUMMARY;
        self
    }

    /// Other tools' sessions on this machine, whether a host runs or not.
    pub(crate) fn stores(&self) -> Stores {
        let catalog = self.settings.data_dir.value.join(DATABASE);
        let is_kept_up = self.settings.history.value.enabled;
        Stores::new(possible_roots(&self.settings), is_kept_up.then_some(catalog))
    }

    async fn host(&self) -> Result<Endpoint, Failure> {
        match self.starts {
            Starts::Yes => Ok(find_or_start_host(&self.settings).await?.endpoint),
            Starts::No => {
                let data_dir = &self.settings.data_dir.value;
                let none = || {
                    let data_dir = data_dir.display();
                    Failure::NoHost(format!(
                        "no host is running for {data_dir}: start one with `grove start`, or leave out --no-start"
                    ))
                };
                Ok(find_host(data_dir).await?.ok_or_else(none)?.endpoint)
            }
        }
    }

    async fn connect<D: Dialect + Clone>(&self, dialect: D, options: Options) -> Result<Client<D>, Failure> {
        let connect = async |endpoint: &Endpoint| {
            Ok::<_, anyhow::Error>(Client::connect(endpoint.for_client()?, dialect.clone(), options.clone()).await?)
        };
        match connect(&self.host().await?).await {
            Ok(client) => Ok(client),
            // A host may end in the very moment in which it was found, since nobody had used it. The next one stays.
            Err(_) => Ok(connect(&self.host().await?).await.context("the host does not take this client")?),
        }
    }

    /// A client of the Agent Host Protocol. `log` sees every frame.
    pub(crate) async fn ahp(&self, log: Option<FrameLog>) -> Result<Client<Ahp>, Failure> {
        let info = Implementation {
            name: "grove".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            title: Some("Grove's command line".to_owned()),
        };
        let dialect = Ahp { info: Some(info), ..Ahp::default() };
        self.connect(dialect, self.options(log)).await
    }

    /// A client of version 1.
    pub(crate) async fn v1(&self, log: Option<FrameLog>) -> Result<Client<V1>, Failure> {
        self.connect(V1::default(), self.options(log)).await
    }

    fn options(&self, log: Option<FrameLog>) -> Options {
        Options { reconnect: RECONNECT, limits: self.limits, log, ..Options::default() }
    }
}

/// The id in a session's URI.
pub(crate) fn id_of(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or(uri)
}

/// The URI of the session that somebody means: by its URI in any spelling, its id, or the beginning of its id.
pub(crate) async fn find_session<D: Dialect>(client: &Client<D>, wanted: &str) -> Result<String, Failure> {
    let sessions = client.sessions();
    sessions.refresh().await?;
    let all: Vec<String> = sessions.read(|list| list.iter().map(|row| D::listed_as(row).to_owned()).collect());
    match choose(&all, wanted) {
        Ok(uri) => Ok(uri),
        // Who says too little of one that is there is told so.
        Err(error) if all.iter().any(|uri| id_of(uri).starts_with(id_of(wanted))) => Err(Failure::NotFound(error)),
        Err(error) => Err(Failure::NotFound(why_missing(client, id_of(wanted)).await.unwrap_or(error))),
    }
}

/// Why the host has no session of this id, where it knows more than that.
async fn why_missing<D: Dialect>(client: &Client<D>, id: &str) -> Option<String> {
    let channel = format!("ahp-session:/{id}");
    let params = json!({"channel": channel, "limit": 1});
    match client.request_raw::<serde_json::Value>(x_grove::Method::Tree.as_str(), &params).await {
        Err(RequestError::Refused { error, .. }) if error.code == error_code::SESSION_NOT_FOUND => {
            Some(error.message).filter(|message| *message != format!("there is no session {channel}"))
        }
        Ok(_) | Err(_) => None,
    }
}

/// Which of these URIs of sessions somebody means.
pub(crate) fn choose(all: &[String], wanted: &str) -> Result<String, String> {
    if let Some(uri) = all.iter().find(|uri| *uri == wanted) {
        return Ok(uri.clone());
    }
    let (id, may_begin) = match wanted.split_once(":/") {
        Some((_, id)) => (id, false),
        None => (wanted, true),
    };
    if let Some(uri) = all.iter().find(|uri| id_of(uri) == id) {
        return Ok(uri.clone());
    }
    let fitting: Vec<&String> = match may_begin && !id.is_empty() {
        true => all.iter().filter(|uri| id_of(uri).starts_with(id)).collect(),
        false => Vec::new(),
    };
    match fitting.as_slice() {
        [uri] => Ok((*uri).clone()),
        [] => Err(format!("there is no session {wanted:?}: `grove ls --all` lists them")),
        several => {
            let ids: Vec<&str> = several.iter().map(|uri| id_of(uri)).collect();
            let ids = crate::show::table::short(&ids).join(", ");
            Err(format!("{wanted:?} is the beginning of several sessions ({ids}): say more of it"))
        }
    }
}

/// An id that nobody has.
pub(crate) fn new_id() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    // A UUID of version 4, which is what others put there, too.
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [hex.get(..8), hex.get(8..12), hex.get(12..16), hex.get(16..20), hex.get(20..)];
    Ok(groups.into_iter().flatten().collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_meant_by_uri_id_or_the_beginning_of_its_id() {
        let all: Vec<String> =
            ["scripted:/abc1", "scripted:/abc2", "other:/xyz", "other:/ab"].map(str::to_owned).into();
        let chosen = |wanted: &str| choose(&all, wanted);
        assert_eq!(chosen("scripted:/abc1"), Ok("scripted:/abc1".to_owned()));
        assert_eq!(chosen("ahp-session:/xyz"), Ok("other:/xyz".to_owned()));
        assert_eq!(chosen("x"), Ok("other:/xyz".to_owned()));
        assert_eq!(chosen("ab"), Ok("other:/ab".to_owned()), "a whole id comes first");
        assert!(chosen("abc").unwrap_err().contains("several sessions (abc1, abc2)"));
        for unknown in ["", "q", "scripted:/abc", "abc11"] {
            assert!(chosen(unknown).unwrap_err().contains("no session"), "{unknown}");
        }
    }

    #[test]
    fn ids_are_uuids() {
        let id = new_id().unwrap_or_default();
        assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
        assert_ne!(id, new_id().unwrap_or_default());
    }
}
