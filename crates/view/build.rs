//! Embeds the page, if it has been built (`scripts/build-web`).

use std::path::Path;
use std::{env, fs};

const FILES: [(&str, &str); 4] = [
    ("index.html", "text/html; charset=utf-8"),
    ("app.js", "text/javascript; charset=utf-8"),
    ("app.css", "text/css; charset=utf-8"),
    ("icon.svg", "image/svg+xml"),
];

fn main() {
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut list = String::from("&[\n");
    let whole = ["index.html", "app.js", "app.css"].iter().all(|name| dist.join(name).is_file());
    for (name, kind) in FILES.iter().filter(|(name, _)| whole && dist.join(name).is_file()) {
        let path = dist.join(name).canonicalize().expect("the file exists");
        println!("cargo::rerun-if-changed={}", path.display());
        list += &format!("    ({name:?}, {kind:?}, include_bytes!({path:?})),\n");
    }
    list += "]\n";
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("assets.rs");
    fs::write(out, list).expect("the folder for generated files is writable");
}
