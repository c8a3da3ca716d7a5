//! Sums of numbers that may be none.

/// The sum of the numbers, which is 0 if there are none. [`Iterator::sum`] gives -0 then, which is printed as such.
pub fn total<N: Into<f64>>(numbers: impl IntoIterator<Item = N>) -> f64 {
    numbers.into_iter().fold(0.0, |sum, number| sum + number.into())
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_sum_of_nothing_is_positive() {
        assert_eq!((total([1.5, 2.0]), total([3_u32, 4])), (3.5, 7.0));
        assert_eq!(format!("{:?} {:?}", total::<f64>([]), total([-0.0])), "0.0 0.0");
    }
}
