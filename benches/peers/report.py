"""Writes what was measured as a table in Markdown, as JSON, and as a plot."""

import json
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benches" / "similar")]

import drawing
from compare import rounded

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
OWN, PEER = drawing.COLOURS[0], drawing.COLOURS[2]
MIB = 1 << 20

# A panel of the plot: heading, axis label, the value of a row, how a value is written.
PANELS = [
    ("CPU time", "seconds (shorter is better)", lambda row: row["cpu_seconds"], lambda value: f"{value:,.1f}"),
    ("Peak memory", "MiB (shorter is better)", lambda row: row["memory_mib"], lambda value: f"{value:,.0f}"),
    ("Similar pairs found", "percent (longer is better)", lambda row: percent(row["recall"]), lambda value: f"{value:.1f}"),
    ("Wrongly removed", "documents (shorter is better)", lambda row: row["wrong"], lambda value: f"{value:,}"),
]
LABEL_WIDTH, PANEL_WIDTH, VALUE_WIDTH, ROW_HEIGHT, TOP = 190, 140, 62, 34, 112


def percent(share):
    """A share as a percentage that is rounded down, so that 100 means all."""
    return None if share is None else math.floor(share * 1000) / 10


def cell(value, write):
    return "unknown" if value is None else write(value)


def table_row(row):
    if row["failure"]:
        return f"| {row['title']} | failed: {row['failure'].replace('|', '/')} | | | | | | |"
    cells = [row["title"], cell(row["recall"], rounded), cell(row["precision"], rounded), f"{row['kept']:,}"]
    cells.append(cell(row["wrong"], "{:,}".format))
    if "seconds" in row:
        cells += [f"{row['seconds']:.1f}", f"{row['cpu_seconds']:.1f}", f"{row['memory_mib']:,.0f}"]
    else:
        cells += ["", "", ""]
    return "| " + " | ".join(cells) + " |"


def table(figures):
    """The table, with the data and the machine."""
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
    lines.append(f"- **Similar pairs** {pairs_sentence(figures)}")
    lines.append(
        f"- **Machine** {machine['cores']} cores, {machine['processor']}, {machine['memory_gib']} GiB of memory,"
        f" {machine['system']}, Python {machine['python']}"
    )
    runs = f"medians of {figures['runs']} runs" if figures["runs"] > 1 else "one run each"
    lines.append(f"- **Runs** {runs}; load average when each tool started: {loads(figures['tools'])}")
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


def pairs_sentence(figures):
    data = figures["data"]
    if data["similar_pairs"] is None:
        return "not known: too many documents for brute force (`--truth-limit`)"
    source = {"brute force": "found by brute force", "planted": "planted, so known"}[data["truth"]]
    return f"{data['similar_pairs']:,}, {source}; {words_of(data)}"


def words_of(data):
    """The words whose 3-grams decide which documents are similar."""
    if data["truth"] == "planted" or data["plain_words"]:
        return "all tools have the same plain words"
    return "words as simstore cuts them, without punctuation, markup and front matter"


def loads(rows):
    """The lowest and the highest load average."""
    values = sorted(row["load"] for row in rows if row["load"] is not None)
    return f"{values[0]:.1f} to {values[-1]:.1f}" if values else "unknown"


def ticks(most):
    """Three or so round numbers from 0 on."""
    if most <= 0:
        return [0]
    step = 10 ** math.floor(math.log10(most))
    step = next(step * factor for factor in (0.2, 0.5, 1, 2, 5) if most / (step * factor) <= 4)
    return [step * at for at in range(int(most / step) + 1)]


def tick_name(value, most):
    return f"{value / 1000:g}k" if value and most >= 10_000 else f"{value:,g}"


def panel(left, rows, heading, label, value_of, write):
    """Horizontal bars, one for each tool."""
    values = [None if row["failure"] else value_of(row) for row in rows]
    most = 100 if heading == "Similar pairs found" else max([value for value in values if value], default=1)
    height = ROW_HEIGHT * len(rows)
    axes = drawing.Axes(left, TOP, PANEL_WIDTH, height, drawing.linear(0, most), drawing.linear(0, 1))
    out = [f'<text class="title" x="{left}" y="{TOP - 14}">{escape(heading)}</text>']
    out += axes.grid({value: tick_name(value, most) for value in ticks(most)}, {}, escape(label))
    for at, (row, value) in enumerate(zip(rows, values)):
        top = TOP + ROW_HEIGHT * at + 7
        if value is None:
            name = "failed" if row["failure"] else "unknown"
            out.append(f'<text x="{left + 6}" y="{top + 15}" font-style="italic">{name}</text>')
            continue
        width = max(PANEL_WIDTH * value / most, 1.5 if value else 0)
        colour = OWN if row["name"] == "simstore" else PEER
        out.append(f'<rect x="{left}" y="{top}" width="{width:.1f}" height="{ROW_HEIGHT - 14}" fill="{colour}"/>')
        out.append(f'<text x="{left + width + 5:.1f}" y="{top + 15}">{write(value)}</text>')
    return out


def plot(figures):
    """Bars of time, memory, pairs found and wrong removals, side by side."""
    rows = figures["tools"]
    out = [f'<text class="title" x="16" y="26">{escape(heading(figures))}</text>']
    machine = figures["machine"]
    about = f"Similarity: Jaccard similarity of word 3-grams; {words_of(figures['data'])}."
    where = f"Each tool reads the same file. {machine['cores']} cores, {machine['processor']}, {figures['date'][:10]}."
    out += [f'<text x="16" y="{y}">{escape(text)}</text>' for y, text in ((46, about), (64, where))]
    for at, row in enumerate(rows):
        weight = ' font-weight="600"' if row["name"] == "simstore" else ""
        y = TOP + ROW_HEIGHT * at + 22
        out.append(f'<text x="{LABEL_WIDTH - 10}" y="{y}" text-anchor="end"{weight}>{escape(row["title"])}</text>')
    for at, (name, label, value_of, write) in enumerate(PANELS):
        out += panel(LABEL_WIDTH + at * (PANEL_WIDTH + VALUE_WIDTH), rows, name, label, value_of, write)
    width = LABEL_WIDTH + len(PANELS) * (PANEL_WIDTH + VALUE_WIDTH)
    return drawing.picture(escape(heading(figures)), width, TOP + ROW_HEIGHT * len(rows) + 56, out)


def write(figures, folder):
    folder = Path(folder)
    (folder / "figures.json").write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "table.md").write_text(table(figures), encoding="utf-8")
    (folder / "plot.svg").write_text(plot(figures), encoding="utf-8")
