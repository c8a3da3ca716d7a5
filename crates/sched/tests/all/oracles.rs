//! Comparison with figures of real kernels: what each task of a load got, and which sched domains were built.

mod classes;
mod domains;
mod domains_shapes;
mod fair_up;
mod linux_2_4;
mod linux_2_6_11;
mod linux_2_6_11_2cpu;
mod linux_2_6_32;
mod linux_2_6_32_smp;
mod linux_6_12_smp;
mod linux_smp_groups;
