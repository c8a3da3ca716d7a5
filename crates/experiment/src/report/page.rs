//! The page around a report: head, style, footer. It refers to nothing outside itself.

use schedlab_chart::escape;
use std::fmt::Write;

/// How to make the same report again.
#[derive(Clone, Debug)]
pub struct Reproduce {
    /// The command.
    pub command: String,
    /// schedlab's version.
    pub version: String,
}

/// A page in the making.
pub struct Page {
    body: String,
    title: String,
}

impl Page {
    /// A page with this heading and a line below it.
    pub fn new(title: &str, lead: &str) -> Self {
        let mut body = format!("<h1>{}</h1>\n", escape(title));
        if !lead.is_empty() {
            let _ = writeln!(body, "<p class=\"lead\">{}</p>", escape(lead));
        }
        Self { body, title: title.to_owned() }
    }

    /// Adds HTML.
    pub fn push(&mut self, html: &str) {
        self.body.push_str(html);
    }

    /// Adds a small heading.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.body, "<h3>{}</h3>", escape(text));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
    }

    /// Adds a drawing, with a caption unless that is empty.
    pub fn figure(&mut self, caption: &str, svg: &str) {
        let caption =
            if caption.is_empty() { String::new() } else { format!("<figcaption>{}</figcaption>", escape(caption)) };
        let _ = writeln!(self.body, "<figure>{caption}<div class=\"scroll\">{svg}</div></figure>");
    }

    /// Adds small drawings side by side.
    pub fn grid(&mut self, drawings: &[String]) {
        let cells: String = drawings.iter().map(|svg| format!("<div>{svg}</div>")).collect();
        let _ = writeln!(self.body, "<div class=\"grid2\">{cells}</div>");
    }

    /// Adds a list of remarks, if there are any.
    pub fn list(&mut self, items: &[String]) {
        if items.is_empty() {
            return;
        }
        let items: String = items.iter().map(|i| format!("<li>{}</li>", escape(i))).collect();
        let _ = writeln!(self.body, "<ul>{items}</ul>");
    }

    /// The whole page.
    pub fn finish(mut self, reproduce: &Reproduce) -> String {
        self.heading("To make this report again");
        let command = escape(&reproduce.command);
        let _ = writeln!(self.body, "<pre>{command}</pre>");
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
             <style>\n{}</style>\n</head>\n<body>\n<main>\n{}<footer>schedlab {}. Simulations are deterministic: the \
             same files and seeds give the same figures.</footer>\n</main>\n</body>\n</html>\n",
            escape(&self.title),
            include_str!("style.css"),
            self.body,
            escape(&reproduce.version)
        )
    }
}
