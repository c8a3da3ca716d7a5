//! Numbers as tables and charts write them.

/// A number with about five digits.
#[must_use]
pub fn number(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    let digits = 4 - x.abs().log10().floor() as i32;
    let text = match digits {
        ..=-12 | 9.. => format!("{x:.3e}"),
        _ => format!("{x:.*}", digits.clamp(0, 9) as usize),
    };
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_keep_five_digits() {
        for (x, text) in [
            (0.0, "0"),
            (1.25, "1.25"),
            (1.249_987, "1.25"),
            (5912.4, "5912.4"),
            (1_234_567.8, "1234568"),
            (0.000_123_45, "0.00012345"),
            (0.000_048_697, "4.870e-5"),
            (-2.5, "-2.5"),
            (1e20, "1.000e20"),
        ] {
            assert_eq!(number(x), text);
        }
    }
}
