//! Embeds the built web page (`web/dist`) in the program. Without it the program says so in the page's place.
//! Lets tests know whether the recordings outside the repository are there.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a build that cannot go on says so by panicking")]

use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    grove_fixtures::emit_cfg();
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let dist = root.join("web/dist");
    // A path that is not there counts as changed at every build, and everything would be built again each time. So the
    // folder around it stands in for it until it exists.
    let web = root.join("web");
    let watched = if !dist.exists() && web.exists() { &web } else { &dist };
    println!("cargo::rerun-if-changed={}", watched.display());
    println!("cargo::rerun-if-changed=build.rs");

    let mut files = Vec::new();
    collect(&dist, &mut files);
    files.sort();
    let mut code = String::from("&[\n");
    for path in files {
        let name = path.strip_prefix(&dist).unwrap().to_str().unwrap();
        let path = path.canonicalize().unwrap();
        let mut hasher = DefaultHasher::new();
        fs::read(&path).unwrap().hash(&mut hasher);
        let tag = format!("{:016x}", hasher.finish());
        writeln!(code, "    ({name:?}, {tag:?}, include_bytes!({path:?})),").unwrap();
    }
    code.push_str("]\n");
    let out = Path::new(&std::env::var("OUT_DIR").unwrap()).join("page.rs");
    fs::write(out, code).unwrap();
}

/// Adds the files below a folder, where there is one.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
