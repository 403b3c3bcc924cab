//! Where a service is: what the configuration says, or the public address of its region.

use aws_config::SdkConfig;
use aws_types::service_config::ServiceConfigKey;
use url::Url;

use super::{Error, Service};

/// The address of `service` in `region`.
///
/// The order is the SDK's: an endpoint of this service (`AWS_ENDPOINT_URL_SSM`, or `endpoint_url` under the profile's
/// `services`), one of all services (`AWS_ENDPOINT_URL`, the profile's `endpoint_url`), then the service's own.
pub(super) fn of(config: &SdkConfig, service: Service, region: &str) -> Result<Url, Error> {
    let key = ServiceConfigKey::builder().service_id(service.id).env("AWS_ENDPOINT_URL").profile("endpoint_url").build();
    let own = key.ok().and_then(|key| config.service_config().and_then(|settings| settings.load_config(key)));
    let address = own.or_else(|| config.endpoint_url().map(str::to_owned));
    let address = address
        .unwrap_or_else(|| public(service, region, config.use_fips().unwrap_or_default(), config.use_dual_stack().unwrap_or_default()));
    match Url::parse(&address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        _ => Err(Error::Endpoint { service: service.id, address }),
    }
}

/// The public address, in the partitions with an endpoint on the internet. Elsewhere `AWS_ENDPOINT_URL` is to be set.
fn public(service: Service, region: &str, fips: bool, dual_stack: bool) -> String {
    let name = service.name;
    let name = if fips { format!("{name}-fips") } else { name.to_owned() };
    let domain = match (region.starts_with("cn-"), dual_stack) {
        (false, false) => "amazonaws.com",
        (false, true) => "api.aws",
        (true, false) => "amazonaws.com.cn",
        (true, true) => "api.amazonwebservices.com.cn",
    };
    format!("https://{name}.{region}.{domain}/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws::{GLUE, SSM};

    #[test]
    fn a_services_public_address_is_that_of_its_partition() {
        assert_eq!(public(SSM, "eu-central-1", false, false), "https://ssm.eu-central-1.amazonaws.com/");
        assert_eq!(public(SSM, "us-gov-west-1", true, false), "https://ssm-fips.us-gov-west-1.amazonaws.com/");
        assert_eq!(public(GLUE, "cn-north-1", false, false), "https://glue.cn-north-1.amazonaws.com.cn/");
        assert_eq!(public(GLUE, "eu-west-1", false, true), "https://glue.eu-west-1.api.aws/");
    }
}
