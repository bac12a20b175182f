//! The settings that a branch says: model, thinking level and mode, the last change of each.

use grove_fs::SessionFs;
use serde::Deserialize;

use crate::error::LogError;
use crate::index::{EntryNo, Index};
use crate::kind::Kind;
use crate::store::read_lines;

/// What the conversation goes on with after an entry, as far as the entries of its branch say it.
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

/// The settings along the way to an entry. Of each kind the last change counts, and no other line is read.
pub async fn settings_at(
    fs: &dyn SessionFs,
    path: &str,
    index: &Index,
    at: Option<EntryNo>,
) -> Result<BranchSettings, LogError> {
    let mut settings = BranchSettings::default();
    let mut wanted = [Kind::ModelChange, Kind::ThinkingLevelChange, Kind::ModeChange].to_vec();
    let changes = at.into_iter().flat_map(|at| index.links.upwards(index.canonical(at)));
    let changes: Vec<EntryNo> = changes.filter(|entry| wanted.contains(&index.kind(*entry))).collect();
    for entry in changes {
        let kind = index.kind(entry);
        if !wanted.contains(&kind) {
            continue;
        }
        let lines = read_lines(fs, path, index, &[entry]).await?;
        // A change that cannot be read, or that is for something else than the conversation, changes nothing.
        let Some(change) = lines.first().and_then(|line| serde_json::from_slice::<Change>(line).ok()) else { continue };
        let is_said = match kind {
            Kind::ModelChange => {
                settings.model = change.model();
                settings.model.is_some()
            }
            Kind::ThinkingLevelChange => {
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

/// A change of any of them, in either program's words.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Change {
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

impl Change {
    /// The conversation's model, where the change is about that.
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
