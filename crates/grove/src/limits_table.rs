//! The table `[limits]` of `grove.toml`: what a connection and a token may use of the host.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use grove_host::{Limits, Rate, UsageLimits};
use serde::Serialize;

/// The largest number that can be set.
const MAX_COUNT: u64 = 1_000_000;
/// The largest rate and burst that can be set. It is far above what a machine reads.
const MAX_RATE: u64 = 1 << 40;
/// The slowest rate of bytes that can be set: a message of any size still arrives.
const MIN_BYTE_RATE: u64 = 16 << 10;

/// The table `[limits]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LimitsConfig {
    #[serde(flatten)]
    common: BTreeMap<String, LimitSetting>,
    /// The limits of single tokens, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tokens: BTreeMap<String, BTreeMap<String, LimitSetting>>,
}

/// The value of a limit in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum LimitSetting {
    Count(usize),
    #[serde(rename_all = "kebab-case")]
    Rate {
        per_second: u64,
        burst: u64,
    },
}

/// A limit that can be set.
struct LimitKey {
    /// The name in `docs/limits.md`.
    name: &'static str,
    field: LimitField,
    holder: LimitHolder,
}

/// The field that a limit sets.
#[derive(Clone, Copy)]
enum LimitField {
    Count(fn(&mut Limits) -> &mut usize),
    CountRate(fn(&mut Limits) -> &mut Rate),
    ByteRate(fn(&mut Limits) -> &mut Rate),
}

/// The tables that may have a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitHolder {
    /// `[limits]`.
    Host,
    /// `[limits]` and `[limits.tokens.NAME]`.
    Token,
}

const fn of_token(name: &'static str, field: LimitField) -> LimitKey {
    LimitKey { name, field, holder: LimitHolder::Token }
}

const fn of_host(name: &'static str, field: LimitField) -> LimitKey {
    LimitKey { name, field, holder: LimitHolder::Host }
}

/// Every limit that can be set.
const KEYS: &[LimitKey] = &[
    of_token("requests", LimitField::CountRate(|limits| &mut limits.requests)),
    of_token("token-requests", LimitField::CountRate(|limits| &mut limits.token_requests)),
    of_token("bytes", LimitField::ByteRate(|limits| &mut limits.bytes)),
    of_token("token-bytes", LimitField::ByteRate(|limits| &mut limits.token_bytes)),
    of_token("open-answers", LimitField::Count(|limits| &mut limits.open_answers)),
    of_token("token-open-requests", LimitField::Count(|limits| &mut limits.token_open_requests)),
    of_token("subscriptions", LimitField::Count(|limits| &mut limits.subscriptions)),
    of_token("watches", LimitField::Count(|limits| &mut limits.watches)),
    of_token("token-subscriptions", LimitField::Count(|limits| &mut limits.token_subscriptions)),
    of_token("large-calls", LimitField::Count(|limits| &mut limits.large_calls)),
    of_token("token-large-calls", LimitField::Count(|limits| &mut limits.token_large_calls)),
    of_token("token-starts", LimitField::CountRate(|limits| &mut limits.token_starts)),
    of_token("imports", LimitField::Count(|limits| &mut limits.imports)),
    of_host("connections", LimitField::Count(|limits| &mut limits.connections)),
    of_token("token-connections", LimitField::Count(|limits| &mut limits.token_connections)),
];

/// Reads the table. Errors name the file and the key, and say which values are possible.
pub(crate) fn read(file: &Path, table: Option<&toml::Value>) -> Result<LimitsConfig> {
    let mut config = LimitsConfig::default();
    let Some(table) = table else { return Ok(config) };
    let file = file.display();
    let table = table.as_table().ok_or_else(|| anyhow!("{file}: `limits` must be a table [limits]"))?;
    for (name, value) in table.iter().filter(|(name, _)| *name != "tokens") {
        let setting = read_limit(name, value, LimitHolder::Host).map_err(|why| anyhow!("{file}: [limits] {why}"))?;
        config.common.insert(name.clone(), setting);
    }
    let Some(tokens) = table.get("tokens") else { return Ok(config) };
    let tokens = tokens.as_table().ok_or_else(|| anyhow!("{file}: [limits] `tokens` has a table for each token"))?;
    for (token, limits) in tokens {
        let Some(limits) = limits.as_table() else {
            bail!("{file}: `limits.tokens.{token}` must be a table [limits.tokens.{token}]")
        };
        let read = limits.iter().map(|(name, value)| Ok((name.clone(), read_limit(name, value, LimitHolder::Token)?)));
        let read: Result<_, String> = read.collect();
        let limits = read.map_err(|why| anyhow!("{file}: [limits.tokens.{token}] {why}"))?;
        config.tokens.insert(token.clone(), limits);
    }
    Ok(config)
}

/// Reads the value of one limit.
fn read_limit(name: &str, value: &toml::Value, table: LimitHolder) -> Result<LimitSetting, String> {
    let is_possible = |key: &&LimitKey| table == LimitHolder::Host || key.holder == LimitHolder::Token;
    let Some(key) = KEYS.iter().filter(is_possible).find(|key| key.name == name) else {
        let names: Vec<_> = KEYS.iter().filter(is_possible).map(|key| key.name).collect();
        return Err(format!("has no `{name}`; there are: {}", names.join(", ")));
    };
    let whole = |value: &toml::Value, least: u64, most: u64| {
        let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
        number.filter(|number| (least..=most).contains(number))
    };
    let least = match key.field {
        LimitField::Count(_) => {
            let number = whole(value, 1, MAX_COUNT).and_then(|number| usize::try_from(number).ok());
            let wrong = || format!("{name} must be a whole number from 1 to {MAX_COUNT}");
            return number.map(LimitSetting::Count).ok_or_else(wrong);
        }
        LimitField::CountRate(_) => 1,
        LimitField::ByteRate(_) => MIN_BYTE_RATE,
    };
    let rate = value.as_table().filter(|rate| rate.keys().all(|key| key == "per-second" || key == "burst"));
    let part = |part: &str| whole(rate?.get(part)?, least, MAX_RATE);
    let wrong = || {
        format!(
            "{name} must be a rate, such as {{ per-second = {least}, burst = {} }}, with whole numbers from {least} to \
             {MAX_RATE}",
            least * 10
        )
    };
    let (per_second, burst) = part("per-second").zip(part("burst")).ok_or_else(wrong)?;
    Ok(LimitSetting::Rate { per_second, burst })
}

