"""Draw the diagrams of the concepts page from a real audit.

    python -m tools.site.diagrams AUDIT

The audit needs the rankings ``native`` and ``evidence`` of a pooling classifier: the gallery's
``build/gallery/yes``, or ``foci-demo/audits/abmil``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import foci
from foci.audits.folder import RankedTiles
from foci.metrics import decisive_k, msk
from foci.metrics.minimal import smallest_flip
from foci.reveal import Curve
from tools.site.pages import DOCS
from tools.site.svg import Plot, dot, drawing, line, panel, text

PICTURES = DOCS / "images"
KAPPA, SHOWN = 0.9, 40
"""Confidence, and the largest count on a plot."""
MINUS = "\N{MINUS SIGN}"
WHOLE = "probability of the predicted class, whole slide"
FEW = range(6, 21)
"""Decisive counts that are easy to see on such a plot."""


TERMS = (9, 7, 6, 5, 4, 2, -1, -3, -4, -4, -4)
"""Weight times margin of the tiles of a small slide."""


@dataclass(frozen=True)
class Example:
    """One slide: its tiles in the order of a ranking, and both curves of the predicted class."""

    coords: NDArray[np.int64]
    counts: list[int]
    revealed: list[float]
    deleted: list[float]
    enough: int
    decisive: int


def main(audit: str) -> None:
    """Write the four pictures."""
    opened = foci.Audit.load(audit)
    sure = [float(curve.full.max()) for curve in opened.curves.get("native")]
    pictures = {
        "chain": chain(telling(opened, "native")),
        "sufficient-necessary": both_ways(telling(opened, "evidence")),
        "decided": decided(sure),
        "minimum": minimum(TERMS),
    }
    for name, picture in pictures.items():
        (PICTURES / f"concept-{name}.svg").write_text(picture, encoding="utf-8")


def telling(audit: foci.Audit, ranking: str) -> Example:
    """Of the slides with a decisive set of easy size, the one whose order needs most tiles."""
    insert, delete = (audit.curves.get(ranking, direction=d) for d in ("insert", "delete"))
    pairs = zip(audit.tiles(), insert, delete, strict=True)
    found = [one for slide in pairs if (one := _example(ranking, *slide)) is not None]
    if not found:
        raise ValueError(f"no slide has a decisive set of {FEW[0]} to {FEW[-1]} tiles")
    return max(found, key=lambda one: (one.enough, -abs(len(one.coords) - 250)))


def _example(ranking: str, tiles: RankedTiles, insert: Curve, delete: Curve) -> Example | None:
    target = int(insert.full.argmax())
    enough = msk(insert.probs, insert.ks, target, KAPPA)
    size = decisive_k(insert.probs, insert.ks, delete.probs, delete.ks, target, KAPPA)
    if enough is None or size is None or size not in FEW:
        return None
    if insert.full[target] < KAPPA or tiles.coords is None:
        return None
    order = np.argsort(-tiles.scores[ranking], kind="stable")
    revealed, deleted = (
        [float(p) for p in curve.probs[:SHOWN, target]] for curve in (insert, delete)
    )
    counts = [int(k) for k in insert.ks[:SHOWN]]
    return Example(tiles.coords[order], counts, revealed, deleted, enough, size)


def chain(slide: Example) -> str:
    """Bag, order, curve, count."""
    boxes = [(20, 230), (280, 230), (540, 330), (900, 160)]
    heads = ("1  a bag of tiles", "2  an order", "3  a curve", "4  a count")
    parts = [panel(x, 20, width, 270) for x, width in boxes]
    parts += [text(x + 14, 46, head, "title") for (x, _), head in zip(boxes, heads, strict=True)]
    parts += [f'<path class="arrow" d="M{x + 9} 149l14 8l-14 8z"/>' for x in (246, 506, 866)]
    parts += _map(slide, 35, first=0)
    parts += _map(slide, 295, first=slide.enough)
    parts.append(text(34, 276, f"{len(slide.coords)} tiles of one slide", "small"))
    parts.append(text(294, 276, "darker: earlier in the order", "small"))
    plot = Plot(590, 80, 230, 140, SHOWN)
    parts += plot.axes((1, 10, 20, 30, 40), "tiles revealed, K", "p of the predicted class")
    parts += plot.level(KAPPA, "κ 0.9")
    parts.append(plot.curve("in", slide.counts, slide.revealed))
    parts.append(plot.count(slide.enough))
    parts.append(dot("in-dot", *plot.at(slide.enough, slide.revealed[slide.enough - 1])))
    parts.append(text(980, 165, str(slide.enough), "big", "middle"))
    parts.append(text(980, 195, "tiles suffice", "", "middle"))
    parts.append(text(980, 214, "for this classifier", "small", "middle"))
    return drawing(1080, 310, "From a bag to an order, a curve and a count", parts)


def both_ways(slide: Example) -> str:
    """The curve of the first K tiles above, the curve without them below."""
    plot = Plot(80, 60, 420, 220, SHOWN)
    parts = plot.axes(
        (1, 10, 20, 30, 40), "K, tiles in the order of evidence", "probability of the decision"
    )
    parts += plot.level(KAPPA, "κ 0.9")
    parts.append(plot.curve("in", slide.counts, slide.revealed))
    parts.append(plot.curve("out", slide.counts, slide.deleted))
    parts += [plot.count(slide.enough), plot.count(slide.decisive)]
    parts.append(dot("in-dot", *plot.at(slide.enough, slide.revealed[slide.enough - 1])))
    parts.append(dot("out-dot", *plot.at(slide.decisive, slide.deleted[slide.decisive - 1])))
    x = 590
    suffice = "tile suffices" if slide.enough == 1 else "tiles suffice"
    lines = (
        ("only the first K tiles", "title in-text", 78),
        (f"{slide.enough} {suffice}: MSK is {slide.enough}.", "", 102),
        ("A classifier is easily sure.", "small", 122),
        ("all tiles but the first K", "title out-text", 164),
        (f"Without the first {slide.decisive} the decision flips.", "", 188),
        ("With fewer gone, it stands: others do as well.", "small", 208),
        (f"Decisive K is {slide.decisive}", "title", 250),
        ("These tiles suffice, and they are needed.", "", 274),
    )
    parts += [text(x, y, words, kind) for words, kind, y in lines]
    return drawing(920, 340, "Sufficient from one count on, necessary from another", parts)


def decided(sure: list[float]) -> str:
    """Every slide by how sure the classifier is of the whole slide."""
    left, width, base = 60, 640, 190
    count = sum(value >= KAPPA for value in sure)

    def at(value: float) -> float:
        return left + width * (value - 0.5) / 0.5

    edge = at(KAPPA)
    parts = [
        f'<rect class="shade" x="{edge:.1f}" y="54" width="{at(1) + 12 - edge:.1f}" height="136"/>',
        line("axis", [(left, base), (left + width + 12, base)]),
        line("mark", [(edge, 54), (edge, base)]),
        text(edge, base + 40, "κ", "title", "middle"),
        text(left, 40, f"{len(sure) - count} slides undecided: no decision to recover", "title"),
        text(left + width + 12, 40, f"{count} decided", "title", "end"),
        text(left + width / 2, base + 62, WHOLE, "small", "middle"),
    ]
    ticks = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    parts += [text(at(tick), base + 20, f"{tick:g}", "small", "middle") for tick in ticks]
    parts += _stacked(sorted(sure), at, base)
    return drawing(740, 270, "Decided and undecided slides of a cohort", parts)


def minimum(terms: Sequence[float]) -> str:
    """Theorem T1: terms of all tiles, largest first, and the fewest whose removal flips."""
    ordered = sorted(terms, reverse=True)
    size = smallest_flip(np.array(ordered, dtype=float))
    if size is None:
        raise ValueError("no set of these tiles flips the decision")
    left, middle, step, scale = 60, 190, 38, 13.0
    parts = [line("axis", [(left - 10, middle), (left + step * len(ordered), middle)])]
    for rank, term in enumerate(ordered):
        kind = "out-dot" if rank < size else "in-dot"
        x, top, tall = left + step * rank, middle - scale * max(term, 0.0), scale * abs(term)
        parts.append(f'<rect class="{kind}" x="{x}" y="{top:g}" width="28" height="{tall:g}"/>')
        y = top - 6 if term > 0 else top + tall + 16
        parts.append(text(x + 14, y, f"{term:+g}".replace("-", MINUS), "small", "middle"))
    total, rest = sum(ordered), sum(ordered[size:])
    edge = sum(ordered[size - 1 :])
    x = left + step * len(ordered) + 40
    lines = (
        (f"All tiles: {total:+g}", "title", 70),
        ("The model decides for the target.", "", 92),
        (f"Without the {size} largest: {rest:+g}", "title out-text", 140),
        ("The decision flips.", "", 162),
        (f"Without the {size - 1} largest: {edge:+g}", "title", 210),
        (f"No other {size - 1} leave less: no set of {size - 1} flips.", "", 232),
        (f"The smallest set has {size} tiles, proven.", "title", 280),
    )
    parts += [text(x, y, words.replace("-", MINUS), kind) for words, kind, y in lines]
    parts.append(text(left, 300, "weight times margin of every tile", "small"))
    return drawing(900, 320, "The smallest set that flips a decision", parts)


def _stacked(values: list[float], at: Callable[[float], float], base: float) -> Iterator[str]:
    """One dot per value, piled up where values share a column of the plot."""
    piles: Counter[int] = Counter()
    for value in values:
        column = int(at(value) // 11)
        piles[column] += 1
        kind = "in-dot" if value >= KAPPA else "off-dot"
        yield dot(kind, column * 11 + 5.5, base - 8 - 9.5 * (piles[column] - 1), 4.2)


def _map(slide: Example, left: float, first: int) -> Iterator[str]:
    """The tiles of the slide, the first ones of the order in colour."""
    corners = slide.coords - slide.coords.min(axis=0)
    steps = np.unique(corners[:, 0])
    grid = np.rint(corners / np.diff(steps).min()).astype(int)
    wide, high = grid.max(axis=0) + 1
    size = min(200 / wide, 190 / high)
    top = 60 + (190 - size * high) / 2
    for rank, (x, y) in enumerate(grid):
        kind = "in-dot" if rank < SHOWN and first else "tile"
        fade = 1 - 0.8 * rank / SHOWN if kind == "in-dot" else 1
        yield (
            f'<rect class="{kind}" x="{left + size * x:.1f}" y="{top + size * y:.1f}" '
            f'width="{size - 0.6:.1f}" height="{size - 0.6:.1f}" opacity="{fade:.2f}"/>'
        )


if __name__ == "__main__":
    main(sys.argv[1])
