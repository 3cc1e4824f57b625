#!/usr/bin/env python3
"""Draws docs/growth.svg from benches/growth.tsv: query time and size against the number of fingerprints."""

import math
from pathlib import Path
from xml.sax.saxutils import escape

from drawing import COLOURS, Axes, logarithmic, picture

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "benches" / "growth.tsv"
TARGET = ROOT / "docs" / "growth.svg"

WIDTH, HEIGHT = 1040, 430
PANEL_WIDTH, PANEL_HEIGHT = 280, 310
LEFTS, TOP = (64, 580), 56
LABEL_GAP = 14  # Minimum distance between labels, in pixels.

RIVAL_COLOURS = ("#8a8a8a", "#9a8f7a", "#7a8a9a")
RIVAL = "mih-rs"


def read(path):
    """Returns {name of an index: [(number of fingerprints, microseconds of a query, bytes of a fingerprint)]}.

    The names are in the order of the file, the numbers of fingerprints ascend.
    """
    series = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 4:
            raise SystemExit(f"{path}:{number}: expected four fields with tabs between them")
        n, index, us, size = fields
        series.setdefault(index, []).append((float(n), float(us), float(size)))
    return {index: sorted(points) for index, points in series.items()}


def power(exponent):
    """Returns 10^exponent as SVG text."""
    return f'10<tspan dy="-5" font-size="9">{exponent}</tspan>'


def move_apart(positions):
    """Moves labels apart vertically, so that they do not overlap, and keeps their order. Returns the y of each label."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    moved = list(positions)
    for _ in range(200):
        for upper, lower in zip(order, order[1:]):
            overlap = LABEL_GAP - (moved[lower] - moved[upper])
            if overlap > 0:
                moved[upper] -= overlap / 2
                moved[lower] += overlap / 2
    return moved


def panel(series, colours, column, left, title, unit):
    """Returns the SVG elements of one chart, which has a line for each index in `series`.

    `series` maps the name of an index to its points. `column` selects the vertical value of a point: 1 for time, 2 for bytes.
    """
    xs = [point[0] for points in series.values() for point in points]
    ys = [point[column] for points in series.values() for point in points]
    # An axis covers at least one power of ten.
    x0, y0 = math.floor(math.log10(min(xs))), math.floor(math.log10(min(ys)))
    x1, y1 = max(math.ceil(math.log10(max(xs))), x0 + 1), max(math.ceil(math.log10(max(ys))), y0 + 1)
    axes = Axes(left, TOP, PANEL_WIDTH, PANEL_HEIGHT, logarithmic(x0, x1), logarithmic(y0, y1))
    out = [f'<text class="title" x="{left}" y="{TOP - 26}">{title}</text>']
    out.append(f'<text x="{left}" y="{TOP - 10}">{unit}</text>')
    columns = {10.0**exponent: power(exponent) for exponent in range(x0, x1 + 1)}
    rows = {10.0**exponent: power(exponent) if exponent > 3 else f"{10.0**exponent:g}" for exponent in range(y0, y1 + 1)}
    out += axes.grid(columns, rows, "fingerprints, n")

    ends = []
    for index, points in series.items():
        measured = [(point[0], point[column]) for point in points]
        out.append(axes.line(measured, colours[index], "line rival" if index.startswith(RIVAL) else "line"))
        out += axes.dots(measured, colours[index])
        ends.append(axes.place(*measured[-1]))
    for (index, (x, y)), label in zip(zip(series, ends), move_apart([y for _, y in ends])):
        # All labels are at the right edge, also for lines that end earlier.
        out.append(f'<path class="grid" d="M{x + 4:.1f} {y:.1f}L{axes.right + 8} {label:.1f}"/>')
        colour = colours[index]
        out.append(f'<text x="{axes.right + 11}" y="{label + 4:.1f}" style="fill: {colour}">{escape(index)}</text>')
    return out


def main():
    series = read(SOURCE)
    own, rivals = iter(COLOURS * 4), iter(RIVAL_COLOURS * 4)
    colours = {index: next(rivals if index.startswith(RIVAL) else own) for index in series}
    out = panel(series, colours, 1, LEFTS[0], "Time of a query", "us, within 3 bits, one thread, warm")
    out += panel(series, colours, 2, LEFTS[1], "Size", "bytes a fingerprint, without ids, all tables")
    TARGET.parent.mkdir(exist_ok=True)
    title = "Query time and bytes a fingerprint against the number of fingerprints"
    TARGET.write_text(picture(title, WIDTH, HEIGHT, out), encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {sum(map(len, series.values()))} points of {len(series)} indexes")


if __name__ == "__main__":
    main()
