fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<shop::offer_product::OfferProduct>()
}
