fn main() -> std::process::ExitCode {
    ringfence::run::<projects::fold_back::FoldBack>()
}
