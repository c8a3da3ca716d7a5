//! Numbers that follow from the machine, for tests that run on machines of any size.

use crate::expr::{Problem, Reference, Scope, Selected, Value, eval_number, parse};
use crate::file::ExperimentFile;
use crate::points::Point;
use crate::scalar::Scalar;
use schedlab_machine::Machine;
use std::collections::BTreeMap;

/// The facts of a machine, by name.
pub(super) fn facts(machine: &Machine) -> [(&'static str, usize); 6] {
    [
        ("cpus", machine.cpus.len()),
        ("cores", machine.cores()),
        ("llcs", machine.llcs()),
        ("sockets", machine.sockets()),
        ("nodes", machine.nodes()),
        ("threads", machine.threads()),
    ]
}

struct Facts<'a>(&'a BTreeMap<String, Scalar>);

impl Scope for Facts<'_> {
    fn value(&self, reference: &Reference, _: &[Selected]) -> Result<Value, Problem> {
        let known = self.0.get(&reference.path).and_then(Scalar::number);
        known.map(Value::Number).ok_or_else(|| {
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            Problem::Wrong(format!("no \"{}\" is known of a machine; known: {}", reference.path, names.join(", ")))
        })
    }
}

/// The facts of a machine and the numbers that a test makes of them.
///
/// # Errors
/// With the name of the number and what is wrong.
pub(super) fn numbers(machine: &Machine, scale: &BTreeMap<String, Scalar>) -> Result<Point, (String, String)> {
    let own = facts(machine).into_iter().map(|(name, n)| (name.to_owned(), Scalar::Int(n as i64)));
    let own: BTreeMap<String, Scalar> = own.collect();
    let mut all = own.clone();
    let cpus: Vec<String> = machine.cpus.iter().map(|cpu| cpu.place.cpu.to_string()).collect();
    for (name, text) in
        [("all", cpus.join(", ")), ("upper", cpus[cpus.len() / 2..].join(", ")), ("siblings", siblings(machine))]
    {
        all.insert(name.to_owned(), Scalar::Text(text));
    }
    for (name, expression) in scale {
        let fail = |what: String| (name.clone(), what);
        if all.contains_key(name) {
            return Err(fail("is a fact of the machine; take another name".to_owned()));
        }
        let expr = parse(&expression.to_string()).map_err(|e| fail(e.to_string()))?;
        let value = eval_number(&expr, &Facts(&own)).map_err(|e| fail(e.to_string()))?;
        all.insert(name.clone(), Scalar::Int(value.round() as i64));
    }
    Ok(Point(all))
}

/// An expression: the time that both of the first two threads of a core were busy, at least, of all cores together. A
/// task that goes from one thread to the other and back never keeps both busy.
fn siblings(machine: &Machine) -> String {
    let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for cpu in &machine.cpus {
        cores.entry(cpu.place.core).or_default().push(cpu.place.cpu);
    }
    let shared = cores.values().filter_map(|threads| match threads[..] {
        [a, b, ..] => Some(format!("larger(busy_s[cpu={a}] + busy_s[cpu={b}] - duration_s, 0)")),
        _ => None,
    });
    let shared: Vec<String> = shared.collect();
    if shared.is_empty() { "0".to_owned() } else { shared.join(" + ") }
}

/// Puts the numbers in their places.
pub(super) fn fill(file: &mut ExperimentFile, numbers: &Point) {
    let text = |text: &mut String| *text = numbers.fill(text);
    let scalar = |value: &mut Scalar| {
        if let Scalar::Text(old) = value {
            let new = numbers.fill(old);
            *value = match new.parse() {
                Ok(number) if new != *old => Scalar::Int(number),
                _ => Scalar::Text(new),
            };
        }
    };
    let workload = &mut file.workload;
    for given in [&mut workload.preset, &mut workload.inline, &mut file.duration, &mut file.window] {
        given.iter_mut().for_each(text);
    }
    file.sweep.values_mut().flatten().for_each(scalar);
    file.metrics.values_mut().for_each(|metric| text(&mut metric.value));
    for expectation in &mut file.expectations {
        expectation.metric.iter_mut().for_each(text);
        expectation.bound.iter_mut().for_each(scalar);
        expectation.at.values_mut().flatten().for_each(scalar);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_the_machine() {
        let machine = schedlab_machine::load("2x4x2").unwrap();
        let scale = BTreeMap::from([
            ("hogs".to_owned(), Scalar::Text("cpus * 3 / 2".to_owned())),
            ("two".to_owned(), Scalar::Int(2)),
        ]);
        let numbers = numbers(&machine, &scale).unwrap();
        assert_eq!(numbers.fill("{cpus} {cores} {threads} {sockets} {hogs} {two} {other}"), "16 8 2 2 24 2 {other}");
        assert!(numbers.fill("[{all}]").ends_with("13, 14, 15]"));
        assert!(numbers.fill("{siblings}").starts_with("larger(busy_s[cpu=0] + busy_s[cpu=1] - duration_s, 0) + "));
    }

    #[test]
    fn unknown_names_are_refused() {
        let machine = schedlab_machine::load("2").unwrap();
        let scale = BTreeMap::from([("n".to_owned(), Scalar::Text("cpu * 2".to_owned()))]);
        let (name, what) = numbers(&machine, &scale).unwrap_err();
        assert_eq!(name, "n");
        assert!(what.starts_with("no \"cpu\" is known of a machine; known: cores, cpus"), "{what}");
    }
}
