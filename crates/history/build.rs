//! Tells tests if the recordings outside the repository exist.

fn main() {
    grove_fixtures::emit_cfg();
}
