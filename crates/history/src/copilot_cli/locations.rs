//! Where the Copilot CLI keeps its sessions.

use crate::normal::Source;
use crate::platform::{Environment, Platform, below, set};
use crate::reader::Root;

/// Every folder in which sessions may lie: where the program is told to keep them, else where it does by itself.
pub fn locations(platform: Platform, environment: &Environment) -> Vec<Root> {
    let root = |folder| Root { source: Source::CopilotCli, product: "Copilot CLI".to_owned(), folder };
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
        let folders = |environment: &Environment| {
            let roots = locations(Platform::Linux, environment);
            roots.iter().map(|root| root.folder.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let mut environment = Environment { home: "/home/me".into(), ..Environment::default() };
        assert_eq!(folders(&environment), ["/home/me/.copilot/session-state"]);
        environment.state_home = Some("/state".into());
        assert_eq!(folders(&environment), ["/state/.copilot/session-state", "/home/me/.copilot/session-state"]);
        environment.copilot_home = Some("/own".into());
        assert_eq!(folders(&environment), ["/own/session-state"]);
        let windows = Environment { home: "C:\\Users\\me".into(), ..Environment::default() };
        let root = &locations(Platform::Windows, &windows)[0];
        assert_eq!(root.folder.to_string_lossy(), "C:\\Users\\me\\.copilot\\session-state");
    }
}
