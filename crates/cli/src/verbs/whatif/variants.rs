//! What is asked: kernels, machines and settings, one by one or as named variants.

use crate::verbs::sim::setting;
use schedlab_base::{Error, Result};
use schedlab_experiment::as_recorded::{RECORDED, Setup, settings_of_load};
use schedlab_sched::kernels;
use schedlab_workload::Workload;

/// What is asked.
#[derive(clap::Args)]
pub struct VariantArgs {
    /// A kernel to ask about; may be repeated (default: the recorded one).
    #[arg(long, short, value_name = "KERNEL")]
    kernel: Vec<String>,
    /// A machine to ask about: a preset, a shorthand (2x6), host, or a file; may be repeated (default: the recorded
    /// one).
    #[arg(long, short, value_name = "MACHINE")]
    machine: Vec<String>,
    /// Set a tunable, with each --kernel and --machine; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// One more to ask about, with a name of your own: NAME:kernel=K,machine=M,set.TUNABLE=VALUE; may be repeated.
    #[arg(long, value_name = "NAME:SPEC")]
    variant: Vec<String>,
    /// What "as recorded" is (default: as the trace says): kernel=K,machine=M,set.TUNABLE=VALUE.
    #[arg(long, value_name = "SPEC")]
    baseline: Option<String>,
}

/// A kernel, a machine and settings, as far as they are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    pub kernel: Option<String>,
    pub machine: Option<String>,
    pub set: Vec<(String, String)>,
}

impl Spec {
    /// Reads `kernel=K,machine=M,set.TUNABLE=VALUE`.
    fn parse(text: &str, option: &str) -> Result<Self> {
        let mut spec = Self::default();
        let wrong = |what: String| Error::input(what).key(option).mend("write kernel=K,machine=M,set.TUNABLE=VALUE");
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(|| wrong(format!("\"{part}\" sets nothing")))?;
            let (key, value) = (key.trim(), value.trim().to_owned());
            let field = match key {
                "kernel" => &mut spec.kernel,
                "machine" => &mut spec.machine,
                _ => {
                    let name = key.strip_prefix("set.").ok_or_else(|| wrong(format!("there is no \"{key}\"")))?;
                    spec.set.push((name.to_owned(), value));
                    continue;
                }
            };
            if field.replace(value).is_some() {
                return Err(wrong(format!("\"{key}\" is given twice")));
            }
        }
        Ok(spec)
    }

    /// Where it is: what is not given is as recorded. The recorded settings are kept with the recorded kernel;
    /// whether sessions share as groups, with any.
    fn setup(&self, baseline: &Setup, workload: &Workload) -> Result<Setup> {
        let given = |name: &Option<String>| name.clone().filter(|name| name != RECORDED);
        let machine = match given(&self.machine) {
            Some(spec) => schedlab_machine::load(&spec)?,
            None => baseline.machine.clone(),
        };
        let (kernel, mut set) = match given(&self.kernel) {
            Some(name) => {
                let kernel = kernels::find(&name)?;
                (kernel.name.to_owned(), settings_of_load(workload, kernel, &machine))
            }
            None => (baseline.kernel.clone(), baseline.set.clone()),
        };
        set.retain(|(name, _)| !self.set.iter().any(|(other, _)| other == name));
        set.extend(self.set.iter().cloned());
        Ok(Setup { kernel, machine, set })
    }

    /// `linux-6.12 on z800, base_slice_ns=1000000`.
    fn name(&self) -> String {
        let kernel = self.kernel.as_deref().unwrap_or(RECORDED);
        let mut name = match &self.machine {
            Some(machine) => format!("{kernel} on {machine}"),
            None if self.kernel.is_none() && !self.set.is_empty() => String::new(),
            None => kernel.to_owned(),
        };
        for (tunable, value) in &self.set {
            let comma = if name.is_empty() { "" } else { ", " };
            name += &format!("{comma}{tunable}={value}");
        }
        name
    }
}

