//! `grove inspect`, and finding the log for a `FILE|SESSION` argument.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use grove_core::SessionUri;
use grove_tree::{Children, Context, ContextModel, Damage, EntryNo, Log, LogIndex, Rules};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Failure, print_line};
use crate::cli::{Common, InspectArgs, RulesName, ServeArgs};
use crate::settings::Settings;
use crate::show::style::sanitize_line;
use crate::stores::{self, FindLogError};

pub(crate) fn run(common: &Common, args: &InspectArgs) -> Result<(), Failure> {
    let rules = match args.rules {
        RulesName::Pi => Rules::Pi,
        RulesName::Omp => Rules::Omp,
        RulesName::Grove => Rules::Grove,
    };
    let path = find(common, &args.log)?;
    let log = read(&path)?;
    let context = log.context(rules, log.index().leaf());
    if args.json {
        print_line(serde_json::to_string(&LogReport::of(&log, context)?)?)?;
    } else {
        print_line(in_words(&path, &log, &context)?.trim_end())?;
    }
    Ok(())
}

/// The file for a `FILE|SESSION` argument.
pub(crate) fn find(common: &Common, name: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(name);
    if path.is_file() {
        return Ok(path);
    }
    let settings = Settings::load(common, &ServeArgs::default())?;
    // A valid session id cannot be a path to anywhere else.
    let id = |text: &str| {
        let id = text.split_once(":/").map_or(text, |(_, id)| id);
        SessionUri::from(format!("session:/{id}")).id()
    };
    match stores::choose_stored(&settings, name) {
        Ok(uri) => {
            let id = id(&uri).with_context(|| format!("{uri} is not the address of a session"))?;
            Ok(stores::find_log(&settings, &id)?)
        }
        // A session in a store that is no longer configured is found by its full id, and the error says what to do.
        Err(Failure::NotFound(why)) => match id(name).map(|id| stores::find_log(&settings, &id)) {
            Some(Ok(log)) => Ok(log),
            Some(Err(error @ FindLogError::NotConfigured { .. })) => Err(error.into()),
            Some(Err(FindLogError::Missing(_))) | None => {
                Err(Failure::NotFound(format!("{name} is not a file, and {why}")))
            }
        },
        Err(failure) => Err(failure),
    }
}

/// Reads a log. The commands here never change it.
pub(crate) fn read(path: &Path) -> Result<Log, Failure> {
    let bytes = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    // Version 1 has no ids. The generated ones are only shown, so they may be the same every time.
    let mut count = 0u32;
    let mut new_id = || {
        count += 1;
        format!("e{count:07x}")
    };
    Ok(grove_tree::open(bytes, &mut new_id).with_context(|| path.display().to_string())?)
}

/// The output of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogReport<'a> {
    header: Option<Box<RawValue>>,
    leaf_id: Option<String>,
    entries: Vec<String>,
    roots: Vec<String>,
    children: OrderedMap<Vec<String>>,
    branch: Vec<String>,
    labels: OrderedMap<&'a str>,
    context: Context<'a>,
    damage: Vec<&'a Damage>,
}

/// A JSON object that keeps the order of its fields.
struct OrderedMap<T>(Vec<(String, T)>);

impl<T: Serialize> Serialize for OrderedMap<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'a> LogReport<'a> {
    fn of(log: &'a Log, context: Context<'a>) -> Result<Self, Failure> {
        let index = log.index();
        let in_file_order = Children::in_file_order(index);
        let counting = index.entries().filter(|entry| index.find(&index.id(*entry)) == Some(*entry));
        let with_children = counting.filter(|entry| !in_file_order.of(*entry).is_empty());
        let header = index.header().map(|header| String::from_utf8_lossy(&header.to_json()).into_owned());
        Ok(Self {
            header: header.map(RawValue::from_string).transpose()?,
            leaf_id: index.leaf().map(|leaf| index.id(leaf).into_owned()),
            entries: ids(index, index.entries()),
            roots: ids(index, Children::oldest_first(index).roots().iter().copied()),
            children: OrderedMap(
                with_children
                    .map(|entry| (index.id(entry).into_owned(), ids(index, in_file_order.of(entry).iter().copied())))
                    .collect(),
            ),
            branch: ids(index, branch(index)),
            labels: OrderedMap(index.labels().map(|(entry, label)| (index.id(entry).into_owned(), label)).collect()),
            context,
            damage: index.damage(),
        })
    }
}

fn ids(index: &LogIndex, entries: impl IntoIterator<Item = EntryNo>) -> Vec<String> {
    entries.into_iter().map(|entry| index.id(entry).into_owned()).collect()
}

fn branch(index: &LogIndex) -> Vec<EntryNo> {
    index.leaf().map(|leaf| index.branch(leaf)).unwrap_or_default()
}

/// The output for people. The log may be anybody's: a name in it is one line, and controls nothing.
fn in_words(path: &Path, log: &Log, context: &Context<'_>) -> Result<String, std::fmt::Error> {
    let index = log.index();
    let mut out = String::new();
    writeln!(out, "{}", sanitize_line(&path.display().to_string()))?;
    if let Some(header) = index.header() {
        let unknown = || "?".to_owned();
        writeln!(out, "session    {}", sanitize_line(&header.id().unwrap_or_else(unknown)))?;
        writeln!(out, "started    {}", sanitize_line(&header.timestamp().unwrap_or_else(unknown)))?;
        writeln!(out, "folder     {}", sanitize_line(&header.cwd().unwrap_or_else(unknown)))?;
    } else {
        writeln!(out, "session    none: the header is not written yet")?;
    }
    if let Some(version) = log.migrated_from() {
        writeln!(out, "version    {version} (shown as {})", grove_tree::VERSION)?;
    }
    if let Some(name) = index.name() {
        writeln!(out, "name       {}", sanitize_line(&name))?;
    }
    let roots = Children::oldest_first(index).roots().len();
    writeln!(out, "entries    {} ({roots} roots)", index.len())?;
    for (entry, label) in index.labels() {
        writeln!(out, "label      {}: {}", sanitize_line(&index.id(entry)), sanitize_line(label))?;
    }
    writeln!(out, "model      {}", sanitize_line(&model(&context.model)))?;
    writeln!(out, "thinking   {}", sanitize_line(&context.thinking_level))?;
    if let Some(mode) = &context.mode {
        writeln!(out, "mode       {}", sanitize_line(mode))?;
    }
    writeln!(out, "context    {} messages", context.messages.len())?;
    for damage in index.damage() {
        writeln!(out, "damage     line {}: {}", damage.line, sanitize_line(&damage.message))?;
    }
    let branch = branch(index);
    writeln!(out, "branch     {} entries, root first", branch.len())?;
    for entry in branch {
        let kind = index.kind(entry);
        writeln!(
            out,
            "  {}  {}",
            sanitize_line(&index.id(entry)),
            sanitize_line(kind.name().unwrap_or("(unknown type)"))
        )?;
    }
    Ok(out)
}

fn model(model: &ContextModel) -> String {
    match model {
        ContextModel::Unknown => "unknown".to_owned(),
        ContextModel::One { provider, model_id } => {
            let parts: Vec<&str> = [provider, model_id].into_iter().flatten().map(String::as_str).collect();
            parts.join("/")
        }
        ContextModel::ByRole(models) => {
            let models: Vec<String> = models.iter().map(|(role, model)| format!("{role}: {model}")).collect();
            models.join(", ")
        }
    }
}
