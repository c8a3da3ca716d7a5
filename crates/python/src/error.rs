//! The errors for users as Python exceptions, one for each exit status of the command.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use schedlab_base::{Error, ErrorKind};

create_exception!(
    schedlab,
    SchedlabError,
    PyException,
    "An error for the user: where it happened, what is wrong and how to fix it."
);
create_exception!(
    schedlab,
    InputError,
    SchedlabError,
    "Bad input or usage, or a failure of the system during the operation."
);
create_exception!(
    schedlab,
    NotPermittedError,
    SchedlabError,
    "The machine does not support it, or the user lacks the rights."
);

/// The exception for an error.
pub fn raised(error: Error) -> PyErr {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Input | ErrorKind::Absent | ErrorKind::System => InputError::new_err(message),
        ErrorKind::NotPermitted => NotPermittedError::new_err(message),
    }
}
