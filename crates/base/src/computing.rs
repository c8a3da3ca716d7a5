//! What a task's computing consists of when it is run for real.

/// `x-work`: what a task computes on a real kernel. A simulated task computes for as long as its workload says,
/// whatever it computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Computing {
    /// Counted loops, and touching what the task's memory and working set ask for.
    #[default]
    Loops,
    /// Linpack: systems of equations, solved by Gaussian elimination with partial pivoting and checked by their
    /// residual. The matrix fills the task's memory.
    Linpack,
    /// STREAM: copy, scale, add and triad over three arrays, which fill the task's memory.
    Stream,
}

impl Computing {
    /// Each of them with its word in a workload's file.
    pub const WORDS: &[(&str, Self)] = &[("loops", Self::Loops), ("linpack", Self::Linpack), ("stream", Self::Stream)];

    /// Its word in a workload's file.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}
