//! The user's error as Python exceptions, one for each exit status of the command.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use schedlab_base::{Error, ErrorKind};

create_exception!(schedlab, SchedlabError, PyException, "What the user has to be told.");
create_exception!(schedlab, InputError, SchedlabError, "Bad input or usage, or the system failed in the middle.");
create_exception!(schedlab, NotPermittedError, SchedlabError, "The machine or the user's rights do not allow it.");

/// The exception that tells the error.
pub fn raised(error: Error) -> PyErr {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Input | ErrorKind::System => InputError::new_err(message),
        ErrorKind::NotPermitted => NotPermittedError::new_err(message),
    }
}
