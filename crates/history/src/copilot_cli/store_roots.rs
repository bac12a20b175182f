//! The folders of the Copilot CLI's sessions.

use grove_transcript::TranscriptSource;

use crate::platform::{Platform, StoreEnvironment, below, set};
use crate::reader::StoreRoot;

/// Every possible folder of sessions: the configured one, else the defaults.
pub fn store_roots(platform: Platform, environment: &StoreEnvironment) -> Vec<StoreRoot> {
    let root = |folder| StoreRoot { source: TranscriptSource::CopilotCli, product: "Copilot CLI".to_owned(), folder };
    if let Some(home) = set(environment.copilot_home.as_ref()) {
        return vec![root(below(platform, home, &["session-state"]))];
    }
    let state = set(environment.state_home.as_ref());
    let homes = state.into_iter().chain([environment.home.as_str()]);
    homes.map(|home| root(below(platform, home, &[".copilot", "session-state"]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_looked_for_where_the_program_is_told_to_keep_them() {
        let folders = |environment: &StoreEnvironment| {
            let roots = store_roots(Platform::Linux, environment);
            roots.iter().map(|root| root.folder.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let mut environment = StoreEnvironment { home: "/home/me".into(), ..StoreEnvironment::default() };
        assert_eq!(folders(&environment), ["/home/me/.copilot/session-state"]);
        environment.state_home = Some("/state".into());
        assert_eq!(folders(&environment), ["/state/.copilot/session-state", "/home/me/.copilot/session-state"]);
        environment.copilot_home = Some("/own".into());
        assert_eq!(folders(&environment), ["/own/session-state"]);
        let windows = StoreEnvironment { home: "C:\\Users\\me".into(), ..StoreEnvironment::default() };
        let root = &store_roots(Platform::Windows, &windows)[0];
        assert_eq!(root.folder.to_string_lossy(), "C:\\Users\\me\\.copilot\\session-state");
    }
}
