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
}
