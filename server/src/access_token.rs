//! Tokens of clients.

use std::path::Path;

use simstore::{Error, Result};
use subtle::ConstantTimeEq;

/// Minimum length of a token in bytes.
const MIN_TOKEN_BYTES: usize = 16;

/// A secret that a client sends with each request, in the header `Authorization: Bearer TOKEN`. It is compared in constant time, and
/// never written to a log.
#[derive(Clone)]
pub struct AccessToken(String);

impl AccessToken {
    /// Creates a token from its text. White space around it is removed.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the token has fewer than 16 characters, or others than visible ASCII characters.
    pub fn new(text: &str) -> Result<AccessToken> {
        let token = text.trim();
        if token.len() < MIN_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::BadArgument(format!(
                "a token has {MIN_TOKEN_BYTES} or more visible ASCII characters without spaces, such as the output of `openssl rand -hex 32`"
            )));
        }
        Ok(AccessToken(token.to_owned()))
    }

    /// Reads a token from a file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read; the errors of [`AccessToken::new`].
    pub fn read(path: &Path) -> Result<AccessToken> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
        AccessToken::new(&text).map_err(|error| Error::BadArgument(format!("{}: {error}", path.display())))
    }

    /// Compares the token with a text, in constant time for texts of the same length.
    pub(crate) fn is_equal(&self, other: &str) -> bool {
        self.0.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

impl PartialEq for AccessToken {
    fn eq(&self, other: &Self) -> bool {
        self.is_equal(&other.0)
    }
}

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccessToken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_secret() {
        assert!(AccessToken::new("short").is_err() && AccessToken::new("0123456789 0123456789").is_err());
        let token = AccessToken::new("0123456789abcdef").unwrap();
        assert_eq!(format!("{token:?}"), "AccessToken");
    }
}
