//! Units and identifiers.

use crate::Error;

/// A time or a duration in nanoseconds. [`crate::Meta::clock`] names the clock of a trace's times.
pub type Nanos = u64;

/// A CPU's number in the kernel.
pub type CpuId = u32;

/// A thread's id as the kernel prints it (`pid` in tracepoints). 0 is the idle task of any CPU.
pub type Tid = i32;

/// Reads a duration with its unit: `10s`, `250ms`, `1.5us`, `40ns`, `2m`, `1h`.
///
/// # Errors
/// When the number or the unit is missing, negative, not finite, or beyond 2^63 ns (292 years).
pub fn parse_duration(text: &str) -> Result<Nanos, Error> {
    let bad = |what: String| Error::input(what).mend("write a number and a unit: 10s, 250ms, 40us, 100ns, 2m, 1h");
    let text = text.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+'))
        .ok_or_else(|| bad(format!("the duration \"{text}\" has no unit")))?;
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| bad(format!("\"{text}\" is no duration")))?;
    let scale = match unit.trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        other => return Err(bad(format!("\"{other}\" is no unit of time"))),
    };
    let nanos = number * scale;
    if number < 0.0 {
        return Err(bad(format!("the duration \"{text}\" is negative")));
    }
    if !nanos.is_finite() || nanos >= i64::MAX as f64 {
        return Err(bad(format!("the duration \"{text}\" is too long")));
    }
    Ok(nanos.round() as Nanos)
}

/// A time in microseconds, written with a unit that suits it.
#[must_use]
pub fn duration_text(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.3} s", us / 1e6),
        us if us >= 1e3 => format!("{:.3} ms", us / 1e3),
        0.0 => "0".to_owned(),
        us => format!("{us:.3} us"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_duration;

    #[test]
    fn durations_carry_their_unit() {
        assert_eq!(parse_duration("10s").unwrap(), 10_000_000_000);
        assert_eq!(parse_duration("1.5us").unwrap(), 1_500);
        assert_eq!(parse_duration(" 2m").unwrap(), 120_000_000_000);
    }

    #[test]
    fn bad_durations_are_refused() {
        for text in ["", "10", "s", "-1s", "1e400s", "99999999999h", "1.2.3s", "5 weeks"] {
            assert!(parse_duration(text).is_err(), "{text} was accepted");
        }
    }
}
