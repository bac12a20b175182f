//! Prints each check with the suite and the name of its test, separated by tabs, for `tools/test-checks`.

use std::io::Write;

use grove_checks::{Check, TestSuite};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for check in Check::ALL {
        let (suite, test) = check.test();
        let suite = match suite {
            TestSuite::Package(package) => package,
            TestSuite::Page => "page",
        };
        writeln!(out, "{}\t{suite}\t{test}", check.name())?;
    }
    Ok(())
}
