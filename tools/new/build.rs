//! Lists the files of the starter with their texts, so that a new stack has each of them.
//!
//! The folder `starter` of this package has links to them, which `cargo package` follows. A manifest is named
//! `manifest.toml` there, because `cargo package` leaves out each folder with a `Cargo.toml`, as another package.

use std::ffi::OsStr;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=starter");
    let mut files = Vec::new();
    list(&env::current_dir()?.join("starter"), "", &mut files)?;
    files.sort();
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join("starter.rs"), format!("&[{}]", files.concat()))
}

/// Adds an entry for each file in the folder, which has this path within the starter.
fn list(folder: &Path, within: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        let name = file.file_name().and_then(OsStr::to_str).expect("the starter has plain names");
        let path = match name {
            "manifest.toml" => format!("{within}Cargo.toml"),
            name => format!("{within}{name}"),
        };
        if file.is_dir() {
            list(&file, &format!("{path}/"), files)?;
        } else {
            files.push(format!("({path:?}, include_str!({:?})),", file.display().to_string()));
        }
    }
    Ok(())
}
