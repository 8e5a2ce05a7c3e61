fn main() -> std::process::ExitCode {
    ringfence_function::run::<projects::sweep_claims::SweepClaims>(())
}
