//! The tunables of a machine: what it has, what may be set, and a way to set them that leaves the machine as it was.
//!
//! A [`Spec`] is what the catalogue knows of a tunable; a [`Knob`] is one that this machine has, such as
//! `vda:nr_requests`. [`Settings`] is a file of values. A [`Plan`] is such a file checked against the knobs, before
//! anything is changed. [`apply()`] writes every old value to a [`Journal`] on disk and only then sets the new ones;
//! [`restore()`] puts back what the journal holds, also after the process that set it was killed.

mod change;
mod disk;
mod here;
mod journal;
mod knob;
mod owner;
mod place;
mod plan;
mod process;
mod profile;
mod restore;
mod root;
mod settings;
mod spec;
mod state;
#[cfg(test)]
mod tests;
mod values;

pub use change::{Applied, Set, apply};
pub use here::Here;
pub use journal::{Journal, Record};
pub use knob::{Knob, Shown, Status, find, knobs, shown};
pub use owner::Owner;
pub use plan::{Change, Plan};
pub use process::of_processes;
pub use profile::{Line, Profile};
pub use restore::{PutBack, Restored, restore};
pub use root::Root;
pub use settings::{Setting, Settings};
pub use spec::{Group, Risk, Spec};
pub use state::{Left, State};
pub use values::{Cpus, Limits, Values};
