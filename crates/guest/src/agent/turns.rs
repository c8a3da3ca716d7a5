//! Even turns of the virtual CPUs when instructions are counted.
//!
//! QEMU then runs all virtual CPUs in one thread, each until the next timer of the machine is due. With the kernel's
//! own timers alone, CPUs are away for up to 120 ms and miss their ticks. The real-time clock's periodic interrupt, at
//! its fastest, makes a turn last at most 122 us: then 2 CPUs are away for no longer than 0.3 ms, 4 for 0.8 ms. Nobody
//! acknowledges the interrupt, so that it comes only once; its timer goes on.
#![allow(unsafe_code)]

use std::io;

/// The ports of the real-time clock: the number of a register, and its contents (Motorola MC146818).
const INDEX: u16 = 0x70;
const DATA: u16 = 0x71;
/// Register A: the oscillator runs (0x20), and the periodic rate is 8192 Hz (3).
const RATE: (u8, u8) = (0x0a, 0x23);
/// Register B, and its bit for the periodic interrupt.
const CONTROL: u8 = 0x0b;
const PERIODIC: u8 = 0x40;

/// Makes QEMU go on to the next virtual CPU every 122 us.
pub(super) fn even() -> io::Result<()> {
    // SAFETY: it gives this process access to ports. Only those of the clock are used, below.
    if unsafe { libc::iopl(3) } != 0 {
        return Err(io::Error::last_os_error());
    }
    write(RATE.0, RATE.1);
    write(CONTROL, read(CONTROL) | PERIODIC);
    // SAFETY: as above; children shall not inherit the access.
    unsafe { libc::iopl(0) };
    Ok(())
}

fn read(register: u8) -> u8 {
    out(INDEX, register);
    let value: u8;
    // SAFETY: reading the clock's data port changes no memory.
    unsafe { std::arch::asm!("in al, dx", in("dx") DATA, out("al") value, options(nomem, nostack)) };
    value
}

fn write(register: u8, value: u8) {
    out(INDEX, register);
    out(DATA, value);
}

fn out(port: u16, value: u8) {
    // SAFETY: writing the clock's ports changes no memory.
    unsafe { std::arch::asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) };
}
