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
    /// The parts that the navigation lists.
    parts: Vec<Part>,
}

/// A part of the page, with its headings.
struct Part {
    id: String,
    /// HTML.
    label: String,
    headings: Vec<String>,
}

impl Page {
    /// A page with this heading and a line below it.
    pub fn new(title: &str, lead: &str) -> Self {
        let mut body = format!("<h1 id=\"top\">{}</h1>\n", escape(title));
        if !lead.is_empty() {
            let _ = writeln!(body, "<p class=\"lead\">{}</p>", escape(lead));
        }
        Self { body, title: title.to_owned(), parts: Vec::new() }
    }

    /// Begins a part: `id` is its anchor and `label` its entry in the navigation, in HTML.
    pub fn part(&mut self, id: &str, label: String) {
        self.parts.push(Part { id: id.to_owned(), label, headings: Vec::new() });
    }

    /// Adds HTML.
    pub fn push(&mut self, html: &str) {
        self.body.push_str(html);
    }

    /// Adds a small heading, which the navigation lists below the part that it is in.
    pub fn heading(&mut self, text: &str) {
        let Some(part) = self.parts.last_mut() else {
            let _ = writeln!(self.body, "<h3>{}</h3>", escape(text));
            return;
        };
        part.headings.push(text.to_owned());
        let id = format!("{}-{}", escape(&part.id), part.headings.len());
        let _ = writeln!(self.body, "<h3 id=\"{id}\">{}</h3>", escape(text));
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

    /// Adds a small table of names, units, values and remarks.
    pub fn table(&mut self, rows: &[[String; 4]]) {
        let mut html = String::from("<table class=\"narrow\">");
        for [name, unit, value, remark] in rows.iter().map(|row| row.each_ref().map(|cell| escape(cell))) {
            let _ = write!(html, "<tr><td>{name}</td><td class=\"n\">{value}</td><td>{unit}</td>");
            let _ = write!(html, "<td>{remark}</td></tr>");
        }
        let _ = writeln!(self.body, "{html}</table>");
    }

    /// Adds a list of remarks, if there are any.
    pub fn list(&mut self, items: &[String]) {
        if items.is_empty() {
            return;
        }
        let items: String = items.iter().map(|i| format!("<li>{}</li>", escape(i))).collect();
        let _ = writeln!(self.body, "<ul>{items}</ul>");
    }

    /// Links to the parts, and from each to its headings. They need no script: a part is a `details` element.
    fn navigation(&self) -> String {
        let mut html = String::from("<nav aria-label=\"Contents\"><a href=\"#top\">Top</a>\n");
        let open = if self.parts.len() == 1 { " open" } else { "" };
        for Part { id, label, headings } in &self.parts {
            let id = escape(id);
            let _ = write!(html, "<details{open}><summary><a href=\"#{id}\">{label}</a></summary>");
            for (number, heading) in headings.iter().enumerate() {
                let _ = write!(html, "<a href=\"#{id}-{}\">{}</a>", number + 1, escape(heading));
            }
            html.push_str("</details>\n");
        }
        html + "<a href=\"#again\">To make this report again</a></nav>\n"
    }

    /// The whole page.
    pub fn finish(mut self, reproduce: &Reproduce) -> String {
        let navigation = self.navigation();
        self.body.push_str("<h3 id=\"again\">To make this report again</h3>\n");
        let command = escape(&reproduce.command);
        let _ = writeln!(self.body, "<pre>{command}</pre>");
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
             <style>\n{}</style>\n</head>\n<body>\n{navigation}<main>\n{}<footer>\
             schedlab {}. Simulations are deterministic: the same files and seeds give the same figures.</footer>\n\
             </main>\n</body>\n</html>\n",
            escape(&self.title),
            include_str!("style.css"),
            self.body,
            escape(&reproduce.version)
        )
    }
}
