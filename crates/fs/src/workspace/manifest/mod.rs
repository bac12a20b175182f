//! `workspace.yaml`: the identity of a session, its working directory and its times.
//!
//! The file is a flat list of `key: value` lines that other programs write as well. It is kept line by line, so that
//! unknown content (unknown fields, comments, lists below a key) stays as it is and where it is, and a file that is
//! read and written without a change has the same bytes.

mod scalar;

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use scalar::Scalar;

/// The fields that Grove knows, in the order in which it writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    Id,
    Cwd,
    GitRoot,
    Repository,
    HostType,
    Branch,
    ClientName,
    Name,
    /// Set if a person gave the name.
    UserNamed,
    /// The number of checkpoints that the index lists.
    SummaryCount,
    ForkCount,
    CreatedAt,
    UpdatedAt,
}

/// A value to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Text(&'a str),
    Number(u64),
    Flag(bool),
    Time(Timestamp),
}

/// The identity of a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkIdentity<'a> {
    pub id: &'a str,
    /// Without one it is the source's name followed by " (fork)".
    pub name: Option<&'a str>,
    pub at: Timestamp,
    /// The number of its checkpoints.
    pub checkpoints: u64,
}

/// `workspace.yaml`, line by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    lines: Vec<ManifestLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ManifestLine {
    /// A field with all of its lines.
    Entry { key: String, raw: String, line: usize, scalar: Scalar },
    /// Comments, blank lines, the marker at the beginning.
    Other(String),
}

/// The fault of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("line {line} is not a `key: value` pair: correct it, or remove it")]
    NotAField { line: usize },
    #[error("line {line} has the field `{key}` a second time: remove one of them")]
    Twice { line: usize, key: String },
    #[error("`{key}` in line {line} is not {wanted}: write one value on one line")]
    Unexpected { line: usize, key: String, wanted: &'static str },
}

impl Field {
    const ALL: [Field; 13] = [
        Field::Id,
        Field::Cwd,
        Field::GitRoot,
        Field::Repository,
        Field::HostType,
        Field::Branch,
        Field::ClientName,
        Field::Name,
        Field::UserNamed,
        Field::SummaryCount,
        Field::ForkCount,
        Field::CreatedAt,
        Field::UpdatedAt,
    ];

    pub fn key(self) -> &'static str {
        match self {
            Field::Id => "id",
            Field::Cwd => "cwd",
            Field::GitRoot => "git_root",
            Field::Repository => "repository",
            Field::HostType => "host_type",
            Field::Branch => "branch",
            Field::ClientName => "client_name",
            Field::Name => "name",
            Field::UserNamed => "user_named",
            Field::SummaryCount => "summary_count",
            Field::ForkCount => "fork_count",
            Field::CreatedAt => "created_at",
            Field::UpdatedAt => "updated_at",
        }
    }

    fn of(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.key() == key)
    }
}

