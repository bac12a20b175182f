//! The counts as a table and as JSON, and the goal.

use std::fmt;

use serde_json::{Value, json};

use crate::chats::Reducer;
use crate::count::{PARTS, TURNS};

/// The maximum difference between the long and the short chat.
const GOAL: f64 = 0.10;

pub(crate) struct Row {
    pub(crate) reducer: Reducer,
    pub(crate) parts: usize,
    /// The instructions of one delta, in the order of [`TURNS`].
    pub(crate) per_delta: [f64; TURNS.len()],
}

impl Row {
    /// The long chat's cost as a multiple of the short one's.
    fn ratio(&self) -> f64 {
        self.per_delta[1] / self.per_delta[0]
    }
}

pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(rows: Vec<Row>) -> Self {
        Self { rows }
    }

    /// Returns whether Grove's delta costs the same in both chats, for every number of parts.
    pub(crate) fn goal_is_met(&self) -> bool {
        let mut mine = self.rows.iter().filter(|row| row.reducer == Reducer::Grove).peekable();
        mine.peek().is_some() && mine.all(|row| (row.ratio() - 1.0).abs() <= GOAL)
    }

    /// The cost of a delta with the most parts, as a multiple of that with the fewest.
    fn growth(&self, reducer: Reducer) -> Option<f64> {
        let cost = |parts: usize| {
            self.rows.iter().find(|row| row.reducer == reducer && row.parts == parts).map(|row| row.per_delta[0])
        };
        Some(cost(*PARTS.last()?)? / cost(*PARTS.first()?)?)
    }

    pub(crate) fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "reducer": row.reducer.name(),
                "parts": row.parts,
                "turns": TURNS,
                "instructionsPerDelta": row.per_delta,
                "ratio": row.ratio(),
            })
        });
        json!({
            "rows": rows.collect::<Vec<_>>(),
            "growthWithParts": {
                "grove": self.growth(Reducer::Grove),
                "ahp": self.growth(Reducer::Ahp),
            },
            "goal": { "within": GOAL, "met": self.goal_is_met() },
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [short, long] = TURNS;
        writeln!(f, "Instructions for one delta of 20 bytes, by finished turns of the chat")?;
        writeln!(f)?;
        writeln!(f, "{:<8} {:>6} {short:>12} {long:>12} {:>8}", "reducer", "parts", "ratio")?;
        for row in &self.rows {
            let [short, long] = row.per_delta;
            writeln!(f, "{:<8} {:>6} {short:>12.0} {long:>12.0} {:>8.3}", row.reducer.name(), row.parts, row.ratio())?;
        }
        writeln!(f)?;
        for reducer in Reducer::ALL {
            if let Some(growth) = self.growth(reducer) {
                let most = PARTS[PARTS.len() - 1];
                writeln!(f, "{}: a delta costs {growth:.1} times as much in a turn of {most} parts", reducer.name())?;
            }
        }
        let met = if self.goal_is_met() { "met" } else { "MISSED" };
        writeln!(f, "goal, grove's two columns equal within {:.0} %: {met}", GOAL * 100.0)
    }
}
