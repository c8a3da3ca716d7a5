//! Partial recordings: what can be asked of them, and what is said of them.

use schedlab_base::{Coverage, Error, Meta, Result};
use std::path::Path;

/// Refuses what a partial recording cannot tell; `key` is the option that asks for it, or the verb.
pub fn refuse(meta: &Meta, trace: &Path, key: &str) -> Result<()> {
    match &meta.partial {
        Some(partial) => Err(Error::input(partial.reason()).mend(partial.remedy()).key(key).file(trace)),
        None => Ok(()),
    }
}

/// Refuses a recording that does not show when tasks ran and waited: of some CPUs, or from inside the tasks.
pub fn refuse_without_waits(meta: &Meta, trace: &Path, verb: &str) -> Result<()> {
    match meta.covers() {
        Some(Coverage::Inside | Coverage::Cpus) => refuse(meta, trace, verb),
        Some(Coverage::Tasks) | None => Ok(()),
    }
}

/// The line that says so at the head of an answer; empty if the recording is whole.
pub fn remark(meta: &Meta) -> String {
    meta.partial.as_ref().map_or_else(String::new, |partial| format!("partial: {}\n", partial.reason()))
}
