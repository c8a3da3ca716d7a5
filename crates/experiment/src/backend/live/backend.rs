//! Experiments on this kernel.

use super::{kernel, plan, record};
use crate::backend::recording::{Real, Recording, Unnamed};
use crate::backend::{Backend, Outcome, Request};
use schedlab_base::{Error, Meta, Nanos, Result, Sink, counted};
use schedlab_capture::{Ending, stolen};
use schedlab_machine::Machine;
use schedlab_trace::Writer;
use std::collections::BTreeMap;
use std::io::BufWriter;
use std::time::Instant;

/// This machine and its kernel.
#[derive(Clone, Debug)]
pub struct Live {
    host: Machine,
    kernel: String,
}

impl Live {
    /// Looks at this machine.
    ///
    /// # Errors
    /// When its CPUs cannot be found out.
    pub fn new() -> Result<Self> {
        Ok(Self { host: schedlab_machine::host()?, kernel: kernel() })
    }
}

impl Backend for Live {
    fn name(&self) -> &str {
        "live"
    }

    fn deterministic(&self) -> bool {
        false
    }

    fn real_kernel(&self) -> Option<&str> {
        Some(&self.kernel)
    }

    fn lacks(&self, machine: &Machine) -> Option<String> {
        let (theirs, ours) = (machine.cpus.len(), self.host.cpus.len());
        let nodes = |machine: &Machine| machine.distances.len().max(1);
        let several = |n: usize, thing: &str| counted(n as u64, thing);
        let differ = |machine: &Machine| machine.cpus.iter().any(|cpu| cpu.place.capacity != 1024);
        if theirs > ours {
            Some(format!("its machine has {}, and this one has {ours}", several(theirs, "CPU")))
        } else if nodes(machine) > nodes(&self.host) {
            Some(format!("its machine has {}, and this one has {}", several(nodes(machine), "node"), nodes(&self.host)))
        } else if differ(machine) && !differ(&self.host) {
            Some("its machine has CPUs of different capacity, and this one has not".to_owned())
        } else {
            None
        }
    }

    fn meta(&self, request: &Request) -> Meta {
        Meta {
            source: "record".to_owned(),
            kernel: self.kernel.clone(),
            machine: "host".to_owned(),
            clock: "mono".to_owned(),
            cpus: self.host.cpus.iter().map(|cpu| cpu.place.clone()).collect(),
            distances: self.host.distances.clone(),
            notes: BTreeMap::from([("workload".to_owned(), request.workload.name.clone())]),
            ..Meta::default()
        }
    }

    fn idle_ticks(&self, _: &Request) -> Result<Option<(Nanos, Nanos)>> {
        Ok(None)
    }

    fn run(&self, request: &Request, sink: &mut dyn Sink) -> Result<Outcome> {
        self.recording(request)?.replay(sink)
    }
}

impl Real for Live {
    fn recording(&self, request: &Request) -> Result<Recording> {
        let (mut options, notes) = plan(request)?;
        if request.machine.cpus.len() < self.host.cpus.len() {
            options.cpus = Some(request.machine.cpus.iter().map(|cpu| cpu.place.cpu).collect());
        }
        let file = Unnamed::new()?;
        let written = file.0.try_clone().map_err(|e| Error::system("cannot make room for the trace", &e))?;
        let open = |meta: &Meta| Writer::new(BufWriter::with_capacity(1 << 20, written), meta);
        let (begun, before) = (Instant::now(), stolen());
        let (_, recorded, execution) = record(request, options, None, true, open, |_| {})?;
        if recorded.ending == Ending::Signal {
            return Err(Error::system("the run was interrupted", &"a signal arrived"));
        }
        let mut recording = Recording::new(file, &recorded, &execution, notes);
        let there = begun.elapsed().as_secs_f64() * self.host.cpus.len() as f64;
        recording.taken = Some(stolen().saturating_sub(before) as f64 / 1e9 / there);
        Ok(recording)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_this_one_cannot_be_is_refused() {
        let lacks = |ours: &str, theirs: &str| {
            let host = schedlab_machine::load(ours).unwrap();
            Live { host, kernel: String::new() }.lacks(&schedlab_machine::load(theirs).unwrap())
        };
        assert_eq!(lacks("2", "4").unwrap(), "its machine has 4 CPUs, and this one has 2");
        assert_eq!(lacks("16", "z800").unwrap(), "its machine has 2 nodes, and this one has 1");
        assert!(lacks("16", "big-little-4+4").unwrap().contains("different capacity"));
        assert_eq!(lacks("16", "4"), None, "part of this machine will do");
    }
}
