//! Skills of a program: files in the folders that it names, of which the session's agent is told.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use grove_host::SetupChange;
use grove_host::setup::{Skill, Skills};
use grove_wire::copilot::error;
use grove_wire::copilot::methods::*;

use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// The skills that are taken of the folders of one request; further ones are left out.
pub const MAX_SKILLS: usize = 256;
/// The bytes of a skill's file that are read: its head is at the beginning.
const HEAD_BYTES: u64 = 64 << 10;
/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";
/// The line around the head of a skill's file.
const FENCE: &str = "---";

/// Finds the skills in folders, each of which has a folder for each skill. Folders that cannot be read have none.
fn found(directories: &[String]) -> Vec<Skill> {
    let folders = directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten();
    let mut files: Vec<PathBuf> = folders.filter_map(|entry| Some(entry.ok()?.path().join(FILE))).collect();
    files.sort();
    files.iter().filter_map(|file| skill(file)).take(MAX_SKILLS).collect()
}

fn skill(file: &Path) -> Option<Skill> {
    let mut head = Vec::new();
    File::open(file).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.lines().map(str::trim_end);
    let is_fenced = lines.next() == Some(FENCE);
    let members = lines.take_while(|line| is_fenced && *line != FENCE).filter_map(|line| line.split_once(':'));
    let member = |wanted: &str| {
        let found = members.clone().find(|(name, _)| name.trim() == wanted);
        found.map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
    };
    let folder = file.parent()?.file_name()?.to_string_lossy().into_owned();
    let name = member("name").filter(|name| !name.is_empty()).unwrap_or(folder);
    Some(Skill { name, description: member("description").unwrap_or_default(), path: file.display().to_string() })
}

fn info(skill: &Skill, enabled: bool) -> SkillInfo {
    SkillInfo {
        name: skill.name.clone(),
        description: skill.description.clone(),
        source: "custom".to_owned(),
        user_invocable: true,
        enabled,
        path: Some(skill.path.clone()),
    }
}

impl CopilotPeer {
    /// Finds the skills in folders that the client may work in.
    async fn find_skills(&self, method: Method, directories: Vec<String>) -> Result<Vec<Skill>, CopilotError> {
        let folders = directories.iter().map(|folder| grove_work::file_uri(Path::new(folder))).collect();
        let checked = self.principal().check_folders(self.host(), folders, method.as_str()).await;
        checked.map_err(|missing| CopilotError::Error(error::not_permitted(method.as_str(), missing)))?;
        Ok(self.host().env().spawn.run_blocking(move || found(&directories)).await?)
    }

    /// The skills of the folders that a request names. Relative ones are in the session's folder.
    pub(super) async fn named_skills(&self, params: &OpenParams) -> Result<Option<Skills>, CopilotError> {
        let Some(named) = &params.skill_directories else { return Ok(None) };
        let own = params.working_directory.as_ref().or(self.endpoint().default_folder());
        let own = own.map(|folder| grove_work::local_path(folder).unwrap_or_else(|_| PathBuf::from(folder)));
        let whole = |folder: &String| own.as_ref().map_or_else(|| PathBuf::from(folder), |own| own.join(folder));
        let directories: Vec<String> = named.iter().map(|folder| whole(folder).display().to_string()).collect();
        let found = self.find_skills(Method::SessionCreate, directories.clone()).await?;
        let disabled = params.disabled_skills.iter().flatten().cloned().collect();
        Ok(Some(Skills { directories, disabled, found }))
    }

    pub(super) async fn discover_skills(&self, params: DiscoverSkillsParams) -> Result<SkillListResult, CopilotError> {
        let directories = params.skill_directories.unwrap_or_default();
        let found = self.find_skills(Method::SkillsDiscover, directories).await?;
        Ok(SkillListResult { skills: found.iter().map(|skill| info(skill, true)).collect() })
    }

    pub(super) async fn skills(&self, params: SessionParams) -> Result<SkillListResult, CopilotError> {
        let skills = self.skills_of(&self.find(&params.session_id).await?).await?;
        let infos = skills.found.iter().map(|skill| info(skill, skills.is_enabled(&skill.name)));
        Ok(SkillListResult { skills: infos.collect() })
    }

    pub(super) async fn switch_skill(&self, params: SkillParams, enabled: bool) -> Result<(), CopilotError> {
        let session = self.find(&params.session_id).await?;
        let mut skills = self.skills_of(&session).await?;
        if !skills.found.iter().any(|skill| skill.name == params.name) {
            return Err(CopilotError::Failed(format!("there is no skill {:?}: see skills.list", params.name)));
        }
        match enabled {
            true => skills.disabled.remove(&params.name),
            false => skills.disabled.insert(params.name),
        };
        self.change_skills(&session, skills).await
    }

    pub(super) async fn reload_skills(&self, params: SessionParams) -> Result<ReloadSkillsResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let skills = self.skills_of(&session).await?;
        let found = self.find_skills(Method::SkillsReload, skills.directories.clone()).await?;
        self.change_skills(&session, Skills { found, ..skills }).await?;
        Ok(ReloadSkillsResult::default())
    }

    async fn skills_of(&self, session: &SessionRef) -> Result<Skills, CopilotError> {
        Ok(self.host().setup_of(&session.uri).await?.skills.clone())
    }

    async fn change_skills(&self, session: &SessionRef, skills: Skills) -> Result<(), CopilotError> {
        let change = SetupChange { skills: Some(skills), ..SetupChange::default() };
        Ok(self.host().change_setup(&session.uri, change).await?)
    }
}
