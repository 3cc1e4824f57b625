//! Formats and parses numbers for people: counts, byte sizes, similarities.

/// Formats a count with commas between groups of three digits: `1,234,567`.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes in the largest binary unit that fits: `1.5 GiB`.
pub fn format_bytes(count: u64) -> String {
    let (mut value, mut unit) = (count as f64, "bytes");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "bytes" { format!("{count} bytes") } else { format!("{value:.1} {unit}") }
}

/// Formats two different numbers of bytes in the same unit, with enough decimals to make the texts differ.
pub fn format_distinct_bytes(a: u64, b: u64) -> [String; 2] {
    let (mut divisor, mut unit) = (1.0, "bytes");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if (a.max(b) as f64) < divisor * 1024.0 {
            break;
        }
        (divisor, unit) = (divisor * 1024.0, larger);
    }
    let shown = |decimals: usize| [a, b].map(|count| format!("{:.decimals$} {unit}", count as f64 / divisor));
    let differ = (1..=3).map(shown).find(|[a, b]| a != b).filter(|_| unit != "bytes");
    differ.unwrap_or_else(|| [a, b].map(|count| format!("{} bytes", format_count(count))))
}

/// Formats a number of bytes for a user to copy into an option such as `memory`, rounded up: `2663K`. The result has at
/// least two significant digits.
pub fn format_bytes_up(count: u64) -> String {
    let (mut divisor, mut unit) = (1, "");
    for larger in ["K", "M", "G", "T"] {
        if count / divisor < 10 * 1024 {
            break;
        }
        (divisor, unit) = (divisor * 1024, larger);
    }
    format!("{}{unit}", count.div_ceil(divisor))
}

/// Formats a count with its noun, which gets an `s` unless the count is 1: `1 line`, `2 lines`.
pub fn format_count_of(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", format_count(count), if count == 1 { "" } else { "s" })
}

/// Formats a similarity from 0 to 1 with three decimals, rounded down. Only the similarity 1 is formatted as
/// `1`.
pub fn format_similarity(similarity: f64) -> String {
    if similarity >= 1.0 {
        "1".to_owned()
    } else {
        format!("{:.3}", (similarity * 1000.0 + 1e-9).floor() / 1000.0)
    }
}

/// Parses a number of bytes such as `512M`, `2G`, or `1.5GiB`. K, M, G, and T are powers of 1024.
///
/// Returns `None` for 0, and for a text that is not a number of bytes.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let number = text.strip_suffix("iB").or_else(|| text.strip_suffix(['B', 'b'])).unwrap_or(text);
    parse_scaled(number, 1024).filter(|&bytes| bytes > 0)
}

/// Parses a number with an optional suffix. K, M, G (or B), and T mean the first to fourth power of `thousand`.
///
/// Returns `None` if the text is not such a number, or if the result is not an integer or overflows.
pub fn parse_scaled(text: &str, thousand: u64) -> Option<u64> {
    let exponent = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 1,
        'M' => 2,
        'G' | 'B' => 3,
        'T' => 4,
        _ => 0,
    };
    let digits = if exponent == 0 { text } else { &text[..text.len() - 1] }.replace(['_', ','], "");
    let scale = thousand.pow(exponent);
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(scale);
    }
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let scaled = digits.parse::<f64>().ok()? * scale as f64;
    (scaled.fract() == 0.0 && scaled < u64::MAX as f64).then_some(scaled as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_reading() {
        assert_eq!(format_count(0), "0");
        assert_eq!(format_count(123_456), "123,456");
        assert_eq!(format_count(1_234_567), "1,234,567");
        assert_eq!([0, 10_239, 2_726_298, 5 << 40].map(format_bytes_up), ["0", "10239", "2663K", "5120G"]);
        assert_eq!(format_distinct_bytes(1_960_000, 1_950_000), ["1.87 MiB", "1.86 MiB"]);
        assert_eq!(format_distinct_bytes(1 << 20, (1 << 20) - 1), ["1,048,576 bytes", "1,048,575 bytes"]);
        assert_eq!(format_bytes(1023), "1023 bytes");
        assert_eq!(format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(format_count_of(1, "line"), "1 line");
        assert_eq!(format_count_of(1000, "line"), "1,000 lines");
        assert_eq!((format_similarity(1.0), format_similarity(0.9999)), ("1".into(), "0.999".into()));
        // A decimal that an f64 cannot represent exactly is not rounded down to the next smaller one.
        assert!(
            (0..1000).all(|count| format_similarity(f64::from(count) / 1000.0) == format!("0.{count:03}"))
        );
    }
}
