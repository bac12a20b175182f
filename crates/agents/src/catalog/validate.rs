//! Reading and checking a catalog file.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;

use super::{AgentCatalog, AgentEntry, AgentPackage, BinaryTarget, CATALOG_AGENTS, CATALOG_BYTES, FORMAT, passed};

/// The longest text of an entry, in bytes.
pub const TEXT_BYTES: usize = 1_000;
/// The most items of a list of an entry.
pub const LIST_ITEMS: usize = 64;
/// The longest id of an agent. It is part of every session's address.
const ID_BYTES: usize = 32;

/// The reason why a catalog file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("the catalog has more than {CATALOG_BYTES} bytes")]
    TooLarge,
    #[error("the catalog cannot be read: {0}")]
    Syntax(String),
    #[error("the catalog has format {found}, and this Grove reads format {FORMAT}: update Grove")]
    Newer { found: i64 },
    #[error("the catalog has more than {CATALOG_AGENTS} agents")]
    TooMany,
    #[error("the catalog's agent {id:?} is invalid: {problem}")]
    Agent { id: String, problem: String },
}

#[derive(Deserialize)]
struct CatalogFormat {
    format: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CatalogFile {
    date: String,
    #[serde(default)]
    vendor_keys: Vec<String>,
    agents: Vec<AgentEntry>,
}

impl AgentCatalog {
    /// Reads and checks a catalog file. Members that this version does not know are ignored.
    pub fn parse(text: &str) -> Result<Self, CatalogError> {
        if text.len() as u64 > CATALOG_BYTES {
            return Err(CatalogError::TooLarge);
        }
        let syntax = |error: toml::de::Error| CatalogError::Syntax(error.to_string().trim_end().to_owned());
        // A newer format may differ in anything else.
        let CatalogFormat { format: found } = toml::from_str(text).map_err(syntax)?;
        if found != FORMAT {
            return Err(CatalogError::Newer { found });
        }
        let CatalogFile { date, vendor_keys, mut agents } = toml::from_str(text).map_err(syntax)?;
        if agents.len() > CATALOG_AGENTS {
            return Err(CatalogError::TooMany);
        }
        if !is_date(&date) {
            return Err(CatalogError::Syntax(format!("date: {date:?} is not a date like 2026-11-18")));
        }
        let mut ids = HashSet::new();
        for entry in &mut agents {
            if entry.vendor_keys {
                entry.pass_env.extend(vendor_keys.iter().cloned());
            }
            let invalid = |problem| CatalogError::Agent { id: entry.id.chars().take(ID_BYTES).collect(), problem };
            check(entry).map_err(invalid)?;
            if !ids.insert(entry.id.clone()) {
                return Err(invalid("it is there twice".to_owned()));
            }
        }
        Ok(Self { date, agents: agents.into_iter().map(Arc::new).collect() })
    }
}

fn is_date(date: &str) -> bool {
    let shape: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00"
}

fn check(entry: &AgentEntry) -> Result<(), String> {
    let AgentEntry {
        id,
        registry_id,
        display_name,
        description,
        website,
        commands,
        args,
        env,
        pass_env,
        vendor_keys: _,
        sign_in,
        log_in,
        log_in_args,
        package,
        notes,
    } = entry;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !id.starts_with(|c: char| c.is_ascii_lowercase()) || !id.chars().all(fits) || id.len() > ID_BYTES {
        return Err(format!("an id has lower-case letters, digits and `-`, a letter first, {ID_BYTES} at most"));
    }
    for (what, list) in [
        ("commands", commands),
        ("args", args),
        ("pass-env", pass_env),
        ("log-in-args", log_in_args.as_ref().unwrap_or(&Vec::new())),
        ("notes", notes),
    ] {
        if list.len() > LIST_ITEMS {
            return Err(format!("{what} has more than {LIST_ITEMS} items"));
        }
        list.iter().try_for_each(|text| check_text(what, text))?;
    }
    check_text("name", display_name)?;
    check_text("description", description)?;
    check_text("log-in", log_in)?;
    registry_id.iter().try_for_each(|text| check_text("registry-id", text))?;
    website.iter().try_for_each(|text| check_address("website", text))?;
    if commands.is_empty() || commands.iter().any(|name| !is_file_name(name)) {
        return Err("commands must name at least one program, without a folder".to_owned());
    }
    if env.len() > LIST_ITEMS || sign_in.len() > LIST_ITEMS {
        return Err(format!("env or sign-in has more than {LIST_ITEMS} items"));
    }
    for (name, value) in env {
        check_variable(name)?;
        check_text("env", value)?;
    }
    pass_env.iter().try_for_each(|name| check_variable(name.strip_suffix('*').unwrap_or(name)))?;
    for way in sign_in {
        check_text("sign-in", &way.method)?;
        let variable = [(way.variable.clone(), String::new())].into();
        if passed(pass_env, &variable).count() == 0 {
            return Err(format!("sign-in needs {}, which pass-env does not name", way.variable));
        }
    }
    check_package(package)
}

fn check_package(package: &AgentPackage) -> Result<(), String> {
    if let Some(version) = package.version() {
        check_version(version)?;
    }
    match package {
        AgentPackage::Npm { name, node, .. } => {
            node.iter().try_for_each(|version| check_version(version))?;
            check_package_name(name)
        }
        AgentPackage::Bun { name, .. } => check_package_name(name),
        AgentPackage::Pypi { name, python, .. } => {
            python.iter().try_for_each(|version| check_version(version))?;
            check_package_name(name)
        }
        AgentPackage::Binary { targets, .. } if targets.len() > LIST_ITEMS => {
            Err(format!("targets has more than {LIST_ITEMS} items"))
        }
        AgentPackage::Binary { targets, .. } => targets.values().try_for_each(check_target),
        AgentPackage::Manual { instructions } => check_text("instructions", instructions),
        AgentPackage::Unknown => Ok(()),
    }
}

fn check_target(target: &BinaryTarget) -> Result<(), String> {
    let BinaryTarget { url, sha256, program } = target;
    check_address("url", url)?;
    if sha256.len() != 64 || !sha256.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err("sha256 must have 64 hexadecimal digits".to_owned());
    }
    check_text("program", program)?;
    if !program.split('/').all(is_file_name) {
        return Err(format!("program: {program:?} is not a path inside the archive"));
    }
    Ok(())
}

