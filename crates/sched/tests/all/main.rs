//! The tests of the schedulers by their public face, in one binary: it links once.

mod golden;
mod oracles;
mod properties;
mod support;
