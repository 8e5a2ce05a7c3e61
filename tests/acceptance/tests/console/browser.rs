//! Chromium by WebDriver, if the machine has it.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::error::NewSessionError;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// If this variable is `1`, the tests fail on a machine without Chromium.
const REQUIRED: &str = "RINGFENCE_REQUIRE_BROWSER";
/// Longest wait for something that a page shows by itself.
const WAIT_MAX: Duration = Duration::from_secs(20);

pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: String,
    session: String,
    _process: Child,
}

impl Browser {
    /// Starts it. `None` on a machine that does not have it, which is written to standard error.
    ///
    /// # Panics
    /// On such a machine, if it is required.
    pub(crate) async fn start() -> Option<Self> {
        let started = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut process = match started {
            Ok(process) => process,
            Err(why) => {
                let required = std::env::var_os(REQUIRED).is_some_and(|set| set == "1");
                assert!(!required, "{REQUIRED}=1, but chromedriver can't run: {why}");
                // Not by a macro: a passing test would swallow its output.
                let left_out = format!("LEFT OUT, the console in a browser: chromedriver: {why}\n");
                let _ = std::io::stderr().write_all(left_out.as_bytes());
                return None;
            }
        };
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next_line().await.unwrap().expect("it says its port");
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').to_owned();
            }
        };
        let driver = format!("http://127.0.0.1:{port}");
        let client = session(&driver).await.unwrap();
        let session = client.session_id().await.unwrap().unwrap();
        Some(Self { client, driver, session, _process: process })
    }

    /// A command of Chromium's own protocol.
    pub(crate) async fn chromium(&self, command: &str, parameters: Value) {
        let url = format!("{}/session/{}/goog/cdp/execute", self.driver, self.session);
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let body = json!({ "cmd": command, "params": parameters });
        let answer = http.post(url).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{command}: {}", answer.text().await.unwrap());
    }

    pub(crate) async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    /// The size of the screen in CSS pixels.
    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.chromium("Emulation.setDeviceMetricsOverride", screen).await;
    }

    /// What a media query such as `prefers-color-scheme` finds.
    pub(crate) async fn media(&self, medium: &str, name: &str, value: &str) {
        let features = json!([{ "name": name, "value": value }]);
        let media = json!({ "media": medium, "features": features });
        self.chromium("Emulation.setEmulatedMedia", media).await;
    }

    /// Presses a key where the focus is.
    pub(crate) async fn press(&self, key: &str, code: u32) {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let parameters = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text,
            });
            self.chromium("Input.dispatchKeyEvent", parameters).await;
        }
    }

    /// The value of an expression on the page.
    pub(crate) async fn value<T: DeserializeOwned>(&self, expression: &str) -> T {
        let value = self.client.execute(&format!("return {expression}"), Vec::new()).await;
        serde_json::from_value(value.unwrap()).unwrap()
    }

    pub(crate) async fn text(&self, selector: &str) -> String {
        self.client.find(Locator::Css(selector)).await.unwrap().text().await.unwrap()
    }

    /// Clicks the link with this text.
    pub(crate) async fn follow(&self, text: &str) {
        let link = self.client.find(Locator::LinkText(text)).await.expect(text);
        link.click().await.unwrap();
    }

    /// The element, as soon as the page has it.
    pub(crate) async fn find(&self, selector: &str) -> Element {
        let found = self.client.wait().at_most(WAIT_MAX).for_element(Locator::Css(selector)).await;
        found.unwrap_or_else(|error| panic!("{selector}: {error}"))
    }

    /// Waits until an expression on the page is true.
    pub(crate) async fn until(&self, expression: &str) {
        let is_true = async {
            while !self.value::<bool>(expression).await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(WAIT_MAX, is_true).await.unwrap_or_else(|_| panic!("never true: {expression}"));
    }
}

async fn session(driver: &str) -> Result<Client, NewSessionError> {
    // Root may not use the sandbox, and a container's /dev/shm can be small.
    let arguments =
        ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-proxy-server"];
    let capabilities = json!({ "goog:chromeOptions": { "args": arguments } });
    let capabilities = capabilities.as_object().unwrap().clone();
    ClientBuilder::new(HttpConnector::new()).capabilities(capabilities).connect(driver).await
}
