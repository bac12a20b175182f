//! The goals of Grove.

use grove_bench_report::{Bound, Goal};

use super::{CROWDS, Pace, Report, median};
use crate::job::Contestant;

/// Processor time per message, as a multiple of the bare server's.
const CPU_GOAL: f64 = 1.25;
const CPU_GOAL_CROWDS: [usize; 3] = [10, 100, 1_000];
/// Throughput, as a multiple of the Node server's.
const NODE_GOAL: f64 = 5.0;
/// Milliseconds until the last of [`LAST_GOAL_CLIENTS`] has an event.
const LAST_GOAL: f64 = 10.0;
const LAST_GOAL_CLIENTS: usize = 200;
const IDLE_GOAL: f64 = 16.0 * 1024.0;
/// Processor time per message with a mixed crowd of [`MIXED_GOAL_CROWD`], as a multiple of the dearer pure one's.
const MIXED_GOAL: f64 = 1.10;
const MIXED_GOAL_CROWD: usize = 1_000;

impl Report {
    pub(super) fn goals(&self) -> Vec<Goal> {
        let node = CROWDS.map(|crowd| Goal {
            what: format!("messages/s, {crowd} subscribers, times the Node server's"),
            bound: Bound::AtLeast(NODE_GOAL),
            figure: self.times_the_node_server(crowd),
        });
        let last = self.last.iter().find(|(who, n, _)| (*who, *n) == (Contestant::Grove, LAST_GOAL_CLIENTS));
        let idle = self.idle.iter().find(|(who, _)| *who == Contestant::Grove);
        let others = [
            Goal {
                what: format!("milliseconds until the last of {LAST_GOAL_CLIENTS} clients has an event, median"),
                bound: Bound::AtMost(LAST_GOAL),
                figure: last.and_then(|(_, _, milliseconds)| median(milliseconds)),
            },
            Goal {
                what: "bytes for an idle connection".to_owned(),
                bound: Bound::AtMost(IDLE_GOAL),
                figure: idle.map(|(_, bytes)| *bytes),
            },
        ];
        let bare = self.near_bare("", Contestant::Grove, Contestant::Bare);
        let ahp = self.near_bare("AHP: ", Contestant::GroveAhp, Contestant::BareAhp);
        bare.chain(node).chain(others).chain(ahp).chain(self.mixed_crowd()).collect()
    }

    /// A crowd costs little more than broadcasting ready-made frames of the same bytes.
    fn near_bare(&self, of: &str, grove: Contestant, bare: Contestant) -> impl Iterator<Item = Goal> {
        let goal = move |pace, crowd| Goal {
            what: match pace {
                Pace::Full => {
                    format!("{of}processor time for a message, {crowd} subscribers, times the bare server's")
                }
                Pace::Paced => format!("{of}the same, paced, {crowd} subscribers"),
            },
            bound: Bound::AtMost(CPU_GOAL),
            figure: self.times(grove, bare, crowd, pace),
        };
        [Pace::Full, Pace::Paced].into_iter().flat_map(move |pace| CPU_GOAL_CROWDS.map(|crowd| goal(pace, crowd)))
    }

    /// Another dialect costs one more encoding of each action, and nothing per subscriber.
    fn mixed_crowd(&self) -> [Goal; 2] {
        [Pace::Full, Pace::Paced].map(|pace| {
            let [v1, ahp] = self.mixed(MIXED_GOAL_CROWD, pace);
            Goal {
                what: match pace {
                    Pace::Full => format!(
                        "mixed: processor time for a message, {MIXED_GOAL_CROWD} subscribers, times the dearer of \
                         version 1's and AHP's"
                    ),
                    Pace::Paced => format!("mixed: the same, paced, {MIXED_GOAL_CROWD} subscribers"),
                },
                bound: Bound::AtMost(MIXED_GOAL),
                // The multiple of the dearer one is the smaller of the two.
                figure: v1.zip(ahp).map(|(v1, ahp)| v1.min(ahp)),
            }
        })
    }

    fn times_the_node_server(&self, crowd: usize) -> Option<f64> {
        let [grove, node] = [Contestant::Grove, Contestant::Node].map(|who| self.cell(who, crowd)?.per_second());
        Some(grove? / node?)
    }
}
