//! Tests of fingerprints, cleaning and similarity of texts, through the public API. CONTRIBUTING.md says which file tests what.

mod cleaning;
mod presets;
mod profiles;
#[path = "../../tests/support/random.rs"]
mod random;
mod similar;
