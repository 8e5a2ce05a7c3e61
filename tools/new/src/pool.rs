//! The user pool of a stack whose API takes tokens: the issuer of the tokens, unless a parameter names another one.
//! `ringfence template` and `ringfence-new --auth jwt` write the same text.

use std::collections::{BTreeMap, BTreeSet};

/// The ids of the resource servers begin with this.
pub(crate) const SERVER: &str = "UserPoolServer";
/// The scope of the client in a stack without scopes: Cognito gives no token to a client that has none.
const NO_SCOPE: &str = "stack/call";

const PARAMETERS: &str = r#"  JwtIssuer:
    Type: String
    Default: ""
    AllowedPattern: "(https://.+)?"
    Description: >-
      The issuer of the callers' tokens, as their claim iss has it. API Gateway reads its keys there. Without one the
      stack makes a user pool of Cognito. Its alias is main, unless JwtIssuers has another one.
  JwtAudience:
    Type: String
    Default: ""
    Description: What tokens of JwtIssuer must have in their claim aud, or in client_id if they have no aud; a list with commas.
"#;
const RULES: &str = r#"  Tokens:
    Assertions:
      - Assert: !Or [!Equals [!Ref JwtIssuer, ""], !Not [!Equals [!Ref JwtAudience, ""]]]
        AssertDescription: JwtIssuer names an issuer, so JwtAudience has to name what its tokens have in aud or client_id.
"#;
const CONDITIONS: &str = r#"  MakesUserPool: !Equals [!Ref JwtIssuer, ""]
  HasJwtIssuers: !Not [!Equals [!Ref JwtIssuers, ""]]
"#;
const OUTPUTS: &str = r#"  UserPoolId: { Condition: MakesUserPool, Description: The issuer of the callers' tokens., Value: !Ref UserPool }
  UserPoolClientId:
    { Condition: MakesUserPool, Description: The program that ringfence token gets tokens for., Value: !Ref UserPoolClient }
  TokenUrl:
    { Condition: MakesUserPool, Description: Programs get tokens there., Value: !Sub "https://${UserPoolDomain}.auth.${AWS::Region}.amazoncognito.com/oauth2/token" }
"#;
const POOL: &str = r#"
  # ---- The user pool: the issuer of tokens, unless a parameter names another one ----

  UserPool:
    Type: AWS::Cognito::UserPool
    Condition: MakesUserPool
    DeletionPolicy: Retain # a deleted stack keeps its people
    UpdateReplacePolicy: Retain
    Properties:
      DeletionProtection: ACTIVE
      AdminCreateUserConfig: { AllowAdminCreateUserOnly: true } # nobody signs up alone

  UserPoolDomain: # programs get tokens there, and people sign in
    Type: AWS::Cognito::UserPoolDomain
    Condition: MakesUserPool
    Properties: # no other stack of the Region has the same id
      { UserPoolId: !Ref UserPool, Domain: !Select [2, !Split ["/", !Ref "AWS::StackId"]] }

  UserPoolClient: # the program that ringfence token gets tokens for
    Type: AWS::Cognito::UserPoolClient
    Condition: MakesUserPool
    DependsOn: [__servers__]
    Properties:
      UserPoolId: !Ref UserPool
      GenerateSecret: true
      ExplicitAuthFlows: [ALLOW_REFRESH_TOKEN_AUTH] # no person signs in with this client
      AllowedOAuthFlowsUserPoolClient: true
      AllowedOAuthFlows: [client_credentials]
      AllowedOAuthScopes: [__scopes__]
"#;

/// The user pool of a stack with these scopes.
#[derive(Clone)]
pub struct UserPool<'a>(BTreeMap<String, Vec<&'a str>>);

