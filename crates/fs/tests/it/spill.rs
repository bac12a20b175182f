//! Large output and its temporary files.

use std::sync::Arc;

use grove_fs::spill::{Spill, SpillLimits, SpillLocation, SpillNotice, SpillOutcome};
use grove_fs::temp_files::{TempFilePolicy, TempFiles};
use grove_fs::{Conventions, FsError, MemoryFs, Removal, SessionFs};
use proptest::prelude::*;

use crate::copy::Failing;
use crate::support::{Files, StoreUnderTest, at_storage_client, every_backend};

fn temp_files(store: &dyn SessionFs, fate: TempFilePolicy) -> TempFiles {
    TempFiles::new(store, fate).unwrap()
}

fn notice(output: SpillOutcome) -> SpillNotice {
    match output {
        SpillOutcome::Spilled(notice) => notice,
        SpillOutcome::Whole(bytes) => panic!("{} bytes stayed", bytes.len()),
    }
}

#[tokio::test]
async fn output_up_to_the_limit_stays_as_it_is() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        let files = temp_files(&*store, TempFilePolicy::Removed);
        let limits = SpillLimits::default();
        let bytes = vec![b'x'; 64 * 1024];
        let output = Spill::whole(files.clone(), limits, &bytes, "grep").await;
        assert_eq!(output, SpillOutcome::Whole(bytes.clone()), "{name}");
        let temp = store.tmpdir().unwrap();
        assert!(!temp.exists("").await.unwrap_or(false) || temp.readdir("").await.unwrap().is_empty(), "{name}");
        let larger = [bytes, vec![b'y']].concat();
        let notice = notice(Spill::whole(files.clone(), limits, &larger, "grep").await);
        let SpillLocation::Whole(file) = notice.stored else { panic!("{:?}", notice.stored) };
        assert_eq!(temp.read_file(&file.path).await.unwrap(), larger, "{name}");
        assert_eq!(files.remove().await, [], "{name}");
    }
}

#[tokio::test]
async fn a_notice_says_where_the_output_is_and_how_it_begins() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        let files = temp_files(&*store, TempFilePolicy::Removed);
        let limits = SpillLimits { inline: 100, beginning: 8, file: 1000 };
        let output = "abcdefgé and more. ".repeat(20);
        let notice = notice(Spill::whole(files.clone(), limits, output.as_bytes(), "grep").await);
        let SpillLocation::Whole(file) = &notice.stored else { panic!("{:?}", notice.stored) };
        assert_eq!(notice.beginning, "abcdefg", "a character is never cut");
        assert_eq!(notice.size, 400);
        let text = notice.to_string();
        for part in ["400 bytes", file.shown.as_str(), "grep", "It begins:\nabcdefg"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let temp = store.tmpdir().unwrap();
        assert_eq!(file.shown, temp.location(&file.path).unwrap(), "{name}");
        assert!(temp.exists(&file.path).await.unwrap(), "{name}");
        assert!(store.conventions().is_absolute(&file.shown), "{name}: {}", file.shown);
        assert_eq!(files.remove().await, [], "{name}");
    }
}

#[tokio::test]
async fn a_file_has_its_bound_and_the_notice_says_so() {
    let store: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
    let limits = SpillLimits { inline: 10, beginning: 4, file: 25 };
    let mut spill = Spill::new(temp_files(&*store, TempFilePolicy::Removed), limits);
    for _ in 0..10 {
        spill.write(b"0123456").await;
    }
    let notice = notice(spill.finish("view").await);
    let SpillLocation::Beginning { file, bytes } = &notice.stored else { panic!("{:?}", notice.stored) };
    assert_eq!((*bytes, notice.size), (25, 70));
    assert_eq!(store.tmpdir().unwrap().read_file(&file.path).await.unwrap(), b"0123456012345601234560123");
    assert!(notice.to_string().contains("The rest was dropped"), "{notice}");
}

#[tokio::test]
async fn output_that_cannot_be_stored_does_not_fail_its_tool() {
    for calls in 0..3 {
        let store = Arc::new(Failing::new(Arc::new(MemoryFs::default())));
        store.fail_after(calls);
        let limits = SpillLimits { inline: 10, beginning: 4, file: 1000 };
        let mut spill = Spill::new(temp_files(&*store, TempFilePolicy::Removed), limits);
        for _ in 0..10 {
            spill.write(b"0123456789").await;
        }
        let notice = notice(spill.finish("view").await);
        assert!(matches!(notice.stored, SpillLocation::Nowhere(FsError::NoSpace { .. })), "{:?}", notice.stored);
        assert_eq!((notice.size, notice.beginning.as_str()), (100, "0123"));
    }
}

