//! Skills: instructions in files.

use crate::ahp::macros::records;

records! {
    #[derive(Default, Eq)]
    pub struct SkillInfo {
        pub name: String,
        pub description: String,
        /// Always `custom`: Grove knows those of the folders that a program names.
        pub source: String,
        pub user_invocable: bool,
        pub enabled: bool,
        pub path: Option<String>,
    }

    /// The result of `session.skills.list` and of `skills.discover`.
    #[derive(Default, Eq)]
    pub struct SkillListResult {
        pub skills: Vec<SkillInfo>,
    }

    #[derive(Default, Eq)]
    pub struct DiscoverSkillsParams {
        pub skill_directories: Option<Vec<String>>,
    }

    #[derive(Default, Eq)]
    pub struct SkillParams {
        pub session_id: String,
        pub name: String,
    }

    #[derive(Default, Eq)]
    pub struct ReloadSkillsResult {
        pub warnings: Vec<String>,
        pub errors: Vec<String>,
    }
}
