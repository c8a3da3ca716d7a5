//! The cells of a heat map while a trace is read: rows of equal stretches of time.
//!
//! Where the end is not known beforehand, the stretches begin at one nanosecond and double as often as time needs:
//! no second reading, and no more memory than the picture takes.

use schedlab_base::Nanos;

/// What is summed up in a cell.
pub trait Cell: Clone + Default {
    /// Takes `part` (0 to 1) of another cell in; `begins`: it begins in that part.
    fn add(&mut self, other: &Self, part: f64, begins: bool);
}

/// Cells by row and column.
#[derive(Clone, Debug)]
pub struct Grid<C> {
    from: Nanos,
    /// What lies at or after this instant is not asked for.
    until: Nanos,
    /// All columns together.
    length: Nanos,
    /// It may yet double.
    open: bool,
    /// The columns of the finished picture.
    wanted: usize,
    columns: usize,
    rows: Vec<Vec<C>>,
}

impl<C: Cell> Grid<C> {
    /// An empty one of `rows` rows and, in the end, `columns` columns from `from` on: up to `end`, or as far as time
    /// goes, but never beyond `until`.
    pub fn new(from: Nanos, until: Nanos, end: Option<Nanos>, columns: usize, rows: usize) -> Self {
        let wanted = columns.max(1);
        let until = end.map_or(until, |end| end.min(until));
        let (length, columns) = match end {
            Some(_) => (until.saturating_sub(from).max(1), wanted),
            None => (2 * wanted as Nanos, 2 * wanted),
        };
        let rows = vec![vec![C::default(); columns]; rows];
        Self { from, until, length, open: end.is_none(), wanted, columns, rows }
    }

    /// Forgets what is in the cells.
    pub fn clear(&mut self) {
        self.rows.iter_mut().flatten().for_each(|cell| *cell = C::default());
    }

    /// Adds an empty row at the end.
    pub fn add_row(&mut self) {
        self.rows.push(vec![C::default(); self.columns]);
    }

    /// The cell of this instant; `None` where it lies outside of what is asked for.
    pub fn cell(&mut self, row: usize, time: Nanos) -> Option<&mut C> {
        if !(self.from..self.until).contains(&time) {
            return None;
        }
        self.reach(time + 1);
        let column = self.column(time);
        self.rows.get_mut(row)?.get_mut(column)
    }

    /// Hands each cell that the span touches to `take`, with the time in it.
    pub fn spread(&mut self, row: usize, since: Nanos, now: Nanos, mut take: impl FnMut(&mut C, Nanos)) {
        let (since, now) = (since.max(self.from), now.min(self.until));
        if since >= now || row >= self.rows.len() {
            return;
        }
        self.reach(now);
        for column in self.column(since)..=self.column(now - 1) {
            let (from, to) = (self.edge(column).max(since), self.edge(column + 1).min(now));
            if from < to {
                take(&mut self.rows[row][column], to - from);
            }
        }
    }

    /// The cells of the picture, row after row, and where it ends: at `end`, or where no more was asked for.
    pub fn finish(self, end: Nanos) -> (Vec<C>, Nanos) {
        let end = end.min(self.until).max(self.from);
        if !self.open && end == self.until {
            return (self.rows.into_iter().flatten().collect(), end);
        }
        let mut cells = vec![C::default(); self.rows.len() * self.wanted];
        // Columns of the picture in columns of ours.
        let used = (end - self.from) as f64 * self.columns as f64 / self.length as f64;
        let stretch = used / self.wanted as f64;
        for (row, into) in self.rows.iter().zip(cells.chunks_mut(self.wanted)) {
            for (column, cell) in into.iter_mut().enumerate() {
                let (from, to) = (column as f64 * stretch, (column + 1) as f64 * stretch);
                let last = (to.ceil() as usize).min(row.len());
                for (at, fine) in row.iter().enumerate().take(last).skip(from as usize) {
                    // The last one may be filled in part.
                    let (left, right) = (at as f64, (at as f64 + 1.0).min(used));
                    let part = (to.min(right) - from.max(left)) / (right - left);
                    cell.add(fine, part.clamp(0.0, 1.0), (from..to).contains(&left));
                }
            }
        }
        (cells, end)
    }

    /// Doubles the columns' width until the instants before `end` fit.
    fn reach(&mut self, end: Nanos) {
        while self.open && end - self.from > self.length && self.length <= Nanos::MAX / 2 {
            self.length *= 2;
            for row in &mut self.rows {
                for column in 0..self.columns / 2 {
                    let mut pair = C::default();
                    pair.add(&row[2 * column], 1.0, true);
                    pair.add(&row[2 * column + 1], 1.0, true);
                    row[column] = pair;
                }
                row[self.columns / 2..].fill(C::default());
            }
        }
    }

    fn column(&self, time: Nanos) -> usize {
        let at = u128::from(time - self.from) * self.columns as u128 / u128::from(self.length);
        (at as usize).min(self.columns - 1)
    }

    /// The first instant of a column.
    fn edge(&self, column: usize) -> Nanos {
        // Rounded up, so that `column(edge(n)) == n`.
        let offset = (u128::from(self.length) * column as u128).div_ceil(self.columns as u128);
        self.from.saturating_add(offset as Nanos)
    }
}
