//! The spans of forward-spans, read by another project's collector: Rotel, which pip installs.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ringfence_core::Traceparent;
use ringfence_harness::PipProgram;

use crate::{OF_A_SLICE, batch, forward, line, run, span};

static ROTEL: PipProgram = PipProgram {
    tests: "spans at a collector of others",
    packages: &["rotel==0.0.1a15"],
    file: "rotel/rotel-agent",
    required: "RINGFENCE_REQUIRE_COLLECTOR",
    folder: env!("CARGO_TARGET_TMPDIR"),
};

/// A running collector that writes what it takes into a file.
struct Rotel {
    process: Child,
    address: String,
    output: PathBuf,
}

impl Rotel {
    fn start(program: PathBuf) -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let (address, grpc) = (free(), free());
        let output = program.with_file_name(format!("output-{}", std::process::id()));
        let process = Command::new(program)
            .args(["start", "--exporter", "blackhole", "--debug-log", "traces"])
            .args(["--debug-log-verbosity", "detailed"])
            .args(["--otlp-http-endpoint", &address, "--otlp-grpc-endpoint", &grpc])
            .stdout(File::create(&output).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, address, output }
    }

    /// Its output once `is_there` holds.
    async fn wait(&self, is_there: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        for _ in 0..400 {
            text = fs::read_to_string(&self.output).unwrap();
            if is_there(&text) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it has only written\n{text}");
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.output);
    }
}

#[tokio::test]
async fn a_collector_of_others_reads_the_spans() {
    let Some(program) = ROTEL.path() else { return };
    let rotel = Rotel::start(program);
    rotel.wait(|_| TcpStream::connect(&rotel.address).is_ok()).await;
    let root = span("c-1", None);
    let mut reaction = line("c-2", Some(root));
    reaction["by"] = "place-order".into();
    let child = span("c-2", Some(root));
    let lines = [line("c-1", None), reaction, run(&[root, child])];
    let url = format!("http://{}/v1/traces", rotel.address);
    forward(&url, batch(OF_A_SLICE, &lines)).await.unwrap();
    let own = Traceparent::of_batch("project-views", "r-2");
    let is_there = |text: &str| [root, child, own].iter().all(|it| text.contains(&it.span_id()));
    let text = rotel.wait(is_there).await;
    let fields = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = fields(&text);
    for expected in [
        format!("Trace ID : {} Parent ID : ID : {}", root.trace_id(), root.span_id()),
        format!("Parent ID : {} ID : {}", root.span_id(), child.span_id()),
        "Kind : SPAN_KIND_SERVER Start time: 1795687200250000000".to_owned(),
        "Kind : SPAN_KIND_CONSUMER".to_owned(),
        "service.name: Str(project-views)".to_owned(),
        "ringfence.attempts: Int(1)".to_owned(),
    ] {
        assert!(text.contains(&expected), "{expected}\n{text}");
    }
}
