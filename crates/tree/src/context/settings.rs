//! The settings along a branch: the last of each kind counts, so no other line is read.

use std::borrow::Cow;

use grove_fs::FsError;

use super::{ContextModel, Rules};
use crate::fields::EntryFields;
use crate::index::{EntryNo, LogIndex};
use crate::kind::EntryType;
use crate::role::Role;
use crate::scan::{Scanner, lossy};
use crate::source::{LogSource, each_line, line};

pub(super) struct ContextSettings {
    pub(super) thinking_level: String,
    pub(super) model: ContextModel,
    pub(super) mode: Option<String>,
    pub(super) injected_rules: Vec<String>,
}

const NO_THINKING: &str = "off";
const NO_MODE: &str = "none";

impl ContextSettings {
    /// The settings of an empty branch.
    pub(super) fn none(rules: Rules) -> Self {
        let (model, mode) = match rules {
            Rules::Pi => (ContextModel::Unknown, None),
            Rules::Omp => (ContextModel::ByRole(Vec::new()), Some(NO_MODE.to_owned())),
            Rules::Grove => (ContextModel::Unknown, Some(NO_MODE.to_owned())),
        };
        Self { thinking_level: NO_THINKING.to_owned(), model, mode, injected_rules: Vec::new() }
    }

    pub(super) fn of(
        rules: Rules,
        index: &LogIndex,
        source: &(impl LogSource + ?Sized),
        branch: &[EntryNo],
    ) -> Result<Self, FsError> {
        let branch_reader = BranchReader { index, source, branch };
        let thinking_level =
            branch_reader.last(EntryType::ThinkingLevelChange, |parts| text(parts.line.thinking_level))?;
        let mode = match rules {
            Rules::Pi => None,
            Rules::Omp | Rules::Grove => {
                let mode = branch_reader.last(EntryType::ModeChange, |parts| text(parts.line.mode))?;
                Some(mode.flatten().unwrap_or_else(|| NO_MODE.to_owned()))
            }
        };
        Ok(Self {
            thinking_level: thinking_level.flatten().unwrap_or_else(|| NO_THINKING.to_owned()),
            model: match rules {
                Rules::Pi => branch_reader.last_model(|parts| Some(one(parts.line.provider, parts.line.model_id)))?,
                Rules::Grove => branch_reader.last_model(chosen_model)?,
                Rules::Omp => branch_reader.models_by_role()?,
            },
            mode,
            injected_rules: match rules {
                Rules::Pi => Vec::new(),
                Rules::Omp | Rules::Grove => branch_reader.injected_rules()?,
            },
        })
    }
}

/// Reads single lines of a branch.
struct BranchReader<'a, S: ?Sized> {
    index: &'a LogIndex,
    source: &'a S,
    branch: &'a [EntryNo],
}

impl<S: LogSource + ?Sized> BranchReader<'_, S> {
    /// The value from the last entry of a kind.
    fn last<T>(&self, kind: EntryType, say: impl Fn(&EntryFields<'_>) -> T) -> Result<Option<T>, FsError> {
        let last = self.branch.iter().rfind(|entry| self.index.kind(**entry) == kind);
        last.map(|entry| Ok(say(&EntryFields::of(&self.line(*entry)?)))).transpose()
    }

    /// The model of the last change that names one, or of the last answer, whichever came later.
    fn last_model(&self, changed: impl Fn(&EntryFields<'_>) -> Option<ContextModel>) -> Result<ContextModel, FsError> {
        for entry in self.branch.iter().rev() {
            if self.is_answer(*entry) {
                let line = self.line(*entry)?;
                let message = EntryFields::of(&line).message;
                return Ok(one(message.provider, message.model));
            }
            if self.index.kind(*entry) == EntryType::ModelChange
                && let Some(model) = changed(&EntryFields::of(&self.line(*entry)?))
            {
                return Ok(model);
            }
        }
        Ok(ContextModel::Unknown)
    }

    /// oh-my-pi: a model for each role, in the order in which they were first named. An answer's model does not replace
    /// a chosen one.
    fn models_by_role(&self) -> Result<ContextModel, FsError> {
        let mut models: Vec<(String, String)> = Vec::new();
        let mut set = |role: String, model: String| match models.iter_mut().find(|(known, _)| *known == role) {
            Some(known) => known.1 = model,
            None => models.push((role, model)),
        };
        let mut is_chosen = false;
        let mut last_answer = None;
        for entry in self.branch {
            if self.is_answer(*entry) && !is_chosen {
                if last_answer.is_none() {
                    // Reserves the position; the model follows.
                    set("default".to_owned(), String::new());
                }
                last_answer = Some(*entry);
            } else if self.index.kind(*entry) == EntryType::ModelChange {
                let line = self.line(*entry)?;
                let fields = EntryFields::of(&line).line;
                let role = text(fields.role).unwrap_or_else(|| "default".to_owned());
                if let Some(model) = text(fields.model).filter(|model| !model.is_empty()) {
                    is_chosen |= role == "default";
                    set(role, model);
                }
            }
        }
        if let Some(answer) = last_answer.filter(|_| !is_chosen) {
            let line = self.line(answer)?;
            let message = EntryFields::of(&line).message;
            let part = |value| text(value).unwrap_or_else(|| "undefined".to_owned());
            set("default".to_owned(), format!("{}/{}", part(message.provider), part(message.model)));
        }
        Ok(ContextModel::ByRole(models))
    }

    fn injected_rules(&self) -> Result<Vec<String>, FsError> {
        let entries = self.branch.iter().copied();
        let entries: Vec<EntryNo> =
            entries.filter(|entry| self.index.kind(*entry) == EntryType::TtsrInjection).collect();
        let mut rules = Vec::new();
        each_line(self.index, self.source, &entries, |_, line| {
            let list = EntryFields::of(&line).line.injected_rules.unwrap_or_default();
            Scanner::default().items(list, |rule| {
                if let Some(rule) = lossy(rule).filter(|rule| !rules.contains(rule)) {
                    rules.push(rule);
                }
                std::ops::ControlFlow::Continue(())
            });
            Ok(())
        })?;
        Ok(rules)
    }

    /// True for an assistant's message, which names its model.
    fn is_answer(&self, entry: EntryNo) -> bool {
        self.index.role(entry).is_some_and(Role::is_assistant)
    }

    fn line(&self, entry: EntryNo) -> Result<Cow<'_, [u8]>, FsError> {
        line(self.index, self.source, entry)
    }
}

/// The model of a change in either program's form; `None` if it is for another role than the conversation's.
fn chosen_model(parts: &EntryFields<'_>) -> Option<ContextModel> {
    let fields = &parts.line;
    let Some(model) = text(fields.model) else { return Some(one(fields.provider, fields.model_id)) };
    if text(fields.role).is_some_and(|role| role != "default") {
        return None;
    }
    let (provider, id) = match model.split_once('/') {
        Some((provider, id)) => (Some(provider.to_owned()), id.to_owned()),
        None => (None, model),
    };
    Some(ContextModel::One { provider, model_id: Some(id) })
}

fn text(value: Option<&[u8]>) -> Option<String> {
    value.and_then(lossy)
}

fn one(provider: Option<&[u8]>, model_id: Option<&[u8]>) -> ContextModel {
    ContextModel::One { provider: text(provider), model_id: text(model_id) }
}
