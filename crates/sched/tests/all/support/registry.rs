//! Selects kernels of the registry.

use schedlab_base::Release;
use schedlab_sched::kernels::{Feature, KERNELS};
use std::ops::RangeBounds;

/// Returns the kernels of these releases.
pub fn releases(range: impl RangeBounds<Release>) -> impl Iterator<Item = &'static str> {
    KERNELS.iter().filter(move |k| k.release.is_some_and(|release| range.contains(&release))).map(|k| k.name)
}

/// Returns the kernels that have a feature.
pub fn with(feature: Feature) -> impl Iterator<Item = &'static str> {
    KERNELS.iter().filter(move |k| !k.lacks(feature)).map(|k| k.name)
}
