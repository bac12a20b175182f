//! The visible paths.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use grove_work::{FileAccess, FileError, Policy, Roots};

use crate::test_folder::TestFolder;

/// The message about a path, without the path itself.
async fn said(policy: &Policy, path: &Path) -> &'static str {
    match policy.allowed(path, FileAccess::Read).await {
        Ok(_) => "allowed",
        Err(FileError::Outside { .. }) => "outside",
        Err(FileError::NotFound { .. }) => "missing",
        Err(FileError::PermissionDenied { .. }) => "denied",
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

#[tokio::test]
async fn what_lies_inside_a_root_is_allowed_by_its_real_path() {
    let place = TestFolder::new();
    let file = place.write("work/deep/file", "f");
    symlink(place.path("work/deep"), place.path("work/link")).unwrap();
    let policy = place.policy();
    for path in ["work/deep/file", "work/link/file", "work/deep/../deep/./file", "work/../work/deep/file"] {
        assert_eq!(policy.allowed(&place.path(path), FileAccess::Read).await.unwrap(), file, "{path}");
    }
}

#[tokio::test]
async fn neither_dots_nor_links_lead_out_of_a_root() {
    let place = TestFolder::new();
    place.write("outside/file", "o");
    place.write("work-not/file", "n");
    place.folder("work/deep");
    symlink(place.path("outside"), place.path("work/way-out")).unwrap();
    symlink("/", place.path("work/root")).unwrap();
    let policy = place.policy();
    for path in [
        "work/..",
        "work/../outside/file",
        "work/deep/../../outside/file",
        "work/way-out",
        "work/way-out/file",
        "work/way-out/../work",
        "work/root/etc",
        "work-not/file",
        "/etc/passwd",
        "/",
    ] {
        let expected = if path == "work/way-out/../work" { "allowed" } else { "outside" };
        assert_eq!(said(&policy, &place.path(path)).await, expected, "{path}");
    }
}

#[tokio::test]
async fn a_root_may_be_a_link() {
    let place = TestFolder::new();
    place.write("real/file", "f");
    symlink(place.path("real"), place.path("root")).unwrap();
    let policy = Policy::new(Roots { read: vec![place.path("root")], ..Roots::default() }, Vec::new());
    assert_eq!(said(&policy, &place.path("root/file")).await, "allowed");
    assert_eq!(said(&policy, &place.path("real/file")).await, "allowed");
}

#[tokio::test]
async fn what_is_private_is_never_shown_even_inside_a_root() {
    let place = TestFolder::new();
    place.write("work/private/deep/token", "t");
    place.write("work/private-not/file", "f");
    symlink(place.path("work/private"), place.path("work/link")).unwrap();
    let policy = place.policy();
    for path in ["work/private", "work/private/deep/token", "work/link", "work/link/deep/token", "work/private/missing"]
    {
        assert_eq!(said(&policy, &place.path(path)).await, "outside", "{path}");
    }
    assert_eq!(said(&policy, &place.path("work/private-not/file")).await, "allowed");
}

#[tokio::test]
async fn a_private_folder_behind_a_link_is_private_under_its_real_name() {
    let place = TestFolder::new();
    place.write("work/real/token", "t");
    symlink(place.path("work/real"), place.path("work/private")).unwrap();
    assert_eq!(said(&place.policy(), &place.path("work/real/token")).await, "outside");
}

#[tokio::test]
async fn a_hard_link_to_a_private_file_is_private_and_other_hard_links_are_not() {
    let place = TestFolder::new();
    let (token, file) = (place.write("work/private/deep/token", "t"), place.write("work/file", "f"));
    fs::hard_link(token, place.path("work/innocent")).unwrap();
    fs::hard_link(file, place.path("work/linked")).unwrap();
    let policy = place.policy();
    assert_eq!(said(&policy, &place.path("work/innocent")).await, "outside");
    assert_eq!(said(&policy, &place.path("work/linked")).await, "allowed");
}

#[tokio::test]
async fn files_that_describe_processes_are_never_shown() {
    let place = TestFolder::new();
    symlink("/proc/self", place.path("me")).unwrap();
    let policy = Policy::new(Roots::default(), vec!["/".into()]);
    assert_eq!(said(&policy, Path::new("/etc/hostname")).await, "allowed");
    for path in ["/proc", "/proc/self/environ", "/proc/self/root/proc/1/environ", "/proc/no-such-process"] {
        assert_eq!(said(&policy, Path::new(path)).await, "outside", "{path}");
    }
    assert_eq!(said(&policy, &place.path("me/environ")).await, "outside");
}

#[tokio::test]
async fn what_is_missing_is_said_only_where_the_nearest_folder_above_may_be_seen() {
    let place = TestFolder::new();
    place.write("work/file", "f");
    place.folder("outside");
    symlink(place.path("outside"), place.path("work/way-out")).unwrap();
    let policy = place.policy();
    for path in ["work/missing", "work/missing/deep/er", "work/file/below"] {
        assert_eq!(said(&policy, &place.path(path)).await, "missing", "{path}");
    }
    for path in ["missing", "outside/missing", "work/way-out/missing", "work/../missing", "/missing"] {
        assert_eq!(said(&policy, &place.path(path)).await, "outside", "{path}");
    }
}

#[tokio::test]
async fn a_link_that_leads_nowhere_does_not_tell_what_is_missing_outside() {
    let place = TestFolder::new();
    place.write("outside/there", "o");
    place.folder("work/deep");
    symlink(place.path("outside/there"), place.path("work/to-there")).unwrap();
    symlink(place.path("outside/missing"), place.path("work/to-missing")).unwrap();
    symlink("../../outside/missing", place.path("work/deep/relative")).unwrap();
    symlink("to-missing", place.path("work/twice")).unwrap();
    symlink("missing", place.path("work/inside")).unwrap();
    symlink("loop", place.path("work/loop")).unwrap();
    let policy = place.policy();
    for path in
        ["work/to-there", "work/to-missing", "work/to-missing/x", "work/deep/relative", "work/twice", "work/loop"]
    {
        assert_eq!(said(&policy, &place.path(path)).await, "outside", "{path}");
    }
    assert_eq!(said(&policy, &place.path("work/inside")).await, "missing");
}

#[tokio::test]
async fn browsing_and_reading_have_roots_of_their_own() {
    let place = TestFolder::new();
    let [browse, read, work] = ["browse", "read", "work"].map(|folder| place.folder(folder));
    let roots = Roots { browse: vec![browse.clone()], read: vec![read.clone()], private: Vec::new() };
    let policy = Policy::new(roots, vec![work.clone()]);
    for (folder, expected) in [(browse, [true, false, true]), (read, [false, true, true]), (work, [true, true, true])] {
        for (access, expected) in [FileAccess::Browse, FileAccess::Read, FileAccess::See].into_iter().zip(expected) {
            let allowed = policy.allowed(&folder, access).await.is_ok();
            assert_eq!(allowed, expected, "{} {access:?}", folder.display());
        }
    }
}

#[tokio::test]
async fn a_folder_that_the_system_keeps_shut_is_said_to_be_so() {
    let place = TestFolder::new();
    place.write("work/shut/file", "f");
    let shut = place.path("work/shut");
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    // Nothing is forbidden for root.
    let expected = if fs::read_dir(&shut).is_ok() { "allowed" } else { "denied" };
    let said = said(&place.policy(), &shut.join("file")).await;
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(said, expected);
}
