//! Schedules and single decisions, worked out by hand.

mod affinity;
mod balance_fair;
mod balance_o1;
mod balance_old;
mod bfs;
mod capacity;
mod classes;
mod costs;
mod deadline;
mod energy;
mod epoch;
mod epoch_smp;
mod fair;
mod fair_inside;
mod groups;
mod hotplug;
mod inside;
mod linux_5;
mod linux_6_18;
mod mlfq;
mod numa;
mod o1;
mod o1_releases;
mod queues;
mod staircase;
mod stride;
