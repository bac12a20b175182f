//! The full output of a command, for output that is larger than an agent is given.

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use crate::spills::SpillWriter;

/// The number of chunks that may wait to be stored before the command has to.
const CHUNKS: usize = 16;

/// The store of a command's output, beside the part that its terminal keeps.
#[derive(Clone, Debug)]
pub(super) struct OutputSpill {
    questions: mpsc::Sender<oneshot::Sender<Option<String>>>,
}

impl OutputSpill {
    /// Starts storing the chunks of the channel, until the screen is dropped and the channel is empty.
    pub(super) fn begin(writer: Box<dyn SpillWriter>) -> (Self, mpsc::Sender<Vec<u8>>) {
        let (shown, chunks) = mpsc::channel(CHUNKS);
        let (sender, questions) = mpsc::channel(1);
        tokio::spawn(keep(writer, chunks, questions));
        (Self { questions: sender }, shown)
    }

    /// The notice that replaces the output shown before this call, if that is too large.
    pub(super) async fn notice(&self) -> Option<String> {
        let (answer, notice) = oneshot::channel();
        self.questions.send(answer).await.ok()?;
        notice.await.ok()?
    }
}

async fn keep(
    mut writer: Box<dyn SpillWriter>,
    mut chunks: mpsc::Receiver<Vec<u8>>,
    mut questions: mpsc::Receiver<oneshot::Sender<Option<String>>>,
) {
    let mut lines = CrLfFilter::default();
    let (mut comes, mut is_open) = (true, true);
    while comes || is_open {
        tokio::select! {
            chunk = chunks.recv(), if comes => comes = take(&mut *writer, &mut lines, chunk).await,
            question = questions.recv(), if is_open => {
                let Some(answer) = question else {
                    is_open = false;
                    continue;
                };
                // Output from before the question belongs to the answer; output that comes meanwhile does not delay it.
                for _ in 0..=chunks.len() {
                    match chunks.try_recv() {
                        Ok(chunk) => comes = take(&mut *writer, &mut lines, Some(chunk)).await,
                        Err(TryRecvError::Disconnected) if comes => comes = take(&mut *writer, &mut lines, None).await,
                        Err(TryRecvError::Disconnected | TryRecvError::Empty) => break,
                    }
                }
                // The caller may have gone meanwhile.
                answer.send(writer.notice().await).ok();
            }
        }
    }
}

/// Stores a chunk, or the end. Returns whether more may come.
async fn take(writer: &mut dyn SpillWriter, lines: &mut CrLfFilter, chunk: Option<Vec<u8>>) -> bool {
    match chunk {
        Some(chunk) => writer.write(&lines.more(chunk)).await,
        None => {
            writer.write(lines.rest()).await;
            return false;
        }
    }
    true
}

/// Turns the CRLF line ends of a terminal into LF.
#[derive(Debug, Default)]
struct CrLfFilter {
    /// The last byte was a CR.
    half: bool,
}

impl CrLfFilter {
    /// The bytes with LF line ends, without a CR at their end.
    fn more(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let mut plain = Vec::with_capacity(bytes.len() + 1);
        for byte in bytes {
            if self.half && byte != b'\n' {
                plain.push(b'\r');
            }
            self.half = byte == b'\r';
            if !self.half {
                plain.push(byte);
            }
        }
        plain
    }

    /// The CR that was held back, when nothing more comes.
    fn rest(&mut self) -> &'static [u8] {
        if std::mem::take(&mut self.half) { b"\r" } else { b"" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_lines_are_plain_wherever_the_bytes_are_cut() {
        let shown = b"a\r\nb\r\r\nc\rd\n\r";
        for cut in 0..=shown.len() {
            let mut lines = CrLfFilter::default();
            let mut plain = lines.more(shown[..cut].to_vec());
            plain.extend(lines.more(shown[cut..].to_vec()));
            plain.extend(lines.rest());
            assert_eq!(plain, b"a\nb\r\nc\rd\n\r", "{cut}");
        }
    }
}
