//! Histograms and bars drawn in the terminal.

use std::io::{self, Write};

/// Width of the longest bar, in columns.
const COLUMNS: usize = 50;
/// Eighths of a column, one to eight.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Draws one bar for each count, from the first that is not 0 to the last, the longest over the whole width.
pub(crate) fn draw(out: &mut impl Write, counts: &[u64]) -> io::Result<()> {
    let most = counts.iter().copied().max().unwrap_or(0);
    let Some(first) = counts.iter().position(|&count| count > 0) else { return Ok(()) };
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or(first);
    let all: u64 = counts.iter().sum();
    for (position, &count) in counts.iter().enumerate().take(last + 1).skip(first) {
        let share = count as f64 * 100.0 / all as f64;
        let bar = bar(count as f64 / most as f64, COLUMNS);
        writeln!(out, "  {position:>3} {share:>6.2}% {bar}")?;
    }
    Ok(())
}

/// Draws a line for each row, which has a label and a count for each head: their shares of all, and a bar of their sum, the
/// longest over the whole width.
pub(crate) fn draw_rows(
    out: &mut impl Write,
    label: &str,
    heads: &[String],
    rows: &[(u32, Vec<u64>)],
) -> io::Result<()> {
    let sum = |(_, counts): &(u32, Vec<u64>)| counts.iter().sum::<u64>();
    let most = rows.iter().map(sum).max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    let all: u64 = rows.iter().map(sum).sum();
    let heads: String = heads.iter().map(|head| format!(" {head:>6}")).collect();
    writeln!(out, "  {label:>3}{heads}")?;
    for row in rows {
        let share = |&count: &u64| match count {
            0 => format!(" {:>6}", "-"),
            _ => format!(" {:>6.2}", count as f64 * 100.0 / all as f64),
        };
        let shares: String = row.1.iter().map(share).collect();
        writeln!(out, "  {:>3}{shares} {}", row.0, bar(sum(row) as f64 / most as f64, COLUMNS))?;
    }
    Ok(())
}

/// A bar for a share from 0 to 1, which is as long as `columns` for 1.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    let eighths = (share * (columns * 8) as f64).round() as usize;
    // What is there at all is seen.
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
        let heads = ["gap".to_owned(), "+0".to_owned()];
        draw_rows(&mut drawn, "h", &heads, &[(9, vec![1, 2]), (8, vec![0, 0]), (7, vec![0, 1])]).unwrap();
        let drawn = String::from_utf8(drawn).unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "    h    gap     +0");
        assert_eq!(lines[1], format!("    9  25.00  50.00 {}", "█".repeat(50)));
        assert_eq!(lines[2], "    8      -      - ");
        assert!(lines[3].starts_with("    7      -  25.00 █"), "{drawn}");
        draw_rows(&mut Vec::new(), "h", &heads, &[]).unwrap();
    }
}
