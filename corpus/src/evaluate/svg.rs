//! Draws precision, recall and F1 against k as SVG.

use std::io::{self, Write};

use crate::evaluate::curve::{CurvePoint, MAX_K, ProfileCurve};
use crate::evaluate::evaluation::{Evaluation, PAPER_K};

/// Number of panels in a row. Each profile has a panel with its plot.
const COLUMNS: usize = 3;
/// Width and height of a panel, in pixels.
const PANEL: (f64, f64) = (400.0, 300.0);
/// Distance from the left edge of a panel to its plot, in pixels.
const LEFT: f64 = 48.0;
/// Distance from the top edge of a panel to its plot, in pixels.
const TOP: f64 = 58.0;
/// Width of the plot in a panel, in pixels.
const WIDTH: f64 = 320.0;
/// Height of the plot in a panel, in pixels.
const HEIGHT: f64 = 192.0;
/// Maximum length of a profile's name above its panel, in characters. A tooltip has the whole name.
const MAX_NAME: usize = 48;

/// Name, colour and dash pattern of each line in a plot. The colours are mid tones, which contrast with white and with
/// black. The dashes distinguish the lines where colours cannot be seen.
const LINES: [(&str, &str, &str); 3] =
    [("recall", "#3f7fd6", "6 3"), ("precision", "#b8860b", "2 3"), ("F1", "#d1495b", "none")];

const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #333 }
.title { font-size: 14px; font-weight: 600 }
.axis { stroke: #777; fill: none }
.grid { stroke: #7774; fill: none }
.paper { stroke: #777; stroke-dasharray: 3 3; fill: none }
.line { fill: none; stroke-width: 2.2 }
.best { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .axis, .paper { stroke: #999 } }
";

impl Evaluation {
    /// Draws precision, recall and F1 against k as SVG, with a panel for each profile.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn draw_svg(&self, out: &mut dyn Write) -> io::Result<()> {
        draw(out, self)
    }
}

fn draw(out: &mut dyn Write, evaluation: &Evaluation) -> io::Result<()> {
    let panels = evaluation.profiles.len();
    let width = PANEL.0 * panels.min(COLUMNS) as f64;
    let height = PANEL.1 * panels.div_ceil(COLUMNS) as f64;
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">"#
    )?;
    writeln!(out, "<title>Recall, precision and F1 against k</title>\n<style>\n{STYLE}</style>")?;
    for (at, curve) in evaluation.profiles.iter().enumerate() {
        let (x, y) = (PANEL.0 * (at % COLUMNS) as f64, PANEL.1 * (at / COLUMNS) as f64);
        writeln!(out, r#"<g transform="translate({x} {y})">"#)?;
        draw_panel(out, curve, evaluation.has_paper().then_some(PAPER_K))?;
        writeln!(out, "</g>")?;
    }
    writeln!(out, "</svg>")
}

fn x_of(k: u32) -> f64 {
    LEFT + f64::from(k) / f64::from(MAX_K) * WIDTH
}

fn y_of(share: f64) -> f64 {
    TOP + (1.0 - share) * HEIGHT
}

/// Draws the panel of a profile. With `paper`, marks this distance by a vertical line; `paper` is [`PAPER_K`] or `None`.
fn draw_panel(out: &mut dyn Write, curve: &ProfileCurve, paper: Option<u32>) -> io::Result<()> {
    let profile = &*curve.profile;
    let name = if profile.chars().count() > MAX_NAME {
        profile.chars().take(MAX_NAME - 1).chain(['…']).collect()
    } else {
        profile.to_owned()
    };
    writeln!(
        out,
        r#"<text class="title" x="{LEFT}" y="20">{}<title>{}</title></text>"#,
        escaped(&name),
        escaped(profile)
    )?;
    for ((name, colour, dash), x) in LINES.into_iter().zip([0.0, 90.0, 195.0]) {
        let (start, end, text) = (LEFT + x, LEFT + x + 24.0, LEFT + x + 30.0);
        writeln!(
            out,
            r#"<path class="line" stroke="{colour}" stroke-dasharray="{dash}" d="M{start} 36H{end}"/><text x="{text}" y="40">{name}</text>"#
        )?;
    }
    let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
    for percent in [0, 20, 40, 60, 80, 100] {
        let y = y_of(f64::from(percent) / 100.0);
        let (end, baseline) = (LEFT - 6.0, y + 4.0);
        writeln!(
            out,
            r#"<path class="grid" d="M{LEFT} {y:.1}H{right}"/><text x="{end}" y="{baseline:.1}" text-anchor="end">{percent}%</text>"#
        )?;
    }
    for k in 0..=MAX_K {
        let (x, y) = (x_of(k), bottom + 16.0);
        writeln!(out, r#"<text x="{x}" y="{y}" text-anchor="middle">{k}</text>"#)?;
        if paper == Some(k) {
            let (text, baseline) = (x + 4.0, bottom - 6.0);
            writeln!(
                out,
                r#"<path class="paper" d="M{x} {TOP}V{bottom}"/><text x="{text}" y="{baseline}">k = {k}, the paper's</text>"#
            )?;
        }
    }
    writeln!(out, r#"<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>"#)?;
    writeln!(
        out,
        r#"<text x="{}" y="{}" text-anchor="middle">k, bits</text>"#,
        LEFT + WIDTH / 2.0,
        bottom + 34.0
    )?;

    let values: [fn(&CurvePoint) -> Option<f64>; 3] =
        [|point| Some(point.recall), |point| point.precision, |point| Some(point.f1)];
    for ((name, colour, dash), value) in LINES.into_iter().zip(values) {
        let places: Vec<(u32, f64)> =
            curve.points.iter().filter_map(|point| Some((point.k, value(point)?))).collect();
        let path: Vec<String> =
            places.iter().map(|&(k, share)| format!("{} {:.1}", x_of(k), y_of(share))).collect();
        writeln!(
            out,
            r#"<path class="line" stroke="{colour}" stroke-dasharray="{dash}" d="M{}"/>"#,
            path.join("L")
        )?;
        for (k, share) in places {
            let (x, y, percent) = (x_of(k), y_of(share), share * 100.0);
            writeln!(
                out,
                r#"<circle cx="{x}" cy="{y:.1}" r="2.6" fill="{colour}"><title>k = {k}: {name} {percent:.2}%</title></circle>"#
            )?;
        }
    }
    let best = curve.best();
    let (x, y, colour) = (x_of(best.k), y_of(best.f1), LINES[2].1);
    writeln!(
        out,
        r#"<circle class="best" stroke="{colour}" cx="{x}" cy="{y:.1}" r="6"><title>{}: k = {}</title></circle>"#,
        if curve.recommended().is_some() { "recommended" } else { "the largest F1" },
        best.k
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
