//! The HTTP API as a page for people: Swagger UI with the document of OpenAPI, in one file. A test compares the
//! files of Swagger UI with its package.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use crate::Contract;

const STYLE: &str = include_str!("../swagger-ui/swagger-ui.css");
const SWAGGER_UI: &str = include_str!("../swagger-ui/swagger-ui-bundle.js");
const START: &str = "
document.documentElement.classList.toggle('dark-mode', matchMedia('(prefers-color-scheme: dark)').matches);
SwaggerUIBundle({
  spec: JSON.parse(document.getElementById('openapi').textContent),
  dom_id: '#page',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  supportedSubmitMethods: [],
});
";

/// A page that a browser shows without any request.
pub struct ApiPage {
    /// The page.
    pub html: String,
    /// Its Content-Security-Policy, which the page has too. It allows no request, and no script but the page's own.
    pub policy: String,
}

impl Contract {
    /// The HTTP API as a page. `above` is the HTML above it.
    #[must_use]
    pub fn page(&self, above: &'static str) -> ApiPage {
        // In a script, `<!--` would change where the script ends.
        let swagger_ui = SWAGGER_UI.replace("<!--", r"\x3c!--");
        let hash =
            |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
        let (script, start, style) = (hash(&swagger_ui), hash(START), hash(STYLE));
        let policy = format!(
            "default-src 'none'; script-src {script} {start}; style-src {style}; img-src data:; base-uri 'none'; \
             form-action 'none'"
        );
        // A text of the document could end its element.
        let document = self.openapi().to_string().replace('<', r"\u003c");
        let html = format!(
            r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
{above}
<div id="page"></div>
<script type="application/json" id="openapi">{document}</script>
<script>{swagger_ui}</script>
<script>{START}</script>
</body>
</html>
"#
        );
        ApiPage { html, policy }
    }
}
