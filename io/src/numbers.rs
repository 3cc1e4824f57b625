//! Numbers as people read and write them.

/// A count with its digits in groups of three: `1,234,567`.
pub fn grouped(count: u64) -> String {
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

/// A number of bytes in the largest fitting unit: `1.5 GiB`.
pub fn bytes(count: u64) -> String {
    let (mut value, mut unit) = (count as f64, "bytes");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "bytes" { format!("{count} bytes") } else { format!("{value:.1} {unit}") }
}

/// Two different numbers of bytes, in one unit, with enough decimals to differ.
pub fn bytes_apart(a: u64, b: u64) -> [String; 2] {
    let (mut divisor, mut unit) = (1.0, "bytes");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if (a.max(b) as f64) < divisor * 1024.0 {
            break;
        }
        (divisor, unit) = (divisor * 1024.0, larger);
    }
    let shown = |decimals: usize| [a, b].map(|count| format!("{:.decimals$} {unit}", count as f64 / divisor));
    let differ = (1..=3).map(shown).find(|[a, b]| a != b).filter(|_| unit != "bytes");
    differ.unwrap_or_else(|| [a, b].map(|count| format!("{} bytes", grouped(count))))
}

/// A number of bytes that is enough for another, as options take it: `2663K`, rounded up to two digits or more.
pub fn enough_bytes(count: u64) -> String {
    let (mut divisor, mut unit) = (1, "");
    for larger in ["K", "M", "G", "T"] {
        if count / divisor < 10 * 1024 {
            break;
        }
        (divisor, unit) = (divisor * 1024, larger);
    }
    format!("{}{unit}", count.div_ceil(divisor))
}

/// A count with its noun: `1 line`, `2 lines`.
pub fn count_of(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A similarity with three decimals, rounded down: only what is 1 is shown as such.
pub fn share(similarity: f64) -> String {
    if similarity >= 1.0 {
        "1".to_owned()
    } else {
        format!("{:.3}", (similarity * 1000.0 + 1e-9).floor() / 1000.0)
    }
}

/// A number of bytes as people write it: `512M`, `2G`, `1.5GiB`; K, M, G and T are powers of 1024. `None` for 0, and for a text
/// that is no number of bytes.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let number = text.strip_suffix("iB").or_else(|| text.strip_suffix(['B', 'b'])).unwrap_or(text);
    parse_scaled(number, 1024).filter(|&bytes| bytes > 0)
}

/// A number with K, M, G (or B) or T after it, which are powers of `thousand`.
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
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(123_456), "123,456");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!([0, 10_239, 2_726_298, 5 << 40].map(enough_bytes), ["0", "10239", "2663K", "5120G"]);
        assert_eq!(bytes_apart(1_960_000, 1_950_000), ["1.87 MiB", "1.86 MiB"]);
        assert_eq!(bytes_apart(1 << 20, (1 << 20) - 1), ["1,048,576 bytes", "1,048,575 bytes"]);
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(count_of(1, "line"), "1 line");
        assert_eq!(count_of(1000, "line"), "1,000 lines");
        assert_eq!((share(1.0), share(0.9999)), ("1".into(), "0.999".into()));
        // A decimal that a double cannot hold is not rounded down to the one below it.
        assert!((0..1000).all(|count| share(f64::from(count) / 1000.0) == format!("0.{count:03}")));
    }
}
