//! Clients' access to the file system.

use std::os::unix::fs::symlink;
use std::path::Path;

use grove_testkit::Client;
use serde_json::{Value, json};

use crate::support::*;

async fn browse(client: &mut Client, path: &Path) -> Value {
    client.get("browseDirectory", json!({"uri": file_uri(path)})).await["entries"].clone()
}

/// The message of a refused folder.
async fn browse_refused(client: &mut Client, path: impl AsRef<Path>) -> String {
    let error = client.refused("browseDirectory", json!({"uri": file_uri(path.as_ref())})).await;
    assert_eq!(error.code, -32006, "{}", path.as_ref().display());
    error.message
}

async fn read_refused(client: &mut Client, path: impl AsRef<Path>) -> String {
    let error = client.refused("fetchContent", json!({"uri": file_uri(path.as_ref())})).await;
    assert_eq!(error.code, -32006, "{}", path.as_ref().display());
    error.message
}

#[tokio::test]
async fn the_home_folder_can_be_browsed_before_any_session_exists() {
    let host = Host::start();
    host.place.write("home/notes.txt", "n");
    host.place.write("home/project/src/main.rs", "m");
    symlink(host.place.home().join("project"), host.place.home().join("shortcut")).unwrap();
    symlink("nowhere", host.place.home().join("dangling")).unwrap();
    let mut client = host.connect("a").await;
    let home = client.initialize(&[]).await.default_directory.unwrap();
    let entries = client.get("browseDirectory", json!({"uri": home})).await;
    assert_eq!(
        entries,
        json!({"entries": [
            {"name": "dangling", "type": "file"},
            {"name": "notes.txt", "type": "file"},
            {"name": "project", "type": "directory"},
            {"name": "shortcut", "type": "directory"},
        ]})
    );
    let inside = json!([{"name": "main.rs", "type": "file"}]);
    assert_eq!(browse(&mut client, &host.place.home().join("project/src")).await, inside);
    assert_eq!(browse(&mut client, &host.place.home().join("shortcut/src")).await, inside, "a link that stays inside");
    assert_eq!(browse(&mut client, &host.place.home().join("project/../project/src")).await, inside);
}

#[tokio::test]
async fn a_sessions_working_directory_can_be_browsed_as_long_as_the_session_is_there() {
    let host = Host::start();
    let folder = host.place.write("work/file", "f").parent().unwrap().to_owned();
    let mut client = host.client("a").await;
    browse_refused(&mut client, &folder).await;
    client.get("createSession", json!({"session": S, "workingDirectory": file_uri(&folder)})).await;
    assert_eq!(browse(&mut client, &folder).await, json!([{"name": "file", "type": "file"}]));
    client.get("disposeSession", json!({"session": S})).await;
    browse_refused(&mut client, &folder).await;
}

#[tokio::test]
async fn nothing_outside_the_roots_can_be_browsed() {
    let host = Host::start();
    let outside = host.place.write("outside/secret", "s").parent().unwrap().to_owned();
    let home = host.place.home();
    symlink(&outside, home.join("way-out")).unwrap();
    symlink("/", home.join("root")).unwrap();
    let mut client = host.client("a").await;
    let paths = [
        "/etc".into(),
        "/".into(),
        "/proc/self".into(),
        outside.clone(),
        home.join(".."),
        home.join("../outside"),
        home.join("../../../../../../../etc"),
        home.join("way-out"),
        home.join("way-out/.."),
        home.join("root/etc"),
        // Another folder whose name begins with that of an allowed one.
        host.place.write("home-not/file", "f").parent().unwrap().to_owned(),
    ];
    for path in paths {
        let message = browse_refused(&mut client, &path).await;
        assert!(message.contains("outside the folders"), "{message}");
    }
    let encoded = format!("{}/%2e%2e/outside", file_uri(&home));
    assert_eq!(client.refused("browseDirectory", json!({"uri": encoded})).await.code, -32006);
}

#[tokio::test]
async fn what_exists_outside_the_roots_is_not_told() {
    let host = Host::start();
    host.place.write("outside/there", "s");
    let home = host.place.home();
    symlink(host.place.path("outside"), home.join("way-out")).unwrap();
    let mut client = host.client("a").await;
    for (there, missing) in [
        (host.place.path("outside/there"), host.place.path("outside/missing")),
        (home.join("way-out/there"), home.join("way-out/missing")),
        (home.join("../outside/there"), home.join("../outside/missing")),
        (host.place.data().join("token"), host.place.data().join("missing")),
    ] {
        let told = [browse_refused(&mut client, &there).await, browse_refused(&mut client, &missing).await];
        let [there, missing] =
            told.map(|message| message.replace("there", "X").replace("missing", "X").replace("token", "X"));
        assert_eq!(there, missing);
    }
}

#[tokio::test]
async fn a_file_and_a_missing_folder_are_refused() {
    let host = Host::start();
    let file = host.place.write("home/file", "f");
    let mut client = host.client("a").await;
    let message = browse_refused(&mut client, &file).await;
    assert!(message.contains("not a folder"), "{message}");
    let message = browse_refused(&mut client, host.place.home().join("missing")).await;
    assert!(message.contains("cannot be opened"), "{message}");
    for uri in ["relative", "", "https://elsewhere.example/", "file://elsewhere.example/etc", "file:///a%00b"] {
        let error = client.refused("browseDirectory", json!({"uri": uri})).await;
        assert_eq!(error.code, -32602, "{uri}: {error}");
    }
}

