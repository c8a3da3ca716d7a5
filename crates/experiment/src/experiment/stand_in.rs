//! An experiment as one kernel is asked it that stands in for several of the file's.

use super::{Bound, Expectation, Experiment, Published};
use crate::expr::{Expr, Reference};
use crate::file::KernelFile;
use crate::verdict::Verdict;

/// Which of an experiment's kernels stands for each of them: its index, or why none does.
type Roles = [Result<usize, String>];

impl Experiment {
    /// The experiment with those of its kernels alone that stand for others or for themselves, described anew by
    /// `described`. What was said of a kernel is now said of the one that stands for it. An expectation that cannot be
    /// asked so is left out, with the reason.
    pub(crate) fn stood_in(mut self, roles: &Roles, described: &dyn Fn(usize) -> KernelFile) -> Self {
        let kernels = std::mem::take(&mut self.file.kernels);
        let index = |name: &str| kernels.iter().position(|kernel| kernel.name == name);
        let role = |name: &str| index(name).and_then(|k| roles[k].as_ref().ok()).copied();
        for expectation in &mut self.expectations {
            expectation.stands_in = true;
            expectation.left_out = left_out(expectation, &kernels, roles).map(|why| (Verdict::Skipped, why));
            rename(&mut expectation.file.kernels, &role, &kernels);
            expectation.expressions_mut().for_each(|expr| recast(expr, &role, &kernels));
        }
        for (chart, file) in self.charts.iter_mut().zip(&mut self.file.charts) {
            rename(&mut file.kernels, &role, &kernels);
            chart.expressions_mut().for_each(|expr| recast(expr, &role, &kernels));
        }
        self.ours.iter_mut().flat_map(|table| table.values_mut()).for_each(|expr| recast(expr, &role, &kernels));
        let kept: Vec<usize> = (0..kernels.len()).filter(|k| roles[*k] == Ok(*k)).collect();
        for map in &mut self.heatmaps {
            let roles = map.kernels.iter().filter_map(|k| roles[*k].as_ref().ok());
            let mut drawn: Vec<usize> = roles.filter_map(|role| kept.iter().position(|k| k == role)).collect();
            drawn.dedup();
            map.kernels = drawn;
        }
        self.file.kernels = kept.iter().map(|k| described(*k)).collect();
        self
    }

    /// The experiment with nothing to run: every expectation has this verdict, for this reason.
    pub(crate) fn unrun(mut self, verdict: Verdict, why: &str) -> Self {
        let all = &mut self.expectations;
        all.iter_mut().for_each(|expectation| expectation.left_out = Some((verdict, why.to_owned())));
        self.file.kernels.clear();
        self
    }

    /// This experiment with the kernels of another one of the same points behind its own, for pictures and tables of
    /// both. Their names get this prefix.
    pub(crate) fn beside(mut self, other: &Self, prefix: &str) -> Self {
        let own = self.file.kernels.len();
        for chart in &mut self.file.charts {
            let more: Vec<String> = chart.kernels.iter().map(|name| format!("{prefix}{name}")).collect();
            chart.kernels.extend(more);
        }
        for (map, other) in self.heatmaps.iter_mut().zip(&other.heatmaps) {
            map.kernels.extend(other.kernels.iter().map(|k| own + k));
        }
        let renamed = |kernel: &KernelFile| KernelFile { name: format!("{prefix}{}", kernel.name), ..kernel.clone() };
        self.file.kernels.extend(other.file.kernels.iter().map(renamed));
        self
    }
}

/// Why an expectation is not asked of kernels that stand in for others; `None` if it is.
fn left_out(expectation: &Expectation, kernels: &[KernelFile], roles: &Roles) -> Option<String> {
    let mut named: Vec<&str> = Vec::new();
    for expr in expectation.expressions() {
        expr.references(&mut |reference| named.extend(reference.kernel.as_deref()));
    }
    named.sort_unstable();
    named.dedup();
    let index = |name: &str| kernels.iter().position(|kernel| kernel.name == name);
    let named: Vec<usize> = named.into_iter().filter_map(index).collect();
    if let Some((k, why)) = named.iter().find_map(|k| Some((*k, roles[*k].as_ref().err()?))) {
        return Some(format!("it is about {}: {why}", label(&kernels[k])));
    }
    for (n, k) in named.iter().enumerate() {
        if let Some(other) = named[..n].iter().find(|other| roles[**other] == roles[*k]) {
            let (one, other) = (label(&kernels[*other]), label(&kernels[*k]));
            return Some(format!("it compares {one} with {other}, and one kernel stands in for both"));
        }
    }
    let listed: Vec<usize> = expectation.file.kernels.iter().filter_map(|name| index(name)).collect();
    if !listed.is_empty() && listed.iter().all(|k| roles[*k].is_err()) {
        let why = roles[listed[0]].as_ref().err().cloned().unwrap_or_default();
        return Some(format!("it is asked of {}: {why}", label(&kernels[listed[0]])));
    }
    // What the file says of a kernel that the source did not run, it says of that kernel alone.
    let itself = |k: &usize| roles[*k] == Ok(*k);
    let apart = !named.iter().all(itself) || !(listed.is_empty() || listed.iter().any(itself));
    if apart && matches!(expectation.published, Published::Nothing) {
        let about = named.iter().chain(&listed).find(|k| !itself(k));
        let about = about.map(|k| label(&kernels[*k])).unwrap_or_default();
        return Some(format!("it is about {about}, and nothing was published for it"));
    }
    None
}

fn label(kernel: &KernelFile) -> &str {
    kernel.label.as_deref().unwrap_or(&kernel.kernel)
}

/// The names of the kernels that stand for these, each once; those for which none stands are left out. An empty list,
/// which stands for all, stays empty.
fn rename(names: &mut Vec<String>, role: &dyn Fn(&str) -> Option<usize>, kernels: &[KernelFile]) {
    let mut renamed: Vec<String> = Vec::new();
    for name in names.iter().filter_map(|name| role(name)).map(|k| kernels[k].name.clone()) {
        if !renamed.contains(&name) {
            renamed.push(name);
        }
    }
    // One that names only kernels for which none stands must not come to stand for all.
    if !renamed.is_empty() {
        *names = renamed;
    }
}

fn recast(expr: &mut Expr, role: &dyn Fn(&str) -> Option<usize>, kernels: &[KernelFile]) {
    expr.references_mut(&mut |reference: &mut Reference| {
        if let Some(k) = reference.kernel.as_deref().and_then(role) {
            reference.kernel = Some(kernels[k].name.clone());
        }
    });
}

impl Expectation {
    /// The expressions that say of which kernels and parameters it is.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let bound = match &self.bound {
            Bound::Computed(expr) => Some(expr),
            Bound::Published => None,
        };
        [&self.metric].into_iter().chain(bound)
    }

    fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let bound = match &mut self.bound {
            Bound::Computed(expr) => Some(expr),
            Bound::Published => None,
        };
        let published = match &mut self.published {
            Published::Computed(expr) => Some(expr),
            _ => None,
        };
        [&mut self.metric].into_iter().chain(bound).chain(published)
    }
}

impl super::Chart {
    fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let groups = self.groups.iter_mut().flat_map(|(value, published)| std::iter::once(value).chain(published));
        let tasks = self.tasks.iter_mut().flat_map(|(value, place)| std::iter::once(value).chain(place));
        let published = self.published.iter_mut().map(|(_, expr)| expr);
        self.y.iter_mut().chain(&mut self.error).chain(groups).chain(tasks).chain(published)
    }
}
