use super::list::read;
use super::place::{Text, mutated};
use super::root;

#[test]
fn the_text_of_every_mutation_occurs_once_in_its_file() {
    let all = read(root()).unwrap_or_else(|troubles| panic!("{troubles}"));
    for mutation in &all {
        let same: Vec<_> = all.iter().filter(|other| other.file == mutation.file).collect();
        let source = std::fs::read_to_string(root().join(&mutation.file)).unwrap();
        mutated(&source, &same).unwrap_or_else(|trouble| panic!("{mutation}: {trouble}"));
    }
    assert!(all.len() >= 150, "{} mutations", all.len());
}

#[test]
fn a_place_is_found_across_lines_and_only_if_it_is_the_only_one() {
    let source = "if a {\n    b\n        .c()\n}\nif b {\n    d;\n}\n";
    let found = |text| Text::of(text).unwrap().find(source).map(|place| &source[place]);
    assert_eq!(found("if «a» {"), Ok("a"));
    assert_eq!(found("{ «b .c()» }"), Ok("b\n        .c()"));
    assert_eq!(found("if b { «d;»"), Ok("d;"));
    assert!(found("if").unwrap_err().contains("more than once"));
    assert!(found("if «c»").unwrap_err().contains("does not have"));
}