#[tokio::test]
async fn temporary_files_are_removed_at_the_end_unless_they_are_kept() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        for (fate, left) in [(TempFilePolicy::Removed, 0), (TempFilePolicy::Kept, 2)] {
            let files = temp_files(&*store, fate);
            let temp = store.tmpdir().unwrap();
            for _ in 0..2 {
                let file = files.register("txt").unwrap();
                temp.append_file(&file.path, b"x").await.unwrap();
            }
            files.register("txt").unwrap();
            assert_eq!(files.clone().remove().await, [], "one that was never made is no error ({name})");
            assert_eq!(temp.readdir("").await.unwrap().len(), left, "{name}");
        }
        // The test removes the files that were kept.
        let temp = store.tmpdir().unwrap();
        for file in temp.readdir("").await.unwrap() {
            temp.rm(&file, Removal::One).await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_cannot_be_removed_is_told_and_tried_again() {
    let failing = Arc::new(Failing::new(Arc::new(MemoryFs::default())));
    let files = temp_files(&*failing, TempFilePolicy::Removed);
    for _ in 0..3 {
        let file = files.register("txt").unwrap();
        failing.tmpdir().unwrap().append_file(&file.path, b"x").await.unwrap();
    }
    failing.fail_after(1);
    assert_eq!(files.remove().await.len(), 2);
    failing.heal();
    let temp = failing.tmpdir().unwrap();
    assert_eq!(temp.readdir("").await.unwrap().len(), 2);
    assert_eq!(files.remove().await, []);
    assert_eq!(temp.readdir("").await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn output_that_is_no_text_is_kept_exactly_or_its_notice_says_that_it_is_lost() {
    for StoreUnderTest { name, store, files: keeps, .. } in every_backend() {
        let files = temp_files(&*store, TempFilePolicy::Removed);
        let limits = SpillLimits { inline: 10, beginning: 4, file: 1000 };
        let bytes = b"0123\xff456789abc\0".repeat(3);
        let notice = notice(Spill::whole(files.clone(), limits, &bytes, "view").await);
        assert_eq!((notice.size, notice.beginning.as_str()), (45, "0123"), "{name}");
        match (&notice.stored, keeps) {
            (SpillLocation::Whole(file), Files::Bytes) => {
                assert_eq!(store.tmpdir().unwrap().read_file(&file.path).await.unwrap(), bytes, "{name}");
            }
            (SpillLocation::Nowhere(FsError::NotText { .. }), Files::Text) => {}
            (stored, _) => panic!("{name}: {stored:?}"),
        }
        assert_eq!(files.remove().await, [], "{name}");
    }
}

fn chunk() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![any::<u8>(), Just(b'a'), Just(0xc3), Just(0xa9)], 0..40)
}

proptest! {
    #[test]
    fn text_that_comes_in_any_pieces_is_stored_as_text(text in "[a\u{e9}\u{20ac}\u{1f333}]{0,80}", piece in 1..9_usize, inline in 1..40_usize, file in 0..200_u64) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
            let store = at_storage_client(Arc::new(MemoryFs::default()), Conventions::Posix, Files::Text);
            let limits = SpillLimits { inline, beginning: 5, file };
            let mut spill = Spill::new(temp_files(&store, TempFilePolicy::Removed), limits);
            for bytes in text.as_bytes().chunks(piece) {
                spill.write(bytes).await;
            }
            match spill.finish("grep").await {
                SpillOutcome::Whole(bytes) => assert_eq!(bytes, text.as_bytes()),
                SpillOutcome::Spilled(SpillNotice { stored: SpillLocation::Whole(file), beginning, .. }) => {
                    let stored = store.tmpdir().unwrap().read_file(&file.path).await.unwrap();
                    assert_eq!(stored, text.as_bytes());
                    assert!(text.starts_with(&beginning));
                }
                SpillOutcome::Spilled(SpillNotice { stored: SpillLocation::Beginning { bytes: 0, .. }, .. }) => assert!(file < 4),
                SpillOutcome::Spilled(SpillNotice { stored: SpillLocation::Beginning { file: one, bytes }, .. }) => {
                    let stored = store.tmpdir().unwrap().read_text(&one.path).await.unwrap();
                    assert_eq!(stored.len() as u64, bytes);
                    assert!(text.starts_with(&stored) && bytes <= file && bytes + 3 >= file, "{bytes} of {file}");
                }
                SpillOutcome::Spilled(notice) => panic!("{notice}"),
            }
        });
    }

    #[test]
    fn however_output_comes_it_is_the_same(
        chunks in prop::collection::vec(chunk(), 0..12),
        inline in 1..200_usize,
        beginning in 0..60_usize,
        file in 0..400_u64,
    ) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let store = MemoryFs::default();
            let temp = store.tmpdir().unwrap();
            let files = temp_files(&store, TempFilePolicy::Removed);
            let limits = SpillLimits { inline, beginning, file };
            let mut spill = Spill::new(files.clone(), limits);
            for chunk in &chunks {
                spill.write(chunk).await;
            }
            let bytes = chunks.concat();
            let piecemeal = spill.finish("grep").await;
            let whole = Spill::whole(files, limits, &bytes, "grep").await;
            match (piecemeal, whole) {
                (SpillOutcome::Whole(a), SpillOutcome::Whole(b)) => {
                    assert!(bytes.len() <= inline);
                    assert_eq!(a, bytes);
                    assert_eq!(b, bytes);
                }
                (SpillOutcome::Spilled(a), SpillOutcome::Spilled(b)) => {
                    assert!(bytes.len() > inline);
                    assert_eq!((a.size, &a.beginning), (b.size, &b.beginning));
                    assert_eq!(a.size, bytes.len() as u64);
                    // Every invalid byte takes three as a replacement character.
                    assert!(a.beginning.len() <= beginning * 3);
                    for stored in [a.stored, b.stored] {
                        match stored {
                            SpillLocation::Whole(one) => assert_eq!(temp.read_file(&one.path).await.unwrap(), bytes),
                            SpillLocation::Beginning { bytes: 0, .. } => assert!(file < 4),
                            SpillLocation::Beginning { file: one, bytes: stored } => {
                                // The limit may be inside a character.
                                assert!(stored <= file && stored + 3 >= file, "{stored} of {file}");
                                let expected = &bytes[..stored as usize];
                                assert_eq!(temp.read_file(&one.path).await.unwrap(), expected);
                            }
                            SpillLocation::Nowhere(error) => panic!("{error}"),
                        }
                    }
                }
                (a, b) => panic!("{a:?} {b:?}"),
            }
        });
    }
}

