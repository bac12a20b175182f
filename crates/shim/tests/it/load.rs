//! Limits: of the spool, of memory, of a line, of the queue for an agent.

use grove_shim::{EndReason, FromAgent, ShimError};

use crate::fixture::{DEADLINE, SHORT, ShimFixture, end, line, peak_memory, until, within};

#[tokio::test]
async fn an_agent_waits_while_the_spool_is_full_and_goes_on_when_there_is_room() {
    let mut fixture = ShimFixture::new();
    fixture.limits.spool_bytes = 100_000;
    // The agent counts beats beside its lines: while it beats, it has the time to write more.
    let beats = "(b=0; while :; do b=$((b+1)); echo $b > beats; sleep 0.005; done) &";
    let lines = "i=0; pad=$(printf %0990d 0); while :; do i=$((i+1)); echo \"$i $pad\"; echo $i > progress; done";
    let script = &format!("{beats} {lines}");
    let stream = fixture.start(script).await;
    drop(stream);
    let count = |name: &str| fixture.read(name).trim().parse::<u64>().unwrap_or_default();
    let progress = || count("progress");
    // About 1,000 bytes a line: in the spool, in the pipe (64 KiB), and in one piece that is read from it.
    until("the spool fills", || progress() > 100).await;
    let stalled = loop {
        let (said, beat) = (progress(), count("beats"));
        until("the agent's beats", || count("beats") > beat + 30).await;
        assert!(progress() < 300, "it goes on without bound: {}", progress());
        if progress() == said {
            break said;
        }
    };
    assert!(stalled > 100, "{stalled}");

    let mut stream = fixture.attach(1).await.unwrap();
    for number in 1..=2_000_u64 {
        let (its, said) = line(&mut stream).await;
        assert_eq!((its, said.split(' ').next()), (number, Some(number.to_string().as_str())));
        stream.acknowledge(number).await.unwrap();
    }
    within("end", stream.end(SHORT)).await.unwrap();
}

#[tokio::test]
async fn a_hundred_thousand_lines_go_through_in_their_order_each_once() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start("seq -f 'line %.0f' 1 100000").await;
    for number in 1..=100_000_u64 {
        let (its, said) = line(&mut stream).await;
        assert!(its == number && said == format!("line {number}"), "{its}: {said}");
        if number.is_multiple_of(100) {
            stream.acknowledge(number).await.unwrap();
        }
    }
    let (number, _) = end(&mut stream).await;
    stream.acknowledge(number).await.unwrap();
}

#[tokio::test]
async fn memory_is_flat_whether_somebody_listens_or_not() {
    let mut fixture = ShimFixture::new();
    fixture.limits.spool_bytes = 64 << 20;
    let stream = fixture.start("yes $(printf %01000d 0) | head -n 200000").await;
    let shim = stream.shim().unwrap();
    drop(stream);
    // The spool fills without a host; the rest comes while it is read.
    let work = fixture.work.clone();
    let spooled = move || {
        let files = std::fs::read_dir(format!("/proc/{shim}/fd")).unwrap();
        let spool = files.filter_map(|file| {
            let path = file.unwrap().path();
            let link = std::fs::read_link(&path).ok()?;
            (link.starts_with(&work) && link.to_string_lossy().contains("spool"))
                .then(|| std::fs::metadata(path).ok())?
        });
        spool.map(|file| file.len()).sum::<u64>()
    };
    until("the spool fills", || spooled() >= 64 << 20).await;
    let mut stream = fixture.attach(1).await.unwrap();
    let mut lines = 0;
    let number = loop {
        match within("the rest", stream.read()).await.unwrap() {
            FromAgent::Line { number, line } => {
                assert_eq!(line.len(), 1_000);
                lines += 1;
                if number.is_multiple_of(1_000) {
                    stream.acknowledge(number).await.unwrap();
                }
            }
            FromAgent::Ended { number, .. } => break number,
        }
    };
    assert_eq!((lines, number), (200_000, 200_001));
    let peak = peak_memory(shim);
    println!("200 MB went through {peak} KiB");
    assert!(peak < 32 << 10, "{peak} KiB");
    stream.acknowledge(number).await.unwrap();
}

#[tokio::test]
async fn a_large_line_goes_through_whole() {
    let fixture = ShimFixture::new();
    let mut stream = fixture.start("head -c 20000000 /dev/zero | tr '\\0' x; echo; cat").await;
    assert_eq!(line(&mut stream).await.1.len(), 20_000_000);
    let large = vec![b'y'; 10_000_000];
    stream.write(&large).await.unwrap();
    let (number, said) = line(&mut stream).await;
    assert!(said.as_bytes() == large);
    stream.acknowledge(number).await.unwrap();
    within("end", stream.end(DEADLINE)).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_says_a_line_without_end_is_ended_and_it_is_said_why() {
    let mut fixture = ShimFixture::new();
    fixture.limits.line_bytes = 100_000;
    let mut stream = fixture.start("echo before; yes | tr -d '\\n'").await;
    assert_eq!(line(&mut stream).await, (1, "before".to_owned()));
    let (number, ended) = end(&mut stream).await;
    assert_eq!((number, ended.reason), (2, EndReason::LineTooLong));
    assert_eq!(ended.message.unwrap(), "the agent said a line of more than 100000 bytes");
}

#[tokio::test]
async fn an_agent_that_does_not_read_costs_its_host_the_connection_and_nothing_else() {
    let mut fixture = ShimFixture::new();
    fixture.limits.stdin_bytes = 1_000_000;
    let mut stream = fixture.start("while ! test -e go; do sleep 0.01; done; wc -l; cat").await;
    let said = vec![b'x'; 99_999];
    let mut sent = 0;
    // The pipe takes some, the shim the rest, until it is full.
    while sent < 100 && stream.write(&said).await.is_ok() {
        sent += 1;
    }
    let closed = within("the reason", stream.read()).await.unwrap_err();
    assert!(matches!(closed, ShimError::StdinFull { waiting } if waiting > 800_000), "{closed}");
    let stream = fixture.attach(1).await.unwrap();
    let taken = stream.taken();
    assert!((9..=11).contains(&taken), "{taken}");
    std::fs::write(fixture.work.join("go"), "").unwrap();
    let (mut reader, writer) = stream.split();
    writer.end(DEADLINE).await.unwrap();
    match within("the count", reader.read()).await.unwrap() {
        FromAgent::Line { line, .. } => assert_eq!(line, taken.to_string().as_bytes(), "it got what was taken, once"),
        other => panic!("{other:?}"),
    }
}
