//! The native half of the Python package `schedlab`: each function hands its arguments to a room
//! of the workspace and its answer back as JSON. What a user sees is in `python/schedlab`.

mod error;

use pyo3::prelude::*;

/// `schedlab._native`.
#[pymodule]
#[pyo3(name = "_native")]
mod native {
    use crate::error::{InputError, NotPermittedError, SchedlabError, raised};
    use pyo3::prelude::*;
    use schedlab_trace::arrow_file::{Reader, Writer};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("SchedlabError", py.get_type::<SchedlabError>())?;
        module.add("InputError", py.get_type::<InputError>())?;
        module.add("NotPermittedError", py.get_type::<NotPermittedError>())
    }

    /// Whether the file is a trace of schedlab's own format.
    #[pyfunction]
    fn is_trace(path: &str) -> bool {
        Reader::open(path).is_ok()
    }

    /// Reads a trace of any known format and writes it as schedlab's own.
    #[pyfunction]
    fn convert(py: Python<'_>, source: &str, target: &str) -> PyResult<()> {
        py.detach(|| {
            let mut source = schedlab_trace::open(source)?;
            let mut writer = Writer::create(target, source.meta())?;
            source.run(&mut writer)?;
            writer.finish().map(drop)
        })
        .map_err(raised)
    }
}
