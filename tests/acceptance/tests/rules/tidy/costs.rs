//! The page of costs is computed.

use std::fs;

use ringfence_acceptance::applications;
use ringfence_local::workspace_root;
use ringfence_template::cost::{Known, PRICES, bill, dollars};

use super::functions::check_table;

const PAGE: &str = "docs/costs.md";

#[test]
fn the_page_of_costs_has_the_bill_of_the_shop_and_the_prices() {
    let shop = applications().next().unwrap();
    let template = fs::read_to_string(shop.root.join("template.yaml")).unwrap();
    let day = 86_400.0;
    let loads = [0.0, 1.0, 1_000.0, 1_000_000.0, 1_000.0 * day, 10_000.0 * day];
    let bills = loads.map(|load| bill(&template, &shop.stack, load).unwrap());
    let row = |what: &str, known: &str, of: [f64; 6]| {
        format!("| {what} | {known} | {} |\n", of.map(dollars).join(" | "))
    };
    let mut rows = String::new();
    for (n, item) in bills[0].iter().enumerate() {
        let known = match item.known {
            Known::Counted => "counted",
            Known::Modelled => "modelled",
        };
        rows += &row(item.what, known, bills.each_ref().map(|bill| bill[n].dollars));
    }
    let sums = bills.each_ref().map(|bill| bill.iter().map(|item| item.dollars).sum::<f64>());
    rows += &row("**in all**", "", sums);
    let columns = "dollars a month | amount | at rest | 1 a day | 1,000 a day | 1,000,000 a day | 1,000 a second | 10,000 a second";
    check_table(PAGE, "bill", columns, rows);

    let prices = PRICES.map(|price| format!("| {} | {} |\n", price.what, price.dollars));
    check_table(PAGE, "prices", "what | dollars", prices.concat());

    assert!(sums[0] <= 3.5, "at rest: {}", sums[0]);

    let star = "EventsOnBus:\n    { Type: String, Default: \"*\"";
    assert!(template.contains(star));
    let few = template.replace(star, "EventsOnBus:\n    { Type: String, Default: \"\"");
    let million = |template: &str| {
        let bill = bill(template, &shop.stack, 1_000_000.0).unwrap();
        let kept = bill.iter().filter(|item| !item.what.starts_with("storage"));
        kept.map(|item| item.dollars).sum::<f64>() / 30.0
    };
    let [all, few] = [million(&template), million(&few)];
    assert!(all <= 9.5 && few <= 8.6, "{all} and {few}");
    let says = format!(
        "At a million commands a day, a million cost ${all:.2} without storage, and ${few:.2} if"
    );
    let page = fs::read_to_string(workspace_root().join(PAGE)).unwrap();
    assert!(page.contains(&says), "{PAGE} must say: {says}");
}
