//! The native half of the Python package `schedlab`: each function hands its arguments to a room
//! of the workspace and its answer back as text or bytes. What a user sees is in `python/schedlab`.

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_native")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
