//! The objects of a bucket, for commands that an application adds.

use anyhow::{Context, Result};

use crate::machine::sdk_config;
use crate::service::{Answer, S3, Service, encoded, texts};

/// The objects of a bucket.
pub struct Objects {
    s3: Service,
    bucket: String,
}

impl Objects {
    /// The objects of the bucket with this name. Credentials and endpoint come from the environment.
    ///
    /// # Errors
    /// The environment lacks a Region or credentials.
    pub async fn of(bucket: &str) -> Result<Self> {
        let s3 = Service::of(&sdk_config().await?, S3).await?;
        Ok(Self { s3, bucket: encoded(bucket) })
    }

    /// The keys that begin with `prefix` and come after `after`, in their order.
    ///
    /// # Errors
    /// The bucket can't be listed.
    pub async fn keys(&self, prefix: &str, after: &str) -> Result<Vec<String>> {
        let of_query = |text: &str| encoded(text).replace('/', "%2F");
        let (mut keys, mut from) = (Vec::new(), format!("&start-after={}", of_query(after)));
        loop {
            let prefix = of_query(prefix);
            let list = format!("/{}?list-type=2&prefix={prefix}{from}", self.bucket);
            let page = self.s3.call("GET", &list, &[], "").await.and_then(Answer::accepted);
            let page = page.with_context(|| format!("listing the bucket {}", self.bucket))?;
            keys.extend(texts(&page, "Key")?);
            match texts(&page, "NextContinuationToken")?.pop() {
                None => return Ok(keys),
                Some(token) => from = format!("&continuation-token={}", of_query(&token)),
            }
        }
    }

    /// The text of an object.
    ///
    /// # Errors
    /// It can't be read.
    pub async fn text(&self, key: &str) -> Result<String> {
        let path = format!("/{}/{}", self.bucket, encoded(key));
        let text = self.s3.call("GET", &path, &[], "").await.and_then(Answer::accepted);
        text.with_context(|| format!("reading {key} of the bucket {}", self.bucket))
    }
}
