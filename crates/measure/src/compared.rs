//! The figures by which runs of a load are compared: of a task, of some tasks together, or of all.

use crate::{Sums, partial};
use schedlab_base::Coverage;
use serde::Serialize;

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Time,
    /// A number of things.
    Count,
}

/// One of the figures.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its key in the JSON.
    pub key: &'static str,
    /// What it is called in a sentence.
    pub name: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// How many wake-ups it needs to mean something; 0 for one that does not depend on them.
    pub wakeups: u32,
}

/// Makes a field of [`Compared`] and a row of [`FIGURES`] of each line.
macro_rules! figures {
    ($($(#[$doc:meta])* $key:ident: $name:literal, $unit:ident, $wakeups:literal, $of:expr;)*) => {
        /// The figures that are compared. NaN, which is `null` in JSON, is one that a recording does not tell.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
        pub struct Compared {
            $($(#[$doc])* pub $key: f64,)*
        }

        /// All figures, in the order of [`Compared::values`].
        pub const FIGURES: &[Figure] = &[
            $(Figure { key: stringify!($key), name: $name, unit: Unit::$unit, wakeups: $wakeups }),*
        ];

        impl Compared {
            /// Those of a task, of some tasks, or of all.
            #[must_use]
            pub fn of(sums: &Sums) -> Self {
                $(let $key: fn(&Sums) -> f64 = $of;)*
                Self { $($key: $key(sums)),* }
            }

            /// The same figure of both, combined, for each figure.
            #[must_use]
            pub fn map2(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
                Self { $($key: f(self.$key, other.$key)),* }
            }

            /// The same without the figures that a recording which covers no more than this does not tell.
            #[must_use]
            pub fn told_by(mut self, covers: Option<Coverage>) -> Self {
                for unknown in covers.into_iter().flat_map(partial::unknown) {
                    $(if unknown == stringify!($key) {
                        self.$key = f64::NAN;
                    })*
                }
                self
            }

            /// The values, in the order of [`FIGURES`].
            #[must_use]
            pub fn values(&self) -> [f64; FIGURES.len()] {
                [$(self.$key),*]
            }
        }
    };
}

figures! {
    /// CPU time.
    run_us: "CPU time", Time, 0, |s| s.run.run_us;
    /// Time runnable, but not running.
    wait_us: "wait", Time, 0, |s| s.wait.wait_us;
    /// How often it got a CPU.
    slices: "switches", Count, 0, |s| s.switches.slices as f64;
    /// Moves between CPUs.
    migrations: "migrations", Count, 0, |s| s.moves.migrations as f64;
    /// How many wake-ups have a latency.
    wakeups: "wake-ups", Count, 0, |s| s.latency.of_wakeups().count as f64;
    /// The median latency from wake-up to running; that from waking where the trace has no wake-ups.
    latency_p50_us: "p50 of wake-up latency", Time, 10, |s| s.latency.of_wakeups().p50;
    /// Its 90th percentile.
    latency_p90_us: "p90 of wake-up latency", Time, 50, |s| s.latency.of_wakeups().p90;
    /// Its 99th percentile.
    latency_p99_us: "p99 of wake-up latency", Time, 100, |s| s.latency.of_wakeups().p99;
    /// Its 99.9th percentile.
    latency_p999_us: "p99.9 of wake-up latency", Time, 1000, |s| s.latency.of_wakeups().p999;
}

/// A wait shorter than this part of the CPU time counts as this long: no wait at all has no relative error.
pub const LEAST_WAIT: f64 = 0.01;

/// A latency below this, in us, counts as this long.
const LEAST_LATENCY: f64 = 1.0;

/// Latencies that differ by less than this, in us, are the same.
const SAME_LATENCY: f64 = 10.0;

impl Compared {
    /// The same with the quantiles of the latencies of another: they do not add up.
    pub(crate) fn with_latencies(self, of: &Self) -> Self {
        Self { run_us: self.run_us, wait_us: self.wait_us, slices: self.slices, migrations: self.migrations, ..*of }
    }

    /// What a smaller value of each figure counts as when it is divided by, in the order of [`FIGURES`].
    #[must_use]
    pub fn floors(&self) -> [f64; FIGURES.len()] {
        let of = |figure: &Figure| match (figure.unit, figure.wakeups) {
            (Unit::Count, _) => 1.0,
            (Unit::Time, 0) => (self.run_us * LEAST_WAIT).max(LEAST_LATENCY),
            (Unit::Time, _) => LEAST_LATENCY,
        };
        std::array::from_fn(|at| of(&FIGURES[at]))
    }

    /// The difference of each figure below which it is the same, in the order of [`FIGURES`].
    #[must_use]
    pub fn least_differences(&self) -> [f64; FIGURES.len()] {
        let floors = self.floors();
        std::array::from_fn(|at| if FIGURES[at].wakeups > 0 { SAME_LATENCY } else { floors[at] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_partial_recording_does_not_tell_is_no_figure() {
        let own = Compared { run_us: 1000.0, slices: 3.0, ..Compared::default() };
        assert_eq!(own.told_by(None), own);
        let told = serde_json::to_value(own.told_by(Some(Coverage::Tasks))).unwrap();
        assert_eq!((&told["run_us"], &told["slices"]), (&1000.0.into(), &3.0.into()));
        assert!(told["migrations"].is_null(), "{told}");
    }

    #[test]
    fn values_stand_in_the_order_of_the_figures() {
        let own = Compared { run_us: 1000.0, wait_us: 2.0, latency_p999_us: 9.0, ..Compared::default() };
        let by_key = serde_json::to_value(own).unwrap();
        for (figure, value) in FIGURES.iter().zip(own.values()) {
            assert_eq!(by_key[figure.key], value, "{}", figure.key);
        }
        assert_eq!(own.floors()[..3], [10.0, 10.0, 1.0]);
        assert_eq!((own.floors()[5], own.least_differences()[5]), (1.0, 10.0));
    }
}
