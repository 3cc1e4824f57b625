//! Markdown tables, one line at a time: a run takes long, so each row is printed as soon as it is measured.

/// Formats the line of column names and the line of dashes below it.
pub(crate) fn header(columns: &[&str]) -> String {
    format!("| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()))
}

/// Formats a row from its cells.
pub(crate) fn row(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// Formats the row of a failed measurement, with `columns` cells: the name, the reason, and empty cells.
pub(crate) fn failure_row(name: &str, why: &anyhow::Error, columns: usize) -> String {
    // A `|` would end the cell, a newline the row.
    let why = format!("{why:#}").replace('|', "/").replace('\n', " ");
    format!("| {name} | not run: {why} {}", "| ".repeat(columns.saturating_sub(2)) + "|")
}

/// Formats a number with a comma before each three digits, without decimals.
pub(crate) fn format_grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 { format!("-{text}") } else { text }
}

/// Formats a number with about three significant digits.
pub(crate) fn format_short(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format_grouped(number),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_as_many_cells_as_columns() {
        let bars = |line: &str| line.matches('|').count();
        let columns = ["index", "a", "b"];
        let header = header(&columns);
        assert_eq!(header, "| index | a | b |\n|---|---|---|");
        assert_eq!(row(&["x".to_string(), "1".to_string(), "2".to_string()]), "| x | 1 | 2 |");
        let reason = failure_row("x", &anyhow::anyhow!("a | b\nc"), 3);
        assert_eq!(reason, "| x | not run: a / b c | |");
        assert_eq!(bars(&reason), columns.len() + 1);
    }

    #[test]
    fn numbers_are_short() {
        let short = [0.123, 1.0, 12.345, 99.96, 123.4, 1_234_567.0].map(format_short);
        assert_eq!(short, ["0.12", "1.00", "12.3", "100.0", "123", "1,234,567"]);
        assert_eq!(format_grouped(-1000.0), "-1,000");
        assert_eq!(format_grouped(999.0), "999");
    }
}
