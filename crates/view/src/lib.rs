//! The view: a trace as rows of spans, tiles for each level of zoom, and the server that gives them to a page in the
//! browser. `docs/view-protocol.md` describes every address.
//!
//! [`Loaded`] reads a trace into an [`Index`](index::Index); [`serve`] answers for some of them on loopback. The
//! numbers of statistics, delays and checks are those of the verbs, by the same functions.

mod answers;
pub mod arrow;
mod asked;
mod assets;
mod bundle;
mod explain;
mod find;
mod follow;
mod guard;
mod heat;
pub mod index;
mod loaded;
pub mod marks;
mod measured;
mod overview;
mod query;
mod questions;
pub mod rows;
mod server;
pub mod spans;
pub mod steps;
pub mod tile;

pub use assets::have_page;
pub use bundle::{MOST_ITEMS, file, missing_page};
pub use loaded::{Loaded, open};
pub use server::{Initial, Lane, News, Picked, Serving, picked, serve};

/// The bytes of the answer to a question about a trace: the last part of its address, and what stands behind the
/// question mark.
///
/// # Errors
/// With the sentence that says what is wrong with the question.
pub fn answer(loaded: &Loaded, what: &str, query: &str) -> Result<Vec<u8>, String> {
    match answers::answer(loaded, what, &query::Query::new(query)) {
        Ok(query::Body::Json(text)) => Ok(text.into_bytes()),
        Ok(query::Body::Arrow(bytes)) => Ok(bytes),
        Err(query::Failure(_, text)) => Err(text),
    }
}
