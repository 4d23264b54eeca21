"""A pathologist's outlines: polygons of QuPath's GeoJSON, and the share of every tile inside.

The share is exact up to rounding, not counted in pixels. Above an edge of a polygon lies a part of
the tile; the signed sum of these parts over all edges is the area inside. Where several polygons
meet in one tile, it is cut into strips between their corners and crossings, in which their order
does not change, so that no area counts twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError
from foci.files.bounds import read_json
from foci.slides.image import Box, first_line

Floats = NDArray[np.float64]

SUFFIXES = (".geojson", ".json")
_FIX = "export it again from QuPath, as GeoJSON"
_WHOLE = 1 - 1e-9


@dataclass(frozen=True, eq=False)
class Polygon:
    """One outline with its holes, as edges that have the inside on the same side.

    Attributes:
        name: Class, or None where it has none.
        starts: ``[E, 2]`` first point of every edge, in level-0 pixels.
        ends: ``[E, 2]`` second point.
    """

    name: str | None
    starts: Floats
    ends: Floats

    @property
    def low(self) -> Floats:
        """Smallest x and y."""
        low: Floats = self.starts.min(axis=0)
        return low

    @property
    def high(self) -> Floats:
        """Largest x and y."""
        high: Floats = self.starts.max(axis=0)
        return high

    @property
    def area(self) -> float:
        """In square pixels, holes left out."""
        return float(_signed_area(self.starts - self.low, self.ends - self.low))

    def shifted(self, x: float, y: float) -> Polygon:
        """The same outline at another place."""
        by = np.array([x, y])
        return replace(self, starts=self.starts + by, ends=self.ends + by)


def _signed_area(starts: Floats, ends: Floats) -> float:
    return float(((ends[:, 0] - starts[:, 0]) * (starts[:, 1] + ends[:, 1])).sum() / 2)


def polygon(rings: Sequence[Floats], name: str | None = None) -> Polygon:
    """An outline and its holes, each a ring of points, closed or not and in either direction.

    >>> square = np.array([[0, 0], [4, 0], [4, 4], [0, 4]])
    >>> polygon([square, square / 2 + 1]).area
    12.0
    """
    starts, ends = [], []
    for number, ring in enumerate(rings):
        first, second = np.asarray(ring, np.float64), np.roll(ring, -1, axis=0).astype(np.float64)
        if (_signed_area(first - first[0], second - first[0]) > 0) == (number > 0):
            first, second = second, first
        starts.append(first)
        ends.append(second)
    return Polygon(name, np.concatenate(starts), np.concatenate(ends))


def read_outlines(path: Path) -> list[Polygon]:
    """Polygons of a GeoJSON file of QuPath; points and lines, which have no area, are left out.

    Raises:
        FociError: If the file cannot be read, or an object in it is no outline.
    """
    try:
        content = read_json(path)
    except (OSError, ValueError) as error:
        raise FociError(path, f"cannot be read ({first_line(error)})", _FIX) from None
    if isinstance(content, Mapping):
        content = content.get("features", [content])
    if not isinstance(content, list):
        raise FociError(path, "holds no GeoJSON features", _FIX)
    found = []
    for number, feature in enumerate(content, 1):
        try:
            geometry = feature["geometry"] if feature.get("type") == "Feature" else feature
            name = _class_of(feature.get("properties") or {})
            found += [polygon(rings, name) for rings in _rings_of(geometry)]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            what = f"object {number} is no outline ({first_line(error)})"
            raise FociError(path, what, _FIX) from None
    return found


def _class_of(properties: Mapping[str, Any]) -> str | None:
    """Name of an object's class: QuPath writes ``name``, or ``names`` of a class and its parts."""
    own = properties.get("classification")
    if own is None:
        return None
    if isinstance(own, str):
        return own
    names = own.get("names")
    return str(own["name"]) if names is None else ": ".join(map(str, names))


def _rings_of(geometry: Mapping[str, Any] | None) -> Iterator[list[Floats]]:
    """The rings of every polygon of a geometry; none where it has no area."""
    if geometry is None:
        return
    kind = geometry["type"]
    if kind == "GeometryCollection":
        for part in geometry["geometries"]:
            yield from _rings_of(part)
        return
    if kind in ("Point", "MultiPoint", "LineString", "MultiLineString"):
        return
    if kind not in ("Polygon", "MultiPolygon"):
        raise ValueError(f"its type is {kind}")
    every = geometry["coordinates"]
    for one in every if kind == "MultiPolygon" else [every]:
        rings = [np.array([point[:2] for point in ring], np.float64) for ring in one]
        if any(ring.ndim != 2 or len(ring) < 3 for ring in rings):
            raise ValueError("a ring has fewer than three points")
        if not all(np.isfinite(ring).all() for ring in rings):
            raise ValueError("a coordinate is no number")
        if rings:
            yield rings


def of_class(polygons: Sequence[Polygon], name: str | None) -> list[Polygon]:
    """The polygons of a class, its derived ones (``Tumor: Positive``) among them; None for all."""
    return [
        one
        for one in polygons
        if name is None or one.name == name or (one.name or "").startswith(f"{name}: ")
    ]


