//! Units of time for axes and labels.

/// The unit that suits a time of this many ns: how many ns it has, and its name.
#[must_use]
pub fn unit(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        ..1e3 => (1.0, "ns"),
        ..1e6 => (1e3, "us"),
        ..1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn a_time_has_one_to_four_digits_before_the_point() {
        let names = [0.0, 999.0, 1e3, 1e6, 2.5e8, 1e9, 1e13].map(|ns| unit(ns).1);
        assert_eq!(names, ["ns", "ns", "us", "ms", "ms", "s", "s"]);
    }
}
