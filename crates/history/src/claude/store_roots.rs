//! The folders of Claude Code's sessions.

use grove_transcript::TranscriptSource;

use crate::platform::{Platform, StoreEnvironment, below, set};
use crate::reader::StoreRoot;

/// Every possible folder of sessions: the configured one, else the defaults.
pub fn store_roots(platform: Platform, environment: &StoreEnvironment) -> Vec<StoreRoot> {
    let root = |folder| StoreRoot { source: TranscriptSource::Claude, product: "Claude Code".to_owned(), folder };
    if let Some(folders) = set(environment.claude_config.as_ref()) {
        let folders = folders.split(',').map(str::trim).filter(|folder| !folder.is_empty());
        return folders.map(|folder| root(below(platform, folder, &["projects"]))).collect();
    }
    let mut roots = vec![root(below(platform, &environment.home, &[".claude", "projects"]))];
    // Some versions followed the desktop's convention.
    let config = match set(environment.config_home.as_ref()) {
        Some(config) => below(platform, config, &["claude", "projects"]),
        None => below(platform, &environment.home, &[".config", "claude", "projects"]),
    };
    if platform != Platform::Windows {
        roots.push(root(config));
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_looked_for_where_the_program_is_told_to_keep_them() {
        let folders = |platform, environment: &StoreEnvironment| {
            let roots = store_roots(platform, environment);
            roots.iter().map(|root| root.folder.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let mut environment = StoreEnvironment { home: "/home/me".into(), ..StoreEnvironment::default() };
        assert_eq!(
            folders(Platform::Linux, &environment),
            ["/home/me/.claude/projects", "/home/me/.config/claude/projects"]
        );
        environment.claude_config = Some("/one, /two".into());
        assert_eq!(folders(Platform::Linux, &environment), ["/one/projects", "/two/projects"]);
        let windows = StoreEnvironment { home: "C:\\Users\\me".into(), ..StoreEnvironment::default() };
        assert_eq!(folders(Platform::Windows, &windows), ["C:\\Users\\me\\.claude\\projects"]);
    }
}
