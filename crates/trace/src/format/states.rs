//! Finds the meaning of `prev_state`, whose numbering differs from kernel to kernel, in the text with which the kernel
//! itself prints it.
//!
//! `sched_switch` prints `__print_flags(REC->prev_state & MASK, "|", { 0x01, "S" }, ...) : "R", REC->prev_state &
//! PREEMPTED ? "+" : ""`. The table gives the letter of each bit, and the last part the bit of a preempted task.

use schedlab_base::TaskState;

/// The deepest nesting of an expression in a print format; deeper ones are not evaluated.
const DEPTH_MAX: u32 = 64;

/// The meaning of each bit of `prev_state` in one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateTable {
    /// Of the first values, all of those that most kernels write.
    first: [TaskState; 512],
    letters: [Option<TaskState>; 64],
    known: u64,
    preempted: u64,
    /// The bits that together mean "idle" in kernels that have no letter for it (`D|N`, 4.2 to 4.13).
    idle: u64,
}

impl StateTable {
    /// Parses the table in the print format of `sched_switch`. Returns today's table if the text has none.
    #[must_use]
    pub(super) fn of_print_fmt(text: &str) -> Self {
        flags(text).map_or_else(Self::today, |(pairs, rest)| Self::of_pairs(&pairs, preempted_bit(rest)))
    }

    /// The numbering since 4.14.
    fn today() -> Self {
        let letters = ["S", "D", "T", "t", "X", "Z", "P", "I"];
        let pairs: Vec<_> = letters.iter().enumerate().map(|(bit, l)| (1 << bit, *l)).collect();
        Self::of_pairs(&pairs, Some(0x100))
    }

    fn of_pairs(pairs: &[(u64, &str)], preempted: Option<u64>) -> Self {
        let bits = pairs.iter().fold(0, |all, (bit, _)| all | bit);
        let above = bits.checked_ilog2().and_then(|top| 1u64.checked_shl(top + 1)).unwrap_or(0);
        let first = [TaskState::Runnable; 512];
        let mut table = Self { first, letters: [None; 64], known: 0, preempted: preempted.unwrap_or(above), idle: 0 };
        for &(bit, letter) in pairs {
            if let (1, &[letter]) = (bit.count_ones(), letter.as_bytes())
                && let Some(state) = TaskState::from_letter(letter)
            {
                table.letters[bit.trailing_zeros() as usize] = Some(state);
                table.known |= bit;
            }
        }
        let bit_of = |letter| pairs.iter().find(|p| p.1 == letter).map(|p| p.0);
        if let (Some(d), Some(n)) = (bit_of("D"), bit_of("N")) {
            table.idle = d | n;
        }
        table.first = std::array::from_fn(|value| table.of_bits(value as u64));
        table
    }

    /// The state that a value of `prev_state` stands for. If a task sleeps in a way that the kernel has no letter for,
    /// its state is uninterruptible. A task that was preempted on its way to sleep (`S+`, before 4.14) is still
    /// runnable.
    #[must_use]
    #[inline]
    pub(super) fn state(&self, value: u64) -> TaskState {
        let state = usize::try_from(value).ok().and_then(|value| self.first.get(value));
        state.copied().unwrap_or_else(|| self.of_bits(value))
    }

    #[cold]
    fn of_bits(&self, value: u64) -> TaskState {
        if value == 0 || value & self.preempted != 0 {
            return TaskState::Runnable;
        }
        if self.idle != 0 && value & self.idle == self.idle {
            return TaskState::Idle;
        }
        let known = value & self.known;
        if known == 0 {
            return TaskState::Uninterruptible;
        }
        self.letters[known.trailing_zeros() as usize].unwrap_or(TaskState::Uninterruptible)
    }
}

/// The pairs in `__print_flags(REC->prev_state ...)` and the text after it.
fn flags(text: &str) -> Option<(Vec<(u64, &str)>, &str)> {
    let start = text.find("__print_flags(REC->prev_state")?;
    let mut rest = &text[start..];
    let mut pairs = Vec::new();
    loop {
        // The list ends at a `}` that no `{` follows.
        let open = rest.find('{')?;
        let (inside, behind) = rest[open + 1..].split_once('}')?;
        let (number, letter) = inside.split_once(',')?;
        pairs.push((parse_number(number.trim())?, letter.trim().trim_matches('"')));
        rest = behind;
        if !behind.trim_start().starts_with(',') || pairs.len() >= 64 {
            return Some((pairs, behind));
        }
    }
}