/// A name of a package cannot be mistaken for an option or for an address.
fn check_package_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let part = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(fits);
    let is_name = match name.strip_prefix('@').and_then(|name| name.split_once('/')) {
        Some((scope, name)) => part(scope) && part(name),
        None => part(name),
    };
    if is_name && name.len() <= TEXT_BYTES { Ok(()) } else { Err(format!("{name:?} is not the name of a package")) }
}

fn check_version(version: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    if version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(fits) && version.len() <= TEXT_BYTES {
        return Ok(());
    }
    Err(format!("{version:?} is not a version"))
}

fn check_address(what: &str, address: &str) -> Result<(), String> {
    check_text(what, address)?;
    let is_address = is_safe_address(address) && !address.contains(char::is_whitespace);
    if is_address { Ok(()) } else { Err(format!("{what}: {address:?} must begin with https://")) }
}

/// Returns whether what comes from an address comes from the named server: with TLS, or from this machine.
pub fn is_safe_address(address: &str) -> bool {
    if let Some(rest) = address.strip_prefix("https://") {
        return !rest.is_empty();
    }
    let Some(rest) = address.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(host, _)| host),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

fn check_variable(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(fits);
    if is_name && name.len() <= TEXT_BYTES { Ok(()) } else { Err(format!("{name:?} is not the name of a variable")) }
}

fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\']) && !name.starts_with('-')
}

