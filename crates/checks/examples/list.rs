//! Prints each check with the package and the name of its test, for `tools/test-checks`.

use std::io::Write;

use grove_checks::Check;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for check in Check::ALL {
        let (package, test) = check.test();
        writeln!(out, "{} {package} {test}", check.name())?;
    }
    Ok(())
}
