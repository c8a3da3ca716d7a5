//! The vocabulary that all other crates share: units and ids, the scheduling event, the metadata of a trace, and the
//! error shown to a user.
//!
//! This crate depends on no other crate of the workspace and does no I/O.

mod averages;
mod computing;
mod cost;
mod counted;
mod cpulist;
mod error;
mod event;
mod identity;
mod ids;
mod meta;
mod path_text;
mod pattern;
mod release;
mod rng;
mod smt;
mod system;
mod target;
mod total;
mod visible;

pub use averages::Averages;
pub use computing::Computing;
pub use cost::Cost;
pub use counted::{counted, grouped, listed};
pub use cpulist::CpuList;
pub use error::{Error, Kind as ErrorKind, Result, nearest};
pub use event::{
    AffinityRecord, Context, Event, Ignored, Interrupt, Looking, NOWHERE, NameRecord, PAGE, Payload, Sink, Sleep,
    TaskState,
};
pub use identity::{GroupProperties, GroupRecord, Policy, TaskProperties, TaskRecord};
pub use ids::{CpuId, Nanos, Tid, duration_text, parse_duration};
pub use meta::{CpuPlace, Meta};
pub use path_text::{PathText, path_text, path_texts};
pub use pattern::fits;
pub use release::{Release, v, v2_6};
pub use rng::{Draws, Rng, rounded};
pub use smt::{SMT_LOSS_PERCENT, SmtSpeeds};
pub use system::System;
pub use target::{Coverage, Partial, Target};
pub use total::total;
pub use visible::{is_hidden, visible};
