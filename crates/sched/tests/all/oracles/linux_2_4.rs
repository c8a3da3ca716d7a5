//! The `linux-2.4` profile against the scheduler code of 2.4.22 itself, on one CPU: all figures are equal, to the
//! microsecond and to the switch.

use crate::support::exact::every_task_gets_what_the_real_kernel_gave_it;

#[test]
fn linux_2_4_is_met() {
    every_task_gets_what_the_real_kernel_gave_it("linux-2.4", include_str!("linux-2.4-up.json"), 18);
}
