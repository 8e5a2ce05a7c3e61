//! A member that is listed in the wrong place is a compile error that says where it belongs.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[test]
fn a_member_in_the_wrong_list_is_a_compile_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("lists.rs");
    let code = "ringfence::stack! { pub Shop; slice Place; }
        ringfence::context! { pub Carts, \"carts\" on ringfence::Dcb; context Other; }";
    fs::write(&source, code).unwrap();
    let program = env::current_exe().unwrap();
    let libraries = program.parent().unwrap();
    let mut compiler = Command::new("rustc");
    compiler.arg(&source).args(["--crate-type=lib", "--edition=2024", "--emit=metadata"]);
    compiler.arg("--out-dir").arg(folder.path());
    compiler.arg("--extern").arg(format!("ringfence={}", library(libraries).display()));
    compiler.arg("-L").arg(format!("dependency={}", libraries.display()));
    let said = String::from_utf8(compiler.output().unwrap().stderr).unwrap();
    for expected in [
        "error: a stack lists contexts, as `context ordering::Ordering;`: list this `slice` in the `context!` that it is of",
        "and this is `context`: a context is listed in `stack!`",
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

/// The newest build of the facade: this program is linked with it.
fn library(folder: &Path) -> std::path::PathBuf {
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("libringfence-") && name.ends_with(".rlib")
    };
    let newest =
        all.filter(is_it).max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    newest.expect("cargo builds the facade before its tests")
}
