//! Histograms and bars, drawn with text characters.

use std::io::{self, Write};

/// Width of the longest bar, in columns of the terminal.
const BAR_COLUMNS: usize = 50;
/// Characters for bars that are one to eight eighths of a column wide.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Draws a histogram. Each count has a line: its index, its percentage of the sum, and a bar. Zeros at the start and at the
/// end of `counts` are left out. The bar of the largest count has the full width.
pub(crate) fn draw(out: &mut impl Write, counts: &[u64]) -> io::Result<()> {
    let largest = counts.iter().copied().max().unwrap_or(0);
    let Some(first) = counts.iter().position(|&count| count > 0) else { return Ok(()) };
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or(first);
    let total: u64 = counts.iter().sum();
    for (position, &count) in counts.iter().enumerate().take(last + 1).skip(first) {
        let share = count as f64 * 100.0 / total as f64;
        let bar = bar(count as f64 / largest as f64, BAR_COLUMNS);
        writeln!(out, "  {position:>3} {share:>6.2}% {bar}")?;
    }
    Ok(())
}

/// Draws a histogram in which each row `(key, counts)` is a line: the key, each count as a percentage of the sum of all rows,
/// and a bar for the sum of the row. The bar of the largest sum has the full width. `label` is the heading of the keys;
/// `headings` are the headings of the counts.
pub(crate) fn draw_rows(
    out: &mut impl Write,
    label: &str,
    headings: &[String],
    rows: &[(u32, Vec<u64>)],
) -> io::Result<()> {
    let sum = |(_, counts): &(u32, Vec<u64>)| counts.iter().sum::<u64>();
    let largest = rows.iter().map(sum).max().unwrap_or(0);
    if largest == 0 {
        return Ok(());
    }
    let total: u64 = rows.iter().map(sum).sum();
    let headings: String = headings.iter().map(|heading| format!(" {heading:>6}")).collect();
    writeln!(out, "  {label:>3}{headings}")?;
    for row in rows {
        let share = |&count: &u64| match count {
            0 => format!(" {:>6}", "-"),
            _ => format!(" {:>6.2}", count as f64 * 100.0 / total as f64),
        };
        let shares: String = row.1.iter().map(share).collect();
        writeln!(out, "  {:>3}{shares} {}", row.0, bar(sum(row) as f64 / largest as f64, BAR_COLUMNS))?;
    }
    Ok(())
}

/// Returns a bar for a share from 0 to 1. The bar of share 1 is `columns` wide. If the share is not 0, its bar is at least one
/// eighth of a column wide.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    let eighths = (share * (columns * 8) as f64).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars() {
        assert_eq!(bar(0.0, 50), "");
        assert_eq!(bar(1.0, 50).chars().count(), 50);
        assert_eq!(bar(1e-6, 50), "▏");
        assert_eq!(bar(0.01, 50), "▌");
    }

    #[test]
    fn only_what_lies_between_the_first_and_the_last() {
        let mut drawn = Vec::new();
        draw(&mut drawn, &[0, 0, 1, 0, 3, 0]).unwrap();
        let drawn = String::from_utf8(drawn).unwrap();
        assert_eq!(drawn.lines().count(), 3, "{drawn}");
        assert!(drawn.starts_with("    2  25.00% "), "{drawn}");
        draw(&mut Vec::new(), &[]).unwrap();
    }

    #[test]
    fn rows_with_the_share_of_each_count() {
        let mut drawn = Vec::new();
        let headings = ["gap".to_owned(), "+0".to_owned()];
        draw_rows(&mut drawn, "h", &headings, &[(9, vec![1, 2]), (8, vec![0, 0]), (7, vec![0, 1])]).unwrap();
        let drawn = String::from_utf8(drawn).unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "    h    gap     +0");
        assert_eq!(lines[1], format!("    9  25.00  50.00 {}", "█".repeat(50)));
        assert_eq!(lines[2], "    8      -      - ");
        assert!(lines[3].starts_with("    7      -  25.00 █"), "{drawn}");
        draw_rows(&mut Vec::new(), "h", &headings, &[]).unwrap();
    }
}
