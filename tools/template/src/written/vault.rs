//! The statements by which a role reads and makes the keys of personal data.

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
         Resource: !GetAtt PersonalKey.Arn\n                Condition:\n                  StringEquals:\n                    \
         kms:EncryptionContext:stack: !Ref \"AWS::StackName\"\n                    \
         kms:EncryptionContext:purpose: [branch{blind}]\n              \
         - Sid: ReadKeyTable # DynamoDB asks KMS in the name of whoever reads an encrypted table\n                \
         Effect: Allow\n                Action: kms:Decrypt\n                Resource: !GetAtt PersonalKey.Arn\n                \
         Condition: {{ StringEquals: {{ kms:ViaService: !Sub \"dynamodb.${{AWS::Region}}.amazonaws.com\" }} }}\n"
    )
}

impl Source<'_> {
    /// The statements by which a role uses the keys of personal data, if its functions read or write such data.
    pub(super) fn vault(&self, role: &str) -> String {
        let seals = self.stack.slices().any(|(of, it)| it.is_personal && carries_out(role, of, it));
        let mut reactors = self.stack.reactors().filter(|(_, reactor)| reactor.is_personal);
        let opens = match role {
            "QueryViewsRole" => self.stack.views().iter().any(Definition::is_personal),
            _ => reactors.any(|(_, reactor)| format!("{}Role", id_of(reactor.name)) == role),
        };
        match seals || opens {
            true => statements(seals),
            false => String::new(),
        }
    }
}
