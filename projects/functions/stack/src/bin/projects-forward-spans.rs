fn main() -> std::process::ExitCode {
    ringfence_function::run::<ringfence_spans::ForwardSpans>(())
}
