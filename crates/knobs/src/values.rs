//! Which values a tunable takes, as the catalogue's column `values` says it:
//!
//! | text | values |
//! |---|---|
//! | `0..200` | whole numbers; the upper bound may be `@NAME`, the file of that name beside it, or `mem/20`, in KiB |
//! | `3*0..100` | so many of them, separated by spaces |
//! | `0\|1\|2`, `on\|off` | one of these words |
//! | `@` | one of the words that the file itself lists, the current one in brackets |
//! | `@NAME` | one of the words in the file of that name beside it |
//! | `cpus` | CPUs as a list, `0-3,8` |
//! | `mask` | CPUs as a hexadecimal mask, `f`, `ff,ffffffff` |
//! | `A until 5.7; B` | A in releases up to that one, B later |

use schedlab_base::{CpuList, Error, Release, Result, nearest};

/// Which values a tunable takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Whole numbers, `count` of them.
    Numbers {
        /// How many.
        count: usize,
        /// The least.
        lo: i128,
        /// The greatest.
        hi: Bound,
    },
    /// One of these words.
    Words(Vec<&'static str>),
    /// One of the words that the file lists, or the file of this name beside it.
    Listed(Option<&'static str>),
    /// A list of CPUs.
    Cpus,
    /// A mask of CPUs.
    Mask,
}

/// An upper bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// This number.
    Number(i128),
    /// What the file of this name contains, beside that of the tunable.
    Beside(&'static str),
    /// The machine's memory in KiB, divided by this.
    Memory(i128),
}

/// How a file names CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// As a list, `0-3,8`.
    List,
    /// As a hexadecimal mask, `f`. It may be empty.
    Mask,
}

impl Cpus {
    /// Whether two texts name the same CPUs: the kernel writes them in its own way.
    pub(crate) fn same(self, a: &str, b: &str) -> bool {
        let mask = |text: &str| text.replace(',', "").trim_start_matches('0').to_lowercase();
        match self {
            Self::Mask => mask(a) == mask(b),
            Self::List => a.parse::<CpuList>().is_ok_and(|a| b.parse::<CpuList>().is_ok_and(|b| a == b)),
        }
    }

    fn check(self, value: &str) -> Result<String> {
        let word = |word: &str| !word.is_empty() && word.len() <= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
        let (fine, form) = match self {
            Self::Mask => (value.split(',').all(word), "a hexadecimal mask (f, or ff,ffffffff)"),
            Self::List => (value.parse::<CpuList>().is_ok_and(|list| !list.is_empty()), "a list (0-3,8)"),
        };
        let odd = || Error::input(format!("\"{value}\" names no CPUs")).mend(format!("give {form}"));
        if fine { Ok(value.to_owned()) } else { Err(odd()) }
    }
}

/// The values that a tunable takes on a certain machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The least and the greatest number.
    pub range: Option<(i128, i128)>,
    /// How many numbers; 1 for most.
    pub count: usize,
    /// The words.
    pub choices: Option<Vec<String>>,
    /// How the value names CPUs, if it does.
    pub cpus: Option<Cpus>,
    /// Whether it is a word that only the machine can check.
    pub text: bool,
}

impl Values {
    /// Reads the column `values` for a release. `None` if it is empty: no value can be checked, so none is set.
    ///
    /// # Errors
    /// When the text is not in the form above.
    pub fn parse(text: &'static str, release: Release) -> Result<Option<Self>> {
        for part in text.split(';').map(str::trim) {
            let (values, until) = match part.split_once(" until ") {
                Some((values, until)) => (values.trim(), Some(until.trim().parse::<Release>()?)),
                None => (part, None),
            };
            if until.is_none_or(|until| release <= until) {
                return Self::one(values);
            }
        }
        Ok(None)
    }

    fn one(text: &'static str) -> Result<Option<Self>> {
        Ok(Some(match text {
            "" => return Ok(None),
            "@" => Self::Listed(None),
            "cpus" => Self::Cpus,
            "mask" => Self::Mask,
            _ => match (text.split_once(".."), text.strip_prefix('@')) {
                (Some((lo, hi)), _) => Self::numbers(text, lo, hi)?,
                (None, Some(beside)) => Self::Listed(Some(beside)),
                (None, None) => Self::Words(text.split('|').collect()),
            },
        }))
    }

    fn numbers(text: &'static str, lo: &'static str, hi: &'static str) -> Result<Self> {
        let number = |text: &str| text.parse::<i128>().map_err(|_| Error::input(format!("\"{text}\" is no number")));
        let odd = |e: Error| e.key(text);
        let (count, lo) = lo.split_once('*').unwrap_or(("1", lo));
        let hi = if let Some(beside) = hi.strip_prefix('@') {
            Bound::Beside(beside)
        } else if let Some(part) = hi.strip_prefix("mem/") {
            Bound::Memory(number(part).map_err(odd)?.max(1))
        } else {
            Bound::Number(number(hi).map_err(odd)?)
        };
        Ok(Self::Numbers { count: number(count).map_err(odd)? as usize, lo: number(lo).map_err(odd)?, hi })
    }
}

impl Values {
    /// What can be checked without a machine: its bounds and lists are not known.
    pub(crate) fn limits(&self) -> Limits {
        match self {
            Self::Numbers { count, lo, hi } => {
                let hi = if let Bound::Number(hi) = hi { *hi } else { i128::MAX };
                Limits { range: Some((*lo, hi)), count: *count, ..Limits::default() }
            }
            Self::Words(words) => {
                Limits { choices: Some(words.iter().map(|w| (*w).to_owned()).collect()), ..Limits::default() }
            }
            Self::Listed(_) => Limits { text: true, ..Limits::default() },
            Self::Cpus => Limits { cpus: Some(Cpus::List), ..Limits::default() },
            Self::Mask => Limits { cpus: Some(Cpus::Mask), ..Limits::default() },
        }
    }
}

