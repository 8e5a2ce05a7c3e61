fn main() -> std::process::ExitCode {
    ringfence::run::<shop::offer_product::OfferProduct>()
}