impl Manifest {
    /// The manifest of a new session.
    pub fn new(id: &str, cwd: Option<&str>, at: Timestamp) -> Self {
        let mut manifest = Self { lines: Vec::new() };
        manifest.set(Field::Id, Value::Text(id));
        if let Some(cwd) = cwd {
            manifest.set(Field::Cwd, Value::Text(cwd));
        }
        manifest.set(Field::ClientName, Value::Text("grove"));
        manifest.set(Field::UserNamed, Value::Flag(false));
        manifest.set(Field::SummaryCount, Value::Number(0));
        manifest.set(Field::ForkCount, Value::Number(0));
        manifest.set(Field::CreatedAt, Value::Time(at));
        manifest.set(Field::UpdatedAt, Value::Time(at));
        manifest
    }

    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let mut lines: Vec<ManifestLine> = Vec::new();
        let mut keys = BTreeSet::new();
        for (index, raw) in text.split_inclusive('\n').enumerate() {
            let line = index + 1;
            let content = raw.trim_end_matches(['\n', '\r']);
            let blank = content.trim_start().is_empty() || content.starts_with('#');
            let belongs_to_last = content.starts_with([' ', '\t']) || content == "-" || content.starts_with("- ");
            if blank || content == "---" || content == "..." {
                lines.push(ManifestLine::Other(raw.to_owned()));
            } else if belongs_to_last {
                continue_last(&mut lines, raw, line)?;
            } else {
                let (key, value) = split_field(content).ok_or(ManifestError::NotAField { line })?;
                if !keys.insert(key) {
                    return Err(ManifestError::Twice { line, key: key.to_owned() });
                }
                let (key, raw) = (key.to_owned(), raw.to_owned());
                lines.push(ManifestLine::Entry { key, raw, line, scalar: Scalar::parse(value) });
            }
        }
        Ok(Self { lines })
    }

    /// A field as text; `None` if it is missing or null.
    pub fn text(&self, field: Field) -> Result<Option<&str>, ManifestError> {
        let Some((line, scalar)) = self.find(field.key()) else { return Ok(None) };
        scalar.text().map_err(|_| unexpected(field, line, "a text"))
    }

    pub fn number(&self, field: Field) -> Result<Option<u64>, ManifestError> {
        self.read(field, "a number", |text| text.parse().ok())
    }

    pub fn flag(&self, field: Field) -> Result<Option<bool>, ManifestError> {
        self.read(field, "true or false", |text| text.to_ascii_lowercase().parse().ok())
    }

    pub fn time(&self, field: Field) -> Result<Option<Timestamp>, ManifestError> {
        self.read(field, "a time", |text| text.parse().ok())
    }

    /// The keys that tie the session to a remote service.
    pub fn remote_keys(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|piece| match piece {
            ManifestLine::Entry { key, .. } if is_remote(key) => Some(key.as_str()),
            ManifestLine::Entry { .. } | ManifestLine::Other(_) => None,
        })
    }

    /// Sets a field in its place, or inserts it among the others.
    pub fn set(&mut self, field: Field, value: Value<'_>) {
        let key = field.key();
        let written = scalar::written(value);
        let (raw, scalar) = (format!("{key}: {written}\n"), Scalar::parse(&written));
        if let Some(at) = self.lines.iter().position(|piece| piece.is(key)) {
            let line = at + 1;
            self.lines[at] = ManifestLine::Entry { key: key.to_owned(), raw, line, scalar };
            return;
        }
        // After the last field that precedes it in our order; unknown lines stay where they are.
        let before = |piece: &ManifestLine| piece.field().is_some_and(|other| other < field);
        let at = self.lines.iter().rposition(before).map_or_else(|| self.first_entry(), |last| last + 1);
        if let Some(ManifestLine::Entry { raw, .. } | ManifestLine::Other(raw)) =
            at.checked_sub(1).and_then(|i| self.lines.get_mut(i))
            && !raw.ends_with('\n')
        {
            raw.push('\n');
        }
        self.lines.insert(at, ManifestLine::Entry { key: key.to_owned(), raw, line: at + 1, scalar });
    }

    /// Removes a field, if it exists.
    pub fn remove(&mut self, field: Field) {
        self.lines.retain(|piece| !piece.is(field.key()));
    }

    /// The manifest of a session that was forked from this one: its own id, name and times, and nothing that ties it to
    /// a remote service.
    pub fn forked(&self, fork: ForkIdentity<'_>) -> Result<Self, ManifestError> {
        let mut manifest = self.clone();
        manifest.lines.retain(|piece| !matches!(piece, ManifestLine::Entry { key, .. } if is_remote(key)));
        manifest.set(Field::Id, Value::Text(fork.id));
        match (fork.name, self.text(Field::Name)?) {
            (Some(name), _) => manifest.set(Field::Name, Value::Text(name)),
            (None, Some(name)) => manifest.set(Field::Name, Value::Text(&format!("{name} (fork)"))),
            (None, None) => {}
        }
        manifest.set(Field::UserNamed, Value::Flag(fork.name.is_some()));
        manifest.set(Field::SummaryCount, Value::Number(fork.checkpoints));
        manifest.set(Field::ForkCount, Value::Number(0));
        manifest.set(Field::CreatedAt, Value::Time(fork.at));
        manifest.set(Field::UpdatedAt, Value::Time(fork.at));
        Ok(manifest)
    }

    fn read<T>(
        &self,
        field: Field,
        wanted: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ManifestError> {
        let Some((line, scalar)) = self.find(field.key()) else { return Ok(None) };
        match scalar.text() {
            Ok(None) => Ok(None),
            Ok(Some(text)) => parse(text).map(Some).ok_or_else(|| unexpected(field, line, wanted)),
            Err(_) => Err(unexpected(field, line, wanted)),
        }
    }

    fn find(&self, wanted: &str) -> Option<(usize, &Scalar)> {
        self.lines.iter().find_map(|piece| match piece {
            ManifestLine::Entry { key, line, scalar, .. } if key == wanted => Some((*line, scalar)),
            ManifestLine::Entry { .. } | ManifestLine::Other(_) => None,
        })
    }

    fn first_entry(&self) -> usize {
        self.lines.iter().position(|piece| matches!(piece, ManifestLine::Entry { .. })).unwrap_or(self.lines.len())
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|piece| match piece {
            ManifestLine::Entry { raw, .. } | ManifestLine::Other(raw) => f.write_str(raw),
        })
    }
}

impl ManifestLine {
    fn is(&self, wanted: &str) -> bool {
        matches!(self, ManifestLine::Entry { key, .. } if key == wanted)
    }

    fn field(&self) -> Option<Field> {
        match self {
            ManifestLine::Entry { key, .. } => Field::of(key),
            ManifestLine::Other(_) => None,
        }
    }
}

/// Adds a line to the field above it, with the blank lines and comments between them.
fn continue_last(lines: &mut Vec<ManifestLine>, line: &str, number: usize) -> Result<(), ManifestError> {
    let last = lines.iter().rposition(|piece| matches!(piece, ManifestLine::Entry { .. }));
    let between = match last {
        Some(at) => lines.split_off(at + 1),
        None => return Err(ManifestError::NotAField { line: number }),
    };
    if let Some(ManifestLine::Entry { raw, scalar, .. }) = lines.last_mut() {
        for piece in &between {
            match piece {
                ManifestLine::Entry { raw: more, .. } | ManifestLine::Other(more) => raw.push_str(more),
            }
        }
        raw.push_str(line);
        *scalar = Scalar::Unsupported;
    }
    Ok(())
}

/// `key: value`, or `key:`.
fn split_field(content: &str) -> Option<(&str, &str)> {
    let (key, value) = content.split_once(':')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let ends = value.is_empty() || value.starts_with([' ', '\t']);
    (!key.is_empty() && key.bytes().all(plain) && ends).then_some((key, value))
}

fn is_remote(key: &str) -> bool {
    key.starts_with("mc_") || key.starts_with("remote_")
}

fn unexpected(field: Field, line: usize, wanted: &'static str) -> ManifestError {
    ManifestError::Unexpected { line, key: field.key().to_owned(), wanted }
}
