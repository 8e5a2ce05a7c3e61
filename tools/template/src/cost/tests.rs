use ringfence_core::{Catalog, Catalogs};

use super::*;

#[test]
fn a_condition_holds_by_the_defaults_of_its_parameters() {
    let yaml = "
Parameters: { Url: { Default: \"\" }, Show: { Default: \"true\" }, Many: { Default: 0 } }
Conditions:
  HasUrl: !Not [!Equals [!Ref Url, \"\"]]
  Shows: !Equals [!Ref Show, \"true\"]
  HasMany: !Not [!Equals [!Ref Many, 0]]
  Both: !And [Condition: Shows, Condition: HasUrl]
  Shown: !And [Condition: Shows]
";
    let template: serde_yaml_ng::Value = serde_yaml_ng::from_str(yaml).expect("YAML");
    let template = serde_json::to_value(template).expect("JSON");
    let holds = |name: &str| Template(&template).is_on(&name.into());
    let all = ["HasUrl", "Shows", "HasMany", "Both", "Shown"].map(holds);
    assert_eq!(all, [false, true, false, false, true]);
    assert!(Template(&template).is_on(&Value::Null), "a resource without a condition");
}

#[test]
fn functions_have_the_memory_of_their_parameter_or_else_of_all() {
    let yaml = "
Parameters: { ReaderMemory: { Default: 1769 } }
Globals: { Function: { MemorySize: 256 } }
Resources:
  Readers: { Type: AWS::Serverless::Function, Properties: { MemorySize: !Ref ReaderMemory, Events: &each {
Looks: { Properties: { ScheduleExpression: rate(1 minute) } } } } }
  Others: { Type: AWS::Serverless::Function, Properties: { Events: *each } }
";
    let template: serde_yaml_ng::Value = serde_yaml_ng::from_str(yaml).expect("YAML");
    let template = serde_json::to_value(template).expect("JSON");
    let catalog = Catalog::new("none", []).expect("no contradiction");
    let (catalogs, sources) = (Catalogs(vec![catalog.clone()]), [ringfence_dcb_log::SOURCE].into());
    let stack = Stack { name: "", catalog, catalogs, sources, contexts: Vec::new() };
    let Facts { memory, reader_memory, compute: gb, .. } = Template(&template).facts(&stack);
    assert_eq!((memory, reader_memory), (256.0, 1_769.0));
    assert_eq!(gb, MINUTES * (compute(1_769.0, IDLE_MS) + compute(256.0, IDLE_MS)));
}

#[test]
fn dollars_are_written_with_cents_up_to_a_hundred() {
    for (of, written) in [
        (0.004, "0.00"),
        (2.376, "2.38"),
        (99.99, "100"),
        (812.4, "812"),
        (27_812.0, "27,812"),
        (1_234_567.8, "1,234,568"),
    ] {
        assert_eq!(dollars(of), written);
    }
}
