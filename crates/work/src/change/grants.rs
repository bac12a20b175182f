//! The paths that a client asked to change.

use std::path::{Path, PathBuf};

use grove_checks::Check;

use crate::FileError;

/// The granted paths of one connection. The next one is refused.
pub const MAX_WRITE_GRANTS: usize = 256;

/// The real paths that a client may change, each with everything below it.
#[derive(Clone, Debug, Default)]
pub struct WriteGrants(Vec<PathBuf>);

impl WriteGrants {
    /// Adds a real path. One that is covered already takes no room.
    pub fn add(&mut self, real: PathBuf) -> Result<(), FileError> {
        if self.covers(&real) {
            return Ok(());
        }
        self.0.retain(|granted| !granted.starts_with(&real));
        if self.0.len() >= MAX_WRITE_GRANTS {
            return Err(FileError::TooManyGrants { limit: MAX_WRITE_GRANTS });
        }
        self.0.push(real);
        Ok(())
    }

    /// Says whether a real path was granted, or a folder above it.
    pub(super) fn covers(&self, real: &Path) -> bool {
        self.0.iter().any(|granted| real.starts_with(granted))
    }

    /// Refuses a path that was not granted.
    pub(super) fn check(&self, path: &Path, real: &Path) -> Result<(), FileError> {
        match self.covers(real) || !Check::ChangeGrants.is_enforced() {
            true => Ok(()),
            false => Err(FileError::NotGranted { path: path.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use super::*;

    #[test]
    fn the_granted_paths_of_a_connection_are_bounded_and_a_folder_takes_the_room_of_one() {
        let mut grants = WriteGrants::default();
        for number in 0..MAX_WRITE_GRANTS {
            grants.add(format!("/w/{number}").into()).unwrap();
        }
        grants.add("/w/0/below".into()).unwrap();
        assert!(matches!(grants.add("/w/another".into()), Err(FileError::TooManyGrants { .. })));
        grants.add("/w".into()).unwrap();
        assert!(grants.covers(Path::new("/w/another")) && !grants.covers(Path::new("/wide")));
        assert_eq!(grants.0.len(), 1);
    }
}
