//! The security checks by name, so that a test can prove that each of them is needed.
//!
//! A check in the code asks [`Check::is_enforced`] first. In every ordinary build that is the constant `true`. In a build
//! with `--cfg grove_checks`, the variable `GROVE_CHECK_OFF` names one check that is skipped. The test that the check
//! is for must fail then; `make test-checks` runs it for each check.
//!
//! ```
//! use grove_checks::Check;
//!
//! fn is_refused(host_header_is_ours: bool) -> bool {
//!     Check::HostHeader.is_enforced() && !host_header_is_ours
//! }
//! assert!(is_refused(false));
//! ```

/// Defines the checks: a variant, its name, and the test that fails without it.
macro_rules! checks {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $krate:literal, $test:literal;)*) => {
        /// A security check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Check {
            $($(#[$doc])* $variant,)*
        }

        impl Check {
            /// Every check.
            pub const ALL: &[Check] = &[$(Check::$variant,)*];

            /// The name, as the value of `GROVE_CHECK_OFF`.
            pub const fn name(self) -> &'static str {
                match self { $(Check::$variant => $name,)* }
            }

            /// The test that fails without the check: the package, and the name of the test in its test program `it`, or
            /// of a unit test.
            pub const fn test(self) -> (&'static str, &'static str) {
                match self { $(Check::$variant => ($krate, $test),)* }
            }
        }
    };
}

checks! {
    /// A request names this host in its `Host` header.
    HostHeader = "host-header", "grove-server", "exactly_one_host_header_and_it_is_ours";
    /// A process of an agent does nothing that persons alone may do.
    AgentProcess = "agent-process", "grove", "an_agent_cannot_approve_its_own_requests";
    /// A browser's request comes from a page of this host.
    Origin = "origin", "grove-server", "a_foreign_origin_is_refused_and_none_is_fine";
    /// A browser's request that changes something comes from the same site.
    FetchSite = "fetch-site", "grove-server", "a_page_of_another_site_or_port_may_only_follow_a_link";
    /// A token without the scope of a method or action is refused.
    Scopes = "scopes", "grove-server", "a_request_without_its_scope_is_refused_and_says_what_to_do";
}

impl Check {
    /// Says whether the check is made, which only a build for testing the tests can change.
    #[cfg(not(grove_checks))]
    #[inline]
    pub const fn is_enforced(self) -> bool {
        true
    }

    /// Says whether the check is made.
    #[cfg(grove_checks)]
    pub fn is_enforced(self) -> bool {
        std::env::var("GROVE_CHECK_OFF").as_deref() != Ok(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_a_name_of_its_own_and_a_test() {
        for (place, check) in Check::ALL.iter().enumerate() {
            assert!(Check::ALL[..place].iter().all(|other| other.name() != check.name()), "{check:?}");
            assert!(!check.test().1.is_empty() && check.test().0.starts_with("grove"), "{check:?}");
        }
    }
}
