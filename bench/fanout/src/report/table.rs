//! The results as tables.

use std::fmt;

use grove_bench_report::{Goals, shown};

use super::{CROWDS, Pace, Report, median};
use crate::driver::LAST_OF;
use crate::job::Contestant;

const NOTES: &str = "\
Every contestant streams the same messages, as its subscribers' dialect writes them; the load client is one process
for all of them.
Figures are medians of the runs, in which the contestants take turns.
messages/cpu-s: deltas delivered for one second of the server's processor time.
messages/s: the same for one second of time, from the first delta anywhere to the last everywhere.
p50, p99: fan-out latency at one delta in 5 ms: from a delta's earliest arrival at any subscriber to its
  arrival at each. Deltas carry no time of sending, so this is taken alike for all; with one subscriber it is 0.
RSS, peak: the server's memory at the end of a throughput run, with all subscribers connected.
cpu us, paced: the server's processor time for one message of the paced run, where few deltas share a write.
deltas/s: how many of the 200 deltas a second the paced run really brought; fewer where a server could not keep up.
The Node server streams fewer deltas to large crowds; its figures are rates all the same. What the bare server gives
at full speed is near what one load client can take.";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MEBIBYTE: f64 = 1024.0 * 1024.0;
        writeln!(f, "One session's stream to many subscribers\n\n{NOTES}\n")?;
        writeln!(
            f,
            "{:>5} {:<11} {:>14} {:>11} {:>6} {:>8} {:>8} {:>13} {:>8} {:>9} {:>9}",
            "subs",
            "server",
            "messages/cpu-s",
            "messages/s",
            "bytes",
            "p50 ms",
            "p99 ms",
            "cpu us, paced",
            "deltas/s",
            "RSS MiB",
            "peak MiB"
        )?;
        for cell in &self.cells {
            writeln!(
                f,
                "{:>5} {:<11} {:>14} {:>11} {:>6} {:>8} {:>8} {:>13} {:>8} {:>9} {:>9}",
                cell.subscribers,
                cell.contestant.name(),
                shown(cell.per_cpu_second(), 0),
                shown(cell.per_second(), 0),
                shown(cell.median_of(|run| run.bytes_per_message), 0),
                shown(cell.latency(|run| run.p50_ms), 2),
                shown(cell.latency(|run| run.p99_ms), 2),
                shown(cell.cost(Pace::Paced).map(|seconds| seconds * 1e6), 2),
                shown(cell.paced_median(|run| run.deltas_per_second), 0),
                shown(cell.median_of(|run| run.memory.resident_bytes as f64 / MEBIBYTE), 1),
                shown(cell.median_of(|run| run.memory.peak_bytes as f64 / MEBIBYTE), 1),
            )?;
        }

        writeln!(f, "\nProcessor time for a message with a mixed crowd, as a multiple of the pure ones'")?;
        writeln!(
            f,
            "{:>5} {:>11} {:>11} {:>18} {:>11}",
            "subs", "version 1's", "AHP's", "paced, version 1's", "AHP's"
        )?;
        for crowd in CROWDS {
            let [[v1, ahp], [paced_v1, paced_ahp]] = [Pace::Full, Pace::Paced].map(|pace| self.mixed(crowd, pace));
            let [v1, ahp, paced_v1, paced_ahp] = [v1, ahp, paced_v1, paced_ahp].map(|figure| shown(figure, 2));
            writeln!(f, "{crowd:>5} {v1:>11} {ahp:>11} {paced_v1:>18} {paced_ahp:>11}")?;
        }

        writeln!(f, "\nMemory for an idle subscribed connection (1,000 of them)")?;
        for (who, bytes) in &self.idle {
            writeln!(f, "      {:<11} {:>8.1} KiB", who.name(), bytes / 1024.0)?;
        }

        let [few, many] = LAST_OF;
        writeln!(f, "\nMilliseconds until the last of {few} and of {many} clients has one event, median (worst)")?;
        let mut whos: Vec<Contestant> = self.last.iter().map(|(who, _, _)| *who).collect();
        whos.dedup();
        for who in whos {
            write!(f, "      {:<11}", who.name())?;
            for clients in LAST_OF {
                let found = self.last.iter().find(|(w, n, _)| (*w, *n) == (who, clients));
                let milliseconds = found.map(|(_, _, milliseconds)| milliseconds.as_slice()).unwrap_or_default();
                let worst = milliseconds.iter().copied().reduce(f64::max);
                write!(f, " {:>8} ({:>7})", shown(median(milliseconds), 2), shown(worst, 2))?;
            }
            writeln!(f)?;
        }

        write!(f, "{}", Goals(&self.goals()))
    }
}