def check_place(
    path: Path, polygons: Sequence[Polygon], corners: NDArray[np.int64], side: int, box: Box | None
) -> None:
    """Refuse outlines that are not of this slide: shifted, rotated, or at another resolution.

    Where the scanned part of the slide is known (``box``), no point may lie more than a tile
    outside of it; otherwise half of the outlined area must lie around the tiles.
    """
    fix = "check that it was drawn on this slide, at full resolution and not turned"
    if not polygons:
        return
    low = np.min([one.low for one in polygons], axis=0)
    high = np.max([one.high for one in polygons], axis=0)
    if box is not None:
        edge = np.array([box.x, box.y]), np.array([box.x + box.width, box.y + box.height])
        if (low < edge[0] - side).any() or (high > edge[1] + side).any():
            reach = f"{low[0]:.0f}, {low[1]:.0f} to {high[0]:.0f}, {high[1]:.0f}"
            what = f"reaches from {reach}, but the scan is {box.width} x {box.height} pixels"
            raise FociError(path, what, fix)
    around = corners.min(axis=0) - side
    size = corners.max(axis=0) + 2 * side - around
    there = [
        replace(p, starts=(p.starts - around) / size, ends=(p.ends - around) / size)
        for p in polygons
    ]
    near = sum(float(inside_shares([one], np.zeros((1, 2)), 1)[0]) for one in there)
    whole = sum(one.area for one in there)
    if near < whole / 2:
        what = f"has {100 * (1 - near / whole):.0f} % of its area far from all tiles"
        raise FociError(path, what, fix)


def inside_shares(polygons: Sequence[Polygon], corners: NDArray[Any], side: float) -> Floats:
    """Share of the area of every square tile that lies inside any of the polygons, ``[N]``.

    >>> half = polygon([np.array([[0, 0], [10, 0], [0, 10]])])
    >>> inside_shares([half], np.array([[0, 0], [10, 0]]), 10).tolist()
    [0.5, 0.0]
    """
    places = np.asarray(corners, np.float64)
    shares = np.zeros(len(places))
    touching: dict[int, list[Polygon]] = {}
    for one in polygons:
        near = ((places < one.high) & (places + side > one.low)).all(axis=1)
        rows = np.flatnonzero(near)
        own = _shares_of_one(one, places[rows], side)
        for row, share in zip(rows[own > 0].tolist(), own[own > 0].tolist(), strict=True):
            touching.setdefault(row, []).append(one)
            shares[row] = max(shares[row], share)
    for row, several in touching.items():
        if len(several) > 1 and shares[row] < _WHOLE:
            shares[row] = _share_of_union(several, places[row], side)
    return shares


def _shares_of_one(one: Polygon, places: Floats, side: float) -> Floats:
    shares = np.zeros(len(places))
    lows = np.minimum(one.starts[:, 0], one.ends[:, 0])
    highs = np.maximum(one.starts[:, 0], one.ends[:, 0])
    for left in np.unique(places[:, 0]):
        rows = np.flatnonzero(places[:, 0] == left)
        edges = (lows < left + side) & (highs > left) & (lows < highs)
        (x0, y0), (x1, y1) = one.starts[edges].T, one.ends[edges].T
        xa, xb = np.clip(x0, left, left + side), np.clip(x1, left, left + side)
        slope = (y1 - y0) / (x1 - x0)
        ya, yb = y0 + slope * (xa - x0), y0 + slope * (xb - x0)
        tops = places[rows, 1][:, None]
        below = _mean_clamped((ya - tops) / side, (yb - tops) / side)
        shares[rows] = (below * (xb - xa) / side).sum(axis=1)
    return np.clip(shares, 0, 1)


def _mean_clamped(first: Floats, last: Floats) -> Floats:
    """Mean of min(max(y, 0), 1) while y goes evenly from ``first`` to ``last``."""
    low, high = np.minimum(first, last), np.maximum(first, last)
    length = high - low
    level = length == 0
    safe = np.where(level, 1.0, length)
    above = np.clip(high - np.maximum(low, 1), 0, None) / safe
    inside = np.clip(np.minimum(high, 1) - np.maximum(low, 0), 0, None) / safe
    middle = (np.clip(low, 0, 1) + np.clip(high, 0, 1)) / 2
    mean: Floats = np.where(level, np.clip(low, 0, 1), above + inside * middle)
    return mean


def _share_of_union(polygons: Sequence[Polygon], place: Floats, side: float) -> float:
    """Share of one tile inside any polygon, strip by strip."""
    starts = np.concatenate([(one.starts - place) / side for one in polygons])
    ends = np.concatenate([(one.ends - place) / side for one in polygons])
    owner = np.repeat(np.arange(len(polygons)), [len(one.starts) for one in polygons])
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    near = (high[:, 0] > 0) & (low[:, 0] < 1) & (low[:, 0] < high[:, 0])
    starts, ends, owner = starts[near], ends[near], owner[near]
    slope = (ends[:, 1] - starts[:, 1]) / (ends[:, 0] - starts[:, 0])
    offset = starts[:, 1] - slope * starts[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = (offset[:, None] - offset) / (slope - slope[:, None])
    cuts = np.concatenate([[0, 1], starts[:, 0], ends[:, 0], crossings.ravel()])
    cuts = np.unique(cuts[(cuts >= 0) & (cuts <= 1)])
    low, high = np.minimum(starts, ends)[:, 0], np.maximum(starts, ends)[:, 0]
    share = 0.0
    for left, right in itertools.pairwise(cuts.tolist()):
        middle = (left + right) / 2
        across = np.flatnonzero((low < middle) & (high > middle))
        order = across[np.argsort(offset[across] + slope[across] * middle)]
        inside: set[int] = set()
        for edge in order.tolist():
            was = bool(inside)
            inside ^= {int(owner[edge])}
            if was != bool(inside):
                at = np.array([offset[edge] + slope[edge] * x for x in (left, right)])
                level = float(_mean_clamped(at[:1], at[1:])[0])
                share += (right - left) * (level if was else -level)
    return min(1.0, max(0.0, share))