/// The value of EXPR in `REC->prev_state & EXPR ? "+"`.
fn preempted_bit(rest: &str) -> Option<u64> {
    let (before, _) = rest.split_once("? \"+\"")?;
    let (_, expression) = before.rsplit_once("REC->prev_state &")?;
    let mut parser = Expression { text: expression.trim() };
    let value = parser.alternatives(0)?;
    (parser.text.is_empty() && value.count_ones() == 1).then_some(value)
}

fn parse_number(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A constant C expression as print formats contain it: numbers, parentheses, `|`, `<<`, `+` and `-`.
struct Expression<'a> {
    text: &'a str,
}

impl Expression<'_> {
    fn eat(&mut self, token: &str) -> bool {
        match self.text.strip_prefix(token) {
            Some(rest) => {
                self.text = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn alternatives(&mut self, depth: u32) -> Option<u64> {
        let mut value = self.shifts(depth)?;
        while self.eat("|") {
            value |= self.shifts(depth)?;
        }
        Some(value)
    }

    fn shifts(&mut self, depth: u32) -> Option<u64> {
        let mut value = self.sums(depth)?;
        while self.eat("<<") {
            value = value.checked_shl(u32::try_from(self.sums(depth)?).ok()?)?;
        }
        Some(value)
    }

    fn sums(&mut self, depth: u32) -> Option<u64> {
        let mut value = self.atom(depth)?;
        loop {
            if self.eat("+") {
                value = value.wrapping_add(self.atom(depth)?);
            } else if self.eat("-") {
                value = value.wrapping_sub(self.atom(depth)?);
            } else {
                return Some(value);
            }
        }
    }

    fn atom(&mut self, depth: u32) -> Option<u64> {
        if depth > DEPTH_MAX {
            return None;
        }
        if self.eat("(") {
            let value = self.alternatives(depth + 1)?;
            return self.eat(")").then_some(value);
        }
        let end = self.text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.text.len());
        let value = parse_number(&self.text[..end])?;
        self.text = self.text[end..].trim_start();
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(table: &StateTable, values: &[u64]) -> String {
        values.iter().map(|v| table.state(*v).letter()).collect()
    }

    #[test]
    fn the_numbering_since_4_14() {
        let text = concat!(
            r#"(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000040) + 1) << 1) - 1)) ? "#,
            r#"__print_flags(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | "#,
            r#"0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1), "#,
            r#""|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }, "#,
            r#"{ 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R""#,
            r#", REC->prev_state & (((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | "#,
            r#"0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) ? "+" : "", REC->next_comm"#,
        );
        let table = StateTable::of_print_fmt(text);
        assert_eq!(letters(&table, &[0, 1, 2, 4, 8, 16, 32, 64, 128, 256]), "RSDTtXZPIR");
        assert_eq!(table, StateTable::today());
    }

    #[test]
    fn the_numbering_of_4_9() {
        let text = concat!(
            r#"REC->prev_state & (4096-1) ? __print_flags(REC->prev_state & (4096-1), "#,
            r#""|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, "#,
            r#"{ 32, "X" }, { 64, "x" }, { 128, "K"}, { 256, "W" }, { 512, "P" }, { 1024, "N" }) : "R""#,
            r#", REC->prev_state & 4096 ? "+" : "", REC->next_comm"#,
        );
        let table = StateTable::of_print_fmt(text);
        assert_eq!(letters(&table, &[0, 1, 2, 130, 16, 32, 64, 512, 1026, 4096, 4097, 256]), "RSDDZXXPIRRD");
    }

    #[test]
    fn missing_and_malformed_tables_do_no_harm() {
        assert_eq!(StateTable::of_print_fmt(""), StateTable::today());
        let deep = format!(
            r#"__print_flags(REC->prev_state, "|", {{ 1, "S" }}) : "R", REC->prev_state & {} ? "+""#,
            "(".repeat(1 << 20)
        );
        assert_eq!(letters(&StateTable::of_print_fmt(&deep), &[1, 2]), "SR");
        let huge = r#"__print_flags(REC->prev_state, "|", { 0x8000000000000000, "S" }, { 0, "D" })"#;
        assert_eq!(letters(&StateTable::of_print_fmt(huge), &[1 << 63, 3]), "SD");
    }
}
