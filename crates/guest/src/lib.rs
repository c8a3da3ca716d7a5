//! Real kernels in virtual machines: QEMU boots a kernel on a machine of the user's choice, this same program is the
//! guest's first process, runs a command there, and hands its files back.
//!
//! Nothing of a running guest is in a file system: the kernel, the initramfs, the console and the memory that host and
//! guest share are anonymous files of this process, and QEMU dies with it. So a guest leaves nothing behind, however
//! schedlab ends.
//!
//! | module | what it does |
//! |---|---|
//! | `cpio`, `program`, `initramfs` | the guest's first file system: this program and its job |
//! | `mailbox` | the job and its results, in memory that both sides share |
//! | `topology` | QEMU's arguments for a machine |
//! | `image`, `store`, `kernel` | the kernels of the distribution, fetched and kept; a kernel by its name |
//! | `guest`, `qemu`, `console`, `vm` | one guest from its start to its end, and what went wrong |
//! | `accel`, `run` | whether KVM truly runs a guest here; a guest for one job or several |
//! | `agent` | the other side: the guest's first process |

pub mod accel;
pub mod agent;
mod console;
mod cpio;
mod guest;
mod image;
mod initramfs;
mod kernel;
mod mailbox;
mod program;
mod qemu;
mod run;
mod store;
mod topology;
mod vm;

pub use agent::PRINTED;
pub use guest::{Accel, Guest, Limits};
pub use kernel::{Kernel, find};
pub use mailbox::{Done, Job, Seen};
pub use run::{run, start};
pub use store::{Kept, Store};
pub use topology::fits;
pub use vm::{Ran, Running};
