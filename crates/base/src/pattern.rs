//! Patterns of names.

/// Whether `name` fits the pattern, in which `*` stands for any text and `?` for one character.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                (p, n) = (at + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, fit) in [
            ("hog-*", "hog-12", true),
            ("hog-?", "hog-12", false),
            ("*", "", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b", "abc", false),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }
}
