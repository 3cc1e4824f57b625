//! The HTML file of the report page: template, style, script, and the data as JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use simstore::{Error, Result};

use crate::report::page::page_data::{PageData, escape_json};

const TEMPLATE: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// Returns the page as HTML. Its content security policy allows the style and the script of this page, by their hashes, and
/// nothing else: no other script, no request.
pub(crate) fn to_html(data: &PageData) -> Result<String> {
    let json = serde_json::to_string(data)
        .map_err(|error| Error::Bug(format!("the data of the report page: {error}")))?;
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        content_hash(SCRIPT),
        content_hash(STYLE)
    );
    // The data comes last, so that nothing in it is taken for a placeholder.
    let parts = [("%POLICY%", policy.as_str()), ("%STYLE%", STYLE), ("%SCRIPT%", SCRIPT)];
    let page = parts.iter().fold(TEMPLATE.to_owned(), |page, (name, part)| page.replacen(name, part, 1));
    let (start, end) = page
        .split_once("%DATA%")
        .ok_or_else(|| Error::Bug("the template of the report page has no place for data".to_owned()))?;
    Ok([start, &escape_json(&json), end].concat())
}

/// Returns the hash of an inline script or style, as a source expression of CSP Level 3.
fn content_hash(content: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_has_the_hashes_of_script_and_style() {
        // The example of the Content Security Policy Level 3 specification, section 8.3.
        assert_eq!(
            content_hash("alert('Hello, world.');"),
            "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="
        );
    }
}