impl Limits {
    /// The value as the kernel takes it.
    ///
    /// # Errors
    /// With what is wrong with it, and what would be right.
    pub fn check(&self, value: &str) -> Result<String> {
        let words: Vec<&str> = value.split_whitespace().collect();
        let written = words.join(" ");
        if let Some(choices) = &self.choices {
            return self.one_of(&written, choices);
        }
        if let Some(cpus) = self.cpus {
            return cpus.check(&written);
        }
        if self.text && !written.is_empty() {
            return Ok(written);
        }
        if words.len() != self.count.max(1) {
            let wanted = if self.count > 1 { format!("{} numbers", self.count) } else { "one whole number".to_owned() };
            return Err(Error::input(format!("\"{written}\" is not {wanted}")));
        }
        let mut numbers = Vec::new();
        for word in words {
            let range = self.range.map_or_else(String::new, |(lo, hi)| format!(" of {lo} to {hi}"));
            let number = word.parse::<i128>().map_err(|_| {
                Error::input(format!("\"{word}\" is no whole number")).mend(format!("give a number{range}"))
            })?;
            if self.range.is_some_and(|(lo, hi)| number < lo || number > hi) {
                return Err(Error::input(format!("{number} is out of range")).mend(format!("give a number{range}")));
            }
            // The kernel would read 010 as 8.
            numbers.push(number.to_string());
        }
        Ok(numbers.join(" "))
    }

    fn one_of(&self, value: &str, choices: &[String]) -> Result<String> {
        if choices.iter().any(|choice| choice == value) {
            return Ok(value.to_owned());
        }
        let near = nearest(value, choices.iter().map(String::as_str)).map(|near| format!("did you mean \"{near}\"?"));
        let mend = near.unwrap_or_else(|| format!("it takes {}", choices.join(", ")));
        Err(Error::input(format!("\"{value}\" is none of its values")).mend(mend))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::v;

    fn limits(range: (i128, i128)) -> Limits {
        Limits { range: Some(range), count: 1, ..Limits::default() }
    }

    #[test]
    fn the_values_of_a_release_are_read() {
        let of = |text, release| Values::parse(text, release).unwrap();
        let swap = "0..100 until 5.7; 0..200";
        let numbers = |lo, hi| Some(Values::Numbers { count: 1, lo, hi: Bound::Number(hi) });
        assert_eq!(of(swap, v(5, 7)), numbers(0, 100));
        assert_eq!(of(swap, v(5, 8)), numbers(0, 200));
        assert_eq!(of("-1..5", v(6, 1)), numbers(-1, 5));
        assert_eq!(of("", v(6, 1)), None);
        assert_eq!(of("0|1", v(6, 1)), Some(Values::Words(vec!["0", "1"])));
        assert_eq!(of("3*4..@max", v(6, 1)), Some(Values::Numbers { count: 3, lo: 4, hi: Bound::Beside("max") }));
        assert!(Values::parse("0..much", v(6, 1)).is_err());
    }

    #[test]
    fn a_value_out_of_range_says_what_would_be_right() {
        let said = |value: &str| limits((0, 200)).check(value).unwrap_err().to_string();
        assert_eq!(said("201"), "201 is out of range; give a number of 0 to 200");
        assert_eq!(said("1e2"), "\"1e2\" is no whole number; give a number of 0 to 200");
        assert_eq!(said("1 2"), "\"1 2\" is not one whole number");
        assert_eq!(said(""), "\"\" is not one whole number");
        assert_eq!(limits((0, 200)).check(" 200\n").unwrap(), "200");
        assert_eq!(limits((0, 200)).check("+010").unwrap(), "10");
        let three = Limits { count: 3, ..limits((0, 9)) };
        assert_eq!(three.check("1\t2 9").unwrap(), "1 2 9");
        assert!(three.check("1 2").is_err() && three.check("1 2 10").is_err());
    }

    #[test]
    fn words_and_cpus_are_checked() {
        let words = Limits { choices: Some(vec!["none".into(), "mq-deadline".into()]), ..Limits::default() };
        assert_eq!(words.check("none").unwrap(), "none");
        let said = words.check("mq-deadlin").unwrap_err().to_string();
        assert_eq!(said, "\"mq-deadlin\" is none of its values; did you mean \"mq-deadline\"?");
        assert!(words.check("cfq").unwrap_err().to_string().ends_with("it takes none, mq-deadline"));
        let cpus = |kind, text: &str| Limits { cpus: Some(kind), ..Limits::default() }.check(text).is_ok();
        assert!(["0-3,8", "0"].iter().all(|text| cpus(Cpus::List, text)));
        assert!(["", "x", "f", "3-1", ","].iter().all(|text| !cpus(Cpus::List, text)));
        assert!(["f", "ff,ffffffff", "0", "00000003"].iter().all(|text| cpus(Cpus::Mask, text)));
        assert!(["", "0x3", "0-1", "1,,1", "123456789"].iter().all(|text| !cpus(Cpus::Mask, text)));
        assert!(Cpus::Mask.same("3", "00000000,00000003") && !Cpus::Mask.same("3", "30"));
        assert!(Cpus::List.same("0,1", "0-1") && !Cpus::List.same("0", "0-1"));
    }
}
