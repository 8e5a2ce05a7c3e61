//! The statements by which a role reads and makes the keys of personal data.

use ringfence_stack::ReactorInfo;
use ringfence_views::Definition;

use super::functions::carries_out;
use super::source::{Source, id_of};

/// The statements of a role, `seals` if it makes keys of new subjects. The first function that seals makes the keys of
/// the stack too, so it may also wrap one.
fn statements(seals: bool) -> String {
    let (put, encrypt, blind) = match seals {
        true => (", dynamodb:PutItem", ", kms:Encrypt", ", blind"),
        false => ("", "", ""),
    };
    format!(
        "              - {{ Sid: PersonalKeys, Effect: Allow, Action: [dynamodb:BatchGetItem, dynamodb:GetItem{put}],\n                  \
         Resource: !GetAtt KeyTableArn.Value }}\n              \
         - Sid: WrapPersonalKeys\n                Effect: Allow\n                Action: [kms:Decrypt{encrypt}]\n                \
         Resource: !If [MakesPersonalKey, !GetAtt PersonalKey.Arn, !Ref PersonalKeyArn]\n                Condition:\n                  StringEquals:\n                    \
         kms:EncryptionContext:stack: !Ref \"AWS::StackName\"\n                    \
         kms:EncryptionContext:purpose: [branch{blind}]\n{READ_TABLE}"
    )
}

/// DynamoDB asks KMS in the name of whoever reads an encrypted table.
const READ_TABLE: &str = "              \
- Sid: ReadKeyTable # DynamoDB asks KMS in the name of whoever reads an encrypted table\n                \
Effect: Allow\n                Action: kms:Decrypt\n                Resource: !If [MakesPersonalKey, !GetAtt PersonalKey.Arn, !Ref PersonalKeyArn]\n                \
Condition: { StringEquals: { kms:ViaService: !Sub \"dynamodb.${AWS::Region}.amazonaws.com\" } }\n";

/// The statement by which a role puts fences over the keys of persons, and reads no key.
const PUT_FENCES: &str = "              \
- Sid: PutFences\n                Effect: Allow\n                Action: [dynamodb:BatchGetItem, dynamodb:PutItem]\n                \
Resource: !GetAtt KeyTableArn.Value\n                \
Condition: { \"ForAllValues:StringLike\": { dynamodb:LeadingKeys: [\"subject#*\"] } }\n";

impl Source<'_> {
    /// The statements by which a role uses the keys of personal data, if its functions read or write such data.
    pub(super) fn vault(&self, role: &str) -> String {
        let seals = self.stack.slices().any(|(of, it)| it.is_personal && carries_out(role, of, it));
        let mut reactors = self.stack.reactors().map(|(_, reactor)| reactor);
        let reactor = reactors.find(|reactor| format!("{}Role", id_of(reactor.name)) == role);
        if reactor.is_some_and(ReactorInfo::destroys_keys) {
            return format!("{PUT_FENCES}{READ_TABLE}");
        }
        let opens = match role {
            "QueryViewsRole" => self.stack.views().iter().any(Definition::is_personal),
            _ => reactor.is_some_and(|reactor| reactor.is_personal),
        };
        match seals || opens {
            true => statements(seals),
            false => String::new(),
        }
    }
}
