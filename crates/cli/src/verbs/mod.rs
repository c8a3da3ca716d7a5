//! The verbs: each module carries `Args` and `run`.
