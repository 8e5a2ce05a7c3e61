//! The endpoints of services of AWS.

use aws_types::SdkConfig;
use aws_types::service_config::ServiceConfigKey;

/// The endpoint of a service is not known.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The configuration has no Region.
    #[error("no Region: set AWS_REGION")]
    NoRegion,
    /// The Region has other names of endpoints.
    #[error(
        "the endpoint of {service} in {region} is not known: `export AWS_ENDPOINT_URL_{variable}=https://...`"
    )]
    Unknown {
        /// The service.
        service: String,
        /// The Region.
        region: String,
        /// The end of the variable's name.
        variable: String,
    },
}

/// The URL of a service, without a slash at its end: from the configuration, or else for its Region. `name` begins the
/// host, and `id` is the service's name in the names of variables.
///
/// # Errors
/// The configuration has no endpoint for it, and no Region or one whose endpoints are not known here.
pub fn endpoint(config: &SdkConfig, name: &str, id: &str) -> Result<String, EndpointError> {
    let key = ServiceConfigKey::builder().service_id(id).env("AWS_ENDPOINT_URL");
    let key = key.profile("endpoint_url").build().expect("all that it needs is set");
    let own = config.service_config().and_then(|of_services| of_services.load_config(key));
    match own.or_else(|| config.endpoint_url().map(str::to_owned)) {
        Some(url) => Ok(url.trim_end_matches('/').to_owned()),
        None => public(config, name, id),
    }
}

/// The partitions of AWS whose endpoints are known here: the prefix of their Regions, and their domain. Others have
/// longer prefixes, such as `us-iso-east-1`.
const DOMAINS: [(&str, &str); 2] = [("cn", "amazonaws.com.cn"), ("eusc", "amazonaws.eu")];

/// The public endpoint of a service.
fn public(config: &SdkConfig, name: &str, id: &str) -> Result<String, EndpointError> {
    let region = config.region().ok_or(EndpointError::NoRegion)?;
    let mut parts = region.as_ref().split('-');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_special = config.use_fips() == Some(true) || config.use_dual_stack() == Some(true);
    if is_special || second.starts_with("iso") {
        return Err(EndpointError::Unknown {
            service: id.to_owned(),
            region: region.to_string(),
            variable: id.to_uppercase().replace(' ', "_"),
        });
    }
    let domain = DOMAINS.iter().find(|(start, _)| *start == first);
    let domain = domain.map_or("amazonaws.com", |(_, domain)| *domain);
    Ok(format!("https://{name}.{region}.{domain}"))
}

#[test]
fn a_service_has_the_endpoint_of_its_region_and_no_guess_for_another() {
    use aws_types::region::Region;

    let region = |name: &'static str| SdkConfig::builder().region(Region::new(name));
    let url = |config: &SdkConfig| {
        endpoint(config, "logs", "CloudWatch Logs").map_err(|error| error.to_string())
    };
    let of = |name| url(&region(name).build()).expect("a URL");
    assert_eq!(of("eu-central-1"), "https://logs.eu-central-1.amazonaws.com");
    assert_eq!(of("cn-north-1"), "https://logs.cn-north-1.amazonaws.com.cn");
    assert_eq!(of("eusc-de-east-1"), "https://logs.eusc-de-east-1.amazonaws.eu");
    let own = region("eu-central-1").endpoint_url("http://127.0.0.1:1/");
    assert_eq!(url(&own.build()).expect("a URL"), "http://127.0.0.1:1");
    for config in [region("us-east-1").use_fips(true), region("us-iso-east-1")] {
        let refused = url(&config.build()).expect_err("refused");
        assert!(refused.contains("`export AWS_ENDPOINT_URL_CLOUDWATCH_LOGS=https"), "{refused}");
    }
}
