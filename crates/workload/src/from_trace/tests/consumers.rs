//! Consumers that take work from one queue, which producers that never sleep fill.

use super::habits::queues;
use super::*;

const FIRST: Tid = 11;

/// Producers and consumers with a CPU each. A producer that has something wakes a consumer, unless none sleeps.
struct Works {
    script: Script,
    rng: Rng,
    producers: u32,
    /// The consumers that sleep, in the order in which they went to sleep.
    asleep: Vec<u32>,
    /// The others, and until when each is awake.
    awake: Vec<(Nanos, u32)>,
}

impl Works {
    fn new(producers: u32, consumers: u32) -> Self {
        let mut script = Script::default();
        for n in 0..producers + consumers {
            let kind = if n < producers { "producer" } else { "consumer" };
            script.name(Self::tid(n), &format!("{kind}-{n}")).switch(0, n, 0, Runnable, Self::tid(n));
        }
        let awake = (producers..producers + consumers).map(|n| (10 + Nanos::from(n), n)).collect();
        Self { script, rng: Rng::new(3), producers, asleep: Vec::new(), awake }
    }

    fn tid(n: u32) -> Tid {
        FIRST + n as Tid
    }

    /// The consumers that are done by then sleep.
    fn rest(&mut self, until: Nanos) {
        self.awake.sort_unstable();
        while let Some((done, n)) = self.awake.first().copied().filter(|(done, _)| *done < until) {
            self.awake.remove(0);
            self.script.switch(done, n, Self::tid(n), Sleeping, 0);
            self.asleep.push(n);
        }
    }

    /// A producer gives something to the consumer that `which` chooses of those that sleep, in the order in which they
    /// began to.
    fn gives(&mut self, time: Nanos, producer: u32, which: impl Fn(&[u32], &mut Rng) -> usize) {
        self.rest(time);
        if self.asleep.is_empty() {
            return;
        }
        let n = self.asleep.remove(which(&self.asleep, &mut self.rng));
        self.script.wake_in(Context::Task, time, producer, Self::tid(producer), Self::tid(n));
        self.script.switch(time + 1, n, 0, Runnable, Self::tid(n));
        self.awake.push((time + 20 + self.rng.below(150), n));
    }

    /// Each producer gives something now and then.
    fn on(mut self, which: impl Fn(&[u32], &mut Rng) -> usize) -> Self {
        let mut next: Vec<Nanos> = (0..self.producers).map(|n| 400 + 30 * Nanos::from(n)).collect();
        for _ in 0..600 {
            let producer = (0..self.producers).min_by_key(|n| next[*n as usize]).expect("there is one");
            let time = next[producer as usize];
            self.gives(time, producer, &which);
            next[producer as usize] = time + 30 + self.rng.below(140);
        }
        self
    }

    /// The semaphores on which consumers wait together.
    fn queues(mut self) -> Vec<String> {
        let end = self.script.events.iter().map(|event| event.time).max().expect("there are some") / US + 500;
        self.rest(end);
        for n in 0..self.producers {
            self.script.switch(end, n, Self::tid(n), Dead, 0);
        }
        self.script.events.sort_by_key(|event| event.time);
        let workload = self.script.model(&Options::default()).unwrap().workload;
        assert_eq!(stuck(&workload), [""; 0]);
        queues(&workload)
    }
}

#[test]
fn consumers_that_are_woken_in_order_take_from_one_queue() {
    for (producers, consumers) in [(1, 2), (2, 2), (3, 3), (4, 5)] {
        let queue = [format!("queue-consumer-{producers}-{}", FIRST + producers as Tid)];
        assert_eq!(Works::new(producers, consumers).on(|_, _| 0).queues(), queue, "the longest wait first");
        let last = |asleep: &[u32], _: &mut Rng| asleep.len() - 1;
        assert_eq!(Works::new(producers, consumers).on(last).queues(), queue, "the shortest wait first");
    }
}

#[test]
fn consumers_that_are_woken_anyhow_or_all_at_once_do_not() {
    let anyhow = |asleep: &[u32], rng: &mut Rng| rng.below(asleep.len() as u64) as usize;
    assert_eq!(Works::new(1, 5).on(anyhow).queues(), [""; 0]);
    // Each time all that sleep.
    let mut all = Works::new(1, 4);
    for round in 1..200 {
        (0..4).for_each(|n| all.gives(round * 400 + n, 0, |_, _| 0));
    }
    assert_eq!(all.queues(), [""; 0]);
}
