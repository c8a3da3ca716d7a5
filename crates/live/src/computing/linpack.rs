//! Linpack: a dense system of equations, solved again and again, column by column as LINPACK's `dgefa` and `dgesl` do.

use super::{Done, Kernel};

/// What is done to the matrix, and where.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Fill a column.
    Generate(usize),
    /// Find the pivot of a column, and divide by it.
    Pivot(usize),
    /// Eliminate a column from a later one.
    Eliminate {
        column: usize,
        from: usize,
    },
    /// Substitute forwards, then backwards.
    Forward(usize),
    Backward(usize),
    /// Multiply a column of the matrix with its part of the solution.
    Check(usize),
}

/// A system of equations in a matrix stored by columns.
pub(super) struct Linpack {
    n: usize,
    matrix: &'static mut [f64],
    /// The right-hand side, and later the solution.
    x: Vec<f64>,
    pivots: Vec<usize>,
    /// The row sums of the matrix, which are the right-hand side: the solution is all ones.
    right: Vec<f64>,
    /// What is left of the right-hand side, and the row sums of absolute values, while a solution is checked.
    rest: Vec<f64>,
    sums: Vec<f64>,
    stage: Stage,
    random: Random,
    /// The state of the random numbers at the beginning of this system.
    seed: Random,
    done: Done,
}

/// A linear congruential generator of numbers from -0.5 to 0.5.
#[derive(Clone, Copy)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    }
}

impl Linpack {
    /// The largest system whose matrix fits into this memory.
    pub(super) fn new(memory: &'static mut [f64]) -> Self {
        let n = memory.len().isqrt().max(1);
        let zeros = vec![0.0; n];
        let (random, done) = (Random(1), Done::default());
        Self {
            n,
            matrix: &mut memory[..n * n],
            x: zeros.clone(),
            pivots: vec![0; n],
            right: zeros.clone(),
            rest: zeros.clone(),
            sums: zeros,
            stage: Stage::Generate(0),
            random,
            seed: random,
            done,
        }
    }

    fn generate(&mut self, j: usize) -> u64 {
        if j == 0 {
            self.seed = self.random;
            self.right.fill(0.0);
        }
        let column = &mut self.matrix[j * self.n..(j + 1) * self.n];
        for (a, sum) in column.iter_mut().zip(&mut self.right) {
            *a = self.random.next();
            *sum += *a;
        }
        self.stage = if j + 1 < self.n { Stage::Generate(j + 1) } else { Stage::Pivot(0) };
        2 * self.n as u64
    }

    fn pivot(&mut self, k: usize) -> u64 {
        let n = self.n;
        let column = &mut self.matrix[k * n..(k + 1) * n];
        let largest = (k..n).max_by(|i, j| column[*i].abs().total_cmp(&column[*j].abs())).unwrap_or(k);
        self.pivots[k] = largest;
        column.swap(k, largest);
        let factor = -1.0 / column[k];
        column[k + 1..].iter_mut().for_each(|a| *a *= factor);
        self.stage = if k + 1 < n { Stage::Eliminate { column: k, from: k + 1 } } else { Stage::Forward(0) };
        let count = (n - k - 1) as u64;
        self.done.units += count;
        2 * count
    }

    fn eliminate(&mut self, k: usize, j: usize) -> u64 {
        let n = self.n;
        let (before, after) = self.matrix.split_at_mut(j * n);
        let (factors, column) = (&before[k * n + k + 1..(k + 1) * n], &mut after[..n]);
        column.swap(k, self.pivots[k]);
        let t = column[k];
        add_multiple(&mut column[k + 1..], t, factors);
        self.stage = if j + 1 < n { Stage::Eliminate { column: k, from: j + 1 } } else { Stage::Pivot(k + 1) };
        self.count(n - k - 1)
    }

    fn forward(&mut self, k: usize) -> u64 {
        let n = self.n;
        if k == 0 {
            self.x.copy_from_slice(&self.right);
        }
        self.x.swap(k, self.pivots[k]);
        let t = self.x[k];
        add_multiple(&mut self.x[k + 1..], t, &self.matrix[k * n + k + 1..(k + 1) * n]);
        self.stage = if k + 1 < n { Stage::Forward(k + 1) } else { Stage::Backward(n - 1) };
        self.count(n - k - 1)
    }

