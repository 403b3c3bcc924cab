//! The token of Amazon MSK: a presigned request, for which nobody but the broker ever asks.
//!
//! It is what `GET https://kafka.REGION.amazonaws.com/?Action=kafka-cluster:Connect` would be if it were signed by Signature
//! Version 4 in its query, in base64 of the alphabet for addresses and without padding. So do AWS's own signers (the sources of
//! aws-msk-iam-sasl-signer-python and its siblings).

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign as sign_request};
use aws_sigv4::sign::v4;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rdkafka::client::OAuthToken;
use url::Url;

/// The life of a token. The brokers take no longer one.
const LIFE: Duration = Duration::from_secs(900);

/// The service that signatures are for.
const SERVICE: &str = "kafka-cluster";

/// Who asks, for the brokers' logs. It is not signed.
const USER_AGENT: &str = concat!("tablesweep/", env!("CARGO_PKG_VERSION"));

/// A token of the moment `now_ms` for clusters in `region`. `end_ms`: when the credentials end, if they say so.
pub(super) fn sign(credentials: Credentials, region: &str, now_ms: i64, end_ms: Option<i64>) -> Result<OAuthToken, String> {
    // A signature is of a whole second.
    let second = u64::try_from(now_ms).unwrap_or_default() / 1000;
    let mut url = Url::parse(&format!("https://kafka.{region}.amazonaws.com/")).map_err(|error| format!("region {region}: {error}"))?;
    url.query_pairs_mut().append_pair("Action", "kafka-cluster:Connect");
    let signature = signature(&url, credentials, region, second)?;
    url.query_pairs_mut().extend_pairs(signature).append_pair("User-Agent", USER_AGENT);
    let signed_until = i64::try_from((second + LIFE.as_secs()) * 1000).unwrap_or(i64::MAX);
    Ok(OAuthToken {
        token: URL_SAFE_NO_PAD.encode(url.as_str()),
        // librdkafka wants a name here, and sends it to nobody.
        principal_name: "AWS_MSK_IAM".to_owned(),
        lifetime_ms: end_ms.map_or(signed_until, |end| end.min(signed_until)),
    })
}

/// The parameters that sign a request for `url` at `second` since the epoch.
fn signature(url: &Url, credentials: Credentials, region: &str, second: u64) -> Result<Vec<(String, String)>, String> {
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(LIFE);
    let identity = credentials.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(SERVICE)
        .time(UNIX_EPOCH + Duration::from_secs(second))
        .settings(settings)
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let request =
        SignableRequest::new("GET", url.as_str(), std::iter::empty(), SignableBody::Bytes(&[])).map_err(|error| error.to_string())?;
    let (instructions, _) = sign_request(request, &parameters).map_err(|error| error.to_string())?.into_parts();
    Ok(instructions.params().iter().map(|(name, value)| ((*name).to_owned(), value.clone().into_owned())).collect())
}
