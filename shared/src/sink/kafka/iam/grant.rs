//! A token for a client that cannot ask for one.
//!
//! rust-rdkafka hears librdkafka's wish for a token when a producer or a consumer is polled. Its administrative client polls
//! nothing but the answers to its own requests, so the wish is never heard and the client never signs in. librdkafka takes a token at
//! any time, though, and rust-rdkafka has no safe function for that: this is the one place of the workspace with unsafe code.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use rdkafka::bindings::rd_kafka_oauthbearer_set_token;
use rdkafka::client::{Client, ClientContext, OAuthToken};
use rdkafka::types::RDKafkaRespErr;

/// librdkafka writes what it has against a token into so many bytes, and cuts the text.
const REASON: usize = 512;

/// Hands `token` to the client, which signs in with it until it ends.
///
/// # Errors
/// What librdkafka has against the token, or against the client.
#[expect(unsafe_code, reason = "rust-rdkafka 0.39 has no safe function that gives a client a token")]
pub(in super::super) fn grant<C: ClientContext>(client: &Client<C>, token: OAuthToken) -> Result<(), String> {
    let OAuthToken { token, principal_name, lifetime_ms } = token;
    let c_string = |text: String| CString::new(text).map_err(|_| "the token has a zero byte in it".to_owned());
    let (token, principal) = (c_string(token)?, c_string(principal_name)?);
    let mut reason = [0; REASON];
    // SAFETY: the client outlives the call, which may come from any thread (rdkafka.h). The strings end in a zero byte and are copied,
    // there are no extensions, and of `reason` at most its own length is written, with a zero byte at the end.
    let code = unsafe {
        rd_kafka_oauthbearer_set_token(
            client.native_ptr(),
            token.as_ptr(),
            lifetime_ms,
            principal.as_ptr(),
            ptr::null_mut(),
            0,
            reason.as_mut_ptr().cast::<c_char>(),
            reason.len(),
        )
    };
    if code == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
        return Ok(());
    }
    let reason = CStr::from_bytes_until_nul(&reason).map(CStr::to_string_lossy);
    Err(format!("librdkafka does not take the token ({code:?}): {}", reason.unwrap_or_default()))
}
