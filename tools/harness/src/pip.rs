//! A test's program that pip installs, such as a collector of spans. The machine may lack pip.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::left_out::left_out;

/// A program in packages of pip.
pub struct PipProgram {
    /// The tests that need it, for people.
    pub tests: &'static str,
    /// Its package with the version, such as `rotel==0.0.1a15`, and then each package that it needs. Nothing else is
    /// installed.
    pub packages: &'static [&'static str],
    /// The program's file, in the folder into which pip puts the packages.
    pub file: &'static str,
    /// If this variable is `1`, the tests fail on a machine that can't run it.
    pub required: &'static str,
    /// The folder for packages.
    pub folder: &'static str,
}

impl PipProgram {
    /// The program's path. Installs the program if needed. `None` if the machine can't run it. Then the reason is
    /// written to standard error.
    ///
    /// # Panics
    /// On such a machine, if the program is required.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        let folder = Path::new(self.folder).join(self.packages[0]);
        let program = folder.join(self.file);
        match self.install(&folder, &program) {
            Ok(()) => Some(program),
            Err(why) => {
                left_out(self.tests, &why, self.required);
                None
            }
        }
    }

    fn install(&self, folder: &Path, program: &Path) -> Result<(), String> {
        let (marker, state) = (folder.join("installed"), self.packages.join(" "));
        if fs::read_to_string(&marker).unwrap_or_default() != state {
            // pip leaves files that are there as they are.
            drop(fs::remove_dir_all(folder));
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            pip.args(["--no-deps", "--root-user-action=ignore", "--target"]);
            let installed = pip.arg(folder).args(self.packages).output();
            let installed = installed.map_err(|error| format!("python3: {error}"))?;
            if !installed.status.success() {
                return Err(String::from_utf8_lossy(&installed.stderr).into_owned());
            }
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let executable = fs::Permissions::from_mode(0o755);
                fs::set_permissions(program, executable).map_err(|error| error.to_string())?;
            }
            fs::write(marker, state).map_err(|error| error.to_string())?;
        }
        let version = Command::new(program).arg("--version").output();
        version.map(drop).map_err(|error| format!("{}: {error}", program.display()))
    }
}
