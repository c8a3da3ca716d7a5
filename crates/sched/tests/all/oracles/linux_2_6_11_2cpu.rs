//! The `linux-2.6.11` profile against the scheduler code of 2.6.11 itself, on two CPUs with its load balancer: all
//! figures are equal, to the microsecond, to the switch and to the migration.

use crate::support::exact::every_task_gets_what_the_real_kernel_gave_it;

#[test]
fn linux_2_6_11_is_met_on_two_cpus() {
    every_task_gets_what_the_real_kernel_gave_it("linux-2.6.11", include_str!("linux-2.6.11-2cpu.json"), 24);
}
