//! What tasks have in common whose names differ by numbers only: the workers of a pool, the instances of a task.

/// The role of a task with this name: each number in it is a `*`, and one that stands apart at the end is left out.
/// `client-3` is `client`, `kworker/0:1-events` is `kworker/*:*-events`, `worker12` is `worker*`.
pub(crate) fn role(name: &str) -> String {
    let mut role = String::new();
    for c in name.chars() {
        match c {
            '0'..='9' if role.ends_with('*') => {}
            '0'..='9' => role.push('*'),
            c => role.push(c),
        }
    }
    let apart = |c: char| matches!(c, '-' | '_' | ':' | '/' | '.' | '#');
    let head = role.strip_suffix('*').filter(|head| head.ends_with(apart)).map(|head| head.trim_end_matches(apart));
    head.filter(|head| !head.is_empty()).map(str::to_owned).unwrap_or(role)
}

#[cfg(test)]
mod tests {
    use super::role;

    #[test]
    fn numbers_are_no_part_of_a_role() {
        let cases = [
            ("client-3", "client"),
            ("kworker/0:1-events", "kworker/*:*-events"),
            ("kworker/u8:12", "kworker/u*"),
            ("worker12", "worker*"),
            ("rustc", "rustc"),
            ("42", "*"),
            ("-1", "-*"),
            ("", ""),
        ];
        for (name, expected) in cases {
            assert_eq!(role(name), expected, "{name}");
        }
    }
}