fn check_text(what: &str, text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > TEXT_BYTES || text.contains(char::is_control) {
        return Err(format!("{what} must be texts of one line with 1 to {TEXT_BYTES} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = r#"
format = 1
date = "2026-11-18"
vendor-keys = ["KEY"]
later = { anything = [1] }
[[agents]]
id = "mine"
name = "Mine"
description = "does it"
commands = ["mine"]
log-in = "run mine"
later = "x"
package = { kind = "npm", name = "@me/mine", version = "1.2.3", later = true }
"#;

    #[test]
    fn members_of_later_versions_are_ignored_and_a_later_kind_of_package_is_known_as_such() {
        let catalog = AgentCatalog::parse(VALID).unwrap();
        assert_eq!(catalog.agents[0].package.version(), Some("1.2.3"));
        let later = VALID.replace(r#"kind = "npm""#, r#"kind = "crate""#);
        assert_eq!(AgentCatalog::parse(&later).unwrap().agents[0].package, AgentPackage::Unknown);
    }

    #[test]
    fn a_newer_format_and_a_damaged_file_are_refused_with_the_reason() {
        let error = |text: &str| AgentCatalog::parse(text).unwrap_err().to_string();
        let newer = "format = 2\nagents = 'in another shape'\n";
        assert!(error(newer).contains("format 2") && error(newer).contains("update Grove"), "{}", error(newer));
        for (from, to, words) in [
            ("[[agents]]", "[[agents", "cannot be read"),
            (r#"id = "mine""#, r#"id = "My Agent""#, "lower-case letters"),
            (r#"commands = ["mine"]"#, r#"commands = ["../mine"]"#, "without a folder"),
            (r#"commands = ["mine"]"#, "commands = []", "at least one program"),
            (r#"name = "Mine""#, r#"name = "a\u001b[31m""#, "one line"),
            (r#""@me/mine""#, r#""--prefix=/""#, "not the name of a package"),
            (r#""@me/mine""#, r#""https://x/y.tgz""#, "not the name of a package"),
            (r#""1.2.3""#, r#""1; rm""#, "not a version"),
            (r#"date = "2026-11-18""#, r#"date = "today""#, "not a date"),
            (r#"log-in = "run mine""#, "log-in = 'x'\nwebsite = 'ftp://x'", "https://"),
            (r#"log-in = "run mine""#, "log-in = 'x'\nsign-in = [{ variable = 'K', method = 'k' }]", "pass-env"),
        ] {
            assert!(VALID.contains(from), "{from}");
            let error = error(&VALID.replacen(from, to, 1));
            assert!(error.contains(words), "no {words:?} in {error}");
        }
        let twice = format!("{VALID}\n{}", &VALID[VALID.find("[[agents]]").unwrap()..]);
        assert!(error(&twice).contains("twice"));
        assert!(error(&format!("{VALID}#{}", "x".repeat(1 << 20))).contains("more than"));
    }

    #[test]
    fn a_binary_comes_from_a_safe_address_and_stays_in_its_folder() {
        let binary = |url: &str, sha256: &str, program: &str| {
            let package = format!(
                r#"package = {{ kind = "binary", version = "1.0", targets = {{ linux-x86_64 = {{ url = "{url}", sha256 = "{sha256}", program = "{program}" }} }} }}"#
            );
            let start = VALID.find("package =").unwrap();
            AgentCatalog::parse(&format!("{}{package}\n", &VALID[..start])).map(drop).map_err(|error| error.to_string())
        };
        let hash = "a".repeat(64);
        assert_eq!(binary("https://example.org/a.tar.gz", &hash, "bin/a"), Ok(()));
        assert_eq!(binary("http://127.0.0.1:80/a", &hash, "a"), Ok(()));
        for (url, hash, program) in [
            ("http://example.org/a", hash.as_str(), "a"),
            ("file:///a", &hash, "a"),
            ("https://example.org/a", "abc", "a"),
            ("https://example.org/a", &hash, "../a"),
            ("https://example.org/a", &hash, "/a"),
        ] {
            assert!(binary(url, hash, program).is_err(), "{url} {program}");
        }
    }

    #[test]
    fn an_address_is_safe_with_tls_or_on_this_machine() {
        for safe in ["https://example.org/x", "http://localhost:1/x", "http://[::1]:1/x", "http://127.0.0.1"] {
            assert!(is_safe_address(safe), "{safe}");
        }
        for unsafe_one in
            ["http://example.org", "http://localhost.evil.org", "http://127.0.0.1@evil.org/", "https://", "x"]
        {
            assert!(!is_safe_address(unsafe_one), "{unsafe_one}");
        }
    }
}
