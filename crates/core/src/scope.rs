//! Scopes: the rights that a token gives to its holder.

use std::fmt;
use std::str::FromStr;

/// A right that a token gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// See sessions, their files and their history.
    Read,
    /// Create sessions, send prompts, and change what belongs to a session.
    Prompt,
    /// Answer permission requests and questions of agents.
    Approve,
    /// Open terminals and type into them.
    Terminal,
    /// Choose working directories outside the configured folders.
    Folders,
    /// Manage the host: tokens, stores, other hosts, trusted folders.
    Admin,
}

impl Scope {
    /// All scopes, in the order in which they are shown.
    pub const ALL: [Scope; 6] =
        [Scope::Read, Scope::Prompt, Scope::Approve, Scope::Terminal, Scope::Folders, Scope::Admin];

    /// The name in commands and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Prompt => "prompt",
            Scope::Approve => "approve",
            Scope::Terminal => "terminal",
            Scope::Folders => "folders",
            Scope::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownScope(String);

impl fmt::Display for UnknownScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Scope::ALL.map(Scope::as_str).join(", ");
        write!(f, "{:?} is not a scope: the scopes are {known}", self.0)
    }
}

impl std::error::Error for UnknownScope {}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let known = Scope::ALL.into_iter().find(|scope| scope.as_str() == text);
        known.ok_or_else(|| UnknownScope(text.chars().take(40).collect()))
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ScopeSet(u8);

impl ScopeSet {
    /// No scope.
    pub const NONE: ScopeSet = ScopeSet(0);

    /// Every scope.
    pub const ALL: ScopeSet = {
        let (mut bits, mut next) = (0, 0);
        while next < Scope::ALL.len() {
            bits |= Scope::ALL[next].bit();
            next += 1;
        }
        ScopeSet(bits)
    };

    /// This set, and one more scope.
    #[must_use]
    pub const fn with(self, scope: Scope) -> Self {
        ScopeSet(self.0 | scope.bit())
    }

    /// This set without a scope.
    #[must_use]
    pub const fn without(self, scope: Scope) -> Self {
        ScopeSet(self.0 & !scope.bit())
    }

    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Says whether every scope of the other set is in this one.
    pub const fn contains_all(self, other: ScopeSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: ScopeSet) -> Self {
        ScopeSet(self.0 | other.0)
    }

    /// The scopes that both sets have.
    #[must_use]
    pub const fn intersection(self, other: ScopeSet) -> Self {
        ScopeSet(self.0 & other.0)
    }

    /// The scopes of the set, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }
}

impl From<Option<Scope>> for ScopeSet {
    fn from(scope: Option<Scope>) -> Self {
        scope.into_iter().collect()
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(ScopeSet::NONE, ScopeSet::with)
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_is_found_by_its_name_and_has_a_place_of_its_own_in_a_set() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
            let only = ScopeSet::NONE.with(scope);
            assert_eq!(only.iter().collect::<Vec<_>>(), [scope]);
            assert_eq!(only.without(scope), ScopeSet::NONE);
            assert!(ScopeSet::ALL.contains_all(only) && !only.contains_all(ScopeSet::ALL));
        }
        assert_eq!(Scope::ALL.into_iter().collect::<ScopeSet>(), ScopeSet::ALL);
        assert!("Read".parse::<Scope>().is_err() && "".parse::<Scope>().is_err());
    }
}
