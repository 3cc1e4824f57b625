//! Features and weights that the caller computed and passes as lines of text.

/// The integer weight that stores a weight of 1. So integer weights are in units of 2^-16.
const WEIGHT_UNIT: f64 = (1 << 16) as f64;

/// Visits the feature of each line `feature<TAB>weight`, with its weight in units of 2^-16.
///
/// If a line has no tab, or no number after its last tab, the whole line is a feature of weight 1. Weights are clamped to the range
/// from 0 to 65535. Empty lines are ignored.
pub(super) fn weighted_lines(text: &str, mut visit: impl FnMut(&str, u32)) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for line in text.lines().filter(|line| !line.is_empty()) {
        let weighted = line.rsplit_once('\t').and_then(|(feature, weight)| {
            let weight: f64 = weight.trim().parse().ok()?;
            Some((feature, weight))
        });
        let (feature, weight) = weighted.unwrap_or((line, 1.0));
        visit(feature, (weight.clamp(0.0, 65535.0) * WEIGHT_UNIT).round() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let mut found = Vec::new();
        let text = "\u{feff}near\t2\r\n\nA b\tc\t0.5\nplain\nno\tnumber\n\t3\nx\t-1\ny\t1e9\nz\tnan";
        weighted_lines(text, |feature, weight| found.push((feature.to_owned(), f64::from(weight) / 65536.0)));
        let expected = [
            ("near", 2.0),
            ("A b\tc", 0.5),
            ("plain", 1.0),
            ("no\tnumber", 1.0),
            ("", 3.0),
            ("x", 0.0),
            ("y", 65535.0),
            ("z", 0.0),
        ];
        assert_eq!(found, expected.map(|(feature, weight)| (feature.to_owned(), weight)));
    }
}
