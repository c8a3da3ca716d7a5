//! A remark before something is measured on this kernel while other programs are busy.

use crate::ui::Ui;
use schedlab_capture::Busy;
use std::time::Duration;

/// How long is looked. The kernel counts in ticks of 10 ms.
const LOOK: Duration = Duration::from_millis(400);

/// Less than this part of the CPUs' time is not worth a remark.
const WORTH: f64 = 0.05;

/// Remarks on what other programs do if one of these places is this kernel.
pub fn remark<'a>(mut places: impl Iterator<Item = &'a str>, ui: &Ui) {
    if places.any(|on| on == "live") {
        let busy = Busy::look(LOOK);
        if busy.share >= WORTH {
            let (percent, who) = (busy.share * 100.0, busy.named());
            ui.note(format!(
                "other programs take {percent:.0}% of the CPU time now ({who}): they disturb what is measured"
            ));
        }
    }
}
