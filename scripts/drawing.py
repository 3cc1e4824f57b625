"""Curves as SVG, for who draws what was measured."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# Mid tones, which stand out from white and from black, and differ in lightness too.
COLOURS = ("#0f8b8d", "#d1495b", "#3f7fd6", "#b8860b", "#8e5bb5", "#4f9d45")

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 }
.title { font-size: 14px; font-weight: 600 }
.axis { stroke: #777; fill: none }
.grid { stroke: #7774; fill: none }
.line { fill: none; stroke-width: 2.2 }
.rival { stroke-dasharray: 5 4; stroke-width: 1.6 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .axis { stroke: #999 } }
"""

Points = Iterable[tuple[float, float]]


def picture(title: str, width: float, height: float, drawn: Iterable[str]) -> str:
    """All that was drawn, as a file."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    return "\n".join([head, f"<title>{title}</title>", f"<style>{STYLE}</style>", *drawn, "</svg>"]) + "\n"


def linear(least: float, most: float) -> Callable[[float], float]:
    """Where on an axis a value stands, from 0 to 1."""
    return lambda value: (value - least) / (most - least)


def by_powers(least: int, most: int) -> Callable[[float], float]:
    """The same for an axis from one power of ten to another."""
    return lambda value: (math.log10(value) - least) / (most - least)


@dataclass
class Axes:
    """A pair of axes, and where on them values stand."""

    left: float
    top: float
    width: float
    height: float
    x: Callable[[float], float]
    y: Callable[[float], float]

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def place(self, x: float, y: float) -> tuple[float, float]:
        return self.left + self.x(x) * self.width, self.top + self.height - self.y(y) * self.height

    def grid(self, columns: dict[float, str], rows: dict[float, str], below: str) -> list[str]:
        """Lines at some values, with what they are called, and what is told of the horizontal axis."""
        out = []
        for value, name in columns.items():
            x = self.left + self.x(value) * self.width
            out.append(f'<path class="grid" d="M{x:.1f} {self.top}V{self.bottom}"/>')
            out.append(f'<text x="{x:.1f}" y="{self.bottom + 20}" text-anchor="middle">{name}</text>')
        for value, name in rows.items():
            y = self.top + self.height - self.y(value) * self.height
            out.append(f'<path class="grid" d="M{self.left} {y:.1f}H{self.right}"/>')
            out.append(f'<text x="{self.left - 7}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
        out.append(f'<path class="axis" d="M{self.left} {self.top}V{self.bottom}H{self.right}"/>')
        middle = (self.left + self.right) / 2
        out.append(f'<text x="{middle}" y="{self.bottom + 40}" text-anchor="middle">{below}</text>')
        return out

    def line(self, points: Points, colour: str, kind: str = "line") -> str:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (self.place(*point) for point in points))
        return f'<path class="{kind}" stroke="{colour}" d="M{path}"/>'

    def dots(self, points: Points, colour: str) -> list[str]:
        placed = (self.place(*point) for point in points)
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
