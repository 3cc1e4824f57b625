//! Numbers as people read them.

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

/// A count and what is counted: `1 line`, `2 lines`.
pub fn count_of(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_reading() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(123_456), "123,456");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(count_of(1, "line"), "1 line");
        assert_eq!(count_of(1000, "line"), "1,000 lines");
    }
}
