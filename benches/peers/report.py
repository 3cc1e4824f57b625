"""Writes the figures of all compared tools as a Markdown table, as JSON, and as a plot."""

import json
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benches" / "similar")]

import drawing
from compare import format_share

COLUMNS = [
    "tool",
    "recall",
    "precision",
    "documents kept",
    "wrongly removed documents",
    "wall time, s",
    "CPU time, s",
    "peak memory, MiB",
]
SIMSTORE_COLOUR, PEER_COLOUR = drawing.COLOURS[0], drawing.COLOURS[2]
MIB = 1 << 20

# A panel of the plot: heading, axis label, function that gets the value of a row, function that formats a value.
PANELS = [
    ("CPU time", "seconds (shorter is better)", lambda row: row["cpu_seconds"], lambda value: f"{value:,.1f}"),
    ("Peak memory", "MiB (shorter is better)", lambda row: row["memory_mib"], lambda value: f"{value:,.0f}"),
    ("Similar pairs found", "percent (longer is better)", lambda row: percent(row["recall"]), lambda value: f"{value:.1f}"),
    ("Wrongly removed", "documents (shorter is better)", lambda row: row["wrong"], lambda value: f"{value:,}"),
]
LABEL_WIDTH, PANEL_WIDTH, VALUE_WIDTH, ROW_HEIGHT, TOP = 190, 140, 62, 34, 112


def percent(share):
    """Returns a share as a percentage, rounded down to one decimal, so that only a share of 1 gives 100."""
    return None if share is None else math.floor(share * 1000) / 10


def format_cell(value, format_value):
    return "unknown" if value is None else format_value(value)


def table_row(row):
    if row["failure"]:
        return f"| {row['title']} | failed: {row['failure'].replace('|', '/')} | | | | | | |"
    cells = [row["title"], format_cell(row["recall"], format_share), format_cell(row["precision"], format_share), f"{row['kept']:,}"]
    cells.append(format_cell(row["wrong"], "{:,}".format))
    if "seconds" in row:
        cells += [f"{row['seconds']:.1f}", f"{row['cpu_seconds']:.1f}", f"{row['memory_mib']:,.0f}"]
    else:
        cells += ["", "", ""]
    return "| " + " | ".join(cells) + " |"


