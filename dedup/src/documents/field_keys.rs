//! Sort keys for the values of a field: byte strings that sort documents by preference.

/// Number in a field. Integers of up to 128 bits are exact; other numbers are rounded to the nearest `f64`.
#[derive(Clone, Copy, Debug)]
struct FieldNumber {
    float: f64,
    /// Exact value of an integer, or the integer part of another number. It distinguishes integers that round to
    /// the same `f64`.
    integer: i128,
}

impl FieldNumber {
    /// Parses a number. Accepts `inf` and `-inf`; reads `true` as 1 and `false` as 0. Returns `None` for NaN
    /// and for other texts.
    fn parse(text: &str) -> Option<FieldNumber> {
        let text = match text.trim() {
            "true" => "1",
            "false" => "0",
            text => text,
        };
        let float = text.parse::<f64>().ok().filter(|float| !float.is_nan())?;
        // Converts -0.0 to 0.0.
        let float = float + 0.0;
        Some(FieldNumber { float, integer: text.parse().unwrap_or(float as i128) })
    }

    /// Returns bytes that compare bytewise like the numbers compare by value.
    fn sort_key(&self) -> [u8; 24] {
        let bits = self.float.to_bits();
        let bits = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        let integer = self.integer as u128 ^ 1 << 127;
        std::array::from_fn(|at| match at {
            0..8 => bits.to_be_bytes()[at],
            _ => integer.to_be_bytes()[at - 8],
        })
    }
}

/// Whether a text counts as a date or time. All texts do, except the empty text and NaN.
fn is_moment(text: &str) -> bool {
    !text.is_empty() && !text.trim().parse::<f64>().is_ok_and(f64::is_nan)
}

/// Returns a sort key for a moment, which is a text with a date or time. Sorted bytewise, the keys are in the order of
/// preference of [`KeepRule::Newest`](crate::KeepRule::Newest): the newest moment comes first. Other programs can
/// sort documents by these keys.
///
/// ```
/// use simstore_dedup::moment_key;
///
/// let mut moments = ["2007-05-08", "", "10", "9", "2026-01-01"];
/// moments.sort_by_key(|moment| moment_key(moment));
/// assert_eq!(moments, ["2026-01-01", "2007-05-08", "10", "9", ""]);
/// ```
pub fn moment_key(moment: &str) -> Vec<u8> {
    // The first byte is the kind: text, number or none. All bytes after it are inverted, so that later
    // moments sort first.
    match FieldNumber::parse(moment) {
        _ if !is_moment(moment) => vec![2],
        Some(number) => [1].into_iter().chain(number.sort_key().map(|byte| !byte)).collect(),
        // UTF-8 has no byte above 0xf4. The final 0xff makes a text sort after all longer texts that start
        // with it.
        None => {
            let turned = moment.bytes().map(|byte| 0xf5 - byte);
            [0].into_iter().chain(turned).chain([u8::MAX]).collect()
        }
    }
}