    fn backward(&mut self, k: usize) -> u64 {
        let n = self.n;
        let t = self.x[k] / self.matrix[k * n + k];
        self.x[k] = t;
        add_multiple(&mut self.x[..k], -t, &self.matrix[k * n..k * n + k]);
        self.stage = if k > 0 { Stage::Backward(k - 1) } else { Stage::Check(0) };
        self.count(k + 1)
    }

    /// Generates the matrix once more, a column at a time, and subtracts its product with the solution.
    fn check(&mut self, j: usize) -> u64 {
        if j == 0 {
            self.rest.copy_from_slice(&self.right);
            self.sums.fill(0.0);
        }
        let x = self.x[j];
        for (rest, sum) in self.rest.iter_mut().zip(&mut self.sums) {
            let a = self.seed.next();
            *rest -= a * x;
            *sum += a.abs();
        }
        if j + 1 < self.n {
            self.stage = Stage::Check(j + 1);
        } else {
            self.done.checked += 1;
            self.done.worst = self.done.worst.max(self.residual());
            self.stage = Stage::Generate(0);
        }
        3 * self.n as u64
    }

    /// The residual as HPL scales it. Below 16 a solution passes.
    fn residual(&self) -> f64 {
        let norm = |v: &[f64]| v.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let scale = norm(&self.sums) * norm(&self.x) + norm(&self.right);
        let residual = norm(&self.rest) / (f64::EPSILON * scale * self.n as f64);
        if residual.is_nan() { f64::INFINITY } else { residual }
    }

    /// Counts a multiplication and an addition for each of these numbers.
    fn count(&mut self, numbers: usize) -> u64 {
        self.done.units += 2 * numbers as u64;
        2 * numbers as u64
    }
}

fn add_multiple(to: &mut [f64], factor: f64, of: &[f64]) {
    to.iter_mut().zip(of).for_each(|(y, x)| *y += factor * x);
}

impl Kernel for Linpack {
    fn piece(&mut self) -> u64 {
        match self.stage {
            Stage::Generate(j) => self.generate(j),
            Stage::Pivot(k) => self.pivot(k),
            Stage::Eliminate { column, from } => self.eliminate(column, from),
            Stage::Forward(k) => self.forward(k),
            Stage::Backward(k) => self.backward(k),
            Stage::Check(j) => self.check(j),
        }
    }

    fn done(&self) -> Done {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solve(n: usize, systems: u64) -> Linpack {
        let mut linpack = Linpack::new(vec![0.0; n * n].leak());
        while linpack.done.checked < systems {
            linpack.piece();
        }
        linpack
    }

    #[test]
    fn the_solution_is_all_ones() {
        let linpack = solve(50, 3);
        assert!(linpack.x.iter().all(|x| (x - 1.0).abs() < 1e-9), "{:?}", linpack.x);
        assert!(linpack.done.worst > 0.0 && linpack.done.worst < 16.0, "{}", linpack.done.worst);
    }

    #[test]
    fn the_operations_are_those_that_linpack_counts() {
        let n = 200.0_f64;
        let counted = solve(200, 1).done.units as f64;
        let formula = 2.0 / 3.0 * n.powi(3) + 2.0 * n * n;
        assert!((counted / formula - 1.0).abs() < 0.02, "{counted} {formula}");
    }

    #[test]
    fn a_matrix_that_somebody_else_wrote_to_fails_the_check() {
        let mut linpack = solve(40, 1);
        while linpack.done.checked < 2 {
            if matches!(linpack.stage, Stage::Eliminate { column: 3, from: 4 }) {
                linpack.matrix[20 * 40 + 30] += 0.01;
            }
            linpack.piece();
        }
        assert!(linpack.done.worst > 16.0, "{}", linpack.done.worst);
    }

    #[test]
    fn one_number_is_a_system_too() {
        assert!(solve(1, 5).done.worst < 16.0);
    }
}
