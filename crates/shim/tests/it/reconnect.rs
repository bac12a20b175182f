//! Nothing is lost and nothing comes twice, wherever a connection is cut.

use std::time::Duration;

use grove_shim::{FromAgent, ShimError, ShimStream};
use tokio::time::timeout;

use crate::fixture::{ShimFixture, within};

/// A small generator, so that a failing run can be repeated.
struct Random(u64);

impl Random {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// The memory of a host across its connections.
struct ReconnectingHost {
    /// The lines for the agent, in order.
    script: Vec<Vec<u8>>,
    heard: Vec<Vec<u8>>,
    acknowledged: u64,
}

impl ReconnectingHost {
    /// Talks for a while. Dropping the future cuts it at any of its waits.
    async fn talk(&mut self, stream: ShimStream, dice: &mut Random) -> Result<(), ShimError> {
        let next = usize::try_from(stream.taken()).unwrap();
        let (mut reader, writer) = stream.split();
        let script = &self.script[next..];
        let writing = async {
            for line in script {
                writer.write(line).await?;
            }
            std::future::pending::<Result<(), ShimError>>().await
        };
        let reading = async {
            if dice.roll(2) == 0 {
                // Otherwise a full spool would have nothing new to send.
                self.acknowledged = self.heard.len() as u64;
                writer.acknowledge(self.acknowledged).await?;
            }
            while self.heard.len() < self.script.len() {
                match reader.read().await? {
                    FromAgent::Line { number, line } => {
                        assert_eq!(number, self.heard.len() as u64 + 1);
                        self.heard.push(line.to_vec());
                    }
                    FromAgent::Ended { end, .. } => panic!("{end:?}"),
                }
                if dice.roll(3) == 0 {
                    self.acknowledged += dice.roll(self.heard.len() as u64 - self.acknowledged + 1);
                    writer.acknowledge(self.acknowledged).await?;
                }
            }
            Ok(())
        };
        tokio::select! {
            ended = writing => ended,
            ended = reading => ended,
        }
    }
}

async fn cut_often(seed: u64) {
    let mut dice = Random(seed);
    let mut fixture = ShimFixture::new();
    fixture.limits.spool_bytes = 1_000_000;
    let script: Vec<Vec<u8>> = (0..1_500_u64)
        .map(|number| {
            let length = if dice.roll(20) == 0 { dice.roll(300_000) } else { dice.roll(300) };
            let mut line = format!("{number}:").into_bytes();
            line.resize(line.len() + usize::try_from(length).unwrap(), b'a' + u8::try_from(number % 26).unwrap());
            line
        })
        .collect();
    let mut stream = Some(fixture.start("exec cat").await);
    let mut host = ReconnectingHost { script, heard: Vec::new(), acknowledged: 0 };
    let mut cuts = 0;
    let mut left_open = Vec::new();
    while host.heard.len() < host.script.len() {
        let connection = match stream.take() {
            Some(stream) => stream,
            // It may request again what it received and did not acknowledge.
            None => {
                let behind = dice.roll(host.heard.len() as u64 - host.acknowledged + 1);
                host.heard.truncate(host.heard.len() - usize::try_from(behind).unwrap());
                fixture.attach(host.heard.len() as u64 + 1).await.unwrap()
            }
        };
        if dice.roll(8) == 0 {
            // It is taken over before it sends anything, and while it stays open.
            left_open.push(connection);
            continue;
        }
        let patience = Duration::from_micros(dice.roll(4_000));
        if let Ok(ended) = timeout(patience, host.talk(connection, &mut dice)).await {
            ended.unwrap();
        }
        cuts += 1;
    }
    assert!(host.heard == host.script, "what came back is not what was said");
    assert!(cuts > 1, "{cuts}");
    for mut taken_over in left_open {
        let closed = loop {
            match within("the reason", taken_over.read()).await {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(closed, ShimError::TakenOver), "{closed}");
    }
    let stream = fixture.attach(host.heard.len() as u64 + 1).await.unwrap();
    assert_eq!(stream.taken(), host.script.len() as u64);
    within("end", stream.end(Duration::from_secs(5))).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_is_cut_anywhere_loses_and_doubles_nothing_in_either_direction() {
    for round in 0..8 {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).unwrap();
        let seed = u64::from_le_bytes(seed) | 1;
        println!("round {round}: seed {seed}");
        within(&format!("seed {seed}"), cut_often(seed)).await;
    }
}
