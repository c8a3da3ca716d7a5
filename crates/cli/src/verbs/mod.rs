//! The verbs: each module carries `Args` and `run`.

pub mod doctor;
pub mod import;
pub mod machines;
pub mod record;
pub mod run;
pub mod stats;
