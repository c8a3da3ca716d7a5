//! A remark before something is measured on this kernel while other programs are busy.

use crate::ui::Ui;
use schedlab_capture::busy::{Busy, named};
use std::time::Duration;

/// How long is looked. The kernel counts in ticks of 10 ms.
const LOOK: Duration = Duration::from_millis(400);

/// Less than this part of the CPUs' time is not worth a remark.
const WORTH: f64 = 0.05;

/// Remarks on what other programs do if the measurement is `live`, on this kernel.
pub fn remark(live: bool, ui: &Ui) {
    if !live {
        return;
    }
    let Busy { share, largest } = Busy::look(LOOK);
    if share >= WORTH {
        let (percent, who) = (share * 100.0, named(&largest));
        ui.note(format!(
            "other programs take {percent:.0}% of the CPU time now ({who}): they disturb what is measured"
        ));
    }
}