#[tokio::test]
async fn groves_own_folders_are_never_shown_even_inside_a_root() {
    let place = TestHome::new();
    let data = place.home().join("grove-data");
    let config = place.write("home/.config/grove/grove.toml", "replay-actions = 100").parent().unwrap().to_owned();
    place.write("home/.config/grove/deep/er/file", "f");
    let host = place.serve(&["--data-dir", data.to_str().unwrap(), "--read-root", place.home().to_str().unwrap()]);
    symlink(&data, place.home().join("link")).unwrap();
    let mut client = host.client("a").await;
    // Not even a session that works in them gives access.
    for (n, folder) in [&data, &config].into_iter().enumerate() {
        let create = json!({"session": format!("scripted:/s{n}"), "workingDirectory": folder});
        client.get("createSession", create).await;
    }
    for folder in [data.clone(), config.clone(), config.join("deep"), config.join("deep/er"), place.home().join("link")]
    {
        let message = browse_refused(&mut client, &folder).await;
        assert!(message.contains("outside the folders"), "{message}");
    }
    let files = ["token", "host.json", "lock"].map(|name| data.join(name));
    for file in files.into_iter().chain([
        config.join("grove.toml"),
        config.join("deep/er/file"),
        place.home().join("link/token"),
    ]) {
        assert!(file.exists());
        read_refused(&mut client, &file).await;
    }
    // Files beside them are shown.
    assert_eq!(
        browse(&mut client, &place.home().join(".config")).await,
        json!([{"name": "grove", "type": "directory"}])
    );
}

#[tokio::test]
async fn a_configuration_file_elsewhere_is_private_too() {
    let place = TestHome::new();
    let config = place.write("home/my-grove.toml", "replay-actions = 100");
    let home = place.home();
    let host = place.serve(&["--config", config.to_str().unwrap(), "--read-root", home.to_str().unwrap()]);
    let beside = place.write("home/beside", "b");
    let mut client = host.client("a").await;
    read_refused(&mut client, &config).await;
    assert_eq!(client.get("fetchContent", json!({"uri": file_uri(&beside)})).await["data"], "b");
}

#[tokio::test]
async fn browse_roots_take_the_place_of_the_home_folder() {
    let place = TestHome::new();
    let one = place.write("one/file", "1").parent().unwrap().to_owned();
    let two = place.write("two/file", "2").parent().unwrap().to_owned();
    let host = place.serve(&["--browse-root", one.to_str().unwrap(), "--browse-root", two.to_str().unwrap()]);
    let mut client = host.client("a").await;
    for folder in [&one, &two] {
        assert_eq!(browse(&mut client, folder).await, json!([{"name": "file", "type": "file"}]));
    }
    browse_refused(&mut client, place.home()).await;
}

#[tokio::test]
async fn a_default_directory_is_offered_and_can_be_browsed() {
    let place = TestHome::new();
    let folder = place.write("with space/file", "f").parent().unwrap().to_owned();
    let host = place.serve(&["--default-directory", folder.to_str().unwrap()]);
    let mut client = host.connect("a").await;
    let offered = client.initialize(&[]).await.default_directory.unwrap();
    assert_eq!(offered, file_uri(&folder).replace(' ', "%20"));
    let entries = client.get("browseDirectory", json!({"uri": offered})).await;
    assert_eq!(entries, json!({"entries": [{"name": "file", "type": "file"}]}));
    browse(&mut client, &place.home()).await;
}

#[tokio::test]
async fn files_inside_a_sessions_working_directory_can_be_read_and_no_others() {
    let host = Host::start();
    let text = host.place.write("work/deep/text", "grün");
    let bytes = host.place.write("work/bytes", [0xff, 0x00]);
    let outside = host.place.write("outside", "o");
    let at_home = host.place.write("home/at-home", "h");
    let work = host.place.path("work");
    symlink(&outside, work.join("way-out")).unwrap();
    let mut client = host.client("a").await;
    read_refused(&mut client, &text).await;
    client.get("createSession", json!({"session": S, "workingDirectory": work})).await;

    let content = client.get("fetchContent", json!({"uri": file_uri(&text)})).await;
    assert_eq!(content, json!({"data": "grün", "encoding": "utf-8"}));
    let content = client.get("fetchContent", json!({"uri": file_uri(&bytes)})).await;
    assert_eq!(content, json!({"data": "/wA=", "encoding": "base64"}));

    let refused = [outside, at_home, "/etc/passwd".into(), work.join("way-out"), work.join("../outside")];
    for path in refused {
        let message = read_refused(&mut client, &path).await;
        assert!(message.contains("outside the folders"), "{message}");
    }
    assert!(read_refused(&mut client, work.join("missing")).await.contains("cannot be opened"));
    assert!(read_refused(&mut client, &work).await.contains("not a file"));
    for uri in ["relative", "https://elsewhere.example/x", ""] {
        assert_eq!(client.refused("fetchContent", json!({"uri": uri})).await.code, -32602, "{uri}");
    }
    client.get("disposeSession", json!({"session": S})).await;
    read_refused(&mut client, &text).await;
}
