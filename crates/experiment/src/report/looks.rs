//! What to look at, the page that shows it, and the command that shows all of the trace there.

use crate::look::Look;
use schedlab_chart::escape;

/// The place as a part of a cell or of a list's item; empty if there is none.
pub(super) fn look(look: Option<&Look>) -> String {
    let Some(look) = look else { return String::new() };
    let whole = if look.traces.len() > 1 { "In the whole traces" } else { "In the whole trace" };
    let page = look.page.as_ref().map_or_else(String::new, |page| {
        format!(" <a href=\"{}\">See it in this part of the trace.</a>", escape(page))
    });
    format!("<small>{}{page} {whole}:<br><code>{}</code></small>", escape(&look.sentence), escape(&look.command))
}
