//! The tests of the schedulers through their public interface, in one binary, which links once.

mod golden;
mod oracles;
mod properties;
mod support;
