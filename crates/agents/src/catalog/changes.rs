//! The difference between two catalogs.

use super::{AgentCatalog, AgentEntry};

/// A change from one catalog to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogChange {
    Added {
        id: String,
        version: Option<String>,
    },
    Removed {
        id: String,
    },
    Changed {
        id: String,
        /// The changed members, with their former and their new value as text.
        members: Vec<(&'static str, String, String)>,
    },
}

impl AgentCatalog {
    /// The changes that another catalog brings.
    pub fn changes_to(&self, next: &Self) -> Vec<CatalogChange> {
        let version = |entry: &AgentEntry| entry.package.version().map(ToOwned::to_owned);
        let mut changes = Vec::new();
        for entry in &next.agents {
            match self.get(&entry.id) {
                None => changes.push(CatalogChange::Added { id: entry.id.clone(), version: version(entry) }),
                Some(before) if before != entry => {
                    let members = changed_members(before, entry);
                    changes.push(CatalogChange::Changed { id: entry.id.clone(), members });
                }
                Some(_) => {}
            }
        }
        let is_gone = |entry: &&std::sync::Arc<AgentEntry>| next.get(&entry.id).is_none();
        changes.extend(self.agents.iter().filter(is_gone).map(|entry| CatalogChange::Removed { id: entry.id.clone() }));
        changes
    }
}

/// The members of an entry as texts, in the order of the file.
fn members(entry: &AgentEntry) -> Vec<(&'static str, String)> {
    let AgentEntry {
        id: _,
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
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let ways: Vec<String> = sign_in.iter().map(|way| format!("{} by {}", way.method, way.variable)).collect();
    let source = match package.target() {
        Some(target) => format!("{} {} ({})", package.kind(), target.url, target.sha256),
        None => format!("{} {}", package.kind(), package.npm_name().unwrap_or_default()),
    };
    vec![
        ("version", package.version().unwrap_or_default().to_owned()),
        ("package", source.trim_end().to_owned()),
        ("commands", commands.join(" ")),
        ("args", args.join(" ")),
        ("env", env.join(" ")),
        ("pass-env", pass_env.join(" ")),
        ("sign-in", ways.join(", ")),
        ("log-in", log_in.clone()),
        ("log-in-args", log_in_args.as_deref().unwrap_or_default().join(" ")),
        ("name", display_name.clone()),
        ("description", description.clone()),
        ("website", website.clone().unwrap_or_default()),
        ("registry-id", registry_id.clone().unwrap_or_default()),
        ("notes", notes.join(" ")),
    ]
}

fn changed_members(before: &AgentEntry, after: &AgentEntry) -> Vec<(&'static str, String, String)> {
    let pairs = members(before).into_iter().zip(members(after));
    let changed = pairs.filter(|((_, before), (_, after))| before != after);
    changed.map(|((name, before), (_, after))| (name, before, after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_what_was_added_removed_and_changed() {
        let before = AgentCatalog::built_in();
        assert_eq!(before.changes_to(&before), []);
        let text = AgentCatalog::BUILT_IN_TEXT.replace("0.61.0", "0.62.0").replace("id = \"auggie\"", "id = \"other\"");
        let after = AgentCatalog::parse(&text).unwrap();
        let changed = |id: &str, name, from: &str, to: &str| CatalogChange::Changed {
            id: id.to_owned(),
            members: vec![(name, from.to_owned(), to.to_owned())],
        };
        let added = CatalogChange::Added { id: "other".to_owned(), version: Some("0.36.0".to_owned()) };
        let removed = CatalogChange::Removed { id: "auggie".to_owned() };
        let expected = [changed("gemini", "version", "0.61.0", "0.62.0"), added, removed.clone()];
        // The registry's id of the agent is unchanged.
        assert_eq!(before.changes_to(&after), expected);
        assert!(after.changes_to(&before).contains(&CatalogChange::Removed { id: "other".to_owned() }));
    }
}
