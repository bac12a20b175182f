//! A server of fixed files on loopback, for downloads.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A running server. Dropping it ends it.
pub(crate) struct FileServer {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FileServer {
    /// Serves these files by their names.
    pub(crate) fn start(files: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Self {
        Self::start_with(|_| files)
    }

    /// The same for files that contain the server's own address.
    pub(crate) fn start_with<F: IntoIterator<Item = (&'static str, Vec<u8>)>>(files: impl FnOnce(&str) -> F) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, stopped) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let files: HashMap<&str, Vec<u8>> = files(&format!("http://{address}")).into_iter().collect();
        let stop = Arc::clone(&stopped);
        let thread = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                // A client that goes away in the middle ends its own download only.
                connection.and_then(|connection| answer(connection, &files)).ok();
            }
        });
        Self { address, stopped, thread: Some(thread) }
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }
}

fn answer(mut connection: TcpStream, files: &HashMap<&str, Vec<u8>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(connection.try_clone()?).lines();
    let request = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let target = request.split(' ').nth(1).unwrap_or_default();
    let name = target.split('?').next().unwrap_or_default().trim_matches('/');
    let (status, body) = match files.get(name) {
        Some(body) => ("200 OK", body.as_slice()),
        None => ("404 Not Found", &b"nothing"[..]),
    };
    write!(
        connection,
        "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    connection.write_all(body)
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        TcpStream::connect(self.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
