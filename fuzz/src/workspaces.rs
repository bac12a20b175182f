//! The fuzz bodies of a session's files beside its log.

use grove_fs::workspace::{
    Checkpoint, CheckpointIndex, Field, ForkIdentity, Manifest, ManifestError, Value, Workspace, WorkspaceError,
};
use grove_fs::{MemoryFs, SessionFs};
use grove_work::GitConfig;
use jiff::Timestamp;

const TEXTS: [Field; 3] = [Field::Id, Field::Cwd, Field::Name];

/// Any text as `workspace.yaml`: it is refused with the number of one of its lines, or written unchanged.
///
/// A value that is set is read back, and nothing else changes; a fork has no links.
pub fn manifest(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(
            ManifestError::NotAField { line }
            | ManifestError::Twice { line, .. }
            | ManifestError::Unexpected { line, .. },
        ) => {
            assert!((1..=text.split_inclusive('\n').count()).contains(&line), "{line}");
            return;
        }
    };
    assert_eq!(manifest.to_string(), text);
    for field in [Field::Id, Field::UserNamed, Field::SummaryCount, Field::CreatedAt] {
        // Each gives a value or the line of the error.
        let read = [
            manifest.text(field).map(drop),
            manifest.number(field).map(drop),
            manifest.flag(field).map(drop),
            manifest.time(field).map(drop),
        ];
        for error in read.into_iter().filter_map(Result::err) {
            assert!(error.to_string().contains(field.key()), "{error}");
        }
    }
    let value: String = text.chars().rev().take(40).collect();
    for field in TEXTS {
        let mut changed = manifest.clone();
        changed.set(field, Value::Text(&value));
        let again = Manifest::parse(&changed.to_string()).expect("what Grove wrote is read");
        assert_eq!(again.text(field), Ok(Some(value.as_str())), "{changed}");
        for other in TEXTS.into_iter().filter(|other| *other != field) {
            assert_eq!(again.text(other).ok(), manifest.text(other).ok(), "{changed}");
        }
        assert!(again.remote_keys().eq(manifest.remote_keys()), "{changed}");
    }
    let fork = ForkIdentity { id: "s2", name: None, at: Timestamp::UNIX_EPOCH, checkpoints: 1 };
    if let Ok(forked) = manifest.forked(fork) {
        let again = Manifest::parse(&forked.to_string()).expect("what Grove wrote is read");
        assert_eq!((again.remote_keys().count(), again.text(Field::Id)), (0, Ok(Some("s2"))), "{forked}");
    }
}

/// Any text as a git configuration: it is read to its end.
///
/// A line after it under its own heading is found. Of several values, the last counts.
pub fn git_config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let config = GitConfig::parse(&text);
    for (name, _) in config.values("remote", "url").take(16) {
        let last = config.values("remote", "url").filter(|(other, _)| *other == name).last();
        let last = last.map(|(_, value)| value).filter(|value| !value.is_empty());
        assert_eq!(config.value("remote", name, "url"), last, "{name}");
    }
    let more = GitConfig::parse(&format!("{text}\n\n[remote \"fuzz\"]\nurl = x\n"));
    // The limit of variables may have been reached before.
    let is_small = text.len() < 32 << 10;
    assert!(!is_small || more.value("remote", "fuzz", "url") == Some("x"), "{text}");
}

/// Any text as `checkpoints/index.md`: it is written unchanged.
///
/// Exactly the given rows are removed, and a new one is the last, under a new number.
pub fn checkpoints(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let index = CheckpointIndex::parse(text);
    assert_eq!(index.to_string(), text);
    let listed: Vec<Checkpoint> = index.checkpoints().cloned().collect();
    let last = listed.iter().map(|row| row.number).max().unwrap_or(0) / 2;
    let mut cut = index.clone();
    let (gone, kept): (Vec<_>, Vec<_>) = listed.iter().cloned().partition(|row| row.number > last);
    assert_eq!(cut.remove_after(last), gone);
    assert!(cut.checkpoints().eq(&kept));
    assert_eq!(CheckpointIndex::parse(&cut.to_string()), cut);

    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = MemoryFs::default();
        store.write_file("s1/checkpoints/index.md", data).await.expect("a file");
        let workspace = Workspace::of(&store, Some("s1")).expect("a workspace");
        match workspace.add_checkpoint(text, "summary", Timestamp::UNIX_EPOCH).await {
            Ok(added) => {
                assert!(listed.iter().all(|row| row.number < added.number));
                assert_eq!(workspace.checkpoint(added.number).await.as_deref(), Ok("summary"));
                let expected: Vec<Checkpoint> = listed.into_iter().chain([added]).collect();
                assert_eq!(workspace.checkpoints().await, Ok(expected));
            }
            Err(error) => assert!(matches!(error, WorkspaceError::NoNumberLeft { .. }), "{error}"),
        }
    });
}
