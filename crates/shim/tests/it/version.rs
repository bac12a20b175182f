//! Version 1 on the wire, byte for byte: a shim that was started before an upgrade of the host speaks it forever.

use std::os::unix::fs::DirBuilderExt;

use grove_shim::{EndReason, FromAgent, ShimError, ShimStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::fixture::{ShimFixture, is_alive, until, within};

fn frame(kind: u8, number: Option<u64>, body: &str) -> Vec<u8> {
    let number = number.map(|number| number.to_be_bytes().to_vec()).unwrap_or_default();
    let length = u32::try_from(1 + number.len() + body.len()).unwrap();
    [&length.to_be_bytes()[..], &[kind], &number, body.as_bytes()].concat()
}

async fn expect(stream: &mut UnixStream, expected: &[u8]) {
    let mut heard = vec![0; expected.len()];
    within("what is expected", stream.read_exact(&mut heard)).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&heard), String::from_utf8_lossy(expected));
}

/// A listener in the place of a shim.
fn listen(fixture: &ShimFixture) -> UnixListener {
    std::fs::DirBuilder::new().mode(0o700).create(&fixture.shim).unwrap();
    UnixListener::bind(fixture.shim.join("socket")).unwrap()
}

#[tokio::test]
async fn a_host_speaks_to_a_newer_shim_as_it_can_and_skips_what_it_does_not_know() {
    let fixture = ShimFixture::new();
    let listener = listen(&fixture);
    let shim = async {
        let mut stream = listener.accept().await.unwrap().0;
        stream.write_all(&frame(b'G', None, r#"{"protocol":"grove-shim","version":9,"new":1}"#)).await.unwrap();
        expect(&mut stream, &frame(b'H', None, r#"{"version":1,"from":3}"#)).await;
        let welcome = r#"{"agent":7,"taken":4,"oldest":2,"next":4,"lineBytes":1000,"new":{}}"#;
        stream.write_all(&frame(b'W', None, welcome)).await.unwrap();
        stream.write_all(&frame(b'?', Some(1), "new")).await.unwrap();
        stream.write_all(&frame(b'L', Some(3), "{}")).await.unwrap();
        expect(&mut stream, &frame(b'w', Some(5), "five")).await;
        expect(&mut stream, &frame(b'a', Some(3), "")).await;
        expect(&mut stream, &frame(b'e', None, r#"{"graceMs":1500}"#)).await;
        stream.write_all(&frame(b'T', Some(5), "")).await.unwrap();
        stream.write_all(&frame(b'E', Some(4), r#"{"reason":"eaten","exit":{"code":1}}"#)).await.unwrap();
    };
    let host = async {
        let mut stream = ShimStream::attach(&fixture.shim, 3).await.unwrap();
        assert_eq!((stream.agent(), stream.taken()), (Some(7), 4));
        let FromAgent::Line { number: 3, line } = stream.read().await.unwrap() else { panic!("no line") };
        assert_eq!(line, &b"{}"[..]);
        assert_eq!(stream.write(b"five").await.unwrap(), 5);
        stream.acknowledge(3).await.unwrap();
        let (mut reader, writer) = stream.split();
        writer.end(std::time::Duration::from_millis(1_500)).await.unwrap();
        let FromAgent::Ended { number: 4, end } = reader.read().await.unwrap() else { panic!("no end") };
        assert_eq!((end.reason, end.exit.unwrap().code, writer.taken()), (EndReason::Other, Some(1), 5));
        assert!(matches!(reader.read().await, Err(ShimError::Broken)));
    };
    within("both", async { tokio::join!(shim, host) }).await;
}

#[tokio::test]
async fn what_is_no_shim_is_not_spoken_to() {
    let fixture = ShimFixture::new();
    let listener = listen(&fixture);
    let stranger = async {
        let mut stream = listener.accept().await.unwrap().0;
        stream.write_all(&frame(b'G', None, r#"{"protocol":"other","version":1}"#)).await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        assert!(heard.is_empty());
    };
    let host = async {
        let refused = ShimStream::attach(&fixture.shim, 1).await.unwrap_err();
        assert!(matches!(refused, ShimError::Nonsense(_)), "{refused}");
    };
    within("both", async { tokio::join!(stranger, host) }).await;
}

#[tokio::test]
async fn a_shim_understands_a_host_of_version_1() {
    let fixture = ShimFixture::new();
    let stream = fixture.start("cat").await;
    let (shim, agent) = (stream.shim().unwrap(), stream.agent().unwrap());
    drop(stream);
    let mut host = UnixStream::connect(fixture.shim.join("socket")).await.unwrap();
    expect(&mut host, &frame(b'G', None, r#"{"protocol":"grove-shim","version":1}"#)).await;
    host.write_all(&frame(b'H', None, r#"{"version":1,"from":1,"new":true}"#)).await.unwrap();
    let welcome = format!(r#"{{"agent":{agent},"taken":0,"oldest":1,"next":1,"lineBytes":67108864}}"#);
    expect(&mut host, &frame(b'W', None, &welcome)).await;
    host.write_all(&frame(b'w', Some(1), "hello")).await.unwrap();
    expect(&mut host, &frame(b'T', Some(1), "")).await;
    expect(&mut host, &frame(b'L', Some(1), "hello")).await;
    host.write_all(&frame(b'w', Some(1), "again")).await.unwrap();
    host.write_all(&frame(b'?', None, "new")).await.unwrap();
    host.write_all(&frame(b'a', Some(1), "")).await.unwrap();
    host.write_all(&frame(b'e', None, r#"{"graceMs":5000}"#)).await.unwrap();
    let end = r#"{"reason":"told","exit":{"code":0},"message":"the host said so"}"#;
    expect(&mut host, &frame(b'E', Some(2), end)).await;
    host.write_all(&frame(b'a', Some(2), "")).await.unwrap();
    until("the shim ends", || !is_alive(shim)).await;
}

#[tokio::test]
async fn a_host_of_a_version_that_a_shim_does_not_speak_is_told_so() {
    let fixture = ShimFixture::new();
    let _stream = fixture.start("cat").await;
    let mut host = UnixStream::connect(fixture.shim.join("socket")).await.unwrap();
    expect(&mut host, &frame(b'G', None, r#"{"protocol":"grove-shim","version":1}"#)).await;
    host.write_all(&frame(b'H', None, r#"{"version":2,"from":1}"#)).await.unwrap();
    let closed = r#"{"code":"version","message":"version 2 is not spoken here, 1 is"}"#;
    expect(&mut host, &frame(b'C', None, closed)).await;
}

#[tokio::test]
async fn a_write_that_leaves_one_out_is_refused() {
    let fixture = ShimFixture::new();
    let _stream = fixture.start("cat").await;
    let mut host = UnixStream::connect(fixture.shim.join("socket")).await.unwrap();
    host.write_all(&frame(b'H', None, r#"{"version":1,"from":1}"#)).await.unwrap();
    host.write_all(&frame(b'w', Some(2), "two")).await.unwrap();
    let mut heard = String::new();
    within("the reason", host.read_to_string(&mut heard)).await.ok();
    assert!(heard.contains("write 2 instead of 1"), "{heard}");
}