/// Returns a sort key for a number. If `is_smallest` is set, keys sorted bytewise are in the order of preference of
/// [`KeepRule::Smallest`](crate::KeepRule::Smallest), the smallest number first; else in the order of
/// [`KeepRule::Largest`](crate::KeepRule::Largest), the largest number first. Other programs can sort documents by
/// these keys.
///
/// ```
/// use simstore_dedup::number_key;
///
/// let mut numbers = ["9", "none", "10", "-inf"];
/// numbers.sort_by_key(|number| number_key(number, false));
/// assert_eq!(numbers, ["10", "9", "-inf", "none"]);
/// numbers.sort_by_key(|number| number_key(number, true));
/// assert_eq!(numbers, ["-inf", "9", "10", "none"]);
/// ```
pub fn number_key(number: &str, is_smallest: bool) -> Vec<u8> {
    let turn = |byte: u8| if is_smallest { byte } else { !byte };
    match FieldNumber::parse(number) {
        Some(number) => [0].into_iter().chain(number.sort_key().map(turn)).collect(),
        None => vec![1],
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    const NUMBERS: &str = "-?[0-9]{0,40}(\\.[0-9])?|-?(inf|0\\.0|1e400|NaN)|true| ?[0-9]";
    const MOMENTS: &str = "-?[0-9]{0,40}(\\.[0-9])?|[0-9-]{0,12}|-?(inf|0\\.0|NaN)|\\PC{0,3}|\u{0}{0,3}";

    fn compare(a: &FieldNumber, b: &FieldNumber) -> Ordering {
        a.float.total_cmp(&b.float).then(a.integer.cmp(&b.integer))
    }

    /// Compares two field values as dates or times, ascending, to check the sort keys: values that are no dates or
    /// times first, then numbers by value, then other texts bytewise.
    fn compare_moments(a: &str, b: &str) -> Ordering {
        let rank = |text: &str, number: &Option<FieldNumber>| match number {
            _ if !is_moment(text) => 0,
            Some(_) => 1,
            None => 2,
        };
        let (number_a, number_b) = (FieldNumber::parse(a), FieldNumber::parse(b));
        let (rank_a, rank_b) = (rank(a, &number_a), rank(b, &number_b));
        rank_a.cmp(&rank_b).then_with(|| match (number_a, number_b) {
            (Some(x), Some(y)) => compare(&x, &y),
            _ if rank_a == 0 => Ordering::Equal,
            _ => a.cmp(b),
        })
    }

    /// Compares two field values as numbers, to check the sort keys: the smallest first if `is_smallest`, else the
    /// largest first. Texts that are no numbers come last.
    fn compare_numbers(a: &str, b: &str, is_smallest: bool) -> Ordering {
        match (FieldNumber::parse(a), FieldNumber::parse(b)) {
            (Some(x), Some(y)) if is_smallest => compare(&x, &y),
            (Some(x), Some(y)) => compare(&y, &x),
            (x, y) => x.is_none().cmp(&y.is_none()),
        }
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_moments(a in MOMENTS, b in MOMENTS) {
            prop_assert_eq!(moment_key(&a).cmp(&moment_key(&b)), compare_moments(&b, &a));
        }

        #[test]
        fn keys_are_in_the_order_of_numbers(a in NUMBERS, b in NUMBERS, is_smallest: bool) {
            let keys = number_key(&a, is_smallest).cmp(&number_key(&b, is_smallest));
            prop_assert_eq!(keys, compare_numbers(&a, &b, is_smallest));
        }
    }

    #[test]
    fn moments_are_in_order() {
        let ascending = [
            "", "-inf", "-5", "0", "9", "10", "1e3", "1234567890123456788", "1234567890123456789", "1e300",
            "Infinity", "2007-05-08", "2007-05-08T10:00:00Z", "2026-01-01", "soon",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare_moments(a, b), i.cmp(&j), "{a} {b}");
                assert_eq!(moment_key(b).cmp(&moment_key(a)), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in
            [("NaN", ""), ("-0", "0"), ("-0.0", "0"), ("9.0", "9"), ("1e19", "10000000000000000000")]
        {
            assert_eq!(compare_moments(a, b), Ordering::Equal, "{a} {b}");
            assert_eq!(moment_key(a), moment_key(b), "{a} {b}");
        }
    }

    #[test]
    fn numbers_are_in_order() {
        let ascending = [
            "-inf", "-1e9", "-2", "0", "true", "1.5", "9", "10", "9007199254740992", "9007199254740993",
            "inf",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare_numbers(a, b, true), i.cmp(&j), "{a} {b}");
                assert_eq!(compare_numbers(a, b, false), j.cmp(&i), "{a} {b}");
            }
            for none in ["", "NaN", "soon", "2007-05-08"] {
                for is_smallest in [false, true] {
                    assert_eq!(compare_numbers(a, none, is_smallest), Ordering::Less, "{a} {none}");
                    assert_eq!(compare_numbers(none, "", is_smallest), Ordering::Equal, "{none}");
                }
            }
        }
    }
}
