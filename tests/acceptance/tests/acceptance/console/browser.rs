//! Chromium by WebDriver, if the machine has it: <https://www.w3.org/TR/webdriver2/>.
//!
//! The protocol is JSON over HTTP, and these tests need a dozen of its requests. The libraries for it would change the
//! features of the compiler's own dependencies, so `cargo test` would build everything again after `cargo demo`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use reqwest::Method;
use ringfence_harness::left_out;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// If this variable is `1`, the tests fail on a machine without Chromium.
const REQUIRED: &str = "RINGFENCE_REQUIRE_BROWSER";
/// The longest wait for a change of a page.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(40);
/// WebDriver's name for an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

pub(crate) struct Browser {
    http: reqwest::Client,
    /// Host and port of the driver.
    driver: String,
    /// The path of the session.
    session: String,
    _process: Child,
}

/// An element of the page, by the path of its requests.
pub(crate) struct Element<'a> {
    browser: &'a Browser,
    path: String,
}

impl Browser {
    /// Starts it. `None` on a machine without Chromium, which is written to standard error.
    ///
    /// # Panics
    /// On such a machine, if Chromium is required.
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
                left_out("the console in a browser", &format!("chromedriver: {why}"), REQUIRED);
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
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let driver = format!("127.0.0.1:{port}");
        let mut browser = Self { http, driver, session: String::new(), _process: process };
        // Root may not use the sandbox, and a container's /dev/shm can be small.
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-proxy-server"];
        let options = json!({ "goog:chromeOptions": { "args": arguments } });
        let session = json!({ "capabilities": { "alwaysMatch": options } });
        let session = browser.call(Method::POST, "/session", session).await.unwrap();
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        Some(browser)
    }

    /// Sends a request of the protocol. Returns its value, or its error.
    async fn call(&self, method: Method, path: &str, body: Value) -> Result<Value, Value> {
        let url = format!("http://{}{}{path}", self.driver, self.session);
        let request = self.http.request(method.clone(), url);
        let request = if method == Method::GET { request } else { request.json(&body) };
        let answer = request.send().await.unwrap();
        let is_success = answer.status().is_success();
        let value = answer.json::<Value>().await.unwrap()["value"].take();
        if is_success { Ok(value) } else { Err(value) }
    }

    async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, Value::Null).await.unwrap()
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.call(Method::POST, path, body).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Sends a command of Chromium's protocol.
    pub(crate) async fn chromium(&self, command: &str, parameters: Value) {
        self.post("/goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await;
    }

    pub(crate) async fn open(&self, url: &str) {
        self.post("/url", json!({ "url": url })).await;
    }

    /// Sets the size of the screen in CSS pixels.
    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.chromium("Emulation.setDeviceMetricsOverride", screen).await;
    }

    /// Sets the result of a media query such as `prefers-color-scheme`.
    pub(crate) async fn media(&self, medium: &str, name: &str, value: &str) {
        let features = json!([{ "name": name, "value": value }]);
        let media = json!({ "media": medium, "features": features });
        self.chromium("Emulation.setEmulatedMedia", media).await;
    }

    /// Presses a key at the focus.
    pub(crate) async fn press(&self, key: &str, code: u32) {
        let text = if key == "Enter" { "\r" } else { "" };
        let parameters = json!({
            "type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text,
        });
        self.chromium("Input.dispatchKeyEvent", parameters).await;
    }

    /// The value of an expression on the page.
    pub(crate) async fn value<T: DeserializeOwned>(&self, expression: &str) -> T {
        let script = json!({ "script": format!("return {expression}"), "args": [] });
        serde_json::from_value(self.post("/execute/sync", script).await).unwrap()
    }

    /// Runs a script in the page. The content security policy of the page does not apply to it.
    pub(crate) async fn run(&self, script: &str) {
        self.chromium("Runtime.evaluate", json!({ "expression": script })).await;
    }

    /// The element, if the page has it now.
    async fn now(&self, using: &str, value: &str) -> Option<Element<'_>> {
        let by = json!({ "using": using, "value": value });
        let found = self.call(Method::POST, "/element", by).await.ok()?;
        let path = format!("/element/{}", found[ELEMENT].as_str().unwrap());
        Some(Element { browser: self, path })
    }

    /// The element, as soon as the page has it.
    async fn wait(&self, using: &str, value: &str) -> Element<'_> {
        let found = async {
            loop {
                match self.now(using, value).await {
                    Some(element) => return element,
                    None => sleep(PAUSE).await,
                }
            }
        };
        timeout(WAIT_MAX, found).await.unwrap_or_else(|_| panic!("the page has no {value}"))
    }

    /// The element of this selector, as soon as the page has it.
    pub(crate) async fn find(&self, selector: &str) -> Element<'_> {
        self.wait("css selector", selector).await
    }

    /// The text of the element of this selector, also while another page replaces this one.
    pub(crate) async fn text(&self, selector: &str) -> String {
        loop {
            let path = format!("{}/text", self.find(selector).await.path);
            if let Ok(text) = self.call(Method::GET, &path, Value::Null).await {
                return text.as_str().unwrap().to_owned();
            }
        }
    }

    /// Clicks the link with this text. The text is without the kind that only screen readers say.
    pub(crate) async fn follow(&self, text: &str) {
        let path = format!(
            "//a[normalize-space()='{text}' or (span[@class='hidden'] and normalize-space(text())='{text}')]"
        );
        self.wait("xpath", &path).await.click().await;
    }

    /// Clicks the button with this text.
    pub(crate) async fn push(&self, button: &str) {
        let path = format!("//button[normalize-space()='{button}']");
        self.wait("xpath", &path).await.click().await;
    }

    /// Waits until an expression on the page is true. The expression fails while a page is loading.
    pub(crate) async fn until(&self, expression: &str) {
        let tried = format!(
            "(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()"
        );
        let is_true = async {
            while !self.value::<bool>(&tried).await {
                sleep(PAUSE).await;
            }
        };
        if timeout(WAIT_MAX, is_true).await.is_err() {
            panic!("never true: {expression}: {}", self.text("body").await);
        }
    }
}

impl Drop for Browser {
    /// Ends the session and Chromium, which would go on without its driver.
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect(&self.driver) {
            let Self { driver, session, .. } = self;
            let request =
                format!("DELETE {session} HTTP/1.1\r\nHost: {driver}\r\nConnection: close\r\n\r\n");
            let _ = stream.set_read_timeout(Some(WAIT_MAX));
            let _ = stream.write_all(request.as_bytes());
            // The driver answers when Chromium has ended, and leaves the connection open.
            let _ = stream.read(&mut [0; 1_024]);
        }
    }
}

impl Element<'_> {
    async fn ask(&self, what: &str) -> Value {
        self.browser.get(&format!("{}/{what}", self.path)).await
    }

    async fn tell(&self, what: &str, body: Value) {
        self.browser.post(&format!("{}/{what}", self.path), body).await;
    }

    /// The value of an input.
    pub(crate) async fn filled(&self) -> String {
        self.ask("property/value").await.as_str().unwrap().to_owned()
    }

    pub(crate) async fn click(&self) {
        self.tell("click", json!({})).await;
    }

    /// Replaces the value of an input.
    pub(crate) async fn fill(&self, text: &str) {
        self.tell("clear", json!({})).await;
        self.tell("value", json!({ "text": text })).await;
    }
}
