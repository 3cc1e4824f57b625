"""Draws line charts as SVG."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# Mid tones: visible on white and on black, and different in lightness.
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


def picture(title: str, width: float, height: float, elements: Iterable[str]) -> str:
    """Returns the text of an SVG file with the given elements."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    return "\n".join([head, f"<title>{title}</title>", f"<style>{STYLE}</style>", *elements, "</svg>"]) + "\n"


def linear(lowest: float, highest: float) -> Callable[[float], float]:
    """Returns the function that maps a value to its position (0 to 1) on a linear axis."""
    return lambda value: (value - lowest) / (highest - lowest)


def logarithmic(lowest: int, highest: int) -> Callable[[float], float]:
    """Returns the function that maps a value to its position (0 to 1) on a logarithmic axis from 10^lowest to 10^highest."""
    return lambda value: (math.log10(value) - lowest) / (highest - lowest)


@dataclass
class Axes:
    """A pair of axes. `x` and `y` map a value to its position on the horizontal and vertical axis, from 0 to 1."""

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
        """Returns the SVG elements of the axes and of the grid lines.

        `columns` and `rows` map the values of the grid lines to their labels. `below` is the title of the horizontal axis.
        """
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
