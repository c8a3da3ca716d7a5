//! The fair schedulers: CFS (2.6.24 to 6.5) and EEVDF (6.6 on), and what they share.

pub mod cfs;
pub mod eevdf;
pub mod load;
pub mod timeline;
