//! Numbers of things in messages.

/// A number of things: `1 task`, `2 tasks`, `2 watches`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    let several = if thing.ends_with("ch") { "es" } else { "s" };
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { several })
}

/// A number with its thousands set apart.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let lead = digits.len() % 3;
    let mut out = digits[..lead].to_owned();
    for at in (lead..digits.len()).step_by(3) {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&digits[at..at + 3]);
    }
    out
}

/// How many names a message lists.
const MOST_NAMES: usize = 8;

/// The first names, and how many more there are.
#[must_use]
pub fn listed(names: &[String]) -> String {
    let mut text = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST_NAMES {
        text += &format!(" and {} more", grouped((names.len() - MOST_NAMES) as u64));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_singular() {
        let texts = [0, 1, 2, 1_234_567].map(|n| counted(n, "more task"));
        assert_eq!(texts, ["0 more tasks", "1 more task", "2 more tasks", "1,234,567 more tasks"]);
        assert_eq!((counted(1, "watch"), counted(2, "watch")), ("1 watch".to_owned(), "2 watches".to_owned()));
    }

    #[test]
    fn of_many_names_the_first_are_listed() {
        let names: Vec<String> = (1..=9).map(|n| n.to_string()).collect();
        assert_eq!(listed(&names[..2]), "1, 2");
        assert_eq!(listed(&names), "1, 2, 3, 4, 5, 6, 7, 8 and 1 more");
    }
}
