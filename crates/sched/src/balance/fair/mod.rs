//! Balancing of the fair class: how CFS and EEVDF kernels spread tasks over the CPUs.
//!
//! What balancing and placement go by is [`Averages`]; who computes it is the fair class's affair.

mod averages;

pub use averages::Averages;
