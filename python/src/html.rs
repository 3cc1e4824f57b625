//! Tables as notebooks show them.

use std::fmt::Write;

use pyo3::prelude::*;

/// Rows that are shown of many.
pub(crate) const SHOWN: usize = 10;

/// A text as HTML shows it, cut where it is long.
pub(crate) fn escaped(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut shown: String = text.chars().take(LONGEST).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A table of the first rows: the names of its columns, the values of each row, and what is said below.
pub(crate) fn table(names: &[&str], rows: &[Vec<Bound<'_, PyAny>>], said: &str) -> PyResult<String> {
    let mut html = String::from("<table><thead><tr>");
    for name in names {
        let _ = write!(html, "<th>{}</th>", escaped(name));
    }
    html += "</tr></thead><tbody>";
    for row in rows {
        html += "<tr>";
        for value in row {
            let _ = write!(html, "<td>{}</td>", escaped(value.str()?.to_str()?));
        }
        html += "</tr>";
    }
    let _ = write!(html, "</tbody></table><p>{}</p>", escaped(said));
    Ok(html)
}
