//! Tables as notebooks show them.

use std::fmt::Write;

use pyo3::prelude::*;

/// Rows that are shown of many.
pub(crate) const ROWS_SHOWN_MAX: usize = 10;

/// A text as HTML shows it, cut where it is long.
pub(crate) fn escaped(text: &str) -> String {
    const CHARS_SHOWN_MAX: usize = 80;
    let mut shown: String = text.chars().take(CHARS_SHOWN_MAX).collect();
    if text.chars().nth(CHARS_SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Writes a table of the first rows: the names of its columns, the values of each row, and a line of text below.
pub(crate) fn table(names: &[&str], rows: &[Vec<Bound<'_, PyAny>>], said: &str) -> PyResult<String> {
    let cell = |value: &Bound<'_, PyAny>| Ok(escaped(value.str()?.to_str()?));
    let cells = |row: &Vec<_>| row.iter().map(cell).collect::<PyResult<Vec<_>>>();
    let rows = rows.iter().map(cells).collect::<PyResult<Vec<_>>>()?;
    Ok(format!("{}<p>{}</p>", markup(names, "td", rows), escaped(said)))
}

/// Writes a table of cells that are HTML. The first cell of each row has this tag.
pub(crate) fn markup<R: AsRef<[String]>>(
    names: &[&str],
    first: &str,
    rows: impl IntoIterator<Item = R>,
) -> String {
    let names: String = names.iter().map(|name| format!("<th>{}</th>", escaped(name))).collect();
    let head = if names.is_empty() { names } else { format!("<thead><tr>{names}</tr></thead>") };
    let mut html = format!("<table>{head}<tbody>");
    for row in rows {
        html += "<tr>";
        for (at, cell) in row.as_ref().iter().enumerate() {
            let tag = if at == 0 { first } else { "td" };
            let _ = write!(html, "<{tag}>{cell}</{tag}>");
        }
        html += "</tr>";
    }
    html + "</tbody></table>"
}
