//! The compiler's errors for wrong code in `tests/derive`.
//!
//! The compiler runs on the library that cargo has built for this program. If the wrong code were in a package, cargo
//! would check all dependencies again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use std::{env, fs};

/// The root of the workspace, where cargo runs the compiler.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const FOLDER: &str = "shared/core/tests/derive";

#[test]
fn compile_errors_name_the_fix() {
    let library = library();
    let mut compiled = 0;
    for entry in fs::read_dir(Path::new(ROOT).join(FOLDER)).unwrap() {
        let source = entry.unwrap().path();
        if source.extension().is_some_and(|extension| extension == "rs") {
            compiled += 1;
            let said = errors(source.file_name().unwrap().to_str().unwrap(), &library);
            let expected = source.with_extension("stderr");
            if env::var_os("UPDATE").is_some() {
                fs::write(&expected, said).unwrap();
            } else {
                let write = "write it with `UPDATE=1 cargo test --test core compile_errors`";
                assert_eq!(said, fs::read_to_string(&expected).unwrap(), "{source:?}: {write}");
            }
        }
    }
    assert!(compiled > 0);
}

/// The file of the library. Builds with other settings may be beside it. Cargo links the program after the library,
/// so the newest library that is older than this program has the program's sources.
fn library() -> PathBuf {
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let program = env::current_exe().unwrap();
    let linked = modified(&program);
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    for entry in fs::read_dir(program.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("libringfence_core-") && name.ends_with(".rlib") {
            let built = modified(&path);
            if built <= linked && newest.as_ref().is_none_or(|(newest, _)| *newest < built) {
                newest = Some((built, path));
            }
        }
    }
    newest.expect("cargo builds the library before its tests").1
}

/// The compiler's errors for a file.
fn errors(file: &str, library: &Path) -> String {
    let mut compiler = Command::new("rustc");
    compiler.current_dir(ROOT).arg(format!("{FOLDER}/{file}"));
    compiler.args(["--edition=2024", "--emit=metadata", "--color=never", "--diagnostic-width=140"]);
    compiler.args(["--out-dir", env!("CARGO_TARGET_TMPDIR")]);
    compiler.arg("--extern").arg(format!("ringfence={}", library.display()));
    compiler.arg("-L").arg(format!("dependency={}", library.parent().unwrap().display()));
    let output = compiler.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{file} is accepted: {said}");
    assert!(!said.contains("unlinked crate"), "{file} does not find the library: {said}");
    // After that, the compiler only gives hints about more output.
    let (errors, _) = said.split_once("\n\nerror: aborting").expect("a count of errors");
    errors.lines().map(line).collect()
}

/// A line without the parts that change with each line of the library: line numbers, their width, and how many types
/// implement a trait.
fn line(line: &str) -> String {
    let line = line.trim_start();
    let without_number =
        line.trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start();
    let line = if without_number.starts_with('|') { without_number } else { line };
    let line = match line.split_once(".rs:") {
        Some((path, _)) if line.starts_with("-->") => format!("{path}.rs"),
        _ if line.starts_with("and ") && line.ends_with(" others") => "and others".to_owned(),
        _ => line.to_owned(),
    };
    line.trim_end().to_owned() + "\n"
}
