"""Draw docs/images/architecture.svg from the import graph.

    python -m tools.architecture_picture

The site draws its own at each build, so only the picture in the repository ever lags behind: by a
module or a dot, never by a package.

Packages stand in order from top to bottom. From each a line runs down past those that follow; a dot
on it marks a package that imports from the first one, the larger the more imports.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
GROUND = ("files",)
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

HOW_TO_READ = (
    "Data moves down. A line leaves each package; a dot on it marks one that imports from it."
)
API, API_DOES = "api", "foci.audit: the whole way in one call"
DOT_SIZES = ((1, 3.5), (4, 5), (10, 6.5), (20, 8.5))
"""Fewest imports, radius; steps, so that one import more rarely changes the picture."""

MARGIN, TOP, CARD_WIDTH, CARD_HEIGHT, ROW = 28, 96, 452, 52, 66
FIRST_LANE, LANE, BEND, PORT = 44, 36, 12, 9
STYLE = """
  .paper { fill: #fbfaf7 } .card { fill: #ffffff; stroke: #d8d4ca }
  text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }
  .title { font-size: 21px; font-weight: 600; fill: #23211d }
  .name { font-size: 16px; font-weight: 600; fill: #23211d }
  .does, .count, .note { font-size: 13px; fill: #67625a }
  .row { stroke: #b9b3a6; stroke-width: 1.2; fill: none } .tip { fill: #8d877b }
  .lane { fill: none; stroke-width: 2.5; stroke-linecap: round }
  .dot { stroke: #fbfaf7; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #1c1d20 } .card { fill: #26282c; stroke: #43464d }
    .title, .name { fill: #f1efe9 } .does, .count, .note { fill: #b3afa6 }
    .row { stroke: #5b5f67 } .tip { fill: #989ca5 } .dot { stroke: #1c1d20 }
  }
"""


def main() -> None:
    """Draw the picture of the repository again."""
    PICTURE.write_text(picture(), encoding="utf-8")


def names_and_purposes(svg: str) -> list[str]:
    """The words on the cards of a picture: the name of each package and what happens there."""
    return re.findall(r'<text class="(?:name|does)"[^>]*>([^<]*)<', svg)


def picture() -> str:
    """The import graph as SVG."""
    graph = grimp.build_graph("foci")
    packages = [name for name in layers() if name not in GROUND]
    sizes = Counter(_layer(module) for module in graph.modules)
    edges = Counter(
        (_layer(importer), _layer(imported))
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    )
    used = [
        name for name in packages if any(edges[other, name] for other in packages if other != name)
    ]
    lanes = {
        name: MARGIN + CARD_WIDTH + FIRST_LANE + LANE * number
        for number, name in enumerate(reversed(used))  # outermost first: no crossing at the start
    }
    width = max(lanes.values()) + MARGIN + 14
    height = TOP + ROW * len(packages) + 62
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="title">',
        '<title id="title">The packages of FOCI and what each imports</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}" rx="14"/>',
        _text(MARGIN, 42, "title", "The packages of FOCI"),
        _text(MARGIN, 68, "note", HOW_TO_READ),
        *_rows(packages, lanes, edges),
        *_lanes(packages, lanes, edges),
        *_cards(packages, sizes),
        *_footer(width, height),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _rows(
    packages: list[str], lanes: dict[str, int], edges: Counter[tuple[str, str]]
) -> Iterator[str]:
    """A thin line from each card to the furthest line that it imports from."""
    for row, importer in enumerate(packages):
        reached = [lanes[name] for name in packages[:row] if edges[importer, name]]
        if reached:
            x, y = MARGIN + CARD_WIDTH, _middle(row) - PORT
            yield f'<path class="row" d="M{x + 7} {y}H{max(reached)}"/>'
            yield f'<path class="tip" d="M{x + 2} {y}l8 -4.5v9z"/>'


def _lanes(
    packages: list[str], lanes: dict[str, int], edges: Counter[tuple[str, str]]
) -> Iterator[str]:
    """From each card a line to the right and down, with a dot in the row of each importer."""
    for row, package in enumerate(packages):
        below = [
            number for number in range(row + 1, len(packages)) if edges[packages[number], package]
        ]
        if not below:
            continue
        x, start, end = lanes[package], _middle(row) + PORT, _middle(below[-1]) - PORT
        path = f"M{MARGIN + CARD_WIDTH} {start}H{x - BEND}q{BEND} 0 {BEND} {BEND}V{end}"
        yield f'<path class="lane" stroke="{_colour(row)}" d="{path}"/>'
        for number in below:
            size = max(r for n, r in DOT_SIZES if edges[packages[number], package] >= n)
            y = _middle(number) - PORT
            yield f'<circle class="dot" cx="{x}" cy="{y}" r="{size}" fill="{_colour(row)}"/>'


def _cards(packages: list[str], sizes: Counter[str]) -> Iterator[str]:
    does = {**described(), API: API_DOES}
    for row, package in enumerate(packages):
        top = TOP + ROW * row
        count = "1 module" if sizes[package] == 1 else f"{sizes[package]} modules"
        name = f"{package}.py" if package == API else f"{package}/"
        yield (
            f'<rect class="card" x="{MARGIN}" y="{top}" width="{CARD_WIDTH}" '
            f'height="{CARD_HEIGHT}" rx="8"/>'
        )
        yield (
            f'<rect x="{MARGIN}" y="{top + 8}" width="5" height="{CARD_HEIGHT - 16}" rx="2.5" '
            f'fill="{_colour(row)}"/>'
        )
        yield _text(MARGIN + 18, top + 22, "name", name)
        yield _text(MARGIN + 18, top + 41, "does", does[package])
        yield _text(MARGIN + CARD_WIDTH - 14, top + 22, "count", count, anchor="end")


def _footer(width: int, height: int) -> Iterator[str]:
    names = ", ".join((*(f"{package}/" for package in GROUND), *modules_below()))
    yield _text(MARGIN, height - 44, "note", "Below all of them, importing none:")
    yield _text(MARGIN, height - 24, "note", names)
    x = width - MARGIN - 94 * len(DOT_SIZES)
    yield _text(x - 16, height - 44, "note", "imports", anchor="end")
    ends = [f" to {fewest - 1}" for fewest, _ in DOT_SIZES[1:]]
    for (fewest, size), end in zip(DOT_SIZES, [*ends, " or more"], strict=True):
        yield f'<circle class="tip" cx="{x}" cy="{height - 48}" r="{size}"/>'
        yield _text(x + 13, height - 44, "note", f"{fewest}{end}")
        x += 90


def layers() -> list[str]:
    """Packages, and ``api.py``, each of which may import those before it."""
    return [name for name in reversed(_contract()) if ":" not in name]


def modules_below() -> list[str]:
    """Modules directly in ``src/foci`` that every package may import."""
    (names,) = (name for name in _contract() if ":" in name)
    return [name for name in names.split(" : ") if not name.startswith("_")]


def _contract() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    first: list[str] = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return first


def _layer(module: str) -> str:
    return (*module.split("."), "")[1]


def described() -> dict[str, str]:
    """What happens in each package, as the table in CONTRIBUTING.md says it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `(\w+)/` \| (.+) \|$", text, flags=re.MULTILINE))


def _middle(row: int) -> int:
    return TOP + ROW * row + CARD_HEIGHT // 2


def _colour(row: int) -> str:
    """Neighbours far apart on the colour wheel, all of them readable on light and dark."""
    return f"hsl({(210 + 137.5 * row) % 360:.0f}, 52%, 52%)"


def _text(x: int, y: int, kind: str, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


if __name__ == "__main__":
    main()