impl LimitsConfig {
    /// Says whether the file sets a limit.
    pub(crate) fn is_empty(&self) -> bool {
        self.common.is_empty() && self.tokens.is_empty()
    }

    /// Limits with those of the file in their place.
    pub(crate) fn apply(&self, mut limits: Limits) -> Limits {
        set_all(&mut limits, &self.common);
        limits
    }

    /// The limits of single tokens, which have the host's limits where they set none.
    pub(crate) fn of_tokens(&self, host: &Limits) -> BTreeMap<String, UsageLimits> {
        let of_token = |(token, settings): (&String, &BTreeMap<String, LimitSetting>)| {
            let mut limits = *host;
            set_all(&mut limits, settings);
            (token.clone(), UsageLimits::from(&limits))
        };
        self.tokens.iter().map(of_token).collect()
    }
}

fn set_all(limits: &mut Limits, settings: &BTreeMap<String, LimitSetting>) {
    for key in KEYS {
        match (key.field, settings.get(key.name)) {
            (LimitField::Count(field), Some(LimitSetting::Count(count))) => *field(limits) = *count,
            (
                LimitField::CountRate(field) | LimitField::ByteRate(field),
                Some(LimitSetting::Rate { per_second, burst }),
            ) => *field(limits) = Rate { per_second: *per_second, burst: *burst },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn config(text: &str) -> Result<LimitsConfig> {
        read(Path::new("grove.toml"), text.parse::<toml::Table>().unwrap().get("limits"))
    }

    #[test]
    fn limits_of_the_file_take_the_place_of_the_defaults_and_tokens_have_their_own() {
        let file = "[limits]\nsubscriptions = 7\nrequests = { per-second = 20, burst = 200 }\nconnections = 9\n\
                    [limits.tokens.phone]\nsubscriptions = 3\ntoken-connections = 2";
        let config = config(file).unwrap();
        let limits = config.apply(Limits::default());
        assert_eq!((limits.subscriptions, limits.connections, limits.watches), (7, 9, Limits::default().watches));
        assert_eq!(limits.requests, Rate { per_second: 20, burst: 200 });
        let phone = config.of_tokens(&limits)["phone"];
        assert_eq!((phone.subscriptions, phone.requests, phone.token_connections), (3, limits.requests, 2));
        let shown = serde_json::to_value(&config).unwrap();
        assert_eq!(shown["requests"], serde_json::json!({"per-second": 20, "burst": 200}));
        assert_eq!(shown["tokens"]["phone"]["subscriptions"], 3);
    }

    #[test]
    fn a_bad_limit_is_refused_with_its_table_and_the_possible_values() {
        let refused = [
            ("[limits]\nsubscriptions = 0", "[limits] subscriptions must be a whole number from 1 to 1000000"),
            ("[limits]\nwatches = 1000001", "[limits] watches must be a whole number from 1 to 1000000"),
            ("[limits]\nwatches = 'many'", "[limits] watches must be a whole number"),
            ("[limits]\nimports = -1", "[limits] imports must be a whole number"),
            ("[limits]\nrequests = 5", "[limits] requests must be a rate, such as { per-second = 1, burst = 10 }"),
            ("[limits]\nrequests = { per-second = 0, burst = 1 }", "whole numbers from 1 to"),
            ("[limits]\nrequests = { per-second = 1 }", "[limits] requests must be a rate"),
            ("[limits]\nrequests = { per-second = 1, burst = 2, x = 3 }", "[limits] requests must be a rate"),
            ("[limits]\nbytes = { per-second = 1000, burst = 1000000 }", "whole numbers from 16384 to"),
            ("[limits]\nsubscribers = 5", "[limits] has no `subscribers`; there are: requests, "),
            ("[limits.tokens.phone]\nconnections = 5", "[limits.tokens.phone] has no `connections`; there are: "),
            ("[limits.tokens.phone]\nwatches = 0", "[limits.tokens.phone] watches must be a whole number"),
            ("[limits.tokens]\nphone = 1", "`limits.tokens.phone` must be a table [limits.tokens.phone]"),
            ("limits = 1", "`limits` must be a table [limits]"),
        ];
        for (file, message) in refused {
            let error = config(file).unwrap_err().to_string();
            assert!(error.contains(message) && error.starts_with("grove.toml: "), "{file}: {error}");
        }
    }

    #[test]
    fn the_table_of_limits_names_every_limit_that_can_be_set() {
        let rows: BTreeSet<_> = grove_limits::table()
            .iter()
            .flat_map(|group| &group.limits)
            .filter_map(|limit| limit.setting?.strip_prefix("limits.").filter(|setting| *setting == limit.name))
            .collect();
        assert_eq!(rows, KEYS.iter().map(|key| key.name).collect());
        let of_tokens: Vec<_> = KEYS.iter().filter(|key| key.holder == LimitHolder::Host).map(|key| key.name).collect();
        assert_eq!(of_tokens, ["connections"], "docs/limits.md names those of the host alone");
    }
}
