//! Names and paths without a machine: which file a name means, for files that are meant for another machine.

use crate::knob::{component_of, named, next_open, short};
use crate::spec::Spec;
use schedlab_base::{Error, Result, nearest};

/// The tunable and the file that a name means: `vm.swappiness`, `swappiness`, `vda:nr_requests`, `irq24:...`.
///
/// # Errors
/// When the catalogue has none of that name, or there are several of them and the name does not say which.
pub fn resolve<'a>(specs: &'a [Spec], name: &str) -> Result<(&'a Spec, String)> {
    if let Some((label, last)) = name.split_once(':') {
        let of = |spec: &'a Spec| (short(spec.name) == last).then(|| Some((spec, path_of(spec.path, label)?)))?;
        if let Some(found) = specs.iter().find_map(of) {
            return Ok(found);
        }
    }
    match specs.iter().find(|spec| spec.path == name || spec.is_called(name)) {
        Some(spec) if next_open(spec.path).is_none() => Ok((spec, spec.path.to_owned())),
        Some(spec) => {
            let example = named(spec, example(spec.path));
            Err(Error::input("a machine has several of it").key(name).mend(format!("say which, as in \"{example}\"")))
        }
        None => {
            let last = name.rsplit(':').next().unwrap_or(name);
            let names = specs.iter().flat_map(|spec| [spec.name, short(spec.name)]);
            let mend = nearest(last, names).map_or_else(
                || "schedlab tunables lists what there is".to_owned(),
                |near| format!("did you mean \"{near}\"?"),
            );
            Err(Error::input("there is no tunable of this name that a machine has").key(name).mend(mend))
        }
    }
}

/// The files of the tunables that the kernel changes with this one, of the same device.
#[must_use]
pub fn changed_with(specs: &[Spec], spec: &Spec, name: &str) -> Vec<String> {
    let label = name.split_once(':').map(|(label, _)| label);
    let path = |other: &Spec| match label {
        Some(label) if next_open(other.path).is_some() => path_of(other.path, label),
        _ => next_open(other.path).is_none().then(|| other.path.to_owned()),
    };
    specs.iter().filter(|other| spec.changes.contains(&other.name)).filter_map(path).collect()
}

/// The path of a pattern for a label whose parts stand for its `<x>` in order.
fn path_of(pattern: &str, label: &str) -> Option<String> {
    let mut parts = label.split('/');
    let mut path = String::new();
    let mut rest = pattern;
    while let Some((before, component, after)) = next_open(rest) {
        path += before;
        path += &component_of(component, parts.next()?)?;
        rest = after;
    }
    parts.next().is_none().then(|| path + rest)
}

fn example(pattern: &str) -> &'static str {
    match pattern {
        _ if pattern.contains("<dev>") => "sda",
        _ if pattern.contains("<irq>") => "irq24",
        _ if pattern.contains("<M>") => "cpu0/domain0",
        _ if pattern.contains("rx-<N>") => "eth0/rx-0",
        _ if pattern.contains("tx-<N>") => "eth0/tx-0",
        _ if pattern.contains("<if>") => "eth0",
        _ => "cpu0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::specs;

    #[test]
    fn a_name_means_a_file_on_any_machine() {
        let specs = specs();
        let path = |name: &str| resolve(&specs, name).map(|(_, path)| path);
        assert_eq!(path("vm.swappiness").unwrap(), "/proc/sys/vm/swappiness");
        assert_eq!(path("swappiness").unwrap(), "/proc/sys/vm/swappiness");
        assert_eq!(path("sdb:nr_requests").unwrap(), "/sys/block/sdb/queue/nr_requests");
        assert_eq!(path("irq9:smp_affinity_list").unwrap(), "/proc/irq/9/smp_affinity_list");
        let said = |name: &str| path(name).unwrap_err().to_string();
        assert_eq!(
            said("nr_requests"),
            "nr_requests: a machine has several of it; say which, as in \"sda:nr_requests\""
        );
        assert!(said("swapiness").ends_with("did you mean \"swappiness\"?"), "{}", said("swapiness"));
        assert!(said("sda:nr_request").ends_with("did you mean \"nr_requests\"?"));
        for odd in ["sda/x:nr_requests", "9:smp_affinity_list", "irqx:smp_affinity_list", "../a:nr_requests"] {
            assert!(path(odd).is_err(), "{odd}");
        }
        let (spec, _) = resolve(&specs, "sdb:scheduler").unwrap();
        assert_eq!(changed_with(&specs, spec, "sdb:scheduler"), ["/sys/block/sdb/queue/nr_requests"]);
        let (spec, _) = resolve(&specs, "vm.dirty_bytes").unwrap();
        assert_eq!(changed_with(&specs, spec, "vm.dirty_bytes"), ["/proc/sys/vm/dirty_ratio"]);
    }
}
