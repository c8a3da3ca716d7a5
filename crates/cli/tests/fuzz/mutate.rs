//! Mutations of files.

use schedlab_base::Rng;

/// Words that mean something in JSON or TOML.
const WORDS: [&str; 30] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "\"",
    "'",
    "/*",
    "//",
    "#",
    "\n",
    "null",
    "true",
    "-1",
    "0",
    "0.001",
    "1e999",
    "nan",
    "4294967296",
    "99999999999999999999",
    "\\ud800",
    "\\u001b[31m",
    "\u{202e}",
    "\"x-",
    "instance",
    "run",
    "[[",
    "''",
];

/// A random position in something of this length, the end included.
fn place(rng: &mut Rng, length: usize) -> usize {
    rng.below(length as u64 + 1) as usize
}

/// Makes a few changes to a text: a byte, a cut, a piece removed, doubled or taken from another text, or a word.
pub fn text(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    for _ in 0..=rng.below(6) {
        let (a, b) = (place(rng, bytes.len()), place(rng, bytes.len()));
        let (from, to) = (a.min(b), a.max(b).min(a.min(b) + 200));
        match rng.below(7) {
            0 if a < bytes.len() => bytes[a] = rng.below(256) as u8,
            1 if rng.below(4) == 0 => bytes.truncate(a),
            2 => _ = bytes.drain(from..to),
            3 => {
                let piece = bytes[from..to].to_vec();
                bytes.splice(b..b, piece);
            }
            4 => {
                let start = place(rng, other.len());
                let end = other.len().min(start + 100);
                bytes.splice(a..a, other[start..end].iter().copied());
            }
            5 => number(bytes, a, rng),
            _ => _ = bytes.splice(a..a, WORDS[rng.below(WORDS.len() as u64) as usize].bytes()),
        }
    }
}

/// Replaces the first number from `at` on.
fn number(bytes: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    let Some(from) = bytes[at..].iter().position(u8::is_ascii_digit).map(|n| at + n) else { return };
    let length = bytes[from..].iter().position(|b| !b.is_ascii_digit()).unwrap_or(bytes.len() - from);
    let new = match rng.below(4) {
        0 => "0".to_owned(),
        1 => "-7".to_owned(),
        2 => rng.below(1 << 40).to_string(),
        _ => rng.below(1000).to_string(),
    };
    bytes.splice(from..from + length, new.into_bytes());
}

/// Makes a few changes to a binary file: it is cut, or bytes and words of four bytes change, half of them near the
/// beginning, where structure is dense.
pub fn binary(bytes: &mut Vec<u8>, rng: &mut Rng) {
    if rng.below(5) == 0 {
        bytes.truncate(place(rng, bytes.len()));
    }
    for _ in 0..rng.below(8) {
        let reach = if rng.below(2) == 0 { bytes.len() } else { bytes.len().min(4096) };
        let at = rng.below(reach as u64) as usize;
        let width = if rng.below(3) == 0 { 4 } else { 1 };
        let fill = match rng.below(5) {
            0 => [0; 4],
            1 => [0xff; 4],
            2 => [1, 0, 0, 0x40],
            _ => (rng.next_u64() as u32).to_le_bytes(),
        };
        let end = bytes.len().min(at + width);
        if at < end {
            bytes[at..end].copy_from_slice(&fill[..end - at]);
        }
    }
}
