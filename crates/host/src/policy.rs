//! The rules that answer permission requests, as the program passes them to the host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_policy::{Policy, RequestAction, Rule};
use grove_wire::x_grove::policy::RuleTarget;

/// The rules of the settings and of repositories.
pub trait PermissionRules: Send + Sync {
    /// The rules for sessions in a folder. They are read again if their files have changed.
    fn rules_for(&self, folder: Option<&Path>) -> LoadedRules;

    /// The path without symbolic links, as far as it exists; `None` if that cannot be known.
    fn real_path(&self, path: &Path) -> Option<PathBuf>;

    /// The file that rules of a target are added to; `None` if the target has none.
    fn file_of(&self, target: RuleTarget, folder: Option<&Path>) -> Option<PathBuf>;

    /// Adds rules to the file of a target, for good, and returns the file.
    fn add_rules(&self, target: RuleTarget, folder: Option<&Path>, rules: &[Rule]) -> Result<PathBuf, String>;
}

/// The rules for one folder.
#[derive(Clone, Debug, Default)]
pub struct LoadedRules {
    pub policy: Arc<Policy>,
    /// The home folder of the user.
    pub home: Option<String>,
    /// A warning for people: rules that do not count yet, or cannot be read.
    pub warning: Option<String>,
}

/// Adds the targets of links to the paths of a read or an edit.
pub fn resolve_links(rules: &dyn PermissionRules, folder: Option<&Path>, action: &mut RequestAction) {
    let (RequestAction::Read { paths } | RequestAction::Edit { paths }) = action else { return };
    let real = |path: &String| {
        let path = folder.unwrap_or(Path::new("/")).join(path);
        // An empty path stands for one that nobody knows: a link may lead anywhere once its target exists.
        let Some(real) = rules.real_path(&path) else { return Some(String::new()) };
        if real == path {
            return None;
        }
        // A link in the path of the folder itself changes nothing.
        let inside = folder.and_then(|folder| {
            let inside = real.strip_prefix(rules.real_path(folder)?).ok()?;
            Some(folder.join(inside))
        });
        Some(inside.unwrap_or(real).to_string_lossy().into_owned())
    };
    let linked: Vec<String> = paths.iter().filter_map(real).collect();
    paths.extend(linked);
}
