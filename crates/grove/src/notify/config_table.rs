//! The table `[notify]` of `grove.toml`.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use grove_notify::{Detail, KindSet, NotifyConfig, QuietHours, Reach, TargetUrl, Webhook};
use serde::{Deserialize, Serialize, Serializer};

/// The contact of a host whose owner has set none. Some push services refuse messages without one.
const DEFAULT_CONTACT: &str = "mailto:grove@example.com";
/// The longest secret and contact, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 256;

/// The settings of the owner.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct NotifySettings {
    /// Its address may hold a secret: only its presence is shown.
    #[serde(serialize_with = "presence")]
    webhook: Option<Webhook>,
    #[serde(serialize_with = "names")]
    events: KindSet,
    #[serde(serialize_with = "text")]
    quiet: Option<QuietHours>,
    detail: Detail,
    contact: String,
    allow_private_push: bool,
}

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct NotifyTable {
    webhook: Option<String>,
    webhook_secret: Option<String>,
    events: Option<Vec<String>>,
    quiet: Option<String>,
    #[serde(default)]
    detail: Detail,
    contact: Option<String>,
    #[serde(default)]
    allow_private_push: bool,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self {
            webhook: None,
            events: KindSet::ALL,
            quiet: None,
            detail: Detail::default(),
            contact: DEFAULT_CONTACT.to_owned(),
            allow_private_push: false,
        }
    }
}

impl NotifySettings {
    /// The machines that devices may name.
    pub(crate) fn reach(&self) -> Reach {
        if self.allow_private_push { Reach::Private } else { Reach::Public }
    }

    pub(crate) fn config(&self) -> NotifyConfig {
        NotifyConfig {
            webhook: self.webhook.clone(),
            events: self.events,
            quiet: self.quiet.clone(),
            detail: self.detail,
            contact: self.contact.clone(),
        }
    }
}

/// Reads the table. Errors name the file and the key, and repeat no secret.
pub(crate) fn read(file: &Path, table: Option<&toml::Value>) -> Result<NotifySettings> {
    let Some(table) = table else { return Ok(NotifySettings::default()) };
    // The whole error would repeat the line, which may hold a secret.
    let parsed = table.clone().try_into::<NotifyTable>().map_err(|error| anyhow!(error.message().to_owned()));
    let checked = parsed.and_then(check);
    checked.with_context(|| format!("{}: [notify] is not valid", file.display()))
}

fn check(table: NotifyTable) -> Result<NotifySettings> {
    let NotifyTable { webhook, webhook_secret, events, quiet, detail, contact, allow_private_push } = table;
    if webhook.is_none() && webhook_secret.is_some() {
        bail!("webhook-secret signs the requests of a webhook: set `webhook` too");
    }
    if webhook_secret.as_ref().is_some_and(|secret| !(16..=MAX_TEXT_BYTES).contains(&secret.len())) {
        bail!("webhook-secret must have 16 to {MAX_TEXT_BYTES} bytes");
    }
    let contact = contact.unwrap_or_else(|| DEFAULT_CONTACT.to_owned());
    let is_contact = (contact.starts_with("mailto:") || contact.starts_with("https://"))
        && contact.len() <= MAX_TEXT_BYTES
        && contact.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_contact {
        bail!("contact must be an address that begins with mailto: or https://");
    }
    let url = webhook.map(|address| {
        // The owner may name a machine of the own network.
        TargetUrl::read(&address, Reach::Private).map_err(|_| {
            anyhow!("webhook must be an address that begins with https://, or with http:// and names this machine")
        })
    });
    let events = match events {
        None => KindSet::ALL,
        Some(names) => KindSet::read(names.iter().map(String::as_str)).map_err(|error| anyhow!("events: {error}"))?,
    };
    Ok(NotifySettings {
        webhook: url.transpose()?.map(|url| Webhook { url, secret: webhook_secret }),
        events,
        quiet: quiet.map(|quiet| quiet.parse()).transpose().map_err(|error| anyhow!("quiet: {error}"))?,
        detail,
        contact,
        allow_private_push,
    })
}

fn presence<S: Serializer>(webhook: &Option<Webhook>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(webhook.is_some())
}

fn names<S: Serializer>(events: &KindSet, serializer: S) -> Result<S::Ok, S::Error> {
    events.names().serialize(serializer)
}

fn text<S: Serializer>(quiet: &Option<QuietHours>, serializer: S) -> Result<S::Ok, S::Error> {
    quiet.as_ref().map(ToString::to_string).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(toml: &str) -> Result<NotifySettings> {
        let table: toml::Table = toml.parse().unwrap();
        read(Path::new("/etc/grove.toml"), table.get("notify"))
    }

    #[test]
    fn a_table_says_everything_and_shows_no_secret() {
        let settings = parse(
            "[notify]\nwebhook = 'https://a.example/hook-4711'\nwebhook-secret = 'hunter2hunter2hunter2'\n\
             events = ['waiting']\nquiet = '22:00-07:00 UTC'\ndetail = 'text'\ncontact = 'mailto:me@example.org'",
        )
        .unwrap();
        let shown = serde_json::to_value(&settings).unwrap();
        let expected = serde_json::json!({
            "webhook": true, "events": ["waiting"], "quiet": "22:00-07:00 UTC", "detail": "text",
            "contact": "mailto:me@example.org", "allow-private-push": false,
        });
        assert_eq!(shown, expected);
        let said = format!("{settings:?}");
        assert!(!said.contains("hunter2") && !said.contains("4711"), "{said}");
        assert_eq!(parse("").unwrap().reach(), Reach::Public);
        assert_eq!(parse("[notify]\nallow-private-push = true").unwrap().reach(), Reach::Private);
        parse("[notify]\nwebhook = 'http://127.0.0.1:8080/hook'").unwrap();
    }

    #[test]
    fn a_mistake_is_named_and_a_secret_is_not_repeated() {
        for (toml, words) in [
            ("notify = 1", "is not valid"),
            ("[notify]\nwebhooks = 'x'", "unknown field"),
            ("[notify]\nwebhook = 'http://a.example/'", "webhook must be"),
            ("[notify]\nwebhook = 'https://hunter2@a.example/'", "webhook must be"),
            ("[notify]\nwebhook-secret = 'hunter2hunter2hunter2'", "set `webhook` too"),
            ("[notify]\nwebhook = 'https://a.example'\nwebhook-secret = 'hunter2'", "16 to"),
            ("[notify]\nevents = ['started']", "events: the events are"),
            ("[notify]\nquiet = '22-7'", "quiet: quiet hours are written as"),
            ("[notify]\ndetail = 'all'", "unknown variant"),
            ("[notify]\ncontact = 'me@example.org'", "contact must be"),
        ] {
            let error = format!("{:#}", parse(toml).unwrap_err());
            assert!(error.starts_with("/etc/grove.toml: [notify]") && error.contains(words), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
