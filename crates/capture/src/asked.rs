//! The CPUs that `sched_setaffinity()` is asked for. The event of the call has an address alone, and who called may be
//! gone before anybody looks; so a program of eBPF keeps what is at that address, the last of each caller.

use crate::bpf::{self, CURRENT_IDS, Map, Place, READ_USER, UPDATE, address, call, exit, op};
use schedlab_base::{CpuList, Tid};
use schedlab_trace::format::Format;
use std::io;
use std::os::fd::OwnedFd;

/// The event of the call.
pub(crate) const EVENT: &str = "sys_enter_sched_setaffinity";
/// The words of a mask, for 2,048 CPUs.
const WORDS: usize = 32;
const BYTES: i32 = 8 * WORDS as i32;
/// The callers that are remembered.
const MOST: u32 = 4096;

/// The program, as long as this lives.
pub(crate) struct Asked {
    masks: Map<WORDS>,
    /// The CPUs that are online.
    cpus: CpuList,
    _attached: [OwnedFd; 2],
}

impl Asked {
    /// Has the program run at each call. It takes the kernel some 70 ms to detach it at the end.
    ///
    /// # Errors
    /// When the event has other fields, or the kernel refuses the program.
    pub(crate) fn new(event: &Format, cpus: CpuList) -> io::Result<Self> {
        let field = |name| event.field(name).map(|field| field.offset as i16).ok_or(io::ErrorKind::Unsupported);
        let masks = Map::new(MOST)?;
        let program = bpf::load(Place::Tracepoint, &program(&masks, field("len")?, field("user_mask_ptr")?))?;
        let event = bpf::attach(&program, event.id)?;
        Ok(Self { masks, cpus, _attached: [program, event] })
    }

    /// The CPUs that this task asked for last, of those that are online.
    pub(crate) fn of(&self, caller: Tid) -> Option<CpuList> {
        let mask = self.masks.get(caller as u32)?;
        let asked = |cpu: &u32| mask.get(*cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1);
        Some(self.cpus.iter().filter(asked).collect()).filter(|cpus: &CpuList| !cpus.is_empty())
    }
}

/// A program that takes the mask from the address of the event, which has both at these places, and keeps it by caller.
fn program(masks: &Map<WORDS>, length: i16, address_at: i16) -> Vec<u64> {
    const KEY: i32 = -4;
    const MASK: i32 = -8 - BYTES;
    let mut program = vec![
        op(0xbf, 6, 1, 0, 0), // r6 = the event
        call(CURRENT_IDS),
        op(0x63, 10, 0, KEY as i16, 0), // *(u32 *)key = the thread's id
    ];
    program.extend((MASK..-8).step_by(8).map(|word| op(0x7a, 10, 0, word as i16, 0)));
    program.extend([
        op(0x79, 2, 6, length, 0),       // r2 = the length
        op(0x79, 3, 6, address_at, 0),   // r3 = the address
        op(0xbc, 2, 2, 0, 0),            // r2 = its 32 bits
        op(0xb5, 2, 0, 1, BYTES as u32), // if r2 > BYTES
        op(0xb7, 2, 0, 0, BYTES as u32), //     r2 = BYTES
    ]);
    program.extend(address(1, 10, MASK));
    program.push(call(READ_USER));
    // If nothing is there, the call fails too.
    let mut keep = Vec::from(masks.load(1));
    keep.extend(address(2, 10, KEY));
    keep.extend(address(3, 10, MASK));
    keep.extend([op(0xb7, 4, 0, 0, 0), call(UPDATE)]); // r4 = 0
    program.push(op(0x55, 0, 0, keep.len() as i16, 0)); // if r0 != 0, past that
    program.extend(keep);
    program.extend([op(0xb7, 0, 0, 0, 0), exit()]); // r0 = 0
    program
}