impl VariantArgs {
    /// Refuses a question that asks for nothing.
    pub fn check(&self) -> Result<()> {
        if self.kernel.is_empty() && self.machine.is_empty() && self.set.is_empty() && self.variant.is_empty() {
            return Err(Error::input("nothing is asked").mend("give --kernel, --machine, --set or --variant"));
        }
        self.specs().map(drop)
    }

    /// What "as recorded" is, as far as it is given.
    pub fn baseline(&self) -> Result<Spec> {
        self.baseline.as_deref().map_or_else(|| Ok(Spec::default()), |text| Spec::parse(text, "--baseline"))
    }

    /// Each variant, with its name: every kernel on every machine, then those with names.
    fn specs(&self) -> Result<Vec<(String, Spec)>> {
        let some = |names: &[String]| -> Vec<Option<String>> {
            if names.is_empty() { vec![None] } else { names.iter().cloned().map(Some).collect() }
        };
        let mut specs = Vec::new();
        if !(self.kernel.is_empty() && self.machine.is_empty() && self.set.is_empty()) {
            for kernel in some(&self.kernel) {
                for machine in some(&self.machine) {
                    let spec = Spec { kernel: kernel.clone(), machine, set: self.set.clone() };
                    specs.push((spec.name(), spec));
                }
            }
        }
        for text in &self.variant {
            let wrong = || {
                let error = Error::input(format!("\"{text}\" has no name")).key("--variant");
                error.mend("write NAME:kernel=K,machine=M,set.TUNABLE=VALUE")
            };
            let is_name = |name: &str| !name.trim().is_empty() && !name.contains('=');
            let (name, spec) = text.split_once(':').filter(|(name, _)| is_name(name)).ok_or_else(wrong)?;
            specs.push((name.to_owned(), Spec::parse(spec, "--variant")?));
        }
        let names: Vec<&String> = specs.iter().map(|(name, _)| name).collect();
        match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            Some((_, name)) => Err(Error::input(format!("\"{name}\" is asked twice")).mend("ask once")),
            None => Ok(specs),
        }
    }

    /// Where each variant is.
    pub fn setups(&self, baseline: &Setup, workload: &Workload) -> Result<Vec<(String, Setup)>> {
        self.specs()?.into_iter().map(|(name, spec)| Ok((name, spec.setup(baseline, workload)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(kernel: &[&str], machine: &[&str], variant: &[&str]) -> VariantArgs {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        VariantArgs {
            kernel: owned(kernel),
            machine: owned(machine),
            set: Vec::new(),
            variant: owned(variant),
            baseline: None,
        }
    }

    #[test]
    fn kernels_and_machines_are_combined() {
        let names =
            |args: VariantArgs| -> Vec<String> { args.specs().unwrap().into_iter().map(|(name, _)| name).collect() };
        assert_eq!(names(args(&["a", "b"], &[], &[])), ["a", "b"]);
        assert_eq!(names(args(&["a", "b"], &["2"], &["x:kernel=c"])), ["a on 2", "b on 2", "x"]);
        assert_eq!(names(args(&[], &["2", "4"], &[])), ["recorded on 2", "recorded on 4"]);
        assert!(args(&[], &[], &[]).check().is_err());
    }

    #[test]
    fn a_spec_is_checked() {
        let spec = Spec::parse("kernel=linux-6.12, set.base_slice_ns=1000000", "--variant").unwrap();
        assert_eq!(spec.kernel.as_deref(), Some("linux-6.12"));
        assert_eq!(spec.set, [("base_slice_ns".to_owned(), "1000000".to_owned())]);
        let message = |variant: &str| args(&[], &[], &[variant]).check().unwrap_err().to_string();
        assert!(message("kernel=linux-6.12").contains("has no name"));
        assert!(message(":kernel=linux-6.12").contains("\":kernel=linux-6.12\" has no name"));
        assert!(message("a:kernel").contains("sets nothing"));
        assert!(message("a:kernle=linux-6.12").contains("there is no \"kernle\""));
        assert!(message("a:kernel=x,kernel=y").contains("twice"));
        assert!(args(&["x"], &[], &["x:kernel=y"]).check().unwrap_err().to_string().contains("asked twice"));
    }
}
