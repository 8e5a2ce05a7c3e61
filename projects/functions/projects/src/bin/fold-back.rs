fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::fold_back::FoldBack>()
}
