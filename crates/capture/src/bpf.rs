//! Small programs of eBPF, written as their instructions: what they need is known only when they are made.
#![allow(unsafe_code)]

use crate::sys::{checked, own};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The numbers of the kernel's functions that these programs call (`enum bpf_func_id`).
pub(crate) const UPDATE: u32 = 2;
pub(crate) const CURRENT_IDS: u32 = 14;
pub(crate) const CURRENT_TASK: u32 = 35;
pub(crate) const READ_USER: u32 = 112;
pub(crate) const READ_KERNEL: u32 = 113;

/// The commands of `bpf()`.
const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const PROG_LOAD: libc::c_long = 5;
const PROG_TEST_RUN: libc::c_long = 10;

/// Where a program is to run (`enum bpf_prog_type`).
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Tracepoint = 5,
    RawTracepoint = 17,
}

/// An instruction (`struct bpf_insn`).
pub(crate) fn op(code: u8, to: u8, from: u8, offset: i16, value: u32) -> u64 {
    let bytes = [code, from << 4 | to, offset.to_ne_bytes()[0], offset.to_ne_bytes()[1]];
    u64::from(u32::from_ne_bytes(bytes)) | u64::from(value) << 32
}

/// `to = from + offset`.
pub(crate) fn address(to: u8, from: u8, offset: i32) -> [u64; 2] {
    [op(0xbf, to, from, 0, 0), op(0x07, to, 0, 0, offset as u32)]
}

/// Calls one of the kernel's functions.
pub(crate) fn call(function: u32) -> u64 {
    op(0x85, 0, 0, 0, function)
}

/// The end, with what is in r0.
pub(crate) fn exit() -> u64 {
    op(0x95, 0, 0, 0, 0)
}

fn bpf<const N: usize>(command: libc::c_long, attr: &mut [u64; N]) -> io::Result<libc::c_long> {
    // SAFETY: the pointer is to a live attribute of that length. The pointers in it are to live memory of the lengths
    // that the command takes, which the callers below see to.
    checked(unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), size_of_val(attr)) })
}

/// Loads a program, which may read the kernel's memory. It is not attached anywhere.
pub(crate) fn load(place: Place, program: &[u64]) -> io::Result<OwnedFd> {
    // The type and the number of instructions, these, the licence; nothing is logged.
    let kind = place as u64 | (program.len() as u64) << 32;
    bpf(PROG_LOAD, &mut [kind, program.as_ptr() as u64, c"GPL".as_ptr() as u64, 0, 0, 0]).map(own)
}

/// Runs a program for a raw tracepoint once on this CPU, and returns what it returned. Requires Linux 5.10.
pub(crate) fn run(program: &OwnedFd, cpu: u32) -> io::Result<u32> {
    const ON_CPU: u64 = 1;
    let mut attr = [program.as_raw_fd() as u64, 0, 0, 0, 0, 0, 0, 0, ON_CPU | u64::from(cpu) << 32];
    bpf(PROG_TEST_RUN, &mut attr)?;
    Ok((attr[0] >> 32) as u32)
}

/// Values of some words by number; when it is full, those go that were used least recently.
pub(crate) struct Map<const WORDS: usize>(OwnedFd);

impl<const WORDS: usize> Map<WORDS> {
    pub(crate) fn new(most: u32) -> io::Result<Self> {
        const LRU_HASH: u64 = 9;
        let value = size_of::<[u64; WORDS]>() as u64;
        bpf(MAP_CREATE, &mut [LRU_HASH | 4 << 32, value | u64::from(most) << 32, 0]).map(|fd| Self(own(fd)))
    }

    /// `to` = this map, in a program.
    pub(crate) fn load(&self, to: u8) -> [u64; 2] {
        [op(0x18, to, 1, 0, self.0.as_raw_fd() as u32), 0]
    }

    /// The value of a number, if it has one.
    pub(crate) fn get(&self, key: u32) -> Option<[u64; WORDS]> {
        let mut value = [0; WORDS];
        let (key, found) = (&raw const key as u64, value.as_mut_ptr() as u64);
        bpf(MAP_LOOKUP, &mut [self.0.as_raw_fd() as u64, key, found, 0]).ok().map(|_| value)
    }
}

/// Runs a program at each event of a tracepoint, on all CPUs, until the descriptor is closed.
pub(crate) fn attach(program: &OwnedFd, tracepoint: u16) -> io::Result<OwnedFd> {
    const TRACEPOINT: u64 = 2;
    const SET_BPF: libc::c_ulong = 0x4004_2408;
    const CLOEXEC: libc::c_long = 8;
    // struct perf_event_attr: the type and the structure's first size, and the event.
    let attr: [u64; 8] = [TRACEPOINT | 64 << 32, tracepoint.into(), 0, 0, 0, 0, 0, 0];
    // SAFETY: the pointer is to a live attribute of the length that it says; the rest are numbers: all tasks, the
    // first CPU, no group.
    let event = own(checked(unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), -1, 0, -1, CLOEXEC) })?);
    // SAFETY: the command takes the program's descriptor.
    let set = unsafe { libc::ioctl(event.as_raw_fd(), SET_BPF, program.as_raw_fd()) };
    checked(libc::c_long::from(set))?;
    Ok(event)
}
