//! The port of a host: the same at every start, so that pages and bookmarks find it.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;

use crate::support::*;

/// A free port. The system does not assign it again at once.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A place whose last host had this port.
fn place_with_port(port: u16) -> TestHome {
    let place = TestHome::new();
    std::fs::DirBuilder::new().mode(0o700).create(place.data()).unwrap();
    place.write("data/port", format!("{port}\n"));
    place
}

/// A host without `--listen`.
fn serve(place: &TestHome) -> Host {
    let mut command = place.grove(&["serve", "--json", "--data-dir"]);
    command.arg(place.data()).env_remove("GROVE_LISTEN");
    place.start(command)
}

fn port_of(host: &Host) -> u16 {
    host.address.strip_prefix("127.0.0.1:").unwrap().parse().unwrap()
}

#[test]
fn a_host_comes_back_on_the_port_of_its_last_start() {
    let port = free_port();
    let place = place_with_port(port);
    for _ in 0..3 {
        let host = serve(&place);
        assert_eq!(port_of(&host), port);
        drop(host.kill());
    }
    // A chosen port is stored, too.
    let chosen = free_port();
    drop(place.serve(&["--listen", &format!("127.0.0.1:{chosen}")]).kill());
    assert_eq!(port_of(&serve(&place)), chosen);
}

#[test]
fn another_port_is_taken_only_while_another_program_has_the_usual_one_and_two_data_folders_share_a_machine() {
    // The default port is not used, whether it is free on this machine or not.
    let _default = TcpListener::bind((Ipv4Addr::LOCALHOST, 4747));
    let port = free_port();
    let (one, two) = (place_with_port(port), place_with_port(port));
    let first = serve(&one);
    let second = serve(&two);
    assert_eq!(port_of(&first), port);
    let other = port_of(&second);
    assert_ne!(other, port);
    // Both get their ports back, in any order.
    let (one, two) = (first.kill(), second.kill());
    assert_eq!(port_of(&serve(&two)), other);
    assert_eq!(port_of(&serve(&one)), port);
}
