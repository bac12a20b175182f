//! Lets tests know whether the recordings outside the repository are there.

fn main() {
    grove_fixtures::emit_cfg();
}
