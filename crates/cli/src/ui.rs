//! The command's output: text or JSON on standard output, progress and errors on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use schedlab_base::{Error, visible};
use serde::Serialize;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time after which a full non-blocking pipe is tried again.
const RETRY: Duration = Duration::from_millis(1);

/// The user's side of a command. Its clones share standard output.
#[derive(Clone, Default)]
pub struct Ui {
    /// Whether `--json` was given.
    pub json: bool,
    output: Arc<Mutex<Output>>,
}

/// The state of standard output.
#[derive(Default)]
enum Output {
    /// Nothing has been written yet.
    #[default]
    Unused,
    /// It is open and unbuffered, so a failed write is noticed at once.
    Open(File),
    /// A write failed, and nothing more is written.
    Lost(io::Error),
}

impl Output {
    fn write(&mut self, bytes: &[u8]) {
        if let Self::Unused = self {
            *self = io::stdout().as_fd().try_clone_to_owned().map_or_else(Self::Lost, |fd| Self::Open(File::from(fd)));
        }
        if let Self::Open(file) = self
            && let Err(e) = write_patiently(file, bytes)
        {
            *self = Self::Lost(e);
        }
    }
}

/// Writes everything, even to a pipe that another process has made non-blocking.
fn write_patiently(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Prints text piece by piece: a document with a million tasks is longer than all that it is made from.
struct Pieces<'a> {
    ui: &'a Ui,
    bytes: Vec<u8>,
}

impl Pieces<'_> {
    /// The length of a piece.
    const LENGTH: usize = 1 << 16;

    /// Prints what there is, up to the end of its last complete character.
    fn print_all(&mut self) {
        let text = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text,
            Err(cut) => std::str::from_utf8(&self.bytes[..cut.valid_up_to()]).expect("as it was told"),
        };
        self.ui.print(text);
        self.bytes.drain(..text.len());
    }
}

impl io::Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() >= Self::LENGTH {
            self.print_all();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Ui {
    /// Creates the output of a command.
    pub fn new(json: bool) -> Self {
        Self { json, ..Self::default() }
    }

    /// Prints text on standard output, with hidden characters escaped. If that fails, the command goes on, and
    /// [`Ui::end`] reports the failure.
    pub fn print(&self, text: &str) {
        self.print_styled(&visible(text));
    }

    /// Prints text that contains styles. The caller has escaped what others wrote.
    pub fn print_styled(&self, text: &str) {
        self.write(text.as_bytes());
    }

    /// Writes bytes on standard output as they are.
    pub fn write(&self, bytes: &[u8]) {
        self.output().write(bytes);
    }

    /// Prints one JSON document on standard output.
    pub fn print_json(&self, value: &impl Serialize) {
        let mut text = Pieces { ui: self, bytes: Vec::new() };
        serde_json::to_writer_pretty(&mut text, value).expect("plain data is always JSON");
        text.bytes.push(b'\n');
        text.print_all();
    }

    /// Prints a remark on standard error.
    pub fn note(&self, text: impl AsRef<str>) {
        say(text.as_ref());
    }

    /// Prints an error and returns its exit status.
    pub fn fail(&self, error: &Error) -> ExitCode {
        say(&error.to_string());
        ExitCode::from(error.exit_status())
    }

    /// The final exit status of a command that ended with `status`. It does not change if the reader of standard output
    /// has gone away (`| head`). Any other failed write there is an error, whatever the verdict was, because nobody can
    /// have read the verdict in full.
    pub fn end(&self, status: ExitCode) -> ExitCode {
        match &*self.output() {
            Output::Lost(e) => output_lost(e).map_or(status, |error| self.fail(&error)),
            _ => status,
        }
    }

    /// Whether standard output is lost, so that nobody reads on.
    pub fn is_lost(&self) -> bool {
        matches!(&*self.output(), Output::Lost(_))
    }

    /// Ends the program if standard output is lost. For commands whose only result is what they print.
    pub fn exit_if_lost(&self) {
        if let Output::Lost(e) = &*self.output() {
            std::process::exit(output_lost(e).map_or(0, |error| {
                self.fail(&error);
                error.exit_status().into()
            }));
        }
    }

    fn output(&self) -> std::sync::MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows progress on standard error: a bar if `length` is known, or else a spinner. Nothing is shown if standard
    /// error is not a terminal.
    pub fn progress(&self, length: Option<u64>, message: &str) -> ProgressBar {
        let target =
            if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
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

/// What the standard library says of text that is no number, and how users would put it.
const NO_NUMBER: [(&str, &str); 4] = [
    ("invalid digit found in string", "it is not a whole number"),
    ("number too large to fit in target type", "it is too large"),
    ("cannot parse integer from empty string", "it is empty"),
    ("invalid float literal", "it is not a number"),
];

/// Prints the help, the version, or what is wrong with the arguments, and returns the exit status.
pub fn usage(message: &clap::Error) -> ExitCode {
    if message.kind() == clap::error::ErrorKind::ValueValidation {
        let plain = |text: String, (theirs, ours): (&str, &str)| text.replace(theirs, ours);
        let mut text = message.render().to_string();
        if is_negative(message) {
            text = text.replace(NO_NUMBER[0].0, "it is negative");
        }
        let text = NO_NUMBER.into_iter().fold(text, plain);
        let _ = io::stderr().write_all(text.as_bytes());
        return ExitCode::from(2);
    }
    let printed = message.print().and_then(|()| io::stdout().flush());
    match printed.err().filter(|_| !message.use_stderr()).as_ref().and_then(output_lost) {
        Some(error) => Ui::default().fail(&error),
        None => ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2)),
    }
}

/// Whether the value that was refused is a negative whole number.
fn is_negative(message: &clap::Error) -> bool {
    let value = message.get(clap::error::ContextKind::InvalidValue);
    matches!(value, Some(clap::error::ContextValue::String(text)) if text.parse::<i128>().is_ok_and(|n| n < 0))
}

/// Prints a line on standard error. If that fails, the exit status alone must be enough.
fn say(text: &str) {
    let _ = io::stderr().write_all(format!("schedlab: {}\n", visible(text)).as_bytes());
}

/// The error for a failed write to standard output; none if its reader has gone away.
fn output_lost(e: &io::Error) -> Option<Error> {
    (e.kind() != ErrorKind::BrokenPipe).then(|| Error::system("cannot write to standard output", e))
}
