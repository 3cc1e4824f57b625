//! Ids of requests, which connect answers with lines of the log.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Header with the id of a request, in requests and answers.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an id that a client sends.
const MAX_LENGTH: usize = 128;

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Returns the id that a client sent with its request, or a new one if it sent none, or one that is long or has unusual characters.
pub(crate) fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_usable = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        (1..=MAX_LENGTH).contains(&bytes.len())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte))
    };
    if let Some(id) = headers.get(&REQUEST_ID).filter(is_usable) {
        return id.clone();
    }
    // Hashes of a random key: no two requests of this process have one id, and other processes have other keys.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let id = format!("{:016x}", HASHER.hash_one(count));
    HeaderValue::from_str(&id).unwrap_or_else(|_| HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_ids_are_kept() {
        let with = |id: &str| {
            let headers = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_str(id).unwrap())]);
            request_id(&headers).to_str().unwrap().to_owned()
        };
        assert_eq!(with("a-7_b.c:d/e+f="), "a-7_b.c:d/e+f=");
        for odd in ["", "a b", "a\tb", "<script>", &"x".repeat(129)] {
            assert_ne!(with(odd), odd);
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
