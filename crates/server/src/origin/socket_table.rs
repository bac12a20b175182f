//! The tables of TCP sockets in `/proc/net`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The tables, by the family of the socket. A socket of either family can have an IPv4 address.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The bytes of a line. The kernel writes fewer.
const MAX_LINE: usize = 512;

/// A socket of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketRow {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) uid: u32,
    /// Names the socket among the descriptors of processes; 0 if no process has it any more.
    pub(super) inode: u64,
}

impl SocketRow {
    /// Parses a line of the tables; `None` for their heads.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (local, remote) = (address(fields.nth(1)?)?, address(fields.next()?)?);
        // State, queues, timer and retransmits are between.
        let uid = fields.nth(4)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Self { local, remote, uid, inode })
    }
}

/// Parses an address: the kernel writes each 32-bit word of it in the byte order of the machine.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

/// An address without the IPv6 form of an IPv4 address, and without a scope.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The socket of this machine that is connected from one address to the other, if there is one.
pub(super) fn find(from: SocketAddr, to: SocketAddr) -> io::Result<Option<SocketRow>> {
    let (from, to) = (canonical(from), canonical(to));
    for table in TABLES {
        let file = match File::open(table) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if let Some(row) = find_in(BufReader::new(file), from, to)? {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

fn find_in(mut table: impl BufRead, from: SocketAddr, to: SocketAddr) -> io::Result<Option<SocketRow>> {
    let mut line = String::with_capacity(MAX_LINE);
    loop {
        line.clear();
        if table.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let row = SocketRow::parse(&line).filter(|row| row.local == from && row.remote == to);
        if row.is_some() {
            return Ok(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Tables of a machine with little-endian words.
    #[cfg(target_endian = "little")]
    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0 100 0 0 10 0
   1: 0100007F:D431 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 222 2 0 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 333 2 0 20 4 30 10 -1
";
    #[cfg(target_endian = "little")]
    const TCP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:D432 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000     0        0 444 1
   1: 0000000000000000FFFF00000100007F:D433 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 555 1
";

    #[cfg(target_endian = "little")]
    #[test]
    fn the_socket_at_the_other_end_of_a_connection_is_found_by_both_addresses() {
        let find = |table: &str, from: &str, to: &str| {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            find_in(table.as_bytes(), from, to).unwrap().map(|row| (row.uid, row.inode))
        };
        assert_eq!(find(TCP, "127.0.0.1:54321", "127.0.0.1:8080"), Some((1000, 222)));
        assert_eq!(find(TCP, "127.0.0.1:8080", "127.0.0.1:54321"), Some((1000, 333)), "the host's own end");
        assert_eq!(find(TCP, "127.0.0.1:54321", "127.0.0.2:8080"), None);
        assert_eq!(find(TCP6, "[::1]:54322", "[::1]:8080"), Some((0, 444)));
        assert_eq!(find(TCP6, "127.0.0.1:54323", "127.0.0.1:8080"), Some((1000, 555)), "IPv4 in an IPv6 socket");
    }

    #[test]
    fn lines_of_any_other_form_are_no_rows() {
        for line in ["", "sl local_address", "0: 1:2 3:4 5", "0: ZZ00007F:1F90 0100007F:1F90 01 0:0 0:0 0 1 0 1"] {
            assert_eq!(SocketRow::parse(line), None, "{line}");
        }
    }

    #[tokio::test]
    async fn a_real_connection_is_in_the_tables() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        let row = find(peer, accepted.local_addr().unwrap()).unwrap().unwrap();
        assert!(row.inode > 0 && row.uid == rustix::process::geteuid().as_raw(), "{row:?}");
        drop(client);
    }
}
