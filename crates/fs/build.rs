//! Tells tests whether the recordings outside the repository are available.

fn main() {
    grove_fixtures::emit_cfg();
}