#[tokio::test]
async fn a_notice_can_be_had_while_more_comes_and_the_file_has_what_came() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        let files = temp_files(&*store, TempFilePolicy::Removed);
        let mut spill = Spill::new(files.clone(), SpillLimits { inline: 10, beginning: 4, file: 1000 });
        spill.write(b"0123456789").await;
        assert_eq!(spill.notice("grep").await, None, "{name}");
        // Half a character waits for the rest.
        spill.write(b"abc\xc3").await;
        let first = spill.notice("grep").await.unwrap();
        let SpillLocation::Whole(file) = &first.stored else { panic!("{name}: {:?}", first.stored) };
        let temp = store.tmpdir().unwrap();
        assert_eq!((first.size, first.beginning.as_str()), (14, "0123"), "{name}");
        assert_eq!(temp.read_file(&file.path).await.unwrap(), b"0123456789abc", "{name}");
        spill.write(b"\xa9 and the end").await;
        let second = spill.notice("grep").await.unwrap();
        assert_eq!((&second.stored, second.size), (&first.stored, 27), "{name}: it is the same file");
        assert_eq!(temp.read_text(&file.path).await.unwrap(), "0123456789abcé and the end", "{name}");
        assert_eq!(notice(spill.finish("grep").await), second, "{name}");
        assert_eq!(files.remove().await, [], "{name}");
    }
}

#[tokio::test]
async fn temporary_files_of_a_session_have_a_folder_that_goes_with_them() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        let files = |session: &str| TempFiles::in_folder(&*store, session.to_owned(), TempFilePolicy::Removed).unwrap();
        let (one, two) = (files("one"), files("two"));
        let limits = SpillLimits { inline: 1, ..SpillLimits::default() };
        let mut paths = Vec::new();
        for files in [&one, &two] {
            let notice = notice(Spill::whole(files.clone(), limits, b"output", "grep").await);
            let SpillLocation::Whole(file) = notice.stored else { panic!("{:?}", notice.stored) };
            paths.push(file.path);
        }
        let temp = store.tmpdir().unwrap();
        assert!(paths[0].starts_with("one/") && paths[1].starts_with("two/"), "{name}: {paths:?}");
        assert_eq!(one.remove().await, [], "{name}");
        assert!(!temp.exists("one").await.unwrap(), "{name}");
        assert!(temp.exists(&paths[1]).await.unwrap(), "{name}");
        assert_eq!(two.remove().await, [], "{name}");
    }
}
