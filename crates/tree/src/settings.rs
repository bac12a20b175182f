//! The settings of a branch: model, thinking level and mode, the last change of each.

use grove_fs::SessionFs;
use serde::Deserialize;

use crate::error::LogError;
use crate::index::{EntryNo, LogIndex};
use crate::kind::EntryType;
use crate::role::Role;
use crate::store::read_lines;

/// The settings of the conversation after an entry, as far as its branch has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchSettings {
    pub model: Option<BranchModel>,
    pub thinking_level: Option<String>,
    pub mode: Option<String>,
}

/// A model, and the agent or service that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchModel {
    pub provider: Option<String>,
    pub id: String,
}

/// The settings along the path to an entry. The last change of each kind counts, and no other line is read.
pub async fn settings_at(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    at: Option<EntryNo>,
) -> Result<BranchSettings, LogError> {
    let mut settings = BranchSettings::default();
    let mut wanted = [EntryType::ModelChange, EntryType::ThinkingLevelChange, EntryType::ModeChange].to_vec();
    let changes = at.into_iter().flat_map(|at| index.links.ancestors(index.canonical(at)));
    let changes: Vec<EntryNo> = changes.filter(|entry| wanted.contains(&index.kind(*entry))).collect();
    for entry in changes {
        let kind = index.kind(entry);
        if !wanted.contains(&kind) {
            continue;
        }
        let lines = read_lines(fs, path, index, &[entry]).await?;
        // A change that cannot be read, or that is not for the conversation, changes nothing.
        let Some(change) = lines.first().and_then(|line| serde_json::from_slice::<SettingsChange>(line).ok()) else {
            continue;
        };
        let is_said = match kind {
            EntryType::ModelChange => {
                settings.model = change.model();
                settings.model.is_some()
            }
            EntryType::ThinkingLevelChange => {
                settings.thinking_level = change.thinking_level;
                true
            }
            _ => {
                settings.mode = change.mode;
                true
            }
        };
        if is_said {
            wanted.retain(|one| *one != kind);
        }
    }
    Ok(settings)
}

/// The settings with which a conversation goes on behind an entry: those of its branch, and what that does not say as it was
/// before the first message of the log.
pub async fn settings_to_go_on_with(
    fs: &dyn SessionFs,
    path: &str,
    index: &LogIndex,
    at: Option<EntryNo>,
) -> Result<BranchSettings, LogError> {
    let branch = settings_at(fs, path, index, at).await?;
    let first = index.entries().find(|entry| index.role(*entry) == Some(Role::User));
    let initial = settings_at(fs, path, index, first).await?;
    Ok(BranchSettings {
        model: branch.model.or(initial.model),
        thinking_level: branch.thinking_level.or(initial.thinking_level),
        mode: branch.mode.or(initial.mode),
    })
}

/// Says whether a log names models at all. Then a branch that names none had its agent's default; other logs say nothing of models.
pub fn names_models(index: &LogIndex) -> bool {
    index.entries().any(|entry| index.kind(entry) == EntryType::ModelChange)
}

/// A change of any of them, in either program's words.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SettingsChange {
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    model_id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    thinking_level: Option<String>,
    #[serde(default)]
    mode: Option<String>,
}

impl SettingsChange {
    /// The conversation's model, if the change sets it.
    fn model(self) -> Option<BranchModel> {
        if self.role.is_some_and(|role| role != "default") {
            return None;
        }
        if let Some(id) = self.model_id {
            return Some(BranchModel { provider: self.provider, id });
        }
        let model = self.model.filter(|model| !model.is_empty())?;
        Some(match model.split_once('/') {
            Some((provider, id)) => BranchModel { provider: Some(provider.to_owned()), id: id.to_owned() },
            None => BranchModel { provider: None, id: model },
        })
    }
}
