//! `cargo demo`: says how long a first build takes, builds the programs of the stack, and starts the walk.
//! `cargo demo <folder>` does it for another stack of the workspace. The names of its programs begin with the folder's
//! name.
//!
//! It has no dependencies, so it runs before the first one is compiled.

use std::{
    env, fs,
    io::{self, BufReader, IsTerminal, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread::available_parallelism,
    time::{Duration, Instant},
};

/// The time of a first build on one processor, in seconds.
const PROCESSOR_SECONDS: usize = 350;
/// The least time of a first build, because libraries wait for each other.
const SECONDS_MIN: usize = 120;
/// The pause between two lines about the progress, where there is no terminal.
const PAUSE: Duration = Duration::from_secs(10);

/// Builds and walks.
#[must_use]
pub fn demo() -> ExitCode {
    match build() {
        Ok(Some((stack, root))) => {
            eprintln!("error: {}: {}", stack.display(), walk(&stack, &root));
        }
        // Cargo has said why.
        Ok(None) => {}
        Err(error) => eprintln!("error: {error}"),
    }
    ExitCode::FAILURE
}

/// Becomes the program of the stack, so that a signal that ends this process ends the stack. Returns only if that fails.
fn walk(stack: &Path, root: &Path) -> io::Error {
    // The stack of the folder is meant, and not the one of this program's package.
    Command::new(stack).arg("demo").current_dir(root).env_remove("CARGO_MANIFEST_DIR").exec()
}

/// Builds the programs, and returns the one of the stack and the stack's folder; `None` if the build fails.
fn build() -> io::Result<Option<(PathBuf, PathBuf)>> {
    let folder = env::args().nth(1).unwrap_or_default();
    // A shell that completes the name of a folder adds a slash.
    let folder = folder.trim_end_matches('/');
    let own = |program: &str| [folder, program].join(if folder.is_empty() { "" } else { "-" });
    let stack = env::current_exe()?.with_file_name(own("ringfence-local"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap_or(Path::new("."));
    let root = root.join(folder);
    let template = root.join("template.yaml");
    let named = |error: io::Error| {
        let what =
            "without a folder it is the shop's, and `cargo demo projects` shows another stack";
        io::Error::other(format!("{}: {error}; {what}", template.display()))
    };
    fs::metadata(&template).map_err(named)?;
    if !stack.exists() {
        eprintln!("{}", announcement(available_parallelism().map_or(1, usize::from)));
    }
    let cargo = env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut build = Command::new(cargo);
    // The build script of ring runs again if these change, and then everything that depends on it is compiled again.
    for (name, _) in env::vars_os() {
        let is_of_package =
            |it: &str| it.starts_with("CARGO_MANIFEST_") || it.starts_with("CARGO_PKG_");
        if name.to_str().is_some_and(is_of_package) {
            build.env_remove(name);
        }
    }
    build.current_dir(&root).arg("build");
    // The command line is for the person's next steps.
    for program in ["ringfence-local", "ringfence"].map(own) {
        build.args(["--bin", &program]);
    }
    Ok(run(build)?.then_some((stack, root)))
}

/// How long the first build takes with so many processors.
fn announcement(processors: usize) -> String {
    let minutes = (PROCESSOR_SECONDS / processors).max(SECONDS_MIN).div_ceil(60);
    format!(
        "The first build takes about {minutes} minutes with the {processors} processors of this machine, if each has \
         2.6 GHz and nothing else to do. Later ones take seconds."
    )
}

/// Runs cargo. On a terminal cargo shows its progress itself; elsewhere it is made to, and a line tells of it now and
/// then.
fn run(mut cargo: Command) -> io::Result<bool> {
    if io::stderr().is_terminal() {
        return Ok(cargo.status()?.success());
    }
    cargo.env("CARGO_TERM_PROGRESS_WHEN", "always").env("CARGO_TERM_PROGRESS_WIDTH", "200");
    cargo.env("CARGO_TERM_COLOR", "never");
    let mut cargo = cargo.stderr(Stdio::piped()).spawn()?;
    if let Some(shown) = cargo.stderr.take() {
        follow(shown, io::stderr())?;
    }
    Ok(cargo.wait()?.success())
}

/// Passes on cargo's output, without the name of each library, and with a line about the progress after each pause.
fn follow(shown: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut next = Instant::now();
    let mut line = Vec::new();
    for byte in BufReader::new(shown).bytes() {
        match byte? {
            // Cargo writes its progress over itself.
            b'\r' | b'\n' => {
                say(&String::from_utf8_lossy(&line), &mut next, &mut to)?;
                line.clear();
            }
            byte => line.push(byte),
        }
    }
    say(&String::from_utf8_lossy(&line), &mut next, &mut to)
}

fn say(line: &str, next: &mut Instant, to: &mut impl Write) -> io::Result<()> {
    let line = line.trim_start_matches("\u{1b}[K");
    match progress(line) {
        Some(progress) if Instant::now() >= *next => {
            *next = Instant::now() + PAUSE;
            writeln!(to, "{progress}")
        }
        Some(_) => Ok(()),
        None if line.trim().is_empty() || line.starts_with("   Compiling ") => Ok(()),
        None => writeln!(to, "{line}"),
    }
}

/// The text of cargo's bar: how many of how many are built, and what is being built.
fn progress(text: &str) -> Option<String> {
    let (bar, what) = text.trim_start().strip_prefix("Building [")?.split_once(": ")?;
    let (_, count) = bar.split_once("] ")?;
    let (done, all) = count.split_once('/')?;
    Some(format!("built {done} of {all}, now {}", what.trim_end()))
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;

    use super::*;

    /// This program is started once more, with this test alone, and walks. Its stack is the program `yes`, which prints
    /// `demo` until it ends.
    #[test]
    fn the_stack_ends_with_the_process_that_has_started_it() {
        const AGAIN: &str = "RINGFENCE_WALKS";
        if env::var_os(AGAIN).is_some() {
            panic!("{}", walk(Path::new("yes"), Path::new(".")));
        }
        let mut again = Command::new(env::current_exe().expect("this program"));
        let name = "tests::the_stack_ends_with_the_process_that_has_started_it";
        again.args([name, "--exact", "--nocapture"]).env(AGAIN, "1").stdout(Stdio::piped());
        let mut again = again.spawn().expect("it starts");
        let mut said = BufReader::new(again.stdout.take().expect("a pipe"));
        let walks = said.by_ref().lines().any(|line| line.is_ok_and(|line| line == "demo"));
        assert!(walks, "it does not walk");
        again.kill().expect("it runs");
        again.wait().expect("it has ended");
        let more_than_a_pipe_holds = 1 << 24;
        let rest = io::copy(&mut said.take(more_than_a_pipe_holds), &mut io::sink());
        assert!(rest.expect("text") < more_than_a_pipe_holds, "the stack goes on");
    }

    #[test]
    fn the_first_build_is_announced_for_the_processors_of_the_machine() {
        for (processors, minutes) in [(1, 6), (2, 3), (4, 2), (64, 2)] {
            let announcement = announcement(processors);
            let expected = format!("about {minutes} minutes with the {processors} processors");
            assert!(announcement.contains(&expected), "{announcement}");
        }
    }

    #[test]
    fn without_a_terminal_the_progress_is_lines_and_errors_stay() {
        let shown = "    Building [==>   ] 3/361: tokio, syn(build)      \r\
                     \u{1b}[K   Compiling serde v1.0.0\n\
                     \u{1b}[K    Building [===>  ] 4/361: tokio\r\u{1b}[Kwarning: unused\nerror: no\n";
        let mut said = Vec::new();
        follow(shown.as_bytes(), &mut said).expect("text");
        let said = String::from_utf8(said).expect("text");
        // The second one comes before the pause is over.
        assert_eq!(said, "built 3 of 361, now tokio, syn(build)\nwarning: unused\nerror: no\n");
    }
}
