"""Small pieces of SVG for diagrams: text, lines, a plot with axes; light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
  .paper { fill: #fbfaf7 } .panel { fill: #ffffff; stroke: #d8d4ca }
  text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif;
         fill: #23211d; font-size: 14px }
  .title { font-size: 17px; font-weight: 600 } .small { font-size: 12.5px; fill: #67625a }
  .big { font-size: 54px; font-weight: 650 } .axis { stroke: #8d877b; fill: none }
  .grid { stroke: #e4e0d6; fill: none } .mark { stroke: #67625a; stroke-dasharray: 4 4; fill: none }
  .in { stroke: #1f5f8b; fill: none; stroke-width: 2.5 } .in-dot { fill: #1f5f8b }
  .out { stroke: #c2571a; fill: none; stroke-width: 2.5 } .out-dot { fill: #c2571a }
  .off-dot { fill: #a39d91 } .shade { fill: #e9dfc9 } .tile { fill: #dcd7cc }
  .in-text { fill: #1f5f8b } .out-text { fill: #b04d14 } .arrow { fill: #8d877b }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #1c1d20 } .panel { fill: #26282c; stroke: #43464d } text { fill: #f1efe9 }
    .small { fill: #b3afa6 } .axis { stroke: #989ca5 } .grid { stroke: #383b41 }
    .mark { stroke: #b3afa6 } .in { stroke: #6db3e2 } .in-dot { fill: #6db3e2 }
    .out { stroke: #f09a5d } .out-dot { fill: #f09a5d } .off-dot { fill: #7d8189 }
    .shade { fill: #3d372a } .tile { fill: #474a51 } .in-text { fill: #8cc4ea }
    .out-text { fill: #f4ab78 } .arrow { fill: #989ca5 }
  }
"""


def drawing(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """A whole picture."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-labelledby="title">',
            f'<title id="title">{escape(title)}</title>',
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{width}" height="{height}" rx="12"/>',
            *parts,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """One line of text."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def panel(x: float, y: float, width: float, height: float) -> str:
    """A card behind a part of the picture."""
    return f'<rect class="panel" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8"/>'


def line(kind: str, points: Sequence[tuple[float, float]]) -> str:
    """A line through points."""
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{kind}" d="M{steps}"/>'


def dot(kind: str, x: float, y: float, radius: float = 5) -> str:
    """A filled circle."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>'


@dataclass(frozen=True)
class Plot:
    """Axes on a rectangle: counts from 0 to ``last`` along x, probabilities along y."""

    left: float
    top: float
    width: float
    height: float
    last: float

    def at(self, count: float, probability: float) -> tuple[float, float]:
        """The point of a count and a probability."""
        return (
            self.left + self.width * count / self.last,
            self.top + self.height * (1 - probability),
        )

    def axes(self, ticks: Sequence[int], below: str, beside: str) -> list[str]:
        """Grid, ticks and titles."""
        parts = []
        for level in (0, 0.5, 1):
            x, y = self.at(0, level)
            parts.append(line("grid", [(x, y), (x + self.width, y)]))
            parts.append(text(x - 8, y + 4, f"{level:g}", "small", "end"))
        for tick in ticks:
            x, y = self.at(tick, 0)
            parts.append(line("axis", [(x, y), (x, y + 5)]))
            parts.append(text(x, y + 20, str(tick), "small", "middle"))
        corner, end = self.at(0, 0), self.at(self.last, 0)
        parts.append(line("axis", [self.at(0, 1), corner, end]))
        parts.append(text(self.left + self.width / 2, end[1] + 40, below, "small", "middle"))
        parts.append(text(self.left - 30, self.top - 14, beside, "small"))
        return parts

    def curve(self, kind: str, counts: Sequence[int], values: Sequence[float]) -> str:
        """A curve over counts."""
        return line(kind, [self.at(k, v) for k, v in zip(counts, values, strict=True)])

    def level(self, value: float, name: str) -> list[str]:
        """A dashed line at one probability, with its name at the right end."""
        x, y = self.at(self.last, value)
        return [line("mark", [(self.left, y), (x, y)]), text(x + 6, y + 4, name, "small")]

    def count(self, value: float, kind: str = "mark") -> str:
        """A dashed vertical line at one count."""
        return line(kind, [self.at(value, 0), self.at(value, 1)])
