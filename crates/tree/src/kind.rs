//! The types of entries.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal),* $(,)?) => {
        /// An entry's `type`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum EntryType {
            $($(#[$doc])* $name = $number,)*
            /// A type that Grove does not know. Such entries are kept and are in the tree like any other.
            Unknown = 255,
        }

        impl EntryType {
            /// The entry type of a `type`.
            pub fn named(name: &[u8]) -> Self {
                match std::str::from_utf8(name) {
                    $(Ok($text) => EntryType::$name,)*
                    _ => EntryType::Unknown,
                }
            }

            /// The `type`, if it is known.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(EntryType::$name => Some($text),)*
                    EntryType::Unknown => None,
                }
            }

            pub(crate) fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(EntryType::$name),)*
                    255 => Some(EntryType::Unknown),
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    Message = 0 "message",
    ThinkingLevelChange = 1 "thinking_level_change",
    ModelChange = 2 "model_change",
    Compaction = 3 "compaction",
    BranchSummary = 4 "branch_summary",
    Custom = 5 "custom",
    CustomMessage = 6 "custom_message",
    Label = 7 "label",
    SessionInfo = 8 "session_info",
    /// pi 1.5.
    Usage = 9 "usage",
    /// pi 1.5.
    ContextEdit = 10 "context_edit",
    /// oh-my-pi, like all that follow.
    ModelUsage = 11 "model_usage",
    ModeChange = 12 "mode_change",
    TtsrInjection = 13 "ttsr_injection",
    ServiceTierChange = 14 "service_tier_change",
    ResetBoundary = 15 "reset_boundary",
    CredentialPin = 16 "credential_pin",
    SessionInit = 17 "session_init",
    TitleChange = 18 "title_change",
    Archive = 19 "archive",
}
