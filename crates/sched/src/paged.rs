//! A table with a row for each task of which most have never been written to: they take no memory.

use schedlab_sim::TaskId;
use std::ops::{Index, IndexMut};

/// The rows of a page.
const PAGE: usize = 64;

/// The table. A row that was never written to has the value that the table began with.
#[derive(Debug)]
pub(crate) struct Paged<T> {
    pages: Vec<Option<Box<[T; PAGE]>>>,
    rest: T,
}

impl<T: Copy + PartialEq> Paged<T> {
    /// Every row has this value.
    pub fn new(rest: T) -> Self {
        Self { pages: Vec::new(), rest }
    }

    /// Sets a row, without taking memory for what it has already.
    #[inline]
    pub fn set(&mut self, p: TaskId, value: T) {
        if self[p] != value {
            self[p] = value;
        }
    }

    /// Makes a page, and room for it.
    #[cold]
    fn add(&mut self, page: usize) {
        self.pages.resize_with(self.pages.len().max(page + 1), || None);
        self.pages[page] = Some(Box::new([self.rest; PAGE]));
    }
}

impl<T> Index<TaskId> for Paged<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, p: TaskId) -> &T {
        match self.pages.get(p as usize / PAGE) {
            Some(Some(page)) => &page[p as usize % PAGE],
            _ => &self.rest,
        }
    }
}

impl<T: Copy + PartialEq> IndexMut<TaskId> for Paged<T> {
    #[inline(always)]
    fn index_mut(&mut self, p: TaskId) -> &mut T {
        let page = p as usize / PAGE;
        if !matches!(self.pages.get(page), Some(Some(_))) {
            self.add(page);
        }
        let rows = self.pages[page].as_mut().expect("it has just been made");
        &mut rows[p as usize % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_takes_memory() {
        let mut table = Paged::new(7);
        table.set(1000, 7);
        assert_eq!((table[1000], table[0], table.pages.len()), (7, 7, 0));
        table.set(130, 1);
        table[131] += 1;
        assert_eq!((table[129], table[130], table[131], table[192]), (7, 1, 8, 7));
        assert_eq!(table.pages.iter().flatten().count(), 1);
        table.set(130, 7);
        assert_eq!(table[130], 7);
    }
}