impl<'a> UserPool<'a> {
    /// The value of the functions' variable with the aliases of issuers.
    pub const ISSUERS: &'static str = r#"!If [HasJwtIssuers, !Ref JwtIssuers, !Sub ["main=${issuer}", { issuer: !If [
          MakesUserPool, !Sub "https://cognito-idp.${AWS::Region}.${AWS::URLSuffix}/${UserPool}", !Ref JwtIssuer] }]]"#;

    /// The pool for the scopes of all slices and views.
    ///
    /// # Errors
    /// Cognito can't give this scope: it is not of the form `<server>/<name>`, or two servers would have one id in the
    /// template.
    pub fn of(scopes: &BTreeSet<&'a str>) -> Result<Self, &'a str> {
        let none = if scopes.is_empty() { Some(NO_SCOPE) } else { None };
        let mut servers: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for scope in scopes.iter().copied().chain(none) {
            let is_form = |(server, name): &(&str, &str)| !server.is_empty() && !name.is_empty();
            let (server, _) = scope.rsplit_once('/').filter(is_form).ok_or(scope)?;
            if servers.keys().any(|other| other != server && id(other) == id(server)) {
                return Err(scope);
            }
            servers.entry(server.to_owned()).or_default().push(scope);
        }
        Ok(Self(servers))
    }

    /// What the pool adds to a section of the template.
    #[must_use]
    pub fn part(&self, section: &str) -> String {
        match section {
            "Parameters" => PARAMETERS.to_owned(),
            "Rules" => RULES.to_owned(),
            "Conditions" => CONDITIONS.to_owned(),
            "Outputs" => OUTPUTS.to_owned(),
            "Resources" => {
                let ids: Vec<_> = self.0.keys().map(|server| id(server)).collect();
                let scopes: Vec<_> = self.0.values().flatten().copied().collect();
                let pool = POOL.replace("__servers__", &ids.join(", "));
                let servers = self.0.iter().map(|(server, scopes)| resource_server(server, scopes));
                pool.replace("__scopes__", &scopes.join(", ")) + &servers.collect::<String>()
            }
            _ => String::new(),
        }
    }
}

fn id(server: &str) -> String {
    let words = server.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(SERVER.to_owned(), |id, word| id + &word[..1].to_uppercase() + &word[1..])
}

fn resource_server(server: &str, scopes: &[&str]) -> String {
    let id = id(server);
    let scope = |scope: &&str| {
        let name = &scope[server.len() + 1..];
        format!("{{ ScopeName: \"{name}\", ScopeDescription: \"{scope}\" }}")
    };
    let scopes: Vec<_> = scopes.iter().map(scope).collect();
    format!(
        "\n  {id}:\n    Type: AWS::Cognito::UserPoolResourceServer\n    Condition: MakesUserPool\n    Properties:\n      \
         UserPoolId: !Ref UserPool\n      Identifier: \"{server}\"\n      Name: {id}\n      Scopes:\n        - {}\n",
        scopes.join("\n        - ")
    )
}

#[test]
fn a_pool_has_a_server_for_each_first_part_of_a_scope() {
    let scopes = ["a/read", "a/write", "https://b.example.com/all"];
    let pool = UserPool::of(&scopes.into()).expect("scopes of this form").part("Resources");
    for line in [
        "    DependsOn: [UserPoolServerA, UserPoolServerHttpsBExampleCom]\n",
        "      AllowedOAuthScopes: [a/read, a/write, https://b.example.com/all]\n",
        "        - { ScopeName: \"write\", ScopeDescription: \"a/write\" }\n",
        "      Identifier: \"https://b.example.com\"\n",
        "        - { ScopeName: \"all\", ScopeDescription: \"https://b.example.com/all\" }\n",
    ] {
        assert!(pool.contains(line), "{line}{pool}");
    }
    let none = UserPool::of(&BTreeSet::new()).expect("a scope of its own").part("Resources");
    assert!(none.contains("AllowedOAuthScopes: [stack/call]"), "{none}");
    for scope in ["admin", "/read", "a/"] {
        assert_eq!(UserPool::of(&[scope].into()).err(), Some(scope));
    }
    assert_eq!(UserPool::of(&["a-b/read", "a.b/read"].into()).err(), Some("a.b/read"));
}
