//! The heat maps of a file: of which runs each is drawn, and what it shows.

use super::check::Check;
use super::{HeatmapPlan, shown};
use crate::file::{HeatmapChoice, HeatmapFile};
use crate::points::Point;
use schedlab_base::{Result, parse_duration};
use schedlab_measure::heatmap::What;

/// The most heat maps of one experiment, each a picture a kernel.
const MOST_HEATMAPS: usize = 32;

impl Check<'_> {
    pub(super) fn heatmaps(&self, points: &[Point]) -> Result<Vec<HeatmapPlan>> {
        if self.file.heatmaps.len() > MOST_HEATMAPS {
            return self.wrong("heatmaps", "are too many", "at most 32");
        }
        let one = |(i, file)| self.heatmap(&format!("heatmaps[{i}]"), file, points);
        self.file.heatmaps.iter().enumerate().map(one).collect()
    }

    fn heatmap(&self, path: &str, file: &HeatmapFile, points: &[Point]) -> Result<HeatmapPlan> {
        let kernels = &self.file.kernels;
        for kernel in &file.kernels {
            let names = kernels.iter().map(|k| k.name.as_str());
            self.known(&format!("{path}.kernels"), kernel, "kernel of this file", names)?;
        }
        self.values(&format!("{path}.at"), &file.at)?;
        let time = |key: &str, text: &Option<String>| {
            let path = format!("{path}.{key}");
            text.as_deref().map(parse_duration).transpose().map_err(|e| self.at(&path, &e))
        };
        let (from, to) = (time("from", &file.from)?.unwrap_or(0), time("to", &file.to)?);
        if to.is_some_and(|to| to <= from) {
            return self.wrong(&format!("{path}.to"), "ends before it begins", "give a \"to\" after \"from\"");
        }
        let what = match (file.what, file.cpu) {
            (HeatmapChoice::Considered, by) => What::Considered { by, why: Vec::new() },
            (_, Some(_)) => {
                let mend = "leave it out, or draw what = \"considered\"";
                return self.wrong(&format!("{path}.cpu"), "chooses the CPU that looked", mend);
            }
            (HeatmapChoice::Queue, None) => What::Queue,
            (HeatmapChoice::Load, None) => What::Load,
            (HeatmapChoice::Memory, None) => What::Memory,
        };
        let asked = |k: &usize| file.kernels.is_empty() || file.kernels.contains(&kernels[*k].name);
        Ok(HeatmapPlan {
            what,
            from,
            to,
            point: shown(points, &[&self.file.show, &file.at]),
            kernels: (0..kernels.len()).filter(asked).collect(),
        })
    }
}
