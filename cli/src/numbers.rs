//! Parsing of numbers in arguments, and formatting of numbers for people.

use simstore::error::excerpt;
use simstore_io::numbers::parse_scaled;
pub(crate) use simstore_io::numbers::{format_bytes, format_count, format_count_of, format_distinct_bytes};

/// Parses a count of at least 1, such as `8e9`, `100M` or `1_000_000`. K, M, G (or B) and T are powers of 1000.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    parse_scaled(text, 1000).filter(|&count| count > 0).ok_or_else(|| {
        format!(
            "`{}` is not a count: expected a number from 1 to 2^64 - 1, such as 1000000, 100M or 8e9",
            excerpt(text)
        )
    })
}

/// Parses a size, such as `512M`, `2G` or `1.5GiB`, and returns it in bytes. K, M, G and T are powers of 1024.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    simstore_io::numbers::parse_bytes(text)
        .ok_or_else(|| format!("`{}` is not a size: expected a number such as 512M or 2G", excerpt(text)))
}

/// Formats a duration with one decimal, such as `1.5 us`, in the largest unit in which it is at least 1.
pub(crate) fn format_duration(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        t if t < 1e3 => (t, "ns"),
        t if t < 1e6 => (t / 1e3, "us"),
        t if t < 1e9 => (t / 1e6, "ms"),
        t => (t / 1e9, "s"),
    };
    format!("{value:.1} {unit}")
}

/// Formats a number of any magnitude briefly: a number below 0.1 with an exponent, a number from 0.1 to below 10 with one
/// decimal, and a larger number as an integer.
pub(crate) fn format_short(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format_count(v.round() as u64),
        v if v >= 10.0 || v == 0.0 => format!("{v:.0}"),
        v if v >= 0.1 => format!("{v:.1}"),
        v => format!("{v:.0e}"),
    }
}

/// Rounds a measured or estimated value, such as seconds, to three decimals. No such value of this program is more accurate.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Returns the average size in bits of `count` items that take `bytes` bytes in total; 0 if `count` is 0.
pub(crate) fn bits_per_item(bytes: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { bytes as f64 * 8.0 / count as f64 }
}

/// Parses a block size in bytes: a power of two from 256 to 65536.
pub(crate) fn parse_block_size(text: &str) -> Result<u32, String> {
    let size = text.parse().ok().filter(|size: &u32| size.is_power_of_two() && (256..=65536).contains(size));
    size.ok_or_else(|| "expected a power of two from 256 to 65536".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, count) in [
            ("1", 1),
            ("8e9", 8_000_000_000),
            ("100M", 100_000_000),
            ("1_000_000", 1_000_000),
            ("1.5k", 1500),
        ] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        for text in ["", "0", "-1", "1.5", "x", "M", "1e30", "nan", "inf", "一", "99999999999T"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_of_memory() {
        for (text, bytes) in [("512M", 512 << 20), ("2G", 2 << 30), ("1.5GiB", 3 << 29), ("64KB", 64 << 10)] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "B", "iB", "G", "-2G", "2X"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn for_reading() {
        assert_eq!(format_duration(1500.0), "1.5 us");
        assert_eq!(format_short(12345.6), "12,346");
        assert_eq!(format_short(0.25), "0.2");
    }
}
