//! HTML of tables for notebooks.

use std::fmt::Write;

use pyo3::prelude::*;

/// Maximum number of rows that a notebook shows.
pub(crate) const ROWS_SHOWN_MAX: usize = 10;

/// Escapes a text for HTML, and truncates a long one.
pub(crate) fn escape(text: &str) -> String {
    const CHARS_SHOWN_MAX: usize = 80;
    let mut shown: String = text.chars().take(CHARS_SHOWN_MAX).collect();
    if text.chars().nth(CHARS_SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the HTML of a table: the column names, the values of each row, and a line of text below.
pub(crate) fn table_markup(
    names: &[&str],
    rows: &[Vec<Bound<'_, PyAny>>],
    caption: &str,
) -> PyResult<String> {
    let cell = |value: &Bound<'_, PyAny>| Ok(escape(value.str()?.to_str()?));
    let cells = |row: &Vec<_>| row.iter().map(cell).collect::<PyResult<Vec<_>>>();
    let rows = rows.iter().map(cells).collect::<PyResult<Vec<_>>>()?;
    Ok(format!("{}<p>{}</p>", table_of_cells(names, "td", rows), escape(caption)))
}

/// Returns the HTML of a table whose cells are already HTML. `first` is the tag of the first cell of each row, `th` or `td`.
pub(crate) fn table_of_cells<R: AsRef<[String]>>(
    names: &[&str],
    first: &str,
    rows: impl IntoIterator<Item = R>,
) -> String {
    let names: String = names.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
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
