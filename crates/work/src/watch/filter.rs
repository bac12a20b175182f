//! Filtering the changed paths of a watch.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::WatchError;

/// Patterns for paths relative to the watched one. A pattern that names a folder matches everything in it, since it may
/// as well be a plain path.
#[derive(Debug)]
pub(super) struct WatchFilter {
    /// If empty, everything is reported.
    includes: Option<GlobSet>,
    excludes: GlobSet,
}

/// Stands for any name: no pattern matches this very one.
const ANY_NAME: &str = "\u{1}any\u{1}";

impl WatchFilter {
    pub(super) fn new(root: &Path, includes: &[String], excludes: &[String]) -> Result<Self, WatchError> {
        let includes = if includes.is_empty() { None } else { Some(set(root, includes)?) };
        Ok(Self { includes, excludes: set(root, excludes)? })
    }

    pub(super) fn wants(&self, relative: &Path) -> bool {
        // The watched path itself always counts.
        relative.as_os_str().is_empty()
            || !covers(&self.excludes, relative)
                && self.includes.as_ref().is_none_or(|includes| covers(includes, relative))
    }

    /// Returns whether nothing in a folder could be reported.
    pub(super) fn excludes_folder(&self, folder: &Path) -> bool {
        covers(&self.excludes, folder) || self.excludes.is_match(folder.join(ANY_NAME))
    }
}

/// Returns whether a path or one of its parent folders matches.
fn covers(patterns: &GlobSet, relative: &Path) -> bool {
    let named = |path: &&Path| !path.as_os_str().is_empty();
    !patterns.is_empty() && relative.ancestors().filter(named).any(|path| patterns.is_match(path))
}

fn set(root: &Path, patterns: &[String]) -> Result<GlobSet, WatchError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let bad = |error: globset::Error| WatchError::BadPattern {
            pattern: pattern.chars().take(200).collect(),
            reason: error.kind().to_string(),
        };
        // Some clients write absolute paths.
        let below = root.to_str().and_then(|root| pattern.strip_prefix(root)).filter(|rest| rest.starts_with('/'));
        let relative = below.map_or(pattern.as_str(), |rest| rest.trim_start_matches('/'));
        let relative = relative.trim_start_matches("./").trim_end_matches('/');
        // As in editors: `*` stays within a folder, `**` does not.
        set.add(GlobBuilder::new(relative).literal_separator(true).build().map_err(bad)?);
    }
    set.build()
        .map_err(|error| WatchError::BadPattern { pattern: patterns.join(", "), reason: error.kind().to_string() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use super::*;

    fn filter(includes: &[&str], excludes: &[&str]) -> WatchFilter {
        let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>();
        WatchFilter::new(Path::new("/root"), &owned(includes), &owned(excludes)).unwrap()
    }

    #[test]
    fn patterns_and_paths_choose_what_is_told() {
        for (includes, excludes, wanted, unwanted) in [
            (&[][..], &[][..], &["a", "a/b"][..], &[][..]),
            (&[], &["node_modules"], &["src", "a/node_modules"], &["node_modules", "node_modules/a/b"]),
            (&[], &["**/node_modules/**"], &["node_modules"], &["node_modules/a", "x/node_modules/a/b"]),
            (&[], &["*.log"], &["a/b.log"], &["b.log"]),
            (&[], &["/root/out/", "./tmp"], &["in"], &["out/a", "tmp"]),
            (&["**/*.rs"], &["gen"], &["a.rs", "src/a.rs"], &["a.txt", "src", "gen/a.rs"]),
            (&["src", "{a,b}/*.json"], &[], &["src/deep/file", "b/x.json"], &["srcs", "c/x.json", "b/c/x.json"]),
            (&["/elsewhere/*"], &[], &[], &["a", "elsewhere/a"]),
        ] {
            let filter = filter(includes, excludes);
            assert!(filter.wants(Path::new("")));
            for path in wanted {
                assert!(filter.wants(Path::new(path)), "{includes:?} {excludes:?} {path}");
            }
            for path in unwanted {
                assert!(!filter.wants(Path::new(path)), "{includes:?} {excludes:?} {path}");
            }
        }
    }

    #[test]
    fn a_folder_of_which_nothing_is_told_need_not_be_watched() {
        let filter = filter(&[], &["**/node_modules/**", "target", "logs/*.log"]);
        for folder in ["node_modules", "a/node_modules", "node_modules/b", "target", "target/debug"] {
            assert!(filter.excludes_folder(Path::new(folder)), "{folder}");
        }
        for folder in ["src", "logs", "a/target"] {
            assert!(!filter.excludes_folder(Path::new(folder)), "{folder}");
        }
    }

    #[test]
    fn a_broken_pattern_is_refused() {
        let refused = WatchFilter::new(Path::new("/root"), &["a[".into()], &[]).unwrap_err();
        assert!(refused.to_string().contains("a["), "{refused}");
    }
}
