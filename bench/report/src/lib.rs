//! The goals of benchmarks, in the same form in every report.
//!
//! A [`Goal`] has a bound and the measured figure. [`Goals`] prints them as the last lines of a report, and [`json()`]
//! returns them for programs. A goal without a figure is neither met nor missed.
//!
//! ```
//! use grove_bench_report::{Bound, Goal, Goals, is_any_missed};
//!
//! let goals = [Goal { what: "opening, ms".into(), bound: Bound::AtMost(5.0), figure: Some(4.2) }];
//! assert_eq!(Goals(&goals).to_string(), "\nGoals\n      opening, ms: 4.20 (at most 5): met\n");
//! assert!(!is_any_missed(&goals));
//! ```

#![forbid(unsafe_code)]

use std::fmt;

use serde_json::{Value, json};

/// A goal of Grove.
#[derive(Clone, Debug)]
pub struct Goal {
    pub what: String,
    pub bound: Bound,
    /// `None` if it was not measured.
    pub figure: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    pub fn met(&self) -> Option<bool> {
        self.figure.map(|figure| match self.bound {
            Bound::AtMost(most) => figure <= most,
            Bound::AtLeast(least) => figure >= least,
        })
    }
}

pub fn is_any_missed(goals: &[Goal]) -> bool {
    goals.iter().any(|goal| goal.met() == Some(false))
}

/// The goals as JSON.
pub fn json(goals: &[Goal]) -> Vec<Value> {
    let each = goals.iter().map(|goal| {
        let bound = match goal.bound {
            Bound::AtMost(most) => json!({ "atMost": most }),
            Bound::AtLeast(least) => json!({ "atLeast": least }),
        };
        json!({ "what": goal.what, "bound": bound, "figure": goal.figure, "met": goal.met() })
    });
    each.collect()
}

/// A figure, or a dash if there is none.
pub fn shown(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.decimals$}"))
}

/// The goals for people.
#[derive(Clone, Copy, Debug)]
pub struct Goals<'a>(pub &'a [Goal]);

impl fmt::Display for Goals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nGoals")?;
        for goal in self.0 {
            let verdict = match goal.met() {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "not measured",
            };
            let bound = match goal.bound {
                Bound::AtMost(most) => format!("at most {most}"),
                Bound::AtLeast(least) => format!("at least {least}"),
            };
            writeln!(f, "      {}: {} ({bound}): {verdict}", goal.what, shown(goal.figure, 2))?;
        }
        Ok(())
    }
}
