//! Any operations in any order: every backend gives the same results as the one in memory.

use std::sync::Arc;

use grove_fs::{FileKind, FsError, MemoryFs, Removal, SessionFs};
use proptest::prelude::*;

use crate::support::every_backend;

#[derive(Clone, Debug)]
enum Operation {
    Read(&'static str),
    Range(&'static str, u64, usize),
    Write(&'static str, String),
    Append(&'static str, String),
    Truncate(&'static str, u64),
    Sync(&'static str),
    Exists(&'static str),
    Stat(&'static str),
    Mkdir(&'static str),
    List(&'static str),
    Remove(&'static str, Removal),
    Rename(&'static str, &'static str),
}

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["a", "b", "a/b", "a/c", "a/b/c", "b/a", "ab"][..])
}

fn operation() -> impl Strategy<Value = Operation> {
    let text = "[a-zä]{0,6}";
    prop_oneof![
        path().prop_map(Operation::Read),
        (path(), 0..9_u64, 0..9_usize).prop_map(|(path, from, length)| Operation::Range(path, from, length)),
        (path(), text).prop_map(|(path, text)| Operation::Write(path, text)),
        (path(), text).prop_map(|(path, text)| Operation::Append(path, text)),
        // Not inside a character: a client of text alone could not store that.
        path().prop_map(|path| Operation::Truncate(path, 0)),
        path().prop_map(Operation::Sync),
        path().prop_map(Operation::Exists),
        path().prop_map(Operation::Stat),
        path().prop_map(Operation::Mkdir),
        path().prop_map(Operation::List),
        (path(), prop_oneof![Just(Removal::One), Just(Removal::Everything)])
            .prop_map(|(path, what)| Operation::Remove(path, what)),
        (path(), path()).prop_map(|(from, to)| Operation::Rename(from, to)),
    ]
}

/// The result of an operation: a comparable text, or the code of its error.
async fn run(store: &Arc<dyn SessionFs>, operation: &Operation) -> Result<String, &'static str> {
    let done: Result<String, FsError> = match operation {
        Operation::Read(path) => store.read_file(path).await.map(|bytes| format!("{bytes:?}")),
        Operation::Range(path, from, length) => {
            store.read_range(path, *from, *length).await.map(|bytes| format!("{bytes:?}"))
        }
        Operation::Write(path, text) => store.write_text(path, text).await.map(|()| String::new()),
        Operation::Append(path, text) => store.append_text(path, text).await.map(|()| String::new()),
        Operation::Truncate(path, length) => store.truncate(path, *length).await.map(|()| String::new()),
        Operation::Sync(path) => store.sync(path).await.map(|()| String::new()),
        Operation::Exists(path) => store.exists(path).await.map(|exists| exists.to_string()),
        Operation::Stat(path) => store.stat(path).await.map(|stat| format!("{:?} {}", stat.kind, stat.size)),
        Operation::Mkdir(path) => store.mkdir(path).await.map(|()| String::new()),
        Operation::List(path) => store.readdir_with_types(path).await.map(|entries| format!("{entries:?}")),
        Operation::Remove(path, what) => store.rm(path, *what).await.map(|()| String::new()),
        Operation::Rename(from, to) => store.rename(from, to).await.map(|()| String::new()),
    };
    done.map_err(|error| error.code())
}

/// Everything in a store.
async fn everything(store: &Arc<dyn SessionFs>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in store.readdir_with_types(&folder).await.unwrap_or_default() {
            let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            match entry.kind {
                FileKind::Folder => {
                    found.push((path.clone(), "folder".to_owned()));
                    folders.push(path);
                }
                FileKind::File | FileKind::Other => found.push((path.clone(), store.read_text(&path).await.unwrap())),
            }
        }
    }
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 25, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_backend_does_what_the_one_in_memory_does(operations in prop::collection::vec(operation(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let model: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
            let subjects = every_backend();
            for operation in &operations {
                let expected = run(&model, operation).await;
                for subject in &subjects {
                    let done = run(&subject.store, operation).await;
                    assert_eq!(done, expected, "{} {operation:?} of {operations:?}", subject.name);
                }
            }
            let expected = everything(&model).await;
            for subject in &subjects {
                assert_eq!(everything(&subject.store).await, expected, "{}", subject.name);
            }
        });
    }
}