def format_table(figures):
    """Returns the Markdown page: the table, the data, the machine and the settings."""
    data, machine = figures["data"], figures["machine"]
    lines = [f"# {heading(figures)}", "", "| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += [table_row(row) for row in [figures["exact"], *figures["tools"]] if row]
    lines += ["", f"- **Date** {figures['date']}", f"- **Command** `{figures['command']}`"]
    sizes = f"{data['documents']:,} documents, {data['mib']:,.1f} MiB of JSON Lines"
    if data["without_text"]:
        sizes += f"; skipped documents without text: {data['without_text']:,}"
    if data["other_files"]:
        sizes += f"; skipped files with other extensions: {data['other_files']:,}"
    lines.append(f"- **Data** {sizes}")
    lines.append(f"- **Similar pairs** {describe_pairs(figures)}")
    lines.append(
        f"- **Machine** {machine['cores']} cores, {machine['processor']}, {machine['memory_gib']} GiB of memory,"
        f" {machine['system']}, Python {machine['python']}"
    )
    runs = f"medians of {figures['runs']} runs" if figures["runs"] > 1 else "one run each"
    lines.append(f"- **Runs** {runs}; load average when each tool started: {load_range(figures['tools'])}")
    lines.append(f"- **Limits** {figures['limit_gib']:g} GiB of memory and {figures['timeout_minutes']:g} minutes for each tool")
    lines += [f"- **{row['title']}** {row['settings']}; words: {row['words']}" for row in figures["tools"]]
    lines += [
        "",
        "Recall: share of similar pairs with at least one document removed. Precision: share of removed documents with a similar kept",
        "document. Wrongly removed: documents removed with no similar document kept.",
    ]
    return "\n".join(lines) + "\n"


def heading(figures):
    return f"Near-duplicates removed from {figures['data']['documents']:,} documents, similarity {figures['similar']:g} or more"


def describe_pairs(figures):
    data = figures["data"]
    if data["similar_pairs"] is None:
        return "not known: too many documents for brute force (`--truth-limit`)"
    source = {"brute force": "found by brute force", "planted": "planted, so known"}[data["truth"]]
    return f"{data['similar_pairs']:,}, {source}; {describe_words(data)}"


def describe_words(data):
    """Returns a phrase for the report. It says how the texts were split into words to find the similar pairs."""
    if data["truth"] == "planted" or data["plain_words"]:
        return "all tools have the same plain words"
    return "words as simstore cuts them, without punctuation, markup and front matter"


def load_range(rows):
    """Returns the lowest and the highest load average as text."""
    values = sorted(row["load"] for row in rows if row["load"] is not None)
    return f"{values[0]:.1f} to {values[-1]:.1f}" if values else "unknown"


def ticks(maximum):
    """Returns two to five round numbers from 0 to at most `maximum`."""
    if maximum <= 0:
        return [0]
    step = 10 ** math.floor(math.log10(maximum))
    step = next(step * factor for factor in (0.2, 0.5, 1, 2, 5) if maximum / (step * factor) <= 4)
    return [step * index for index in range(int(maximum / step) + 1)]


def tick_name(value, maximum):
    return f"{value / 1000:g}k" if value and maximum >= 10_000 else f"{value:,g}"


def draw_panel(left, rows, heading, label, get_value, format_value):
    """Returns the SVG elements of one panel of the plot, which has a horizontal bar for each tool."""
    values = [None if row["failure"] else get_value(row) for row in rows]
    maximum = 100 if heading == "Similar pairs found" else max([value for value in values if value], default=1)
    height = ROW_HEIGHT * len(rows)
    axes = drawing.Axes(left, TOP, PANEL_WIDTH, height, drawing.linear(0, maximum), drawing.linear(0, 1))
    elements = [f'<text class="title" x="{left}" y="{TOP - 14}">{escape(heading)}</text>']
    elements += axes.grid({value: tick_name(value, maximum) for value in ticks(maximum)}, {}, escape(label))
    for index, (row, value) in enumerate(zip(rows, values)):
        top = TOP + ROW_HEIGHT * index + 7
        if value is None:
            name = "failed" if row["failure"] else "unknown"
            elements.append(f'<text x="{left + 6}" y="{top + 15}" font-style="italic">{name}</text>')
            continue
        width = max(PANEL_WIDTH * value / maximum, 1.5 if value else 0)
        colour = SIMSTORE_COLOUR if row["name"] == "simstore" else PEER_COLOUR
        elements.append(f'<rect x="{left}" y="{top}" width="{width:.1f}" height="{ROW_HEIGHT - 14}" fill="{colour}"/>')
        elements.append(f'<text x="{left + width + 5:.1f}" y="{top + 15}">{format_value(value)}</text>')
    return elements


def draw_plot(figures):
    """Returns an SVG with panels for CPU time, memory, similar pairs found and wrong removals, side by side."""
    rows = figures["tools"]
    elements = [f'<text class="title" x="16" y="26">{escape(heading(figures))}</text>']
    machine = figures["machine"]
    definition = f"Similarity: Jaccard similarity of word 3-grams; {describe_words(figures['data'])}."
    setup = f"Each tool reads the same file. {machine['cores']} cores, {machine['processor']}, {figures['date'][:10]}."
    elements += [f'<text x="16" y="{y}">{escape(text)}</text>' for y, text in ((46, definition), (64, setup))]
    for index, row in enumerate(rows):
        weight = ' font-weight="600"' if row["name"] == "simstore" else ""
        y = TOP + ROW_HEIGHT * index + 22
        elements.append(f'<text x="{LABEL_WIDTH - 10}" y="{y}" text-anchor="end"{weight}>{escape(row["title"])}</text>')
    for index, (name, label, get_value, format_value) in enumerate(PANELS):
        elements += draw_panel(LABEL_WIDTH + index * (PANEL_WIDTH + VALUE_WIDTH), rows, name, label, get_value, format_value)
    width = LABEL_WIDTH + len(PANELS) * (PANEL_WIDTH + VALUE_WIDTH)
    return drawing.picture(escape(heading(figures)), width, TOP + ROW_HEIGHT * len(rows) + 56, elements)


def write_report(figures, folder):
    folder = Path(folder)
    (folder / "figures.json").write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "table.md").write_text(format_table(figures), encoding="utf-8")
    (folder / "plot.svg").write_text(draw_plot(figures), encoding="utf-8")
