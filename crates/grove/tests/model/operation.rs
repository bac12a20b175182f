//! Operations on a host, and their random choice.

/// Random numbers from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The end of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostEnd {
    /// `grove stop`.
    Stop,
    /// `kill -9`.
    Kill,
}

/// The kind of a rename.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rename {
    Request,
    Action,
    CommandLine,
}

/// One operation. Numbers select among the existing things, so that a shortened list of operations is still valid.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Create,
    Prompt {
        session: u64,
        text: String,
    },
    AgentTitle {
        session: u64,
        title: String,
    },
    Rename {
        session: u64,
        title: String,
        by: Rename,
    },
    Navigate {
        session: u64,
        to: u64,
    },
    Label {
        session: u64,
        entry: u64,
        label: String,
    },
    Fork {
        session: u64,
        title: Option<String>,
    },
    Branch {
        session: u64,
        at: u64,
    },
    Merge {
        session: u64,
        from: u64,
    },
    Compact {
        session: u64,
    },
    /// Adds a chat with a turn.
    Chat {
        session: u64,
        text: String,
    },
    /// Imports a log that is intact or damaged, depending on the number.
    Import {
        kind: u64,
        title: String,
    },
    /// Moves a session to another host and back.
    Move {
        session: u64,
    },
    Delete {
        session: u64,
    },
    Look {
        session: u64,
    },
    Restart(HostEnd),
    /// Starts a turn that asks for permission, ends the host, and answers afterwards.
    AskThenEnd {
        session: u64,
        end: HostEnd,
        approve: bool,
    },
    /// Kills the host while a turn streams.
    KillWhileStreaming {
        session: u64,
    },
}

impl Operation {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Prompt { .. } => "prompt",
            Operation::AgentTitle { .. } => "agent-title",
            Operation::Rename { .. } => "rename",
            Operation::Navigate { .. } => "navigate",
            Operation::Label { .. } => "label",
            Operation::Fork { .. } => "fork",
            Operation::Branch { .. } => "branch",
            Operation::Merge { .. } => "merge",
            Operation::Compact { .. } => "compact",
            Operation::Chat { .. } => "chat",
            Operation::Import { .. } => "import",
            Operation::Move { .. } => "move",
            Operation::Delete { .. } => "delete",
            Operation::Look { .. } => "look",
            Operation::Restart(_) => "restart",
            Operation::AskThenEnd { .. } => "ask",
            Operation::KillWhileStreaming { .. } => "kill",
        }
    }
}

/// A list of operations. `only` restricts their kinds, beside creating and prompting.
pub(crate) fn random(dice: &mut Dice, length: usize, only: &[&str]) -> Vec<Operation> {
    let wanted = |operation: &Operation| {
        only.is_empty() || ["create", "prompt"].contains(&operation.kind()) || only.contains(&operation.kind())
    };
    let mut operations = vec![Operation::Create];
    while operations.len() < length {
        let operation = one(dice);
        if wanted(&operation) {
            operations.push(operation);
        }
    }
    operations
}

fn one(dice: &mut Dice) -> Operation {
    let session = dice.next();
    match dice.below(100) {
        0..4 => Operation::Create,
        4..24 => Operation::Prompt { session, text: odd_text(dice) },
        24..29 => Operation::AgentTitle { session, title: odd_text(dice) },
        29..39 => {
            let by = [Rename::Request, Rename::Action, Rename::CommandLine];
            Operation::Rename { session, title: odd_text(dice), by: by[dice.below(3) as usize] }
        }
        39..51 => Operation::Navigate { session, to: dice.next() },
        51..58 => Operation::Label { session, entry: dice.next(), label: odd_text(dice) },
        58..62 => {
            let title = odd_text(dice);
            Operation::Fork { session, title: (dice.below(2) == 0).then_some(title) }
        }
        62..66 => Operation::Branch { session, at: dice.next() },
        66..70 => Operation::Merge { session, from: dice.next() },
        70..73 => Operation::Compact { session },
        73..76 => Operation::Chat { session, text: odd_text(dice) },
        76..80 => Operation::Import { kind: dice.next(), title: odd_text(dice) },
        80..82 => Operation::Move { session },
        82..85 => Operation::Delete { session },
        85..90 => Operation::Look { session },
        90..92 => Operation::Restart(HostEnd::Stop),
        92..95 => Operation::Restart(HostEnd::Kill),
        95..98 => {
            let end = if dice.below(2) == 0 { HostEnd::Stop } else { HostEnd::Kill };
            Operation::AskThenEnd { session, end, approve: dice.below(2) == 0 }
        }
        _ => Operation::KillWhileStreaming { session },
    }
}

/// Unusual texts of people and programs.
fn odd_text(dice: &mut Dice) -> String {
    const ODD: [&str; 20] = [
        "My session ",
        "",
        "   ",
        "Fix the bug\n",
        "\tindented",
        "two\nlines\r\nor three",
        "New session",
        "ends in a zero\u{0}",
        "\u{1b}[31mred\u{7}",
        "Zwölf Boxkämpfer 🥊👩‍👩‍👧",
        "\u{202e}backwards",
        "a\u{2028}b\u{85}c",
        "\u{feff}bom",
        "\u{fffd}",
        "\"quoted\\\" {\"json\": [1]}",
        "x (fork)",
        "../../etc/passwd",
        "e\u{301}\u{327}",
        "A plain title",
        "another one",
    ];
    match dice.below(24) {
        20 => "long ".repeat(100),
        21 => "ü".repeat(300),
        22 => format!("{}  {}", "x".repeat(199), "y"),
        23 => format!("number {}", dice.below(1_000)),
        known => ODD[known as usize].to_owned(),
    }
}
