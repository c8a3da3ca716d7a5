//! How the command speaks: text or JSON on standard output, progress and errors on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use schedlab_base::{Error, Result};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// The user's side of a command.
pub struct Ui {
    /// `--json` was given.
    pub json: bool,
}

impl Ui {
    /// A new one.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints text on standard output. A reader that went away (`| head`) ends the program quietly.
    pub fn print(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            std::process::exit(0);
        }
    }

    /// Prints one JSON document on standard output.
    pub fn print_json(&self, value: &impl Serialize) {
        let mut text = serde_json::to_string_pretty(value).expect("plain data is always JSON");
        text.push('\n');
        self.print(&text);
    }

    /// A remark on standard error.
    pub fn note(&self, text: impl AsRef<str>) {
        eprintln!("schedlab: {}", text.as_ref());
    }

    /// Prints an error and gives its exit status.
    pub fn fail(&self, error: &Error) -> ExitCode {
        eprintln!("schedlab: {error}");
        ExitCode::from(error.exit_status())
    }

    /// Progress on standard error: a bar when `length` is known, else a spinner; hidden where standard
    /// error is no terminal.
    pub fn progress(&self, length: Option<u64>, message: &str) -> ProgressBar {
        let target =
            if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let (bar, template) = match length {
            Some(n) => (ProgressBar::new(n), "{msg} {wide_bar} {percent}% {eta}"),
            None => (ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}"),
        };
        bar.set_draw_target(target);
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
        bar.set_message(message.to_owned());
        bar
    }
}

/// Refuses to overwrite a file unless `force` is set.
///
/// # Errors
/// When the file exists and `force` is not set.
pub fn check_overwrite(path: &Path, force: bool) -> Result<()> {
    if !force && path.exists() {
        return Err(Error::input("exists already").mend("choose another name or give --force").file(path));
    }
    Ok(())
}
