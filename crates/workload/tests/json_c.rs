//! The reader accepts and refuses the same documents as json-c 0.16, and gives them the same meaning. Each case was
//! tried with `json_object_from_file` of Debian's libjson-c 0.16; the result is as json-c prints it.

use schedlab_workload::json::{Json, Value, read};

/// Formats a value as json-c does (`JSON_C_TO_STRING_PLAIN`). Floats are formatted by their value.
fn print(value: &Value) -> String {
    match &value.json {
        Json::Null => "null".to_owned(),
        Json::Bool(flag) => flag.to_string(),
        Json::Int(number) => number.to_string(),
        Json::Huge => "huge".to_owned(),
        Json::Float(number) => format!("{number:?}"),
        Json::Text(text) => format!("{text:?}"),
        Json::List(items) => format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(",")),
        Json::Object(members) => {
            let parts: Vec<String> = members.iter().map(|m| format!("{:?}:{}", m.key, print(&m.value))).collect();
            format!("{{{}}}", parts.join(","))
        }
    }
}

const TAKEN: &[(&str, &str)] = &[
    (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
    (r#"{"a":{"b":1},"c":2,"a":{"d":3}}"#, r#"{"a":{"d":3},"c":2}"#),
    (r#"{"a":[1,2,],}"#, r#"{"a":[1,2]}"#),
    (r#"{'a':'x"y'}"#, r#"{"a":"x\"y"}"#),
    (r#"{"a":NaN,"c":-Infinity,"d":nan,"e":infinity}"#, r#"{"a":NaN,"c":-inf,"d":NaN,"e":inf}"#),
    (r#"{"a":True,"b":FALSE,"c":NULL,"d":null}"#, r#"{"a":true,"b":false,"c":null,"d":null}"#),
    (r#"{"c":1.}"#, r#"{"c":1.0}"#),
    (r#"{"a":1E+5,"b":1e-5,"c":-1.5}"#, r#"{"a":100000.0,"b":1e-5,"c":-1.5}"#),
    (r#"{"a":1} garbage"#, r#"{"a":1}"#),
    (r#"{"a":1}{"b":2}"#, r#"{"a":1}"#),
    (" // c\n{\"a\":1 // x\n, /* y */ \"b\":2}", r#"{"a":1,"b":2}"#),
    ("{/**/\"a\"/**/:/**/1/**/}", r#"{"a":1}"#),
    ("{\"a\":\"tab\there\nnl\"}", r#"{"a":"tab\there\nnl"}"#),
    (r#"{"a":"\u00e4\ud83d\ude00 \ud83d x \/"}"#, "{\"a\":\"ä😀 \u{fffd} x /\"}"),
    (r#"{"":1}"#, r#"{"":1}"#),
    (r#"{"c":99999999999999999999}"#, r#"{"c":huge}"#),
];

const REFUSED: &[&str] = &[
    "{a:1}",
    r#"{"a":1,,}"#,
    "[1,,2]",
    "[,]",
    "{,}",
    r#"{"f":+1}"#,
    r#"{"d":.5}"#,
    r#"{"c":-}"#,
    r#"{"c":0x10}"#,
    "/* no end {\"a\":1}",
    r#"{"a":1 /* no end "#,
    "/ {\"a\":1}",
    "# c\n{\"a\":1}",
    r#"{"a":"\x"}"#,
    r#"{"a":"no end"#,
    r#"{"a":1"#,
    r#"{"a" 1}"#,
    r#"{"a":1 "b":2}"#,
    r#"{"a":1;}"#,
    "\u{feff}{\"a\":1}",
    "",
    "   ",
    "nul",
    r#"{"a":tru}"#,
    r#"{"a":1-2}"#,
    r#"{"a":1.5.2}"#,
    r#"{"a":12abc}"#,
    r#"{"a":"x"y}"#,
    "{\"a\":\"a\\\nb\"}",
    r#"{"a":"\'"}"#,
    "{\"a\":\u{b}1}",
    "{\"a\":1,\0\"b\":2}",
    r#"{"a","b":1}"#,
];

#[test]
fn accepted_documents_mean_the_same() {
    for (text, meaning) in TAKEN {
        let (value, _) = read(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(print(&value), *meaning, "{text}");
    }
    let (value, _) = read(b"{\"a\":\"\xff\xfe\"}").unwrap();
    assert_eq!(print(&value), "{\"a\":\"\u{fffd}\u{fffd}\"}");
}

#[test]
fn refused_documents_are_refused_with_the_line() {
    for text in REFUSED {
        let error = read(text.as_bytes()).map(|(v, _)| print(&v)).expect_err(text);
        assert!(error.to_string().starts_with("line "), "{text}: {error}");
    }
}

#[test]
fn the_nesting_limit_is_json_cs() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read(nested(32).as_bytes()).is_ok());
    assert!(read(nested(33).as_bytes()).unwrap_err().to_string().contains("deep"));
    assert!(read("[".repeat(1 << 20).as_bytes()).is_err());
    assert!(read("{\"a\":".repeat(1 << 20).as_bytes()).is_err());
}
