//! Changing the weight of an entity by placing it anew, from 6.13 on.

use super::Eevdf;
use crate::fair::entity::{Entity, EntityId, Flags};
use crate::fair::load::Load;
use crate::fair::{Discipline, Fair};
use schedlab_sim::Core;

impl Fair<Eevdf> {
    /// Keeps the lag and what is left of the request in terms of weight, and places the entity by them
    /// (`reweight_entity`). The running entity is part of the average by which it is placed. Its slice is no longer
    /// protected.
    pub(super) fn reweight_by_placing(&mut self, cx: &mut Core, e: EntityId, load: Load, exact: (u64, u64)) {
        let Entity { queue: q, on_rq, .. } = self.rqs.entities[e as usize];
        let scaled = |x: i64| x.wrapping_mul(exact.0 as i64) / exact.1 as i64;
        let queued = on_rq && !self.rqs.is_curr(q, e);
        if on_rq {
            self.update_curr(cx, q);
            self.update_lag(q, e);
            let entity = &mut self.rqs.entities[e as usize];
            entity.deadline = entity.deadline.wrapping_sub(entity.vruntime);
            entity.flags.set(Flags::RELATIVE, true);
            self.rqs.queues[q as usize].nr_queued -= 1;
            if queued {
                Eevdf::remove(self, q, e);
            }
        }
        let entity = &mut self.rqs.entities[e as usize];
        entity.vlag = scaled(entity.vlag);
        if entity.flags.has(Flags::RELATIVE) {
            entity.deadline = scaled(entity.deadline as i64) as u64;
        }
        self.set_load(e, load, cx.now());
        if on_rq {
            self.place(q, e, false);
            if queued {
                Eevdf::insert(self, q, e);
            }
            self.rqs.queues[q as usize].nr_queued += 1;
        }
    }
}
