//! What the help says, to somebody who has never seen the command.

use crate::support::schedlab;

fn help(args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let output = schedlab(dir.path(), args);
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn without_arguments_it_says_what_it_is_and_how_to_begin() {
    let text = help(&[]);
    assert_eq!(text.lines().next(), Some("A laboratory for Linux task schedulers"), "{text}");
    assert!(
        text.contains("\n  schedlab record -o trace.arrows -- make -j4\n  schedlab stats trace.arrows\n"),
        "{text}"
    );
}

#[test]
fn every_command_shows_an_example() {
    let text = help(&["--help"]);
    let commands = text.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let names =
        commands.lines().filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    // These hand everything on to programs of the Python package.
    let names: Vec<_> = names.filter(|name| !["help", "tune", "sweep", "query"].contains(name)).collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let text = help(&[name, "--help"]);
        assert!(text.contains("\nExample") && text.contains(&format!("\n  schedlab {name}")), "{name}: {text}");
    }
}

#[test]
fn what_is_no_number_is_said_in_plain_words() {
    let said = |args: &[&str]| help(args).lines().next().unwrap_or_default().to_owned();
    for (args, expected) in [
        (
            &["delays", "t", "--worst", "all"][..],
            "error: invalid value 'all' for '--worst <N>': it is not a whole number",
        ),
        (
            &["sim", "li", "--seed", "99999999999999999999"],
            "error: invalid value '99999999999999999999' for '--seed <SEED>': it is too large",
        ),
        (&["sim", "li", "--seed", "-1"], "error: invalid value '-1' for '--seed <SEED>': it is negative"),
        (&["delays", "t", "--worst", "-1"], "error: invalid value '-1' for '--worst <N>': -1 is not in 0..=10000"),
        (&["test", "--noise", "-1"], "schedlab: --noise: -1 is no percentage; write 0 to 100"),
        (
            &["record", "--buffer", "-1M"],
            "error: invalid value '-1M' for '--buffer <SIZE>': \"-1M\" is no size; write a number and a unit: 512K, \
             8M, 1G",
        ),
        (&["sim", "li", "--seed", ""], "error: invalid value '' for '--seed <SEED>': it is empty"),
        (
            &["test", "--on", "live", "--noise", "much"],
            "error: invalid value 'much' for '--noise <PERCENT>': it is not a number",
        ),
    ] {
        assert_eq!(said(args), expected);
    }
}
