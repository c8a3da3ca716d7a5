//! A file of values: TOML, one `name = value` a line, with what was measured in comments.

use schedlab_base::{Error, Result};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest file that is read, in bytes.
const LONGEST: usize = 1 << 20;
/// The comments that are carried into other files begin with this.
const EFFECT: &str = "effect:";

/// One value of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The tunable's name as it stands there.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// Its line, from 1.
    pub line: u64,
    /// The measured effects in the comments above it and behind it.
    pub effects: Vec<String>,
}

/// The values of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The file's name, for messages.
    pub file: PathBuf,
    /// The values in the file's order.
    pub settings: Vec<Setting>,
    /// The measured effects of all together: those in comments that stand before a blank line, or at the end.
    pub effects: Vec<String>,
}

impl Settings {
    /// Reads the text of a file with this name.
    ///
    /// # Errors
    /// When it is no TOML, or a value is neither text, a whole number nor true or false.
    pub fn parse(file: &Path, text: &str) -> Result<Self> {
        if text.len() > LONGEST {
            return Err(Error::input("is larger than 1 MiB").mend("give a file of a few lines").file(file));
        }
        let table = DeTable::parse(text).map_err(|e| {
            let line = e.span().map_or(1, |span| line_at(text, span.start));
            Error::input(e.message().lines().next().unwrap_or("is no TOML").to_owned())
                .mend("a line is NAME = VALUE; a name with a colon stands in quotes")
                .file(file)
                .line(line)
        })?;
        let mut found = Self { file: file.to_owned(), ..Self::default() };
        found.collect("", table.get_ref(), text)?;
        found.settings.sort_by_key(|setting| setting.line);
        if found.settings.is_empty() {
            return Err(Error::input("has no value").mend("a line is NAME = VALUE").file(file));
        }
        found.read_comments(text);
        Ok(found)
    }

    fn collect(&mut self, prefix: &str, table: &DeTable<'_>, text: &str) -> Result<()> {
        for (key, value) in table {
            // A dot in a bare key makes a table of it: vm.swappiness.
            let name =
                if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
            if let DeValue::Table(inner) = value.get_ref() {
                self.collect(&name, inner, text)?;
                continue;
            }
            let line = line_at(text, key.span().start);
            let value = written(value).ok_or_else(|| {
                Error::input("is neither text, a whole number nor true or false")
                    .mend("give the value as the kernel's file has it")
                    .key(&name)
                    .line(line)
                    .file(&self.file)
            })?;
            self.settings.push(Setting { name, value, line, effects: Vec::new() });
        }
        Ok(())
    }

    /// Gives each comment `# effect: ...` to the setting of its line, or to the next one below without a blank line.
    fn read_comments(&mut self, text: &str) {
        let mut waiting = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let setting = self.settings.iter_mut().find(|setting| setting.line == number);
            if let Some(comment) = effect(line, setting.as_deref()) {
                waiting.push(comment);
            }
            if let Some(setting) = setting {
                setting.effects.append(&mut waiting);
            } else if line.trim().is_empty() {
                self.effects.append(&mut waiting);
            }
        }
        self.effects.append(&mut waiting);
    }

    /// An error at a setting.
    pub(crate) fn at(&self, setting: &Setting, error: Error) -> Error {
        error.key(&setting.name).line(setting.line).file(&self.file)
    }
}

/// The effect in a line's comment. A `#` within the value of a setting is no comment.
fn effect(line: &str, setting: Option<&Setting>) -> Option<String> {
    let from = match setting {
        Some(setting) => line.rfind(&setting.value).map_or(0, |at| at + setting.value.len()),
        None if line.trim_start().starts_with('#') => 0,
        None => return None,
    };
    // The value may stand in the comment too; then the search from the left finds the comment.
    let rest = line.get(from..).filter(|rest| rest.contains('#')).unwrap_or(line);
    let comment = rest.split_once('#')?.1.trim_start_matches('#').trim();
    Some(comment.strip_prefix(EFFECT)?.trim().to_owned()).filter(|text| !text.is_empty())
}

fn line_at(text: &str, offset: usize) -> u64 {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|b| **b == b'\n').count() as u64
}

/// A value as the kernel's file has it.
fn written(value: &Spanned<DeValue<'_>>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(on) => Some(u8::from(*on).to_string()),
        DeValue::Integer(number) => {
            i128::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok().map(|n| n.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings> {
        Settings::parse(Path::new("s.toml"), text)
    }

    #[test]
    fn values_keep_their_order_and_comments() {
        let found = parse(
            "# effect: turnaround -12 % (-15 to -9)\n\nvm.swappiness = 10 # effect: run time -4 %\n\
             # why not\n# effect: p99 -30 %\n\"vda:nr_requests\" = 64\n[kernel]\nnuma_balancing = false\n\
             \"a#b\" = \"x # y\"\n# effect: the end\n",
        )
        .unwrap();
        let of = |s: &Setting| (s.name.clone(), s.value.clone(), s.line, s.effects.join("/"));
        let all: Vec<_> = found.settings.iter().map(of).collect();
        let row = |name: &str, value: &str, line, effects: &str| {
            (name.to_owned(), value.to_owned(), line, effects.to_owned())
        };
        assert_eq!(
            all,
            [
                row("vm.swappiness", "10", 3, "run time -4 %"),
                row("vda:nr_requests", "64", 6, "p99 -30 %"),
                row("kernel.numa_balancing", "0", 8, ""),
                row("kernel.a#b", "x # y", 9, ""),
            ]
        );
        assert_eq!(found.effects, ["turnaround -12 % (-15 to -9)", "the end"]);
    }

    #[test]
    fn a_comment_that_repeats_the_value_is_found() {
        let found = parse("x = 10 # effect: 10 is best, 10 times\ny = 0x1_0\n").unwrap();
        assert_eq!(found.settings[0].effects, ["10 is best, 10 times"]);
        assert_eq!(found.settings[1].value, "16");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert!(said("a = 1\nb = \n").starts_with("s.toml:2: "), "{}", said("a = 1\nb = \n"));
        assert!(said("a = 1\na = 2\n").starts_with("s.toml:2: "), "{}", said("a = 1\na = 2\n"));
        assert_eq!(
            said("\na = 1.5\n"),
            "s.toml:2: a: is neither text, a whole number nor true or false; give the value as the kernel's file has it"
        );
        assert!(said("a = [1]\n").contains("is neither text"));
        assert!(said("# nothing\n").contains("has no value"));
        assert!(said("vda:nr = 1\n").contains("a name with a colon stands in quotes"));
    }
}
