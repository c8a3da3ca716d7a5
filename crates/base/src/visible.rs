//! Text of others, made safe for a terminal.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Whether a terminal would act on this character rather than show it: control characters, and those that reorder the
/// text around them or take no room.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    let reorders = matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}');
    reorders || c.is_control() || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{feff}')
}

/// The text with hidden characters written as `\u001b`, which JSON reads as the same text. Line ends and tabs stay.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let layout = |c| matches!(c, '\n' | '\t');
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    if !text.contains(|c| is_hidden(c) && !layout(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for piece in text.split_inclusive(layout) {
        let plain = piece.trim_end_matches(layout);
        write!(OneLine(&mut shown), "{plain}").expect("a string takes any text");
        shown.push_str(&piece[plain.len()..]);
    }
    Cow::Owned(shown)
}

/// Whether a text is printable ASCII, line ends and tabs, as most results are. This looks at many bytes at once.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| (byte.wrapping_sub(b' ') < 95) | (byte == b'\n') | (byte == b'\t');
    let (blocks, rest) = text.as_bytes().as_chunks::<64>();
    blocks.iter().all(|block| block.iter().fold(0, |hidden, byte| hidden | u8::from(!plain(*byte))) == 0)
        && rest.iter().all(|byte| plain(*byte))
}

/// Writes hidden characters and line ends as escapes.
pub(crate) struct OneLine<'a, W>(pub &'a mut W);

impl<W: Write> Write for OneLine<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_hidden) {
            self.0.write_str(&rest[..at])?;
            let c = rest[at..].chars().next().expect("found just now");
            write!(self.0, "\\u{:04x}", u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hidden_characters_are_escaped() {
        assert_eq!(visible("a\x1b[31m\u{202e}b\u{9b}\r\n\tc\u{7f}"), "a\\u001b[31m\\u202eb\\u009b\\u000d\n\tc\\u007f");
        assert!(matches!(visible("größer, 大\n"), Cow::Borrowed(_)));
        let long = "plain\n\t".repeat(100);
        assert_eq!(visible(&long), long);
        assert_eq!(visible(&format!("{long}\r")), format!("{long}\\u000d"));
    }
}
