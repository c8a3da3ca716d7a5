//! The driver of all campaigns: it makes inputs from a seed, bounds time and memory, and keeps the input that fails.

use schedlab_base::Rng;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// No input may take longer, in a debug build on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);
/// No input may take more memory beyond what the process has already, in KiB.
const MOST_KIB: u64 = 1 << 20;

/// What became of an input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was read, or it ran.
    Accepted,
    /// It was refused with a message.
    Refused,
}

/// Campaigns run one at a time, so that each knows its own memory.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// One campaign: many inputs for one target.
pub struct Campaign {
    /// The test's name.
    pub name: &'static str,
    /// The number of inputs when it runs as a test.
    pub rounds: u64,
    /// At least this percentage of the inputs is accepted, and at least this percentage is refused. Otherwise the
    /// inputs are too wild or too tame.
    pub least_percent: u64,
}

impl Campaign {
    /// Makes inputs and checks each. A check that panics has found a fault.
    ///
    /// - `SCHEDLAB_FUZZ_SECONDS`: how long it runs, instead of the number of inputs of the test;
    /// - `SCHEDLAB_FUZZ_SEED`: another seed than that of the test;
    /// - `SCHEDLAB_FUZZ_INPUT`: checks only the input in this file.
    pub fn run(&self, make: impl Fn(&mut Rng) -> Vec<u8>, check: impl Fn(&[u8]) -> Verdict) {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let setting = |name: &str| std::env::var(format!("SCHEDLAB_FUZZ_{name}")).ok();
        if let Some(path) = setting("INPUT") {
            check(&std::fs::read(path).expect("the input can be read"));
            return;
        }
        let seconds = setting("SECONDS").map(|s| Duration::from_secs(s.parse().expect("a number of seconds")));
        let seed: u64 = setting("SEED").map_or(1, |seed| seed.parse().expect("a number"));
        let begin = Instant::now();
        let (mut rounds, mut accepted) = (0_u64, 0_u64);
        while seconds.map_or(rounds < self.rounds, |length| begin.elapsed() < length) {
            let input = make(&mut Rng::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(rounds)));
            match guarded(&input, &check) {
                Ok(verdict) => accepted += u64::from(verdict == Verdict::Accepted),
                Err(fault) => self.fail(seed, rounds, &input, &fault),
            }
            rounds += 1;
        }
        let refused = rounds - accepted;
        eprintln!("{}: {rounds} inputs with seed {seed}, {accepted} accepted, {refused} refused", self.name);
        let least = rounds * self.least_percent / 100;
        assert!(accepted >= least && refused >= least, "{accepted} of {rounds} inputs were accepted");
    }

    fn fail(&self, seed: u64, round: u64, input: &[u8], fault: &str) -> ! {
        let path = folder().join(format!("{}-{seed}-{round}", self.name));
        std::fs::write(&path, input).expect("the input can be kept");
        let (name, path) = (self.name, path.display());
        panic!(
            "{fault}\ninput {round} of seed {seed} is in {path}; repeat it with\n\
             SCHEDLAB_FUZZ_INPUT={path} cargo test --locked --test fuzz {name}"
        );
    }
}

/// Where inputs that failed are kept.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned()
}

/// Checks an input; an error is a panic, or a bound that was exceeded.
fn guarded(input: &[u8], check: &impl Fn(&[u8]) -> Verdict) -> Result<Verdict, String> {
    let before = Memory::reset();
    let begin = Instant::now();
    let verdict = catch_unwind(AssertUnwindSafe(|| check(input))).map_err(|panic| text(&*panic))?;
    let (took, grown) = (begin.elapsed(), before.growth());
    if took > LONGEST {
        return Err(format!("it took {:.1} s", took.as_secs_f64()));
    }
    if grown > MOST_KIB {
        return Err(format!("it took {} MiB of memory", grown >> 10));
    }
    Ok(verdict)
}

fn text(panic: &(dyn Any + Send)) -> String {
    let literal = || panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    panic.downcast_ref::<String>().cloned().or_else(literal).unwrap_or_else(|| "it panicked".to_owned())
}

/// The memory of this process, in KiB.
struct Memory(u64);

impl Memory {
    /// Forgets the peak so far.
    fn reset() -> Self {
        // Without this file the peak of earlier inputs counts too, and the bound is the whole process's.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Self(status("VmRSS:"))
    }

    /// By how much the peak is above what there was before.
    fn growth(&self) -> u64 {
        status("VmHWM:").saturating_sub(self.0)
    }
}

fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

mod tests {
    use super::*;

    /// The driver notices a panic, too much time and too much memory.
    #[test]
    fn the_driver_catches_what_it_should() {
        let panics = |_: &[u8]| -> Verdict { panic!("on purpose") };
        assert_eq!(guarded(b"", &panics).err(), Some("on purpose".to_owned()));
        let greedy = |_: &[u8]| {
            let much = vec![1_u8; (MOST_KIB as usize + (64 << 10)) << 10];
            if much.iter().step_by(4096).all(|byte| *byte == 1) { Verdict::Accepted } else { Verdict::Refused }
        };
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(guarded(b"", &greedy).is_err_and(|fault| fault.contains("of memory")));
        assert!(guarded(b"", &|_: &[u8]| Verdict::Refused).is_ok());
    }
}
