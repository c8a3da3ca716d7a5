//! The registry of measures: whose figures stand in every row of the report, and in which order.

use crate::measure::Measure;
use schedlab_base::CpuId;
use schedlab_track::{Slot, observers};
use serde::Serialize;

/// Makes of each line (a field, the measure, its figures, both out of the measure's file) a field that hears the
/// tracker, and a field of the report whose keys stand in the JSON.
macro_rules! measures {
    ($($(#[$doc:meta])* $name:ident: $module:ident::$measure:ident => $figures:ident;)*) => {
        /// All measures.
        #[derive(Debug, Default)]
        pub(crate) struct Measures {
            $(pub(crate) $name: crate::$module::$measure,)*
        }

        observers!(Measures: $($name),*);

        /// What tasks, CPUs, nodes, groups and the whole have in common.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct Sums {
            $($(#[$doc])* #[serde(flatten)] pub $name: crate::$module::$figures,)*
        }

        impl Measures {
            /// The figures of these tasks together.
            pub(crate) fn of_tasks(&self, tasks: &[Slot]) -> Sums {
                Sums { $($name: self.$name.parts().of_tasks(tasks),)* }
            }

            /// The figures of these CPUs together.
            pub(crate) fn of_cpus(&self, cpus: &[CpuId]) -> Sums {
                Sums { $($name: self.$name.parts().of_cpus(cpus),)* }
            }
        }
    };
}

measures! {
    /// CPU time.
    run: run_time::RunTimes => RunFigures;
    /// Time runnable, but not running.
    wait: wait_time::WaitTimes => WaitFigures;
    /// Switches in and out.
    switches: switches::Switches => SwitchFigures;
    /// Moves between CPUs.
    moves: migrations::Migrations => MigrationFigures;
    /// From wake-ups, and from becoming runnable, to running.
    latency: latency::Latencies => LatencyFigures;
}
