//! Terminals of the real program, with real programs on them.

use std::time::Duration;

use grove_testkit::ahp::Client;
use serde_json::json;
use tokio::time::timeout;

use crate::support::*;

const T: &str = "ahp-terminal:/t";
const DEADLINE: Duration = Duration::from_secs(120);
/// The time in which a program shows what it was asked for.
const SHOWN: Duration = Duration::from_secs(15);

async fn with_terminal(host: &Host) -> Client {
    let mut client = host.ahp("a").await;
    let folder = file_uri(&host.place.home());
    let create =
        json!({"channel": T, "claim": {"kind": "client", "clientId": "a"}, "cwd": folder, "cols": 80, "rows": 24});
    client.ask("createTerminal", create).await.unwrap();
    client.subscribe(T).await.unwrap();
    client
}

async fn types(client: &mut Client, data: &str) {
    client.dispatch(T, json!({"type": "terminal/input", "data": data})).await;
}

/// Waits for output that contains a text.
async fn shows(client: &mut Client, wanted: &str) {
    let has = |client: &Client| {
        let data = client.envelopes.iter().filter_map(|envelope| envelope.action["data"].as_str());
        data.collect::<String>().contains(wanted)
    };
    timeout(SHOWN, client.until(has))
        .await
        .unwrap_or_else(|_| panic!("{wanted:?} is not shown: {:?}", client.states[T]));
}

#[tokio::test]
async fn a_full_screen_program_draws_takes_keys_and_follows_the_size() {
    let host = Host::start();
    host.place.write("home/lines", (1..=500).map(|line| format!("line {line}\n")).collect::<String>());
    let mut client = with_terminal(&host).await;
    let has = |program: &str| {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
    };
    // `less` is everywhere; an editor may be missing.
    types(&mut client, "TERM=xterm less lines\r").await;
    shows(&mut client, "line 23").await;
    types(&mut client, "G").await;
    shows(&mut client, "line 500").await;
    client.dispatch(T, json!({"type": "terminal/resized", "cols": 100, "rows": 40})).await;
    // A key that comes while it draws for the new size is lost to it.
    shows(&mut client, "\u{1b}[1m~").await;
    types(&mut client, "q").await;
    types(&mut client, "stty size; echo left-$((1+1))\r").await;
    shows(&mut client, "40 100").await;
    shows(&mut client, "left-2").await;
    if has("vim") {
        types(&mut client, "TERM=xterm vim -u NONE -N written\r").await;
        shows(&mut client, "[New").await;
        types(&mut client, "ihello from a terminal").await;
        shows(&mut client, "-- INSERT --").await;
        types(&mut client, "\u{1b}").await;
        types(&mut client, ":wq\r").await;
        shows(&mut client, "1L, 22").await;
        let written = std::fs::read_to_string(host.place.home().join("written")).unwrap();
        assert_eq!(written, "hello from a terminal\n");
    }
    timeout(Duration::from_millis(500), client.until(|_| false)).await.ok();
    client.must_agree(T).await;
}

#[tokio::test]
async fn a_hundred_megabytes_of_output_take_bounded_memory() {
    const BYTES: usize = 100_000_000;
    let host = Host::start();
    let mut client = with_terminal(&host).await;
    types(&mut client, "stty -echo\r").await;
    let before = host.memory("VmHWM");
    types(&mut client, &format!("head -c {BYTES} /dev/zero | tr '\\0' '\\136'; echo end-$((1+1))\r")).await;
    let (mut seen, mut frames) = (0, 0);
    let reads = async {
        while seen < BYTES {
            let text = client.frame().await.unwrap();
            // Neither a prompt nor the echo of the command has this character.
            seen += text.matches('^').count();
            frames += 1;
        }
    };
    timeout(DEADLINE, reads).await.unwrap_or_else(|_| panic!("{seen} bytes in {frames} messages"));
    let grown = host.memory("VmHWM").saturating_sub(before);
    assert!(grown < 48 << 20, "{} MiB more for {} MB of output", grown >> 20, BYTES / 1_000_000);
    assert_eq!(seen, BYTES, "nothing is lost and nothing comes twice");
}
